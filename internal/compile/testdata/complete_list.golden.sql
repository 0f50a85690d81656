==== postgres

-- Table line for postgres. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: a parameter is an array with one element per row; v.p1 is an element of $1. No key may come twice in a batch.

-- What has to be there:
create table line (
    order_id text collate "C" not null,
    line bigint not null,
    qty bigint,
    row_version text collate "C",
    seen_version text collate "C",
    primary key (order_id, line)
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
create table if not exists hookfold_sets (
    table_name text collate "C" not null,
    group_key text collate "C" not null,
    version text collate "C" not null,
    at timestamp with time zone,
    primary key (table_name, group_key)
);

-- What becomes of a row is not told by the row alone. So in one transaction: lock, then read all that the batch
-- concerns, join it outside of the database, and store what has changed.

-- Lock, in a statement of its own: the groups' numbers, ascending.
select pg_advisory_xact_lock($1::int4, b) from unnest($2::int4[]) as b;

-- Read when groups were complete; a key is a JSON list of its parts:
select t.group_key, t.version, case when isfinite(t.at) then to_char(t.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') else t.at::text end from unnest($2::text[]) as v (p2) join hookfold_sets as t on t.table_name = $1 and t.group_key = v.p2;

-- Read and lock the rows of groups that are now complete anew:
--   $1 order_id: key, text
select v.hookfold_n, t.order_id, t.line::text, t.qty::text, t.row_version, t.seen_version
from unnest($1::text[]) with ordinality as v (p1, hookfold_n)
join line as t on t.order_id = v.p1
order by v.hookfold_n
for no key update of t;

-- Read and lock rows:
--   $1 order_id: key, text
--   $2 line: key, int
select v.hookfold_n, t.order_id, t.line::text, t.qty::text, t.row_version, t.seen_version
from unnest($1::text[], $2::text[]) with ordinality as v (p1, p2, hookfold_n)
join line as t on t.order_id = v.p1 and t.line = v.p2::bigint
order by v.hookfold_n
for no key update of t;

-- Read deletes of rows that are not there:
select t."key", t.delete_version, case when isfinite(t.deleted_at) then to_char(t.deleted_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') else t.deleted_at::text end from unnest($2::text[]) as v (p2) join hookfold_tombstones as t on t.table_name = $1 and t."key" = v.p2;

-- Read up to which version deletes were forgotten:
select t.purged_upto from hookfold_meta as t where t.table_name = $1;

-- Remove rows:
-- The same parameters.
delete from line as t
using unnest($1::text[], $2::text[]) as v (p1, p2)
where t.order_id = v.p1 and t.line = v.p2::bigint;

-- Change rows:
--   $1 order_id: key, text
--   $2 line: key, int
--   $3 qty: int, latest, set if row_version is not NULL
--   $4 row_version: version of scope row, NULL if it is not set
--   $5 seen_version: the greatest version of the row's writes
update line as t
set qty = excluded.p3,
    row_version = excluded.p4,
    seen_version = excluded.p5
from (select v.p1 as p1,
    v.p2::bigint as p2,
    v.p3::bigint as p3,
    v.p4 as p4,
    v.p5 as p5
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as v (p1, p2, p3, p4, p5)) as excluded
where t.order_id = excluded.p1 and t.line = excluded.p2
  and (excluded.p3 is distinct from t.qty
   or excluded.p4 is distinct from t.row_version
   or excluded.p5 is distinct from t.seen_version);

-- Insert rows:
-- The same parameters.
insert into line as t (order_id, line, qty, row_version, seen_version)
select v.p1,
    v.p2::bigint,
    v.p3::bigint,
    v.p4,
    v.p5
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as v (p1, p2, p3, p4, p5)
on conflict (order_id, line) do nothing;

-- Remember deletes of rows that are not there,
insert into hookfold_tombstones (table_name, "key", delete_version, deleted_at, stored_at)
select $1, v.p2, v.p3, v.p4::timestamp with time zone, clock_timestamp() from unnest($2::text[], $3::text[], $4::text[]) as v (p2, p3, p4)
on conflict (table_name, "key") do update set delete_version = excluded.delete_version, deleted_at = excluded.deleted_at, stored_at = excluded.stored_at;

-- and forget those that a row remembers:
delete from hookfold_tombstones as t using unnest($2::text[]) as v (p2) where t.table_name = $1 and t."key" = v.p2;

-- Remember complete lists:
insert into hookfold_sets (table_name, group_key, version, at)
select $1, v.p2, v.p3, v.p4::timestamp with time zone from unnest($2::text[], $3::text[], $4::text[]) as v (p2, p3, p4)
on conflict (table_name, group_key) do update set version = excluded.version, at = excluded.at;

==== sqlite

-- Table line for sqlite. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for one row.

-- What has to be there:
create table line (
    order_id text not null,
    line integer not null,
    qty integer,
    row_version text,
    seen_version text,
    primary key (order_id, line)
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
create table if not exists hookfold_sets (
    table_name text not null,
    group_key text not null,
    version text not null,
    at text,
    primary key (table_name, group_key)
);

-- What becomes of a row is not told by the row alone. So in one transaction: lock, then read all that the batch
-- concerns, join it outside of the database, and store what has changed.

-- Lock, in a statement of its own:
begin immediate;

-- Read when groups were complete; a key is a JSON list of its parts:
select +t.group_key, +t.version, +t.at from hookfold_sets as t where t.table_name = ?1 and t.group_key = ?2;

-- Read and lock the rows of groups that are now complete anew:
--   ?1 order_id: key, text
select +t.order_id, +t.line, +t.qty, +t.row_version, +t.seen_version from line as t where t.order_id = ?1;

-- Read and lock rows:
--   ?1 order_id: key, text
--   ?2 line: key, int
select +t.order_id, +t.line, +t.qty, +t.row_version, +t.seen_version from line as t where t.order_id = ?1 and t.line = ?2;

-- Read deletes of rows that are not there:
select +t."key", +t.delete_version, +t.deleted_at from hookfold_tombstones as t where t.table_name = ?1 and t."key" = ?2;

-- Read up to which version deletes were forgotten:
select +t.purged_upto from hookfold_meta as t where t.table_name = ?1;

-- Remove rows:
-- The same parameters.
delete from line as t where t.order_id = ?1 and t.line = ?2;

-- Change rows:
--   ?1 order_id: key, text
--   ?2 line: key, int
--   ?3 qty: int, latest, set if row_version is not NULL
--   ?4 row_version: version of scope row, NULL if it is not set
--   ?5 seen_version: the greatest version of the row's writes
update line as t
set qty = excluded.p3,
    row_version = excluded.p4,
    seen_version = excluded.p5
from (select ?1 as p1, ?2 as p2, ?3 as p3, ?4 as p4, ?5 as p5) as excluded
where t.order_id = excluded.p1 and t.line = excluded.p2
  and (excluded.p3 is not t.qty
   or excluded.p4 collate binary is not t.row_version
   or excluded.p5 collate binary is not t.seen_version);

-- Insert rows:
-- The same parameters.
insert into line as t (order_id, line, qty, row_version, seen_version)
values (?1,
    ?2,
    ?3,
    ?4,
    ?5)
on conflict (order_id, line) do nothing;

-- Remember deletes of rows that are not there,
insert into hookfold_tombstones (table_name, "key", delete_version, deleted_at, stored_at) values (?1, ?2, ?3, ?4, strftime('%Y-%m-%dT%H:%M:%f', 'now') || '000Z')
on conflict (table_name, "key") do update set delete_version = excluded.delete_version, deleted_at = excluded.deleted_at, stored_at = excluded.stored_at;

-- and forget those that a row remembers:
delete from hookfold_tombstones as t where t.table_name = ?1 and t."key" = ?2;

-- Remember complete lists:
insert into hookfold_sets (table_name, group_key, version, at) values (?1, ?2, ?3, ?4)
on conflict (table_name, group_key) do update set version = excluded.version, at = excluded.at;

==== mysql

-- Table line for mysql. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch, and has one parameter: a JSON list with a list per row, in it a text, or null, for each of what is named below as v.p1, v.p2, ….
-- A text is what the database reads as such a value: 1 and 0 for bool, 2006-01-02 15:04:05.000000 in UTC for a timestamp, hexadecimal digits for bytes.
-- No key may come twice in a batch; rows are sorted by their key. The session is READ COMMITTED, in utf8mb4, has time_zone '+00:00' and a strict sql_mode.
-- CREATE and ALTER TABLE commit what the session has done before them.

-- What has to be there:
create table `line` (
    `order_id` varchar(255) character set utf8mb4 collate utf8mb4_bin not null,
    `line` bigint not null,
    `qty` bigint,
    `row_version` varchar(255) character set ascii collate ascii_bin,
    `seen_version` varchar(255) character set ascii collate ascii_bin,
    primary key (`order_id`, `line`)
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
create table if not exists `hookfold_sets` (
    `table_name` varbinary(256) not null,
    `group_key` varbinary(1200) not null,
    `version` varchar(255) character set ascii collate ascii_bin not null,
    `at` datetime(6),
    primary key (`table_name`, `group_key`)
) engine = InnoDB default character set utf8mb4;
create table if not exists `hookfold_locks` (
    `n` int not null,
    primary key (`n`)
) engine = InnoDB default character set utf8mb4;

-- What becomes of a row is not told by the row alone. So in one transaction: lock, then read all that the batch
-- concerns, join it outside of the database, and store what has changed.

-- Lock, in a statement of its own: the groups' numbers, ascending; their rows are locked until the transaction ends.
insert into `hookfold_locks` (n)
select v.p1 from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]')) as v
on duplicate key update n = `hookfold_locks`.n;

-- Read when groups were complete; a key is a JSON list of its parts:
select convert(t.`group_key` using utf8mb4), t.`version`, date_format(t.`at`, '%Y-%m-%dT%H:%i:%s.%fZ') from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]')) as v
straight_join `hookfold_sets` as t force index (`PRIMARY`) on t.`table_name` = cast(v.p1 as binary) and t.`group_key` = cast(v.p2 as binary);

-- Read and lock the rows of groups that are now complete anew:
--   v.p1 order_id: key, text
select v.hookfold_n, t.`order_id`, cast(t.`line` as char), cast(t.`qty` as char), t.`row_version`, t.`seen_version`
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]')) as v
straight_join `line` as t force index (`PRIMARY`) on t.`order_id` = v.p1
for update;

-- Read and lock rows:
--   v.p1 order_id: key, text
--   v.p2 line: key, int
select v.hookfold_n, t.`order_id`, cast(t.`line` as char), cast(t.`qty` as char), t.`row_version`, t.`seen_version`
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]')) as v
straight_join `line` as t force index (`PRIMARY`) on t.`order_id` = v.p1 and t.`line` = cast(v.p2 as signed)
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
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]')) as v
straight_join `line` as t force index (`PRIMARY`) on t.`order_id` = v.p1 and t.`line` = cast(v.p2 as signed);

