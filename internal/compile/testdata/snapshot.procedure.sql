==== postgres

-- Function that joins a row into table payment for postgres. It may be called by any number of sessions, in any order, as
-- often as one likes; it tells whether anything has changed. Versions are text and compared as bytes; NULL is older than all.
-- Arguments go by name, and what is left out says nothing: select hookfold_payment(id => …, user_id => …, amount => …, …);
--   id: key, text
--   user_id: uuid, latest, set if row_version is not NULL
--   amount: numeric, latest, set if row_version is not NULL
--   paid_at: timestamp, latest, set if row_version is not NULL
--   row_version: version of scope row, NULL if it is not set
-- A version has one form for all that write the table: its elements, each with / behind it (a time in UTC with nine digits
-- of a second, a whole number n as n + 9223372036854775808 with twenty digits), then 0/ and sixteen hexadecimal digits that
-- tell apart two events of one version. Of a time at and the event's text body it is:
--   to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') || '000Z/0/' || left(encode(sha256(convert_to(body, 'UTF8')), 'hex'), 16)
-- To remove it: drop function if exists hookfold_payment;

begin;
drop function if exists hookfold_payment;
create function hookfold_payment(
    id text,
    user_id uuid default null,
    amount numeric default null,
    paid_at timestamp with time zone default null,
    row_version text default null
) returns boolean
language plpgsql
set search_path from current
as $hookfold$
#variable_conflict use_column
declare
    hookfold_count bigint;
    hookfold_written bigint := 0;
begin
    if $5 is null and ($2 is not null or $3 is not null or $4 is not null) then
        raise exception using errcode = '22023', message = 'row_version is NULL, so it cannot be told whether the row is newer';
    end if;
    if $5 not like '%/0/________________' then
        raise exception using errcode = '22023', message = concat($5, ' has not the form of a version');
    end if;
    insert into payment as t (id, user_id, amount, paid_at, row_version)
    select v.p1,
        v.p2::uuid,
        v.p3::numeric,
        v.p4::timestamp with time zone,
        v.p5
    from (values ($1, $2, $3, $4, $5)) as v (p1, p2, p3, p4, p5)
    on conflict (id) do update set
        user_id = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.user_id else t.user_id end,
        amount = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.amount else t.amount end,
        paid_at = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.paid_at else t.paid_at end,
        row_version = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.row_version else t.row_version end
    where (excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" and (excluded.user_id is distinct from t.user_id or excluded.amount is distinct from t.amount or excluded.paid_at is distinct from t.paid_at or excluded.row_version is distinct from t.row_version));
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

-- Procedure that joins a row into table payment for sqlserver. It may be called by any number of sessions, in any order, as
-- often as one likes, inside a transaction or not; @hookfold_changed tells whether anything has changed. Versions are
-- text and compared as bytes; NULL is older than all. What is left out, or NULL, says nothing, but for the columns of a
-- version that is given:
--   exec [hookfold_payment] @id = …, @user_id = …, @amount = …, …;
--   @id: key, text
--   @user_id: uuid, latest, set if row_version is not NULL
--   @amount: numeric, latest, set if row_version is not NULL
--   @paid_at: timestamp, latest, set if row_version is not NULL
--   @row_version: version of scope row, NULL if it is not set
-- A version is made from what the event says, in one form and width for all that write the table. Hookfold's own are the
-- elements of version:, each with / behind it (a time in UTC with nine digits of a second, a whole number n as
-- n + 9223372036854775808 with twenty digits), then 0/ and sixteen hexadecimal digits that tell apart two events of one
-- version. Of a time @at (datetimeoffset) and the event's text @body that is:
--   replace(convert(varchar(27), cast(switchoffset(@at, '+00:00') as datetime2(7)), 121), ' ', 'T') + '00Z/0/'
--     + lower(left(convert(varchar(64), hashbytes('SHA2_256', @body), 2), 16))
-- To remove it: drop procedure [hookfold_payment];

create or alter procedure [hookfold_payment]
    @id nvarchar(4000),
    @user_id uniqueidentifier = null,
    @amount decimal(38,18) = null,
    @paid_at datetimeoffset(6) = null,
    @row_version nvarchar(max) = null,
    @hookfold_changed bit = null output
as
begin
set nocount on;
set xact_abort off; -- an insert that comes too late must not end the caller's transaction
if @id is null or @id like N'% '
begin
    throw 51001, N'@id is NULL or ends in a blank, and names no row', 1;
end;
if @row_version is null and (@user_id is not null or @amount is not null or @paid_at is not null)
begin
    throw 51003, N'@row_version is NULL, so it cannot be told whether the row is newer', 1;
end;
declare @hookfold_written int = 0;
declare @hookfold_tries int = 5;
while @hookfold_tries > 0
begin
begin try
insert into [payment] ([id], [user_id], [amount], [paid_at], [row_version])
select cast(@id collate Latin1_General_BIN2 as nvarchar(4000)),
    @user_id,
    @amount,
    @paid_at,
    @row_version collate Latin1_General_BIN2
where not exists (select 1 from [payment] as t where t.[id] = cast(@id collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[id] + N'.') collate Latin1_General_BIN2 = (cast(@id collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2);
set @hookfold_written = @hookfold_written + @@rowcount;
update t
set [user_id] = case when @row_version collate Latin1_General_BIN2 >= coalesce(t.[row_version], '') collate Latin1_General_BIN2 then @user_id else t.[user_id] end,
    [amount] = case when @row_version collate Latin1_General_BIN2 >= coalesce(t.[row_version], '') collate Latin1_General_BIN2 then @amount else t.[amount] end,
    [paid_at] = case when @row_version collate Latin1_General_BIN2 >= coalesce(t.[row_version], '') collate Latin1_General_BIN2 then @paid_at else t.[paid_at] end,
    [row_version] = case when @row_version collate Latin1_General_BIN2 >= coalesce(t.[row_version], '') collate Latin1_General_BIN2 then @row_version else t.[row_version] end
from [payment] as t
where t.[id] = cast(@id collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[id] + N'.') collate Latin1_General_BIN2 = (cast(@id collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2
  and ((@row_version collate Latin1_General_BIN2 >= coalesce(t.[row_version], '') collate Latin1_General_BIN2 and ((@user_id <> t.[user_id] or (@user_id is null and t.[user_id] is not null) or (@user_id is not null and t.[user_id] is null)) or (@amount <> t.[amount] or (@amount is null and t.[amount] is not null) or (@amount is not null and t.[amount] is null)) or (@paid_at <> t.[paid_at] or (@paid_at is null and t.[paid_at] is not null) or (@paid_at is not null and t.[paid_at] is null)) or (@row_version <> t.[row_version] or (@row_version is null and t.[row_version] is not null) or (@row_version is not null and t.[row_version] is null)))));
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

