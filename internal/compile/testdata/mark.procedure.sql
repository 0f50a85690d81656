==== postgres

-- table customer: deletes, complete lists, chains and counters are joined outside of the database, under locks. Rows that are marked as deleted can be written through a guard trigger (hookfold sql --guard-trigger)

==== sqlite

-- SQLite has no procedures. Run the statement that hookfold sql prints: it takes one row, with the same parameters

==== mysql

-- MySQL has no procedures whose arguments go by name and may be left out. Run the statement that hookfold sql prints, or install the guard trigger

==== sqlserver

-- table customer: deletes, complete lists, chains and counters are joined outside of the database, under locks. Rows that are marked as deleted can be written through a guard trigger (hookfold sql --guard-trigger)

