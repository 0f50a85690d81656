==== postgres

-- Function that joins a row into table message_status for postgres. It may be called by any number of sessions, in any order, as
-- often as one likes; it tells whether anything has changed. Versions are text and compared as bytes; NULL is older than all.
-- Arguments go by name, and what is left out says nothing: select hookfold_message_status(message_id => …, status => …, sent_at => …, …);
--   message_id: key, text
--   status: text, ladder
--   sent_at: timestamp, min
--   error: int, latest, set if error_version is not NULL
--   error_version: version of scope error, NULL if it is not set
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

