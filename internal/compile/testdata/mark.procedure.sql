==== postgres

-- table customer: deletes, complete lists, chains and counters are joined outside of the database, under locks. Rows that are marked as deleted can be written through a guard trigger (hookfold sql --guard-trigger)

==== sqlite

-- SQLite has no procedures. Run the statement that hookfold sql prints: it takes one row, with the same parameters

==== mysql

-- there are no procedures for MySQL yet. Run the statement that hookfold sql prints

==== sqlserver

-- table customer: deletes, complete lists, chains and counters are joined outside of the database, under locks. Rows that are marked as deleted can be written through a guard trigger (hookfold sql --guard-trigger)

