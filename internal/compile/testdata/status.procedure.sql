==== postgres

-- Function that joins a row into table message_status for postgres. It may be called by any number of sessions, in any order, as
-- often as one likes; it tells whether anything has changed. Versions are text and compared as bytes; NULL is older than all.
-- Arguments go by name, and what is left out says nothing: select hookfold_message_status(message_id => …, status => …, sent_at => …, …);
--   message_id: key, text
--   status: text, ladder
--   sent_at: timestamp, min
--   error: int, latest, set if error_version is not NULL
--   error_version: version of scope error, NULL if it is not set
-- A version has one form for all that write the table: its elements, each with / behind it (a time in UTC with nine digits
-- of a second, a whole number n as n + 9223372036854775808 with twenty digits), then 0/ and sixteen hexadecimal digits that
-- tell apart two events of one version. Of a time at and the event's text body it is:
--   to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') || '000Z/0/' || left(encode(sha256(convert_to(body, 'UTF8')), 'hex'), 16)
-- To remove it: drop function if exists hookfold_message_status;

begin;
drop function if exists hookfold_message_status;
create function hookfold_message_status(
    message_id text,
    status text default null,
    sent_at timestamp with time zone default null,
    error bigint default null,
    error_version text default null
) returns boolean
language plpgsql
set search_path from current
as $hookfold$
#variable_conflict use_column
declare
    hookfold_count bigint;
    hookfold_written bigint := 0;
begin
    if $2 is not null and (case $2 collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end) = 0 then
        raise exception using errcode = '23514', message = concat($2, ' is not a step of the ladder of column status (sent, failed, delivered, read, played)');
    end if;
    if $5 is null and ($4 is not null) then
        raise exception using errcode = '22023', message = 'error_version is NULL, so it cannot be told whether the row is newer';
    end if;
    if $5 not like '%/0/________________' then
        raise exception using errcode = '22023', message = concat($5, ' has not the form of a version');
    end if;
    insert into message_status as t (message_id, status, sent_at, error, error_version)
    select v.p1,
        v.p2,
        v.p3::timestamp with time zone,
        v.p4::bigint,
        v.p5
    from (values ($1, $2, $3, $4, $5)) as v (p1, p2, p3, p4, p5)
    on conflict (message_id) do update set
        error = case when excluded.error_version collate "C" >= coalesce(t.error_version, '') collate "C" then excluded.error else t.error end,
        error_version = case when excluded.error_version collate "C" >= coalesce(t.error_version, '') collate "C" then excluded.error_version else t.error_version end,
        status = case when excluded.status is not null and (t.status is null or case excluded.status collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end > case t.status collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end) then excluded.status else t.status end,
        sent_at = case when excluded.sent_at is not null and (t.sent_at is null or t.sent_at > excluded.sent_at) then excluded.sent_at else t.sent_at end
    where (excluded.error_version collate "C" >= coalesce(t.error_version, '') collate "C" and (excluded.error is distinct from t.error or excluded.error_version is distinct from t.error_version))
       or (excluded.status is not null and (t.status is null or case excluded.status collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end > case t.status collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end))
       or (excluded.sent_at is not null and (t.sent_at is null or t.sent_at > excluded.sent_at));
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

-- Procedure that joins a row into table message_status for sqlserver. It may be called by any number of sessions, in any order, as
-- often as one likes, inside a transaction or not; @hookfold_changed tells whether anything has changed. Versions are
-- text and compared as bytes; NULL is older than all. What is left out, or NULL, says nothing, but for the columns of a
-- version that is given:
--   exec [hookfold_message_status] @message_id = …, @status = …, @sent_at = …, …;
--   @message_id: key, text
--   @status: text, ladder
--   @sent_at: timestamp, min
--   @error: int, latest, set if error_version is not NULL
--   @error_version: version of scope error, NULL if it is not set
-- A version is made from what the event says, in one form and width for all that write the table. Hookfold's own are the
-- elements of version:, each with / behind it (a time in UTC with nine digits of a second, a whole number n as
-- n + 9223372036854775808 with twenty digits), then 0/ and sixteen hexadecimal digits that tell apart two events of one
-- version. Of a time @at (datetimeoffset) and the event's text @body that is:
--   replace(convert(varchar(27), cast(switchoffset(@at, '+00:00') as datetime2(7)), 121), ' ', 'T') + '00Z/0/'
--     + lower(left(convert(varchar(64), hashbytes('SHA2_256', @body), 2), 16))
-- To remove it: drop procedure [hookfold_message_status];

