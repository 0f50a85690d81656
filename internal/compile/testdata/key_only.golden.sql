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

==== mysql

-- Table user for mysql. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch, and has one parameter: a JSON list with a list per row, in it a text, or null, for each of what is named below as v.p1, v.p2, ….
-- A text is what the database reads as such a value: 1 and 0 for bool, 2006-01-02 15:04:05.000000 in UTC for a timestamp, hexadecimal digits for bytes.
-- No key may come twice in a batch; rows are sorted by their key. The session is READ COMMITTED, in utf8mb4, has time_zone '+00:00' and a strict sql_mode.
-- CREATE and ALTER TABLE commit what the session has done before them.

-- What has to be there:
create table `user` (
    `id` char(36) character set ascii collate ascii_bin not null,
    primary key (`id`)
) engine = InnoDB default character set utf8mb4;

-- Join rows into the table:
--   v.p1 id: key, uuid
insert into `user` (`id`)
select v.p1
from json_table(?, '$[*]' columns (hookfold_n for ordinality, p1 longtext character set utf8mb4 collate utf8mb4_bin path '$[0]')) as v
on duplicate key update `id` = `user`.`id`;

==== sqlserver

-- Table user for sqlserver. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: @rows is a JSON list with an object per row, with the number n of the row and a text, or null, for each of p1, p2, …; v.p1 is p1. No key may come twice in a batch. @table is the name of the table.

-- What has to be there:
create table [user] (
    [id] uniqueidentifier not null,
    primary key ([id])
);

-- Join rows into the table:
--   p1 id: key, uuid
declare @hookfold_tries int = 5;
while @hookfold_tries > 0
begin
begin try
insert into [user] ([id])
select cast(v.p1 as uniqueidentifier)
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1') as v
where not exists (select 1 from [user] as t where t.[id] = cast(v.p1 as uniqueidentifier));
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

