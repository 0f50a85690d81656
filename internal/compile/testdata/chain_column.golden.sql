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

==== mysql

-- Table ticket for mysql. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch, and has one parameter: a JSON list with a list per row, in it a text, or null, for each of what is named below as v.p1, v.p2, ….
-- A text is what the database reads as such a value: 1 and 0 for bool, 2006-01-02 15:04:05.000000 in UTC for a timestamp, hexadecimal digits for bytes.
-- No key may come twice in a batch; rows are sorted by their key. The session is READ COMMITTED, in utf8mb4, has time_zone '+00:00' and a strict sql_mode.
-- CREATE and ALTER TABLE commit what the session has done before them.

-- What has to be there:
create table `ticket` (
    `id` varchar(255) character set utf8mb4 collate utf8mb4_bin not null,
    `status` longtext character set utf8mb4,
    `first_id` longtext character set utf8mb4,
    `row_version` varchar(255) character set ascii collate ascii_bin,
    primary key (`id`)
) engine = InnoDB default character set utf8mb4;
create table if not exists `hookfold_links` (
    `table_name` varbinary(256) not null,
    `old` varbinary(1200) not null,
    `new` varbinary(1200) not null,
    primary key (`table_name`, `old`, `new`)
) engine = InnoDB default character set utf8mb4;
create table if not exists `hookfold_aliases` (
    `table_name` varbinary(256) not null,
    `identity` varbinary(1200) not null,
    `root` varbinary(1200) not null,
    primary key (`table_name`, `identity`),
    key `root` (`table_name`, `root`)
) engine = InnoDB default character set utf8mb4;
create table if not exists `hookfold_locks` (
    `n` int not null,
    primary key (`n`)
) engine = InnoDB default character set utf8mb4;

-- What becomes of a row is not told by the row alone. So in one transaction: lock, then read all that the batch
-- concerns, join it outside of the database, and store what has changed.

-- Lock, in a statement of its own: the table's numbers, ascending; their rows are locked until the transaction ends.
insert into `hookfold_locks` (n)
select v.p1 from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]')) as v
on duplicate key update n = `hookfold_locks`.n;

-- Read which chains identities belong to (the first parameter of such statements is the table's name),
select convert(t.`identity` using utf8mb4), convert(t.`root` using utf8mb4) from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]')) as v
straight_join `hookfold_aliases` as t force index (`PRIMARY`) on t.`table_name` = cast(v.p1 as binary) and t.`identity` = cast(v.p2 as binary);

-- their other identities,
select convert(t.`identity` using utf8mb4), convert(t.`root` using utf8mb4) from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]')) as v
straight_join `hookfold_aliases` as t force index (`root`) on t.`table_name` = cast(v.p1 as binary) and t.`root` = cast(v.p2 as binary);

-- and what follows what:
select convert(t.`old` using utf8mb4), convert(t.`new` using utf8mb4) from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]')) as v
straight_join `hookfold_links` as t force index (`PRIMARY`) on t.`table_name` = cast(v.p1 as binary) and t.`old` = cast(v.p2 as binary);

-- Read and lock rows:
--   v.p1 id: key, text
select v.hookfold_n, t.`id`, t.`status`, t.`first_id`, t.`row_version`
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]')) as v
straight_join `ticket` as t force index (`PRIMARY`) on t.`id` = v.p1
for update;

-- Remove rows:
-- The same parameters.
delete t
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]')) as v
straight_join `ticket` as t force index (`PRIMARY`) on t.`id` = v.p1;

-- Change rows:
--   v.p1 id: key, text
--   v.p2 status: text, latest, set if row_version is not NULL
--   v.p3 first_id: text, chain
--   v.p4 row_version: version of scope row, NULL if it is not set
update (select v.p1 as p1,
    v.p2 as p2,
    v.p3 as p3,
    v.p4 as p4
    from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]')) as v) as excluded
straight_join `ticket` as t force index (`PRIMARY`) on t.`id` = excluded.p1
set t.`status` = excluded.p2,
    t.`first_id` = excluded.p3,
    t.`row_version` = excluded.p4;

-- Insert rows:
-- The same parameters.
insert into `ticket` (`id`, `status`, `first_id`, `row_version`)
select v.p1,
    v.p2,
    v.p3,
    v.p4
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]')) as v
on duplicate key update `id` = `ticket`.`id`;

-- Remember links:
insert into `hookfold_links` (`table_name`, `old`, `new`)
select v.p1, v.p2, v.p3 from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]')) as v
on duplicate key update `table_name` = `hookfold_links`.`table_name`;

-- Point identities to their chain:
insert into `hookfold_aliases` (`table_name`, `identity`, `root`)
select v.p1, v.p2, v.p3 from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]')) as v
on duplicate key update `root` = values(`root`);

==== sqlserver

-- Table ticket for sqlserver. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: @rows is a JSON list with an object per row, with the number n of the row and a text, or null, for each of p1, p2, …; v.p1 is p1. No key may come twice in a batch. @table is the name of the table.

