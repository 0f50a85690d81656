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

==== mysql

-- Table customer for mysql. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch, and has one parameter: a JSON list with a list per row, in it a text, or null, for each of what is named below as v.p1, v.p2, ….
-- A text is what the database reads as such a value: 1 and 0 for bool, 2006-01-02 15:04:05.000000 in UTC for a timestamp, hexadecimal digits for bytes.
-- No key may come twice in a batch; rows are sorted by their key. The session is READ COMMITTED, in utf8mb4, has time_zone '+00:00' and a strict sql_mode.
-- CREATE and ALTER TABLE commit what the session has done before them.

-- What has to be there:
create table `customer` (
    `id` varchar(255) character set utf8mb4 collate utf8mb4_bin not null,
    `email` longtext character set utf8mb4,
    `plan` longtext character set utf8mb4,
    `changed_at` datetime(6),
    `row_version` varchar(255) character set ascii collate ascii_bin,
    `plan__first` varchar(255) character set ascii collate ascii_bin,
    `seen_version` varchar(255) character set ascii collate ascii_bin,
    `delete_version` varchar(255) character set ascii collate ascii_bin,
    `deleted_at` datetime(6),
    primary key (`id`)
) engine = InnoDB default character set utf8mb4;
create table if not exists `hookfold_tombstones` (
    `table_name` varbinary(256) not null,
    `key` varbinary(1200) not null,
    `delete_version` varchar(255) character set ascii collate ascii_bin not null,
    `deleted_at` datetime(6),
    `stored_at` datetime(6) not null,
    primary key (`table_name`, `key`)
) engine = InnoDB default character set utf8mb4;
create table if not exists `hookfold_meta` (
    `table_name` varbinary(256) not null,
    `purged_upto` varchar(255) character set ascii collate ascii_bin not null,
    primary key (`table_name`)
) engine = InnoDB default character set utf8mb4;
create table if not exists `hookfold_locks` (
    `n` int not null,
    primary key (`n`)
) engine = InnoDB default character set utf8mb4;

-- What becomes of a row is not told by the row alone. So in one transaction: lock, then read all that the batch
-- concerns, join it outside of the database, and store what has changed.

-- Lock, in a statement of its own: the keys' numbers, ascending; their rows are locked until the transaction ends.
insert into `hookfold_locks` (n)
select v.p1 from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]')) as v
on duplicate key update n = `hookfold_locks`.n;

-- Read and lock rows:
--   v.p1 id: key, text
select v.hookfold_n, t.`id`, t.`email`, t.`plan`, t.`row_version`, t.`plan__first`, t.`seen_version`, t.`delete_version`, date_format(t.`deleted_at`, '%Y-%m-%dT%H:%i:%s.%fZ'), date_format(t.`changed_at`, '%Y-%m-%dT%H:%i:%s.%fZ')
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]')) as v
straight_join `customer` as t force index (`PRIMARY`) on t.`id` = v.p1
for update;

-- Read deletes of rows that are not there:
select convert(t.`key` using utf8mb4), t.`delete_version`, date_format(t.`deleted_at`, '%Y-%m-%dT%H:%i:%s.%fZ') from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]')) as v
straight_join `hookfold_tombstones` as t force index (`PRIMARY`) on t.`table_name` = cast(v.p1 as binary) and t.`key` = cast(v.p2 as binary);

-- Read up to which version deletes were forgotten:
select t.`purged_upto` from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]')) as v
straight_join `hookfold_meta` as t force index (`PRIMARY`) on t.`table_name` = cast(v.p1 as binary);

-- Remove rows:
-- The same parameters.
delete t
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]')) as v
straight_join `customer` as t force index (`PRIMARY`) on t.`id` = v.p1;