-- Change rows:
--   v.p1 order_id: key, text
--   v.p2 line: key, int
--   v.p3 qty: int, latest, set if row_version is not NULL
--   v.p4 row_version: version of scope row, NULL if it is not set
--   v.p5 seen_version: the greatest version of the row's writes
update (select v.p1 as p1,
    cast(v.p2 as signed) as p2,
    cast(v.p3 as signed) as p3,
    v.p4 as p4,
    v.p5 as p5
    from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]', p5 longtext character set utf8mb4 collate utf8mb4_bin path '$[4]')) as v) as excluded
straight_join `line` as t force index (`PRIMARY`) on t.`order_id` = excluded.p1 and t.`line` = excluded.p2
set t.`qty` = excluded.p3,
    t.`row_version` = excluded.p4,
    t.`seen_version` = excluded.p5;

-- Insert rows:
-- The same parameters.
insert into `line` (`order_id`, `line`, `qty`, `row_version`, `seen_version`)
select v.p1,
    cast(v.p2 as signed),
    cast(v.p3 as signed),
    v.p4,
    v.p5
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]', p5 longtext character set utf8mb4 collate utf8mb4_bin path '$[4]')) as v
on duplicate key update `order_id` = `line`.`order_id`;

-- Remember deletes of rows that are not there,
insert into `hookfold_tombstones` (`table_name`, `key`, `delete_version`, `deleted_at`, `stored_at`)
select v.p1, v.p2, v.p3, replace(replace(v.p4, 'T', ' '), 'Z', ''), utc_timestamp(6) from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]')) as v
on duplicate key update `delete_version` = values(`delete_version`), `deleted_at` = values(`deleted_at`), `stored_at` = values(`stored_at`);

