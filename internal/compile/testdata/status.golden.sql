==== postgres

-- Table message_status for postgres. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: a parameter is an array with one element per row; v.p1 is an element of $1. No key may come twice in a batch.

-- What has to be there:
create table message_status (
    message_id text collate "C" not null,
    status text,
    sent_at timestamp with time zone,
    error bigint,
    error_version text collate "C",
    primary key (message_id)
);

-- Join rows into the table:
--   $1 message_id: key, text
--   $2 status: text, ladder
--   $3 sent_at: timestamp, min
--   $4 error: int, latest, set if error_version is not NULL
--   $5 error_version: version of scope error, NULL if it is not set
insert into message_status as t (message_id, status, sent_at, error, error_version)
select v.p1,
    v.p2,
    v.p3::timestamp with time zone,
    v.p4::bigint,
    v.p5
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as v (p1, p2, p3, p4, p5)
on conflict (message_id) do update set
    error = case when excluded.error_version collate "C" >= coalesce(t.error_version, '') collate "C" then excluded.error else t.error end,
    error_version = case when excluded.error_version collate "C" >= coalesce(t.error_version, '') collate "C" then excluded.error_version else t.error_version end,
    status = case when excluded.status is not null and (t.status is null or case excluded.status collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end > case t.status collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end) then excluded.status else t.status end,
    sent_at = case when excluded.sent_at is not null and (t.sent_at is null or t.sent_at > excluded.sent_at) then excluded.sent_at else t.sent_at end
where (excluded.error_version collate "C" >= coalesce(t.error_version, '') collate "C" and (excluded.error is distinct from t.error or excluded.error_version is distinct from t.error_version))
   or (excluded.status is not null and (t.status is null or case excluded.status collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end > case t.status collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end))
   or (excluded.sent_at is not null and (t.sent_at is null or t.sent_at > excluded.sent_at));

-- Join into rows that are there, and insert none:
-- The same parameters.
update message_status as t
set error = case when excluded.p5 collate "C" >= coalesce(t.error_version, '') collate "C" then excluded.p4 else t.error end,
    error_version = case when excluded.p5 collate "C" >= coalesce(t.error_version, '') collate "C" then excluded.p5 else t.error_version end,
    status = case when excluded.p2 is not null and (t.status is null or case excluded.p2 collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end > case t.status collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end) then excluded.p2 else t.status end,
    sent_at = case when excluded.p3 is not null and (t.sent_at is null or t.sent_at > excluded.p3) then excluded.p3 else t.sent_at end
from (select v.p1 as p1,
    v.p2 as p2,
    v.p3::timestamp with time zone as p3,
    v.p4::bigint as p4,
    v.p5 as p5
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as v (p1, p2, p3, p4, p5)) as excluded
where t.message_id = excluded.p1
  and ((excluded.p5 collate "C" >= coalesce(t.error_version, '') collate "C" and (excluded.p4 is distinct from t.error or excluded.p5 is distinct from t.error_version))
   or (excluded.p2 is not null and (t.status is null or case excluded.p2 collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end > case t.status collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end))
   or (excluded.p3 is not null and (t.sent_at is null or t.sent_at > excluded.p3)));

==== sqlite

-- Table message_status for sqlite. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for one row.

-- What has to be there:
create table message_status (
    message_id text not null,
    status text,
    sent_at text,
    error integer,
    error_version text,
    primary key (message_id)
);

-- Join rows into the table:
--   ?1 message_id: key, text
--   ?2 status: text, ladder
--   ?3 sent_at: timestamp, min
--   ?4 error: int, latest, set if error_version is not NULL
--   ?5 error_version: version of scope error, NULL if it is not set
insert into message_status as t (message_id, status, sent_at, error, error_version)
values (?1,
    ?2,
    ?3,
    ?4,
    ?5)
