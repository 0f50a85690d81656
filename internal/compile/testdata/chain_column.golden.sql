==== postgres

-- Table ticket for postgres. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: a parameter is an array with one element per row; v.p1 is an element of $1. No key may come twice in a batch.

-- What has to be there:
create table ticket (
    id text collate "C" not null,
    status text,
    first_id text,
    row_version text collate "C",
    primary key (id)
);
create table if not exists hookfold_links (
    table_name text collate "C" not null,
    old text collate "C" not null,
    new text collate "C" not null,
    primary key (table_name, old, new)
);
create table if not exists hookfold_aliases (
    table_name text collate "C" not null,
    identity text collate "C" not null,
    root text collate "C" not null,
    primary key (table_name, identity)
);
create index if not exists hookfold_aliases_root on hookfold_aliases (table_name, root);

-- What becomes of a row is not told by the row alone. So in one transaction: lock, then read all that the batch
-- concerns, join it outside of the database, and store what has changed.

-- Lock, in a statement of its own: the table's numbers, ascending.
select pg_advisory_xact_lock($1::int4, b) from unnest($2::int4[]) as b;

-- Read which chains identities belong to (the first parameter of such statements is the table's name),
select t.identity, t.root from unnest($2::text[]) as v (p2) join hookfold_aliases as t on t.table_name = $1 and t.identity = v.p2;

-- their other identities,
select t.identity, t.root from unnest($2::text[]) as v (p2) join hookfold_aliases as t on t.table_name = $1 and t.root = v.p2;

-- and what follows what:
select t.old, t.new from unnest($2::text[]) as v (p2) join hookfold_links as t on t.table_name = $1 and t.old = v.p2;

-- Read and lock rows:
--   $1 id: key, text
select v.hookfold_n, t.id, t.status, t.first_id, t.row_version
from unnest($1::text[]) with ordinality as v (p1, hookfold_n)
join ticket as t on t.id = v.p1
order by v.hookfold_n
for no key update of t;

-- Remove rows:
-- The same parameters.
delete from ticket as t
using unnest($1::text[]) as v (p1)
where t.id = v.p1;

-- Change rows:
--   $1 id: key, text
--   $2 status: text, latest, set if row_version is not NULL
--   $3 first_id: text, chain
--   $4 row_version: version of scope row, NULL if it is not set
update ticket as t
set status = excluded.p2,
    first_id = excluded.p3,
    row_version = excluded.p4
from (select v.p1 as p1,
    v.p2 as p2,
    v.p3 as p3,
    v.p4 as p4
    from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as v (p1, p2, p3, p4)) as excluded
where t.id = excluded.p1
  and (excluded.p2 is distinct from t.status
   or excluded.p3 is distinct from t.first_id
   or excluded.p4 is distinct from t.row_version);

-- Insert rows:
-- The same parameters.
insert into ticket as t (id, status, first_id, row_version)
select v.p1,
    v.p2,
    v.p3,
    v.p4
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as v (p1, p2, p3, p4)
on conflict (id) do nothing;

-- Remember links:
insert into hookfold_links (table_name, old, new)
select $1, v.p2, v.p3 from unnest($2::text[], $3::text[]) as v (p2, p3)
on conflict (table_name, old, new) do nothing;

-- Point identities to their chain:
insert into hookfold_aliases (table_name, identity, root)
select $1, v.p2, v.p3 from unnest($2::text[], $3::text[]) as v (p2, p3)
on conflict (table_name, identity) do update set root = excluded.root;

==== sqlite

-- Table ticket for sqlite. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for one row.

-- What has to be there:
create table ticket (
    id text not null,
    status text,
    first_id text,
    row_version text,
    primary key (id)
);
create table if not exists hookfold_links (
    table_name text not null,
    old text not null,
    new text not null,
    primary key (table_name, old, new)
);
create table if not exists hookfold_aliases (
    table_name text not null,
    identity text not null,
    root text not null,
    primary key (table_name, identity)
);
create index if not exists hookfold_aliases_root on hookfold_aliases (table_name, root);

-- What becomes of a row is not told by the row alone. So in one transaction: lock, then read all that the batch
-- concerns, join it outside of the database, and store what has changed.

-- Lock, in a statement of its own:
begin immediate;

-- Read which chains identities belong to (the first parameter of such statements is the table's name),
select +t.identity, +t.root from hookfold_aliases as t where t.table_name = ?1 and t.identity = ?2;

-- their other identities,
select +t.identity, +t.root from hookfold_aliases as t where t.table_name = ?1 and t.root = ?2;

-- and what follows what:
select +t.old, +t.new from hookfold_links as t where t.table_name = ?1 and t.old = ?2;

-- Read and lock rows:
--   ?1 id: key, text
select +t.id, +t.status, +t.first_id, +t.row_version from ticket as t where t.id = ?1;

-- Remove rows:
-- The same parameters.
delete from ticket as t where t.id = ?1;

-- Change rows:
--   ?1 id: key, text
--   ?2 status: text, latest, set if row_version is not NULL
--   ?3 first_id: text, chain
--   ?4 row_version: version of scope row, NULL if it is not set
update ticket as t
set status = excluded.p2,
    first_id = excluded.p3,
    row_version = excluded.p4
from (select ?1 as p1, ?2 as p2, ?3 as p3, ?4 as p4) as excluded
where t.id = excluded.p1
  and (excluded.p2 collate binary is not t.status
   or excluded.p3 collate binary is not t.first_id
   or excluded.p4 collate binary is not t.row_version);

-- Insert rows:
-- The same parameters.
insert into ticket as t (id, status, first_id, row_version)
values (?1,
    ?2,
    ?3,
    ?4)
on conflict (id) do nothing;

-- Remember links:
insert into hookfold_links (table_name, old, new) values (?1, ?2, ?3)
on conflict (table_name, old, new) do nothing;

-- Point identities to their chain:
insert into hookfold_aliases (table_name, identity, root) values (?1, ?2, ?3)
on conflict (table_name, identity) do update set root = excluded.root;

