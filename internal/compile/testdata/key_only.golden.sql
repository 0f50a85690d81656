==== postgres

-- Table user for postgres. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: a parameter is an array with one element per row; v.p1 is an element of $1. No key may come twice in a batch.

-- What has to be there:
create table "user" (
    id uuid not null,
    primary key (id)
);

-- Join rows into the table:
--   $1 id: key, uuid
insert into "user" as t (id)
select v.p1::uuid
from unnest($1::text[]) as v (p1)
on conflict (id) do nothing;

==== sqlite

-- Table user for sqlite. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for one row.

-- What has to be there:
create table "user" (
    id text not null,
    primary key (id)
);

-- Join rows into the table:
--   ?1 id: key, uuid
insert into "user" as t (id)
values (?1)
on conflict (id) do nothing;