on conflict (message_id) do update set
    error = case when excluded.error_version collate binary >= coalesce(t.error_version, '') collate binary then excluded.error else t.error end,
    error_version = case when excluded.error_version collate binary >= coalesce(t.error_version, '') collate binary then excluded.error_version else t.error_version end,
    status = case when excluded.status is not null and (t.status is null or case excluded.status collate binary when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end > case t.status collate binary when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end) then excluded.status else t.status end,
    sent_at = case when excluded.sent_at is not null and (t.sent_at is null or t.sent_at collate binary > excluded.sent_at) then excluded.sent_at else t.sent_at end
where (excluded.error_version collate binary >= coalesce(t.error_version, '') collate binary and (excluded.error is not t.error or excluded.error_version collate binary is not t.error_version))
   or (excluded.status is not null and (t.status is null or case excluded.status collate binary when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end > case t.status collate binary when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end))
   or (excluded.sent_at is not null and (t.sent_at is null or t.sent_at collate binary > excluded.sent_at));

-- Join into rows that are there, and insert none:
-- The same parameters.
update message_status as t
set error = case when excluded.p5 collate binary >= coalesce(t.error_version, '') collate binary then excluded.p4 else t.error end,
    error_version = case when excluded.p5 collate binary >= coalesce(t.error_version, '') collate binary then excluded.p5 else t.error_version end,
    status = case when excluded.p2 is not null and (t.status is null or case excluded.p2 collate binary when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end > case t.status collate binary when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end) then excluded.p2 else t.status end,
    sent_at = case when excluded.p3 is not null and (t.sent_at is null or t.sent_at collate binary > excluded.p3) then excluded.p3 else t.sent_at end
from (select ?1 as p1, ?2 as p2, ?3 as p3, ?4 as p4, ?5 as p5) as excluded
where t.message_id = excluded.p1
  and ((excluded.p5 collate binary >= coalesce(t.error_version, '') collate binary and (excluded.p4 is not t.error or excluded.p5 collate binary is not t.error_version))
   or (excluded.p2 is not null and (t.status is null or case excluded.p2 collate binary when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end > case t.status collate binary when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end))
   or (excluded.p3 is not null and (t.sent_at is null or t.sent_at collate binary > excluded.p3)));

==== mysql

-- Table message_status for mysql. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch, and has one parameter: a JSON list with a list per row, in it a text, or null, for each of what is named below as v.p1, v.p2, ….
-- A text is what the database reads as such a value: 1 and 0 for bool, 2006-01-02 15:04:05.000000 in UTC for a timestamp, hexadecimal digits for bytes.
-- No key may come twice in a batch; rows are sorted by their key. The session is READ COMMITTED, in utf8mb4, has time_zone '+00:00' and a strict sql_mode.
-- CREATE and ALTER TABLE commit what the session has done before them.

-- What has to be there:
create table `message_status` (
    `message_id` varchar(255) character set utf8mb4 collate utf8mb4_bin not null,
    `status` longtext character set utf8mb4,
    `sent_at` datetime(6),
    `error` bigint,
    `error_version` varchar(255) character set ascii collate ascii_bin,
    primary key (`message_id`)
) engine = InnoDB default character set utf8mb4;

-- Join rows into the table:
--   v.p1 message_id: key, text
--   v.p2 status: text, ladder
--   v.p3 sent_at: timestamp, min
--   v.p4 error: int, latest, set if error_version is not NULL
--   v.p5 error_version: version of scope error, NULL if it is not set
insert into `message_status` (`message_id`, `status`, `sent_at`, `error`, `error_version`)
select v.p1,
    v.p2,
    cast(v.p3 as datetime(6)),
    cast(v.p4 as signed),
    v.p5
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]', p5 longtext character set utf8mb4 collate utf8mb4_bin path '$[4]')) as v
on duplicate key update
    `error` = case when cast(values(`error_version`) as binary) >= cast(coalesce(`message_status`.`error_version`, '') as binary) then values(`error`) else `message_status`.`error` end,
    `error_version` = case when cast(values(`error_version`) as binary) >= cast(coalesce(`message_status`.`error_version`, '') as binary) then values(`error_version`) else `message_status`.`error_version` end,
    `status` = case when values(`status`) is not null and (`message_status`.`status` is null or case cast(values(`status`) as binary) when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end > case cast(`message_status`.`status` as binary) when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end) then values(`status`) else `message_status`.`status` end,
    `sent_at` = case when values(`sent_at`) is not null and (`message_status`.`sent_at` is null or `message_status`.`sent_at` > values(`sent_at`)) then values(`sent_at`) else `message_status`.`sent_at` end;