-- What has to be there:
create table [ticket] (
    [id] nvarchar(450) collate Latin1_General_BIN2 not null,
    [status] nvarchar(max),
    [first_id] nvarchar(max),
    [row_version] nvarchar(450) collate Latin1_General_BIN2,
    primary key ([id])
);
if object_id(N'[hookfold_links]', N'U') is null
create table [hookfold_links] (
    [table_name] nvarchar(128) collate Latin1_General_BIN2 not null,
    [old] nvarchar(500) collate Latin1_General_BIN2 not null,
    [new] nvarchar(500) collate Latin1_General_BIN2 not null,
    primary key nonclustered ([table_name], [old], [new])
);
if object_id(N'[hookfold_aliases]', N'U') is null
create table [hookfold_aliases] (
    [table_name] nvarchar(128) collate Latin1_General_BIN2 not null,
    [identity] nvarchar(500) collate Latin1_General_BIN2 not null,
    [root] nvarchar(500) collate Latin1_General_BIN2 not null,
    primary key nonclustered ([table_name], [identity])
);
if not exists (select 1 from sys.indexes where name = N'hookfold_aliases_root' and object_id = object_id(N'[hookfold_aliases]'))
create index [hookfold_aliases_root] on [hookfold_aliases] ([table_name], [root]);

-- What becomes of a row is not told by the row alone. So in one transaction: lock, then read all that the batch
-- concerns, join it outside of the database, and store what has changed.

-- Lock, in a statement of its own: the table's numbers, ascending, each by:
exec @got = sp_getapplock @Resource = N'hookfold 0', @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = 1000;

-- Read which chains identities belong to (the first parameter of such statements is the table's name),
select t.[identity], t.[root] from openjson(@rows) with (p2 nvarchar(max) '$.p2') as v join [hookfold_aliases] as t on t.[table_name] = @table and t.[identity] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[identity] + N'.') collate Latin1_General_BIN2 = (cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2;

-- their other identities,
select t.[identity], t.[root] from openjson(@rows) with (p2 nvarchar(max) '$.p2') as v join [hookfold_aliases] as t on t.[table_name] = @table and t.[root] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[root] + N'.') collate Latin1_General_BIN2 = (cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2;

-- and what follows what:
select t.[old], t.[new] from openjson(@rows) with (p2 nvarchar(max) '$.p2') as v join [hookfold_links] as t on t.[table_name] = @table and t.[old] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[old] + N'.') collate Latin1_General_BIN2 = (cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2;

-- Read and lock rows:
--   p1 id: key, text
select v.n, t.[id], t.[status], t.[first_id], t.[row_version]
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1') as v
join [ticket] as t with (updlock, rowlock) on t.[id] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[id] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2
order by v.n;

-- Remove rows:
-- The same parameters.
delete t
from [ticket] as t
join openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1') as v on t.[id] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[id] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2;

-- Change rows:
--   p1 id: key, text
--   p2 status: text, latest, set if row_version is not NULL
--   p3 first_id: text, chain
--   p4 row_version: version of scope row, NULL if it is not set
update t
set [status] = excluded.p2,
    [first_id] = excluded.p3,
    [row_version] = excluded.p4
from [ticket] as t
join (select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) as p1, v.p2 as p2, v.p3 as p3, v.p4 collate Latin1_General_BIN2 as p4
    from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4') as v) as excluded on t.[id] = excluded.p1 and (t.[id] + N'.') collate Latin1_General_BIN2 = (excluded.p1 + N'.') collate Latin1_General_BIN2
where (((cast(excluded.p2 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[status] as nvarchar(max)) + N'.' or (excluded.p2 is null and t.[status] is not null) or (excluded.p2 is not null and t.[status] is null))
   or ((cast(excluded.p3 as nvarchar(max)) + N'.') collate Latin1_General_BIN2 <> cast(t.[first_id] as nvarchar(max)) + N'.' or (excluded.p3 is null and t.[first_id] is not null) or (excluded.p3 is not null and t.[first_id] is null))
   or (excluded.p4 <> t.[row_version] or (excluded.p4 is null and t.[row_version] is not null) or (excluded.p4 is not null and t.[row_version] is null)));

-- Insert rows:
-- The same parameters.
declare @hookfold_tries int = 5;
while @hookfold_tries > 0
begin
begin try
insert into [ticket] ([id], [status], [first_id], [row_version])
select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)),
    v.p2,
    v.p3,
    v.p4 collate Latin1_General_BIN2
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4') as v
where not exists (select 1 from [ticket] as t where t.[id] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[id] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2);
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

-- Remember links:
insert into [hookfold_links] ([table_name], [old], [new])
select @table, cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)), cast(v.p3 collate Latin1_General_BIN2 as nvarchar(4000)) from openjson(@rows) with (p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3') as v
where not exists (select 1 from [hookfold_links] as t where t.[table_name] = @table and t.[old] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[old] + N'.') collate Latin1_General_BIN2 = (cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2 and t.[new] = cast(v.p3 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[new] + N'.') collate Latin1_General_BIN2 = (cast(v.p3 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2);

-- Point identities to their chain:
update t set [root] = cast(v.p3 collate Latin1_General_BIN2 as nvarchar(4000))
from [hookfold_aliases] as t join openjson(@rows) with (p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3') as v on t.[table_name] = @table and t.[identity] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[identity] + N'.') collate Latin1_General_BIN2 = (cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2;
insert into [hookfold_aliases] ([table_name], [identity], [root])
select @table, cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)), cast(v.p3 collate Latin1_General_BIN2 as nvarchar(4000)) from openjson(@rows) with (p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3') as v
where not exists (select 1 from [hookfold_aliases] as t where t.[table_name] = @table and t.[identity] = cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[identity] + N'.') collate Latin1_General_BIN2 = (cast(v.p2 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2);