-- Change rows:
--   v.p1 id: key, text
--   v.p2 email: text, latest, set if row_version is not NULL
--   v.p3 plan: text, first
--   v.p4 row_version: version of scope row, NULL if it is not set
--   v.p5 plan__first: version of plan, NULL if it is not set
--   v.p6 seen_version: the greatest version of the row's writes
--   v.p7 delete_version: the version of its delete, NULL if there is none
--   v.p8 deleted_at: the time of its delete, NULL unless it is deleted
update (select v.p1 as p1,
    v.p2 as p2,
    v.p3 as p3,
    v.p4 as p4,
    v.p5 as p5,
    v.p6 as p6,
    v.p7 as p7,
    cast(v.p8 as datetime(6)) as p8
    from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]', p5 longtext character set utf8mb4 collate utf8mb4_bin path '$[4]', p6 longtext character set utf8mb4 collate utf8mb4_bin path '$[5]', p7 longtext character set utf8mb4 collate utf8mb4_bin path '$[6]', p8 longtext character set utf8mb4 collate utf8mb4_bin path '$[7]')) as v) as excluded
straight_join `customer` as t force index (`PRIMARY`) on t.`id` = excluded.p1
set t.`changed_at` = case when not (cast(excluded.p2 as binary) <=> cast(t.`email` as binary))
      or not (cast(excluded.p3 as binary) <=> cast(t.`plan` as binary))
      or not (excluded.p8 <=> t.`deleted_at`) then utc_timestamp(6) else t.`changed_at` end,
    t.`email` = excluded.p2,
    t.`plan` = excluded.p3,
    t.`row_version` = excluded.p4,
    t.`plan__first` = excluded.p5,
    t.`seen_version` = excluded.p6,
    t.`delete_version` = excluded.p7,
    t.`deleted_at` = excluded.p8;

-- Insert rows:
-- The same parameters.
insert into `customer` (`id`, `email`, `plan`, `row_version`, `plan__first`, `seen_version`, `delete_version`, `deleted_at`, `changed_at`)
select v.p1,
    v.p2,
    v.p3,
    v.p4,
    v.p5,
    v.p6,
    v.p7,
    cast(v.p8 as datetime(6)),
    utc_timestamp(6)
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]', p5 longtext character set utf8mb4 collate utf8mb4_bin path '$[4]', p6 longtext character set utf8mb4 collate utf8mb4_bin path '$[5]', p7 longtext character set utf8mb4 collate utf8mb4_bin path '$[6]', p8 longtext character set utf8mb4 collate utf8mb4_bin path '$[7]')) as v
on duplicate key update `id` = `customer`.`id`;

-- Remember deletes of rows that are not there,
insert into `hookfold_tombstones` (`table_name`, `key`, `delete_version`, `deleted_at`, `stored_at`)
select v.p1, v.p2, v.p3, replace(replace(v.p4, 'T', ' '), 'Z', ''), utc_timestamp(6) from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]')) as v
on duplicate key update `delete_version` = values(`delete_version`), `deleted_at` = values(`deleted_at`), `stored_at` = values(`stored_at`);

-- and forget those that a row remembers:
delete t from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]')) as v
straight_join `hookfold_tombstones` as t force index (`PRIMARY`) on t.`table_name` = cast(v.p1 as binary) and t.`key` = cast(v.p2 as binary);

==== sqlserver

-- Table customer for sqlserver. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: @rows is a JSON list with an object per row, with the number n of the row and a text, or null, for each of p1, p2, …; v.p1 is p1. No key may come twice in a batch. @table is the name of the table.

