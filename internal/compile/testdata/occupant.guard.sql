==== postgres

-- table booking: a guard trigger joins what is stored with what comes, and a row with occupants is replaced by that of its newest occupant. Leave guard out, and let Hookfold alone write these columns

==== sqlite

-- table booking: SQLite has no guard trigger, since a trigger there cannot change the row that is being written. Whoever else writes the file can run the statement that hookfold sql prints

==== sqlserver

-- table booking: SQL Server has no trigger that runs before a row is written: one that runs after it comes too late for an insert of a row that is there. Whoever else writes the table can call the procedure that hookfold sql --procedure prints

