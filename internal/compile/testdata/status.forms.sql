==== sqlserver/merge

merge into [message_status] with (holdlock) as t
using (select cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) as p1, v.p2 as p2, cast(replace(v.p3, N'Z', N'+00:00') as datetimeoffset(6)) as p3, cast(v.p4 as bigint) as p4, v.p5 collate Latin1_General_BIN2 as p5
    from openjson(@rows) with (n int '$.n', p1 nvarchar(max) '$.p1', p2 nvarchar(max) '$.p2', p3 nvarchar(max) '$.p3', p4 nvarchar(max) '$.p4', p5 nvarchar(max) '$.p5') as v) as excluded
on t.[message_id] = excluded.p1 and (t.[message_id] + N'.') collate Latin1_General_BIN2 = (excluded.p1 + N'.') collate Latin1_General_BIN2
when matched and ((excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[error_version], '') collate Latin1_General_BIN2 and ((excluded.p4 <> t.[error] or (excluded.p4 is null and t.[error] is not null) or (excluded.p4 is not null and t.[error] is null)) or (excluded.p5 <> t.[error_version] or (excluded.p5 is null and t.[error_version] is not null) or (excluded.p5 is not null and t.[error_version] is null))))
   or (excluded.p2 is not null and (t.[status] is null or case excluded.p2 collate Latin1_General_BIN2 when N'sent' then 1 when N'failed' then 2 when N'delivered' then 3 when N'read' then 4 when N'played' then 5 else 0 end > case t.[status] collate Latin1_General_BIN2 when N'sent' then 1 when N'failed' then 2 when N'delivered' then 3 when N'read' then 4 when N'played' then 5 else 0 end))
   or (excluded.p3 is not null and (t.[sent_at] is null or t.[sent_at] > excluded.p3))) then update set
    [error] = case when excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[error_version], '') collate Latin1_General_BIN2 then excluded.p4 else t.[error] end,
    [error_version] = case when excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[error_version], '') collate Latin1_General_BIN2 then excluded.p5 else t.[error_version] end,
    [status] = case when excluded.p2 is not null and (t.[status] is null or case excluded.p2 collate Latin1_General_BIN2 when N'sent' then 1 when N'failed' then 2 when N'delivered' then 3 when N'read' then 4 when N'played' then 5 else 0 end > case t.[status] collate Latin1_General_BIN2 when N'sent' then 1 when N'failed' then 2 when N'delivered' then 3 when N'read' then 4 when N'played' then 5 else 0 end) then excluded.p2 else t.[status] end,
    [sent_at] = case when excluded.p3 is not null and (t.[sent_at] is null or t.[sent_at] > excluded.p3) then excluded.p3 else t.[sent_at] end
when not matched by target then insert ([message_id], [status], [sent_at], [error], [error_version])
    values (excluded.p1, excluded.p2, excluded.p3, excluded.p4, excluded.p5);

==== sqlserver/updlock

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
where not exists (select 1 from [message_status] as t with (updlock, holdlock) where t.[message_id] = cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) and (t.[message_id] + N'.') collate Latin1_General_BIN2 = (cast(v.p1 collate Latin1_General_BIN2 as nvarchar(4000)) + N'.') collate Latin1_General_BIN2);
update t
set [error] = case when excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[error_version], '') collate Latin1_General_BIN2 then excluded.p4 else t.[error] end,
    [error_version] = case when excluded.p5 collate Latin1_General_BIN2 >= coalesce(t.[error_version], '') collate Latin1_General_BIN2 then excluded.p5 else t.[error_version] end,
    [status] = case when excluded.p2 is not null and (t.[status] is null or case excluded.p2 collate Latin1_General_BIN2 when N'sent' then 1 when N'failed' then 2 when N'delivered' then 3 when N'read' then 4 when N'played' then 5 else 0 end > case t.[status] collate Latin1_General_BIN2 when N'sent' then 1 when N'failed' then 2 when N'delivered' then 3 when N'read' then 4 when N'played' then 5 else 0 end) then excluded.p2 else t.[status] end,
    [sent_at] = case when excluded.p3 is not null and (t.[sent_at] is null or t.[sent_at] > excluded.p3) then excluded.p3 else t.[sent_at] end
from [message_status] as t with (updlock, holdlock)
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
end

