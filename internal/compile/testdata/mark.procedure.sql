==== postgres

-- table customer: deletes, complete lists, chains and counters are joined outside of the database, under locks. Rows that are marked as deleted can be written through a guard trigger (hookfold sql --guard-trigger)

==== sqlite

-- SQLite has no procedures. Run the statement that hookfold sql prints: it takes one row, with the same parameters

==== sqlserver

-- table customer: deletes, complete lists, chains and counters are joined outside of the database, under locks. Rows that are marked as deleted can be written through a guard trigger (hookfold sql --guard-trigger)

