==== postgres

-- table line: on_delete: remove takes the row away, which a trigger that runs before an update cannot. Say on_delete: mark, or: Leave guard out, and let Hookfold alone write these columns

==== sqlite

-- table line: SQLite has no guard trigger, since a trigger there cannot change the row that is being written. Whoever else writes the file can run the statement that hookfold sql prints

==== mysql

-- table line: on_delete: remove takes the row away, which a trigger that runs before an update cannot. Say on_delete: mark, or: Leave guard out, and let Hookfold alone write these columns
-- table line: a delete of a row that is not there would have to leave out the INSERT, which a trigger of MySQL cannot. Leave guard out, and let Hookfold alone write these columns

==== sqlserver

-- table line: SQL Server has no trigger that runs before a row is written. One that runs after it comes too late for an insert of a row that is there, and one that runs instead of it has to write the row by itself, which cascading foreign keys forbid and which takes identities and OUTPUT from the writer. Whoever else writes the table can call the procedure that hookfold sql --procedure prints

