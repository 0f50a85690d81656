==== postgres

-- table booking: what becomes of a row with occupants that are deleted or follow each other is not told by its newest occupant alone. Leave guard out, and let Hookfold alone write these columns
-- table booking: column moves: count adds up amounts by event, and a row that comes does not tell its event. Keep a row per event and add up when you read, or: Leave guard out, and let Hookfold alone write these columns

==== sqlite

-- table booking: SQLite has no guard trigger, since a trigger there cannot change the row that is being written. Whoever else writes the file can run the statement that hookfold sql prints

==== mysql

-- table booking: what becomes of a row with occupants that are deleted or follow each other is not told by its newest occupant alone. Leave guard out, and let Hookfold alone write these columns
-- table booking: column moves: count adds up amounts by event, and a row that comes does not tell its event. Keep a row per event and add up when you read, or: Leave guard out, and let Hookfold alone write these columns
-- table booking: the guard trigger of MySQL does not show occupants in their row. Leave guard out, and let Hookfold alone write these columns
-- table booking: a delete of a row that is not there would have to leave out the INSERT, which a trigger of MySQL cannot. Leave guard out, and let Hookfold alone write these columns

==== sqlserver

-- table booking: SQL Server has no trigger that runs before a row is written. One that runs after it comes too late for an insert of a row that is there, and one that runs instead of it has to write the row by itself, which cascading foreign keys forbid and which takes identities and OUTPUT from the writer. Whoever else writes the table can call the procedure that hookfold sql --procedure prints