-- Join into rows that are there, and insert none:
-- The same parameters.
update (select v.p1 as p1,
    v.p2 as p2,
    cast(v.p3 as datetime(6)) as p3,
    cast(v.p4 as signed) as p4,
    v.p5 as p5
    from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]', p2 longtext character set utf8mb4 collate utf8mb4_bin path '$[1]', p3 longtext character set utf8mb4 collate utf8mb4_bin path '$[2]', p4 longtext character set utf8mb4 collate utf8mb4_bin path '$[3]', p5 longtext character set utf8mb4 collate utf8mb4_bin path '$[4]')) as v) as excluded
straight_join `message_status` as t force index (`PRIMARY`) on t.`message_id` = excluded.p1
set t.`error` = case when cast(excluded.p5 as binary) >= cast(coalesce(t.`error_version`, '') as binary) then excluded.p4 else t.`error` end,
    t.`error_version` = case when cast(excluded.p5 as binary) >= cast(coalesce(t.`error_version`, '') as binary) then excluded.p5 else t.`error_version` end,
    t.`status` = case when excluded.p2 is not null and (t.`status` is null or case cast(excluded.p2 as binary) when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end > case cast(t.`status` as binary) when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end) then excluded.p2 else t.`status` end,
    t.`sent_at` = case when excluded.p3 is not null and (t.`sent_at` is null or t.`sent_at` > excluded.p3) then excluded.p3 else t.`sent_at` end;

==== sqlserver

-- Table message_status for sqlserver. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: @rows is a JSON list with an object per row, with the number n of the row and a text, or null, for each of p1, p2, …; v.p1 is p1. No key may come twice in a batch. @table is the name of the table.

-- What has to be there:
create table [message_status] (
    [message_id] nvarchar(450) collate Latin1_General_BIN2 not null,
    [status] nvarchar(max),
    [sent_at] datetimeoffset(6),
    [error] bigint,
    [error_version] nvarchar(450) collate Latin1_General_BIN2,
    primary key ([message_id])
);

-- Join rows into the table:
--   p1 message_id: key, text
--   p2 status: text, ladder
--   p3 sent_at: timestamp, min
--   p4 error: int, latest, set if error_version is not NULL
--   p5 error_version: version of scope error, NULL if it is not set
declare @hookfold_tries int = 5;
while @hookfold_tries > 0
begin
begin try
insert into [message_status] ([message_id], [status], [sent_at], [error], [error_version])
select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)),
    v.p2,
    cast(replace(v.p3, N'Z', N'+00:00') as datetimeoffset(6)),
    cast(v.p4 as bigint),
    v.p5 collate Latin1_General_BIN2
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5') as v
where not exists (select 1 from [message_status] as t where t.[message_id] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[message_id] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2);
update t
set [error] = case when excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[error_version], '') collate Latin1_General_BIN2 then excluded.p4 else t.[error] end,
    [error_version] = case when excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[error_version], '') collate Latin1_General_BIN2 then excluded.p5 else t.[error_version] end,
    [status] = case when excluded.p2 is not null and (t.[status] is null or case excluded.p2 collate Latin1_General_BIN2 when N'sent' then 1 when N'failed' then 2 when N'delivered' then 3 when N'read' then 4 when N'played' then 5 else 0 end > case t.[status] collate Latin1_General_BIN2 when N'sent' then 1 when N'failed' then 2 when N'delivered' then 3 when N'read' then 4 when N'played' then 5 else 0 end) then excluded.p2 else t.[status] end,
    [sent_at] = case when excluded.p3 is not null and (t.[sent_at] is null or t.[sent_at] > excluded.p3) then excluded.p3 else t.[sent_at] end