-- What has to be there:
create table [customer] (
    [id] nvarchar(450) collate Latin1_General_BIN2 not null,
    [email] nvarchar(max),
    [plan] nvarchar(max),
    [changed_at] datetimeoffset(6),
    [row_version] nvarchar(450) collate Latin1_General_BIN2,
    [plan__first] nvarchar(450) collate Latin1_General_BIN2,
    [seen_version] nvarchar(450) collate Latin1_General_BIN2,
    [delete_version] nvarchar(450) collate Latin1_General_BIN2,
    [deleted_at] datetimeoffset(6),
    primary key ([id])
);
if object_id(N'[hookfold_tombstones]', N'U') is null
create table [hookfold_tombstones] (
    [table_name] nvarchar(128) collate Latin1_General_BIN2 not null,
    [key] nvarchar(500) collate Latin1_General_BIN2 not null,
    [delete_version] nvarchar(255) collate Latin1_General_BIN2 not null,
    [deleted_at] datetimeoffset(6),
    [stored_at] datetimeoffset(6) not null,
    primary key nonclustered ([table_name], [key])
);
if object_id(N'[hookfold_meta]', N'U') is null
create table [hookfold_meta] (
    [table_name] nvarchar(128) collate Latin1_General_BIN2 not null,
    [purged_upto] nvarchar(255) collate Latin1_General_BIN2 not null,
    primary key nonclustered ([table_name])
);

-- What becomes of a row is not told by the row alone. So in one transaction: lock, then read all that the batch
-- concerns, join it outside of the database, and store what has changed.

-- Lock, in a statement of its own: the keys' numbers, ascending, each by:
exec @got = sp_getapplock @Resource = N'hookfold 0', @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 1000;

-- Read and lock rows:
--   p1 id: key, text
select v.n, t.[id], t.[email], t.[plan], t.[row_version], t.[plan__first], t.[seen_version], t.[delete_version], t.[deleted_at], t.[changed_at]
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1') as v
join [customer] as t with (updlock, rowlock) on t.[id] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[id] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2
order by v.n;

-- Read deletes of rows that are not there:
select t.[key], t.[delete_version], t.[deleted_at] from openjson(@rows) with (p2 nvarchar(max) '$.p2') as v join [hookfold_tombstones] as t on t.[table_name] = @table and t.[key] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000));

-- Read up to which version deletes were forgotten:
select t.[purged_upto] from [hookfold_meta] as t where t.[table_name] = @table;

-- Remove rows:
-- The same parameters.
delete t
from [customer] as t
join openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1') as v on t.[id] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[id] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2;

