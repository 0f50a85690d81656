==== postgres

-- Table customer for postgres. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: a parameter is an array with one element per row; v.p1 is an element of $1. No key may come twice in a batch.

-- What has to be there:
create table customer (
    id text collate "C" not null,
    email text,
    "plan" text,
    changed_at timestamp with time zone,
    row_version text collate "C",
    plan__first text collate "C",
    seen_version text collate "C",
    delete_version text collate "C",
    deleted_at timestamp with time zone,
    primary key (id)
);
create table if not exists hookfold_tombstones (
    table_name text collate "C" not null,
    "key" text collate "C" not null,
    delete_version text collate "C" not null,
    deleted_at timestamp with time zone,
    stored_at timestamp with time zone not null,
    primary key (table_name, "key")
);
create table if not exists hookfold_meta (
    table_name text collate "C" not null,
    purged_upto text collate "C" not null,
    primary key (table_name)
);

-- What becomes of a row is not told by the row alone. So in one transaction: lock, then read all that the batch
-- concerns, join it outside of the database, and store what has changed.

-- Lock, in a statement of its own: the keys' numbers, ascending.
select pg_advisory_xact_lock($1::int4, b) from unnest($2::int4[]) as b;

-- Read and lock rows:
--   $1 id: key, text
select v.hookfold_n, t.id, t.email, t."plan", t.row_version, t.plan__first, t.seen_version, t.delete_version, case when isfinite(t.deleted_at) then to_char(t.deleted_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') else t.deleted_at::text end, case when isfinite(t.changed_at) then to_char(t.changed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') else t.changed_at::text end
from unnest($1::text[]) with ordinality as v (p1, hookfold_n)
join customer as t on t.id = v.p1
order by v.hookfold_n
for no key update of t;

-- Read deletes of rows that are not there:
select t."key", t.delete_version, case when isfinite(t.deleted_at) then to_char(t.deleted_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') else t.deleted_at::text end from unnest($2::text[]) as v (p2) join hookfold_tombstones as t on t.table_name = $1 and t."key" = v.p2;

-- Read up to which version deletes were forgotten:
select t.purged_upto from hookfold_meta as t where t.table_name = $1;

-- Remove rows:
-- The same parameters.
delete from customer as t
using unnest($1::text[]) as v (p1)
where t.id = v.p1;

-- Change rows:
--   $1 id: key, text
--   $2 email: text, latest, set if row_version is not NULL
--   $3 plan: text, first
--   $4 row_version: version of scope row, NULL if it is not set
--   $5 plan__first: version of plan, NULL if it is not set
--   $6 seen_version: the greatest version of the row's writes
--   $7 delete_version: the version of its delete, NULL if there is none
--   $8 deleted_at: the time of its delete, NULL unless it is deleted
update customer as t
set email = excluded.p2,
    "plan" = excluded.p3,
    row_version = excluded.p4,
    plan__first = excluded.p5,
    seen_version = excluded.p6,
    delete_version = excluded.p7,
    deleted_at = excluded.p8,
    changed_at = case when excluded.p2 is distinct from t.email
      or excluded.p3 is distinct from t."plan"
      or excluded.p8 is distinct from t.deleted_at then clock_timestamp() else t.changed_at end
from (select v.p1 as p1,
    v.p2 as p2,
    v.p3 as p3,
    v.p4 as p4,
    v.p5 as p5,
    v.p6 as p6,
    v.p7 as p7,
    v.p8::timestamp with time zone as p8
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[]) as v (p1, p2, p3, p4, p5, p6, p7, p8)) as excluded
where t.id = excluded.p1
  and (excluded.p2 is distinct from t.email
   or excluded.p3 is distinct from t."plan"
   or excluded.p4 is distinct from t.row_version
   or excluded.p5 is distinct from t.plan__first
   or excluded.p6 is distinct from t.seen_version
   or excluded.p7 is distinct from t.delete_version
   or excluded.p8 is distinct from t.deleted_at);

-- Insert rows:
-- The same parameters.
insert into customer as t (id, email, "plan", row_version, plan__first, seen_version, delete_version, deleted_at, changed_at)
select v.p1,
    v.p2,
    v.p3,
    v.p4,
    v.p5,
    v.p6,
    v.p7,
    v.p8::timestamp with time zone,
    clock_timestamp()
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[]) as v (p1, p2, p3, p4, p5, p6, p7, p8)
on conflict (id) do nothing;

