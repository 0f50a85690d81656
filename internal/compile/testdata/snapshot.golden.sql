==== postgres

-- Table payment for postgres. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: a parameter is an array with one element per row; v.p1 is an element of $1. No key may come twice in a batch.

-- What has to be there:
create table payment (
    id text collate "C" not null,
    user_id uuid,
    amount numeric,
    paid_at timestamp with time zone,
    row_version text collate "C",
    primary key (id)
);

-- Join rows into the table:
--   $1 id: key, text
--   $2 user_id: uuid, latest, set if row_version is not NULL
--   $3 amount: numeric, latest, set if row_version is not NULL
--   $4 paid_at: timestamp, latest, set if row_version is not NULL
--   $5 row_version: version of scope row, NULL if it is not set
insert into payment as t (id, user_id, amount, paid_at, row_version)
select v.p1,
    v.p2::uuid,
    v.p3::numeric,
    v.p4::timestamp with time zone,
    v.p5
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as v (p1, p2, p3, p4, p5)
on conflict (id) do update set
    user_id = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.user_id else t.user_id end,
    amount = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.amount else t.amount end,
    paid_at = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.paid_at else t.paid_at end,
    row_version = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.row_version else t.row_version end
where (excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" and (excluded.user_id is distinct from t.user_id or excluded.amount is distinct from t.amount or excluded.paid_at is distinct from t.paid_at or excluded.row_version is distinct from t.row_version));

-- Join into rows that are there, and insert none:
-- The same parameters.
update payment as t
set user_id = case when excluded.p5 collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.p2 else t.user_id end,
    amount = case when excluded.p5 collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.p3 else t.amount end,
    paid_at = case when excluded.p5 collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.p4 else t.paid_at end,
    row_version = case when excluded.p5 collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.p5 else t.row_version end
from (select v.p1 as p1,
    v.p2::uuid as p2,
    v.p3::numeric as p3,
    v.p4::timestamp with time zone as p4,
    v.p5 as p5
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as v (p1, p2, p3, p4, p5)) as excluded
where t.id = excluded.p1
  and ((excluded.p5 collate "C" >= coalesce(t.row_version, '') collate "C" and (excluded.p2 is distinct from t.user_id or excluded.p3 is distinct from t.amount or excluded.p4 is distinct from t.paid_at or excluded.p5 is distinct from t.row_version)));

==== sqlite

-- Table payment for sqlite. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for one row.

-- What has to be there:
create table payment (
    id text not null,
    user_id text,
    amount text,
    paid_at text,
    row_version text,
    primary key (id)
);

-- Join rows into the table:
--   ?1 id: key, text
--   ?2 user_id: uuid, latest, set if row_version is not NULL
--   ?3 amount: numeric, latest, set if row_version is not NULL
--   ?4 paid_at: timestamp, latest, set if row_version is not NULL
--   ?5 row_version: version of scope row, NULL if it is not set
insert into payment as t (id, user_id, amount, paid_at, row_version)
values (?1,
    ?2,
    ?3,
    ?4,
    ?5)
on conflict (id) do update set
    user_id = case when excluded.row_version collate binary >= coalesce(t.row_version, '') collate binary then excluded.user_id else t.user_id end,
    amount = case when excluded.row_version collate binary >= coalesce(t.row_version, '') collate binary then excluded.amount else t.amount end,
    paid_at = case when excluded.row_version collate binary >= coalesce(t.row_version, '') collate binary then excluded.paid_at else t.paid_at end,
    row_version = case when excluded.row_version collate binary >= coalesce(t.row_version, '') collate binary then excluded.row_version else t.row_version end
where (excluded.row_version collate binary >= coalesce(t.row_version, '') collate binary and (excluded.user_id collate binary is not t.user_id or excluded.amount collate binary is not t.amount or excluded.paid_at collate binary is not t.paid_at or excluded.row_version collate binary is not t.row_version));

-- Join into rows that are there, and insert none:
-- The same parameters.
update payment as t
set user_id = case when excluded.p5 collate binary >= coalesce(t.row_version, '') collate binary then excluded.p2 else t.user_id end,
    amount = case when excluded.p5 collate binary >= coalesce(t.row_version, '') collate binary then excluded.p3 else t.amount end,
    paid_at = case when excluded.p5 collate binary >= coalesce(t.row_version, '') collate binary then excluded.p4 else t.paid_at end,
    row_version = case when excluded.p5 collate binary >= coalesce(t.row_version, '') collate binary then excluded.p5 else t.row_version end
from (select ?1 as p1, ?2 as p2, ?3 as p3, ?4 as p4, ?5 as p5) as excluded
where t.id = excluded.p1
  and ((excluded.p5 collate binary >= coalesce(t.row_version, '') collate binary and (excluded.p2 collate binary is not t.user_id or excluded.p3 collate binary is not t.amount or excluded.p4 collate binary is not t.paid_at or excluded.p5 collate binary is not t.row_version)));

==== mysql

-- Table payment for mysql. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch, and has one parameter: a JSON list with a list per row, in it a text, or null, for each of what is named below as v.p1, v.p2, ….
-- A text is what the database reads as such a value: 1 and 0 for bool, 2006-01-02 15:04:05.000000 in UTC for a timestamp, hexadecimal digits for bytes.
-- No key may come twice in a batch; rows are sorted by their key. The session is READ COMMITTED, in utf8mb4, has time_zone '+00:00' and a strict sql_mode.
-- CREATE and ALTER TABLE commit what the session has done before them.

-- What has to be there:
create table `payment` (
    `id` varchar(255) character set utf8mb4 collate utf8mb4_bin not null,
    `user_id` char(36) character set ascii collate ascii_bin,
    `amount` decimal(65,30),
    `paid_at` datetime(6),
    `row_version` varchar(255) character set ascii collate ascii_bin,
    primary key (`id`)
) engine = InnoDB default character set utf8mb4;

-- Join rows into the table:
--   v.p1 id: key, text
--   v.p2 user_id: uuid, latest, set if row_version is not NULL
--   v.p3 amount: numeric, latest, set if row_version is not NULL
--   v.p4 paid_at: timestamp, latest, set if row_version is not NULL
--   v.p5 row_version: version of scope row, NULL if it is not set
insert into `payment` (`id`, `user_id`, `amount`, `paid_at`, `row_version`)
select v.p1,
    v.p2,
    cast(v.p3 as decimal(65,30)),
    cast(v.p4 as datetime(6)),
    v.p5
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]', p5 longtext character set utf8mb4 collate utf8mb4_bin path '$[4]')) as v
on duplicate key update
    `user_id` = case when cast(values(`row_version`) as binary) >= cast(coalesce(`payment`.`row_version`, '') as binary) then values(`user_id`) else `payment`.`user_id` end,
    `amount` = case when cast(values(`row_version`) as binary) >= cast(coalesce(`payment`.`row_version`, '') as binary) then values(`amount`) else `payment`.`amount` end,
    `paid_at` = case when cast(values(`row_version`) as binary) >= cast(coalesce(`payment`.`row_version`, '') as binary) then values(`paid_at`) else `payment`.`paid_at` end,
    `row_version` = case when cast(values(`row_version`) as binary) >= cast(coalesce(`payment`.`row_version`, '') as binary) then values(`row_version`) else `payment`.`row_version` end;