-- Change rows:
--   p1 id: key, text
--   p2 email: text, latest, set if row_version is not NULL
--   p3 plan: text, first
--   p4 row_version: version of scope row, NULL if it is not set
--   p5 plan__first: version of plan, NULL if it is not set
--   p6 seen_version: the greatest version of the row's writes
--   p7 delete_version: the version of its delete, NULL if there is none
--   p8 deleted_at: the time of its delete, NULL unless it is deleted
update t
set [email] = excluded.p2,
    [plan] = excluded.p3,
    [row_version] = excluded.p4,
    [plan__first] = excluded.p5,
    [seen_version] = excluded.p6,
    [delete_version] = excluded.p7,
    [deleted_at] = excluded.p8,
    [changed_at] = case when ((cast(excluded.p2 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[email] as nvarchar(max)) + N'.' or (excluded.p2 is null and t.[email] is not null) or (excluded.p2 is not null and t.[email] is null))
      or ((cast(excluded.p3 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[plan] as nvarchar(max)) + N'.' or (excluded.p3 is null and t.[plan] is not null) or (excluded.p3 is not null and t.[plan] is null))
      or (excluded.p8 <> t.[deleted_at] or (excluded.p8 is null and t.[deleted_at] is not null) or (excluded.p8 is not null and t.[deleted_at] is null)) then sysutcdatetime() else t.[changed_at] end
from [customer] as t
join (select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) as p1, v.p2 as p2, v.p3 as p3, v.p4 collate Latin1_General_BIN2 as p4, v.p5 collate Latin1_General_BIN2 as p5, v.p6 collate Latin1_General_BIN2 as p6, v.p7 collate Latin1_General_BIN2 as p7, cast(replace(v.p8, N'Z', N'+00:00') as datetimeoffset(6)) as p8
    from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5', p6 nvarchar(max) '$.p6', p7 nvarchar(max) '$.p7', p8 nvarchar(max) '$.p8') as v) as excluded on t.[id] = excluded.p1 and (t.[id] + N'.') collate Latin1_General_BIN2 = (excluded.p1 + N'.') collate Latin1_General_BIN2
where (((cast(excluded.p2 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[email] as nvarchar(max)) + N'.' or (excluded.p2 is null and t.[email] is not null) or (excluded.p2 is not null and t.[email] is null))
   or ((cast(excluded.p3 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[plan] as nvarchar(max)) + N'.' or (excluded.p3 is null and t.[plan] is not null) or (excluded.p3 is not null and t.[plan] is null))
   or (excluded.p4 <> t.[row_version] or (excluded.p4 is null and t.[row_version] is not null) or (excluded.p4 is not null and t.[row_version] is null))
   or (excluded.p5 <> t.[plan__first] or (excluded.p5 is null and t.[plan__first] is not null) or (excluded.p5 is not null and t.[plan__first] is null))
   or (excluded.p6 <> t.[seen_version] or (excluded.p6 is null and t.[seen_version] is not null) or (excluded.p6 is not null and t.[seen_version] is null))
   or (excluded.p7 <> t.[delete_version] or (excluded.p7 is null and t.[delete_version] is not null) or (excluded.p7 is not null and t.[delete_version] is null))
   or (excluded.p8 <> t.[deleted_at] or (excluded.p8 is null and t.[deleted_at] is not null) or (excluded.p8 is not null and t.[deleted_at] is null)));

-- Insert rows:
-- The same parameters.
declare @hookfold_tries int = 5;
while @hookfold_tries > 0
begin
begin try
insert into [customer] ([id], [email], [plan], [row_version], [plan__first], [seen_version], [delete_version], [deleted_at], [changed_at])
select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)),
    v.p2,
    v.p3,
    v.p4 collate Latin1_General_BIN2,
    v.p5 collate Latin1_General_BIN2,
    v.p6 collate Latin1_General_BIN2,
    v.p7 collate Latin1_General_BIN2,
    cast(replace(v.p8, N'Z', N'+00:00') as datetimeoffset(6)),
    sysutcdatetime()
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5', p6 nvarchar(max) '$.p6', p7 nvarchar(max) '$.p7', p8 nvarchar(max) '$.p8') as v
where not exists (select 1 from [customer] as t where t.[id] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[id] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2);
set @hookfold_tries = 0;
end try
begin catch
set @hookfold_tries = @hookfold_tries - 1;
if @hookfold_tries = 0 or xact_state() = -1 or not (error_number() in (2601, 2627))
begin
    throw;
end;
end catch;
end;

-- Remember deletes of rows that are not there,
update t set [delete_version] = cast(v.p3 collate Latin1_General_BIN2 as nvarchar(4000)),
    [deleted_at] = cast(replace(v.p4, N'Z', N'+00:00') as datetimeoffset(6)),
    [stored_at] = sysutcdatetime()
from [hookfold_tombstones] as t join openjson(@rows) with (p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4') as v on t.[table_name] = @table and t.[key] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000));
insert into [hookfold_tombstones] ([table_name], [key], [delete_version], [deleted_at], [stored_at])
select @table, cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)), cast(v.p3 collate Latin1_General_BIN2 as nvarchar(4000)), cast(replace(v.p4, N'Z', N'+00:00') as datetimeoffset(6)), sysutcdatetime() from openjson(@rows) with (p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4') as v
where not exists (select 1 from [hookfold_tombstones] as t where t.[table_name] = @table and t.[key] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)));

-- and forget those that a row remembers:
delete t from [hookfold_tombstones] as t join openjson(@rows) with (p2 nvarchar(max) '$.p2') as v on t.[table_name] = @table and t.[key] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000));

