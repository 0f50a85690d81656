==== postgres

-- table every_rule: its versions are kept beside (keep_versions: beside) and joined outside of the database

==== sqlite

-- SQLite has no procedures. Run the statement that hookfold sql prints: it takes one row, with the same parameters

==== sqlserver

-- table every_rule: its versions are kept beside (keep_versions: beside) and joined outside of the database