create or alter procedure [hookfold_message_status]
    @message_id nvarchar(4000),
    @status nvarchar(max) = null,
    @sent_at datetimeoffset(6) = null,
    @error bigint = null,
    @error_version nvarchar(max) = null,
    @hookfold_changed bit = null output
as
begin
set nocount on;
set xact_abort off; -- an insert that comes too late must not end the caller's transaction
if @message_id is null or @message_id like N'% '
begin
    throw 51001, N'@message_id is NULL or ends in a blank, and names no row', 1;
end;
if @status is not null and (@status + N'.') collate Latin1_General_BIN2 not in (N'sent.', N'failed.', N'delivered.', N'read.', N'played.')
begin
    throw 51002, N'@status is not a step of the ladder sent, failed, delivered, read, played', 1;
end;
if @error_version is null and (@error is not null)
begin
    throw 51003, N'@error_version is NULL, so it cannot be told whether the row is newer', 1;
end;
declare @hookfold_written int = 0;
declare @hookfold_tries int = 5;
while @hookfold_tries > 0
begin
begin try
insert into [message_status] ([message_id], [status], [sent_at], [error], [error_version])
select cast(@message_id collate Latin1_General_BIN2 as nvarchar(4000)),
    @status,
    @sent_at,
    @error,
    @error_version collate Latin1_General_BIN2
where not exists (select 1 from [message_status] as t where t.[message_id] = cast(@message_id collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[message_id] + N'.') collate Latin1_General_BIN2 = (cast(@message_id collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2);
set @hookfold_written = @hookfold_written + @@rowcount;
update t
set [error] = case when @error_version collate Latin1_General_BIN2 >= coalesce(t.[error_version], '') collate Latin1_General_BIN2 then @error else t.[error] end,
    [error_version] = case when @error_version collate Latin1_General_BIN2 >= coalesce(t.[error_version], '') collate Latin1_General_BIN2 then @error_version else t.[error_version] end,
    [status] = case when @status is not null and (t.[status] is null or case @status collate Latin1_General_BIN2 when N'sent' then 1 when N'failed' then 2 when N'delivered' then 3 when N'read' then 4 when N'played' then 5 else 0 end > case t.[status] collate Latin1_General_BIN2 when N'sent' then 1 when N'failed' then 2 when N'delivered' then 3 when N'read' then 4 when N'played' then 5 else 0 end) then @status else t.[status] end,
    [sent_at] = case when @sent_at is not null and (t.[sent_at] is null or t.[sent_at] > @sent_at) then @sent_at else t.[sent_at] end
from [message_status] as t
where t.[message_id] = cast(@message_id collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[message_id] + N'.') collate Latin1_General_BIN2 = (cast(@message_id collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2
  and ((@error_version collate Latin1_General_BIN2 >= coalesce(t.[error_version], '') collate Latin1_General_BIN2 and ((@error <> t.[error] or (@error is null and t.[error] is not null) or (@error is not null and t.[error] is null)) or (@error_version <> t.[error_version] or (@error_version is null and t.[error_version] is not null) or (@error_version is not null and t.[error_version] is null))))
   or (@status is not null and (t.[status] is null or case @status collate Latin1_General_BIN2 when N'sent' then 1 when N'failed' then 2 when N'delivered' then 3 when N'read' then 4 when N'played' then 5 else 0 end > case t.[status] collate Latin1_General_BIN2 when N'sent' then 1 when N'failed' then 2 when N'delivered' then 3 when N'read' then 4 when N'played' then 5 else 0 end))
   or (@sent_at is not null and (t.[sent_at] is null or t.[sent_at] > @sent_at)));
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

