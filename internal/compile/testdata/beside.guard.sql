==== postgres

-- table every_rule: a guard trigger joins by versions in the row, and keep_versions: beside keeps them elsewhere. Let the versions live in the table, or: Leave guard out, and let Hookfold alone write these columns

==== sqlite

-- table every_rule: SQLite has no guard trigger, since a trigger there cannot change the row that is being written. Whoever else writes the file can run the statement that hookfold sql prints

==== mysql

-- table every_rule: a guard trigger joins by versions in the row, and keep_versions: beside keeps them elsewhere. Let the versions live in the table, or: Leave guard out, and let Hookfold alone write these columns
-- table every_rule: column tags: union joins lists of JSON, which MySQL and MariaDB write differently, and a trigger is of one form for both. Leave guard out, and let Hookfold alone write these columns

==== sqlserver

-- table every_rule: SQL Server has no trigger that runs before a row is written. One that runs after it comes too late for an insert of a row that is there, and one that runs instead of it has to write the row by itself, which cascading foreign keys forbid and which takes identities and OUTPUT from the writer. Whoever else writes the table can call the procedure that hookfold sql --procedure prints