-- Join into rows that are there, and insert none:
-- The same parameters.
update (select v.p1 as p1,
    v.p2 as p2,
    cast(v.p3 as decimal(65,30)) as p3,
    cast(v.p4 as datetime(6)) as p4,
    v.p5 as p5
    from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]', p5 longtext character set utf8mb4 collate utf8mb4_bin path '$[4]')) as v) as excluded
straight_join `payment` as t force index (`PRIMARY`) on t.`id` = excluded.p1
set t.`user_id` = case when cast(excluded.p5 as binary) >= cast(coalesce(t.`row_version`, '') as binary) then excluded.p2 else t.`user_id` end,
    t.`amount` = case when cast(excluded.p5 as binary) >= cast(coalesce(t.`row_version`, '') as binary) then excluded.p3 else t.`amount` end,
    t.`paid_at` = case when cast(excluded.p5 as binary) >= cast(coalesce(t.`row_version`, '') as binary) then excluded.p4 else t.`paid_at` end,
    t.`row_version` = case when cast(excluded.p5 as binary) >= cast(coalesce(t.`row_version`, '') as binary) then excluded.p5 else t.`row_version` end;

==== sqlserver

-- Table payment for sqlserver. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: @rows is a JSON list with an object per row, with the number n of the row and a text, or null, for each of p1, p2, …; v.p1 is p1. No key may come twice in a batch. @table is the name of the table.

-- What has to be there:
create table [payment] (
    [id] nvarchar(450) collate Latin1_General_BIN2 not null,
    [user_id] uniqueidentifier,
    [amount] decimal(38,18),
    [paid_at] datetimeoffset(6),
    [row_version] nvarchar(450) collate Latin1_General_BIN2,
    primary key ([id])
);

