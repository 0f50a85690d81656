==== postgres

-- table booking: a guard trigger joins what is stored with what comes, and a row with occupants is replaced by its newest occupant, never joined. Leave guard out, and let Hookfold write the table by itself

==== sqlite

-- table booking: SQLite has no guard trigger: a trigger there cannot change the row that is being written. Every writer of a SQLite file is a process of this machine: let it run the statement that hookfold sql prints