-- and forget those that a row remembers:
delete t from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]')) as v
straight_join `hookfold_tombstones` as t force index (`PRIMARY`) on t.`table_name` = cast(v.p1 as binary) and t.`key` = cast(v.p2 as binary);

-- Remember complete lists:
insert into `hookfold_sets` (`table_name`, `group_key`, `version`, `at`)
select v.p1, v.p2, v.p3, replace(replace(v.p4, 'T', ' '), 'Z', '') from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]')) as v
on duplicate key update `version` = values(`version`), `at` = values(`at`);

==== sqlserver

-- Table line for sqlserver. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: @rows is a JSON list with an object per row, with the number n of the row and a text, or null, for each of p1, p2, …; v.p1 is p1. No key may come twice in a batch. @table is the name of the table.

-- What has to be there:
create table [line] (
    [order_id] nvarchar(450) collate Latin1_General_BIN2 not null,
    [line] bigint not null,
    [qty] bigint,
    [row_version] nvarchar(450) collate Latin1_General_BIN2,
    [seen_version] nvarchar(450) collate Latin1_General_BIN2,
    primary key ([order_id], [line])
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
if object_id(N'[hookfold_sets]', N'U') is null
create table [hookfold_sets] (
    [table_name] nvarchar(128) collate Latin1_General_BIN2 not null,
    [group_key] nvarchar(500) collate Latin1_General_BIN2 not null,
    [version] nvarchar(255) collate Latin1_General_BIN2 not null,
    [at] datetimeoffset(6),
    primary key nonclustered ([table_name], [group_key])
);

-- What becomes of a row is not told by the row alone. So in one transaction: lock, then read all that the batch
-- concerns, join it outside of the database, and store what has changed.

-- Lock, in a statement of its own: the groups' numbers, ascending, each by:
exec @got = sp_getapplock @Resource = N'hookfold 0', @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 1000;

-- Read when groups were complete; a key is a JSON list of its parts:
select t.[group_key], t.[version], t.[at] from openjson(@rows) with (p2 nvarchar(max) '$.p2') as v join [hookfold_sets] as t on t.[table_name] = @table and t.[group_key] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000));

