==== postgres

-- table every_rule: its versions are kept beside (keep_versions: beside) and joined outside of the database

==== sqlite

-- SQLite has no procedures. Run the statement that hookfold sql prints: it takes one row, with the same parameters

==== mysql

-- MySQL has no procedures whose arguments go by name and may be left out. Run the statement that hookfold sql prints, or install the guard trigger

==== sqlserver

-- table every_rule: its versions are kept beside (keep_versions: beside) and joined outside of the database

