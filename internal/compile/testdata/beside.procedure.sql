==== postgres

-- table every_rule: its versions are kept beside (keep_versions: beside) and joined outside of the database

==== sqlite

-- SQLite has no procedures. Run the statement that hookfold sql prints: it takes one row, with the same parameters

==== mysql

-- there are no procedures for MySQL yet. Run the statement that hookfold sql prints

==== sqlserver

-- table every_rule: its versions are kept beside (keep_versions: beside) and joined outside of the database