-- Read and lock the rows of groups that are now complete anew:
--   p1 order_id: key, text
select v.n, t.[order_id], t.[line], t.[qty], t.[row_version], t.[seen_version]
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1') as v
join [line] as t with (updlock, rowlock) on t.[order_id] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[order_id] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2
order by v.n;

-- Read and lock rows:
--   p1 order_id: key, text
--   p2 line: key, int
select v.n, t.[order_id], t.[line], t.[qty], t.[row_version], t.[seen_version]
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2') as v
join [line] as t with (updlock, rowlock) on t.[order_id] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[order_id] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2 and t.[line] = cast(v.p2 as bigint)
order by v.n;

-- Read deletes of rows that are not there:
select t.[key], t.[delete_version], t.[deleted_at] from openjson(@rows) with (p2 nvarchar(max) '$.p2') as v join [hookfold_tombstones] as t on t.[table_name] = @table and t.[key] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000));

-- Read up to which version deletes were forgotten:
select t.[purged_upto] from [hookfold_meta] as t where t.[table_name] = @table;

-- Remove rows:
-- The same parameters.
delete t
from [line] as t
join openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2') as v on t.[order_id] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[order_id] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2 and t.[line] = cast(v.p2 as bigint);

-- Change rows:
--   p1 order_id: key, text
--   p2 line: key, int
--   p3 qty: int, latest, set if row_version is not NULL
--   p4 row_version: version of scope row, NULL if it is not set
--   p5 seen_version: the greatest version of the row's writes
update t
set [qty] = excluded.p3,
    [row_version] = excluded.p4,
    [seen_version] = excluded.p5
from [line] as t
join (select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) as p1, cast(v.p2 as bigint) as p2, cast(v.p3 as bigint) as p3, v.p4 collate Latin1_General_BIN2 as p4, v.p5 collate Latin1_General_BIN2 as p5
    from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5') as v) as excluded on t.[order_id] = excluded.p1 and (t.[order_id] + N'.') collate Latin1_General_BIN2 = (excluded.p1 + N'.') collate Latin1_General_BIN2 and t.[line] = excluded.p2
where ((excluded.p3 <> t.[qty] or (excluded.p3 is null and t.[qty] is not null) or (excluded.p3 is not null and t.[qty] is null))
   or (excluded.p4 <> t.[row_version] or (excluded.p4 is null and t.[row_version] is not null) or (excluded.p4 is not null and t.[row_version] is null))
   or (excluded.p5 <> t.[seen_version] or (excluded.p5 is null and t.[seen_version] is not null) or (excluded.p5 is not null and t.[seen_version] is null)));

-- Insert rows:
-- The same parameters.
declare @hookfold_tries int = 5;
while @hookfold_tries > 0
begin
begin try
insert into [line] ([order_id], [line], [qty], [row_version], [seen_version])
select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)),
    cast(v.p2 as bigint),
    cast(v.p3 as bigint),
    v.p4 collate Latin1_General_BIN2,
    v.p5 collate Latin1_General_BIN2
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5') as v
where not exists (select 1 from [line] as t where t.[order_id] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[order_id] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2 and t.[line] = cast(v.p2 as bigint));
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

-- Remember complete lists:
update t set [version] = cast(v.p3 collate Latin1_General_BIN2 as nvarchar(4000)),
    [at] = cast(replace(v.p4, N'Z', N'+00:00') as datetimeoffset(6))
from [hookfold_sets] as t join openjson(@rows) with (p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4') as v on t.[table_name] = @table and t.[group_key] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000));
insert into [hookfold_sets] ([table_name], [group_key], [version], [at])
select @table, cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)), cast(v.p3 collate Latin1_General_BIN2 as nvarchar(4000)), cast(replace(v.p4, N'Z', N'+00:00') as datetimeoffset(6)) from openjson(@rows) with (p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4') as v
where not exists (select 1 from [hookfold_sets] as t where t.[table_name] = @table and t.[group_key] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)));

