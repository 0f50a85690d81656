==== postgres

-- table ticket: column first_id: chain depends on links that are stored beside the rows. Leave guard out, and let Hookfold write the table by itself

==== sqlite

-- table ticket: SQLite has no guard trigger: a trigger there cannot change the row that is being written. Every writer of a SQLite file is a process of this machine: let it run the statement that hookfold sql prints