-- Remember deletes of rows that are not there,
insert into hookfold_tombstones (table_name, "key", delete_version, deleted_at, stored_at)
select $1, v.p2, v.p3, v.p4::timestamp with time zone, clock_timestamp() from unnest($2::text[], $3::text[], $4::text[]) as v (p2, p3, p4)
on conflict (table_name, "key") do update set delete_version = excluded.delete_version, deleted_at = excluded.deleted_at, stored_at = excluded.stored_at;

-- and forget those that a row remembers:
delete from hookfold_tombstones as t using unnest($2::text[]) as v (p2) where t.table_name = $1 and t."key" = v.p2;

==== sqlite

-- Table customer for sqlite. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for one row.

-- What has to be there:
create table customer (
    id text not null,
    email text,
    "plan" text,
    changed_at text,
    row_version text,
    plan__first text,
    seen_version text,
    delete_version text,
    deleted_at text,
    primary key (id)
);
create table if not exists hookfold_tombstones (
    table_name text not null,
    "key" text not null,
    delete_version text not null,
    deleted_at text,
    stored_at text not null,
    primary key (table_name, "key")
);
create table if not exists hookfold_meta (
    table_name text not null,
    purged_upto text not null,
    primary key (table_name)
);

-- What becomes of a row is not told by the row alone. So in one transaction: lock, then read all that the batch
-- concerns, join it outside of the database, and store what has changed.

-- Lock, in a statement of its own:
begin immediate;

-- Read and lock rows:
--   ?1 id: key, text
select +t.id, +t.email, +t."plan", +t.row_version, +t.plan__first, +t.seen_version, +t.delete_version, +t.deleted_at, +t.changed_at from customer as t where t.id = ?1;

-- Read deletes of rows that are not there:
select +t."key", +t.delete_version, +t.deleted_at from hookfold_tombstones as t where t.table_name = ?1 and t."key" = ?2;

-- Read up to which version deletes were forgotten:
select +t.purged_upto from hookfold_meta as t where t.table_name = ?1;

-- Remove rows:
-- The same parameters.
delete from customer as t where t.id = ?1;

-- Change rows:
--   ?1 id: key, text
--   ?2 email: text, latest, set if row_version is not NULL
--   ?3 plan: text, first
--   ?4 row_version: version of scope row, NULL if it is not set
--   ?5 plan__first: version of plan, NULL if it is not set
--   ?6 seen_version: the greatest version of the row's writes
--   ?7 delete_version: the version of its delete, NULL if there is none
--   ?8 deleted_at: the time of its delete, NULL unless it is deleted
update customer as t
set email = excluded.p2,
    "plan" = excluded.p3,
    row_version = excluded.p4,
    plan__first = excluded.p5,
    seen_version = excluded.p6,
    delete_version = excluded.p7,
    deleted_at = excluded.p8,
    changed_at = case when excluded.p2 collate binary is not t.email
      or excluded.p3 collate binary is not t."plan"
      or excluded.p8 collate binary is not t.deleted_at then strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z' else t.changed_at end
from (select ?1 as p1, ?2 as p2, ?3 as p3, ?4 as p4, ?5 as p5, ?6 as p6, ?7 as p7, ?8 as p8) as excluded
where t.id = excluded.p1
  and (excluded.p2 collate binary is not t.email
   or excluded.p3 collate binary is not t."plan"
   or excluded.p4 collate binary is not t.row_version
   or excluded.p5 collate binary is not t.plan__first
   or excluded.p6 collate binary is not t.seen_version
   or excluded.p7 collate binary is not t.delete_version
   or excluded.p8 collate binary is not t.deleted_at);

-- Insert rows:
-- The same parameters.
insert into customer as t (id, email, "plan", row_version, plan__first, seen_version, delete_version, deleted_at, changed_at)
values (?1,
    ?2,
    ?3,
    ?4,
    ?5,
    ?6,
    ?7,
    ?8,
    strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z')
on conflict (id) do nothing;

-- Remember deletes of rows that are not there,
insert into hookfold_tombstones (table_name, "key", delete_version, deleted_at, stored_at) values (?1, ?2, ?3, ?4, strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z')
on conflict (table_name, "key") do update set delete_version = excluded.delete_version, deleted_at = excluded.deleted_at, stored_at = excluded.stored_at;

-- and forget those that a row remembers:
delete from hookfold_tombstones as t where t.table_name = ?1 and t."key" = ?2;

