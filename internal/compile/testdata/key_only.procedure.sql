==== postgres

-- Function that joins a row into table user for postgres. It may be called by any number of sessions, in any order, as
-- often as one likes; it tells whether anything has changed. Versions are text and compared as bytes; NULL is older than all.
-- Arguments go by name, and what is left out says nothing: select hookfold_user(id => …);
--   id: key, uuid
-- A version has one form for all that write the table: its elements, each with / behind it (a time in UTC with nine digits
-- of a second, a whole number n as n + 9223372036854775808 with twenty digits), then 0/ and sixteen hexadecimal digits that
-- tell apart two events of one version. Of a time at and the event's text body it is:
--   to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') || '000Z/0/' || left(encode(sha256(convert_to(body, 'UTF8')), 'hex'), 16)
-- To remove it: drop function if exists hookfold_user;

begin;
drop function if exists hookfold_user;
create function hookfold_user(
    id uuid
) returns boolean
language plpgsql
set search_path from current
as $hookfold$
#variable_conflict use_column
declare
    hookfold_count bigint;
    hookfold_written bigint := 0;
begin
    insert into "user" as t (id)
    select v.p1::uuid
    from (values ($1)) as v (p1)
    on conflict (id) do nothing;
    get diagnostics hookfold_count = row_count;
    hookfold_written := hookfold_written + hookfold_count;
    return hookfold_written > 0;
end
$hookfold$;
commit;

==== sqlite

-- SQLite has no procedures. Run the statement that hookfold sql prints: it takes one row, with the same parameters

==== mysql

-- MySQL has no procedures whose arguments go by name and may be left out. Run the statement that hookfold sql prints, or install the guard trigger

==== sqlserver

-- Procedure that joins a row into table user for sqlserver. It may be called by any number of sessions, in any order, as
-- often as one likes, inside a transaction or not; @hookfold_changed tells whether anything has changed. Versions are
-- text and compared as bytes; NULL is older than all. What is left out, or NULL, says nothing, but for the columns of a
-- version that is given:
--   exec [hookfold_user] @id = …;
--   @id: key, uuid
-- To remove it: drop procedure [hookfold_user];

create or alter procedure [hookfold_user]
    @id uniqueidentifier,
    @hookfold_changed bit = null output
as
begin
set nocount on;
set xact_abort off; -- an insert that comes too late must not end the caller's transaction
if @id is null
begin
    throw 51001, N'@id is NULL, and names no row', 1;
end;
declare @hookfold_written int = 0;
declare @hookfold_tries int = 5;
while @hookfold_tries > 0
begin
begin try
insert into [user] ([id])
select @id
where not exists (select 1 from [user] as t where t.[id] = @id);
set @hookfold_written = @hookfold_written + @@rowcount;
set @hookfold_tries = 0;
end try
begin catch
set @hookfold_tries = @hookfold_tries - 1;
if @hookfold_tries = 0 or xact_state() = -1 or not (error_number() in (2601, 2627) or error_number() = 1205 and @@trancount = 0)
begin
    throw;
end;
end catch;
end;
set @hookfold_changed = case when @hookfold_written > 0 then 1 else 0 end;
end;