from [message_status] as t
join (select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) as p1, v.p2 as p2, cast(replace(v.p3, N'Z', N'+00:00') as datetimeoffset(6)) as p3, cast(v.p4 as bigint) as p4, v.p5 collate Latin1_General_BIN2 as p5
    from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5') as v) as excluded on t.[message_id] = excluded.p1 and (t.[message_id] + N'.') collate Latin1_General_BIN2 = (excluded.p1 + N'.') collate Latin1_General_BIN2
where ((excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[error_version], '') collate Latin1_General_BIN2 and ((excluded.p4 <> t.[error] or (excluded.p4 is null and t.[error] is not null) or (excluded.p4 is not null and t.[error] is null)) or (excluded.p5 <> t.[error_version] or (excluded.p5 is null and t.[error_version] is not null) or (excluded.p5 is not null and t.[error_version] is null))))
   or (excluded.p2 is not null and (t.[status] is null or case excluded.p2 collate Latin1_General_BIN2 when N'sent' then 1 when N'failed' then 2 when N'delivered' then 3 when N'read' then 4 when N'played' then 5 else 0 end > case t.[status] collate Latin1_General_BIN2 when N'sent' then 1 when N'failed' then 2 when N'delivered' then 3 when N'read' then 4 when N'played' then 5 else 0 end))
   or (excluded.p3 is not null and (t.[sent_at] is null or t.[sent_at] > excluded.p3)));
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
set [error] = case when excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[error_version], '') collate Latin1_General_BIN2 then excluded.p4 else t.[error] end,
    [error_version] = case when excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[error_version], '') collate Latin1_General_BIN2 then excluded.p5 else t.[error_version] end,
    [status] = case when excluded.p2 is not null and (t.[status] is null or case excluded.p2 collate Latin1_General_BIN2 when N'sent' then 1 when N'failed' then 2 when N'delivered' then 3 when N'read' then 4 when N'played' then 5 else 0 end > case t.[status] collate Latin1_General_BIN2 when N'sent' then 1 when N'failed' then 2 when N'delivered' then 3 when N'read' then 4 when N'played' then 5 else 0 end) then excluded.p2 else t.[status] end,
    [sent_at] = case when excluded.p3 is not null and (t.[sent_at] is null or t.[sent_at] > excluded.p3) then excluded.p3 else t.[sent_at] end
from [message_status] as t
join (select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) as p1, v.p2 as p2, cast(replace(v.p3, N'Z', N'+00:00') as datetimeoffset(6)) as p3, cast(v.p4 as bigint) as p4, v.p5 collate Latin1_General_BIN2 as p5
    from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5') as v) as excluded on t.[message_id] = excluded.p1 and (t.[message_id] + N'.') collate Latin1_General_BIN2 = (excluded.p1 + N'.') collate Latin1_General_BIN2
where ((excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[error_version], '') collate Latin1_General_BIN2 and ((excluded.p4 <> t.[error] or (excluded.p4 is null and t.[error] is not null) or (excluded.p4 is not null and t.[error] is null)) or (excluded.p5 <> t.[error_version] or (excluded.p5 is null and t.[error_version] is not null) or (excluded.p5 is not null and t.[error_version] is null))))
   or (excluded.p2 is not null and (t.[status] is null or case excluded.p2 collate Latin1_General_BIN2 when N'sent' then 1 when N'failed' then 2 when N'delivered' then 3 when N'read' then 4 when N'played' then 5 else 0 end > case t.[status] collate Latin1_General_BIN2 when N'sent' then 1 when N'failed' then 2 when N'delivered' then 3 when N'read' then 4 when N'played' then 5 else 0 end))
   or (excluded.p3 is not null and (t.[sent_at] is null or t.[sent_at] > excluded.p3)));

