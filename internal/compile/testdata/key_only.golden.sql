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

==== sqlserver

-- Table user for sqlserver. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: @rows is a JSON list with an object per row, with the number n of the row and a text, or null, for each of p1, p2, …; v.p1 is p1. No key may come twice in a batch. @table is the name of the table.

-- What has to be there:
create table [user] (
    id uniqueidentifier not null,
    primary key (id)
);

-- Join rows into the table:
--   p1 id: key, uuid
declare @hookfold_tries int = 5;
while @hookfold_tries > 0
begin
begin try
insert into [user] (id)
select cast(v.p1 as uniqueidentifier)
from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1') as v
where not exists (select 1 from [user] as t where t.id = cast(v.p1 as uniqueidentifier));
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