-- Join rows into the table:
--   p1 id: key, text
--   p2 user_id: uuid, latest, set if row_version is not NULL
--   p3 amount: numeric, latest, set if row_version is not NULL
--   p4 paid_at: timestamp, latest, set if row_version is not NULL
--   p5 row_version: version of scope row, NULL if it is not set
declare @hookfold_tries int = 5;
while @hookfold_tries > 0
begin
begin try
insert into [payment] ([id], [user_id], [amount], [paid_at], [row_version])
select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)),
    cast(v.p2 as uniqueidentifier),
    cast(v.p3 as decimal(38,18)),
    cast(replace(v.p4, N'Z', N'+00:00') as datetimeoffset(6)),
    v.p5 collate Latin1_General_BIN2
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5') as v
where not exists (select 1 from [payment] as t where t.[id] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[id] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2);
update t
set [user_id] = case when excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[row_version], '') collate Latin1_General_BIN2 then excluded.p2 else t.[user_id] end,
    [amount] = case when excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[row_version], '') collate Latin1_General_BIN2 then excluded.p3 else t.[amount] end,
    [paid_at] = case when excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[row_version], '') collate Latin1_General_BIN2 then excluded.p4 else t.[paid_at] end,
    [row_version] = case when excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[row_version], '') collate Latin1_General_BIN2 then excluded.p5 else t.[row_version] end
from [payment] as t
join (select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) as p1, cast(v.p2 as uniqueidentifier) as p2, cast(v.p3 as decimal(38,18)) as p3, cast(replace(v.p4, N'Z', N'+00:00') as datetimeoffset(6)) as p4, v.p5 collate Latin1_General_BIN2 as p5
    from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5') as v) as excluded on t.[id] = excluded.p1 and (t.[id] + N'.') collate Latin1_General_BIN2 = (excluded.p1 + N'.') collate Latin1_General_BIN2
where ((excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[row_version], '') collate Latin1_General_BIN2 and ((excluded.p2 <> t.[user_id] or (excluded.p2 is null and t.[user_id] is not null) or (excluded.p2 is not null and t.[user_id] is null)) or (excluded.p3 <> t.[amount] or (excluded.p3 is null and t.[amount] is not null) or (excluded.p3 is not null and t.[amount] is null)) or (excluded.p4 <> t.[paid_at] or (excluded.p4 is null and t.[paid_at] is not null) or (excluded.p4 is not null and t.[paid_at] is null)) or (excluded.p5 <> t.[row_version] or (excluded.p5 is null and t.[row_version] is not null) or (excluded.p5 is not null and t.[row_version] is null)))));
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

-- Join into rows that are there, and insert none:
-- The same parameters.
update t
set [user_id] = case when excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[row_version], '') collate Latin1_General_BIN2 then excluded.p2 else t.[user_id] end,
    [amount] = case when excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[row_version], '') collate Latin1_General_BIN2 then excluded.p3 else t.[amount] end,
    [paid_at] = case when excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[row_version], '') collate Latin1_General_BIN2 then excluded.p4 else t.[paid_at] end,
    [row_version] = case when excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[row_version], '') collate Latin1_General_BIN2 then excluded.p5 else t.[row_version] end
from [payment] as t
join (select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) as p1, cast(v.p2 as uniqueidentifier) as p2, cast(v.p3 as decimal(38,18)) as p3, cast(replace(v.p4, N'Z', N'+00:00') as datetimeoffset(6)) as p4, v.p5 collate Latin1_General_BIN2 as p5
    from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5') as v) as excluded on t.[id] = excluded.p1 and (t.[id] + N'.') collate Latin1_General_BIN2 = (excluded.p1 + N'.') collate Latin1_General_BIN2
where ((excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[row_version], '') collate Latin1_General_BIN2 and ((excluded.p2 <> t.[user_id] or (excluded.p2 is null and t.[user_id] is not null) or (excluded.p2 is not null and t.[user_id] is null)) or (excluded.p3 <> t.[amount] or (excluded.p3 is null and t.[amount] is not null) or (excluded.p3 is not null and t.[amount] is null)) or (excluded.p4 <> t.[paid_at] or (excluded.p4 is null and t.[paid_at] is not null) or (excluded.p4 is not null and t.[paid_at] is null)) or (excluded.p5 <> t.[row_version] or (excluded.p5 is null and t.[row_version] is not null) or (excluded.p5 is not null and t.[row_version] is null)))));

