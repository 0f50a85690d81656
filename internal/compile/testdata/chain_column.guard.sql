==== postgres

-- table ticket: column first_id: chain depends on links that are stored beside the rows. Leave guard out, and let Hookfold alone write these columns

==== sqlite

-- table ticket: SQLite has no guard trigger, since a trigger there cannot change the row that is being written. Whoever else writes the file can run the statement that hookfold sql prints

==== mysql

-- table ticket: column first_id: chain depends on links that are stored beside the rows. Leave guard out, and let Hookfold alone write these columns

==== sqlserver

-- table ticket: SQL Server has no trigger that runs before a row is written. One that runs after it comes too late for an insert of a row that is there, and one that runs instead of it has to write the row by itself, which cascading foreign keys forbid and which takes identities and OUTPUT from the writer. Whoever else writes the table can call the procedure that hookfold sql --procedure prints

