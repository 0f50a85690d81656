==== postgres

-- table line: on_delete: remove takes the row away, and a trigger that runs before an update cannot. Say on_delete: mark, or: Leave guard out, and let Hookfold write the table by itself

==== sqlite

-- table line: SQLite has no guard trigger: a trigger there cannot change the row that is being written. Every writer of a SQLite file is a process of this machine: let it run the statement that hookfold sql prints

