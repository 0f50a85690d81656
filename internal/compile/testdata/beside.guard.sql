==== postgres

-- table every_rule: a guard trigger joins by versions in the row, and keep_versions: beside keeps them elsewhere. Let the versions live in the table, or: Leave guard out, and let Hookfold write the table by itself

==== sqlite

-- table every_rule: SQLite has no guard trigger: a trigger there cannot change the row that is being written. Every writer of a SQLite file is a process of this machine: let it run the statement that hookfold sql prints

