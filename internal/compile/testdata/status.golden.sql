==== postgres

-- Table message_status for postgres. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: a parameter is an array with one element per row. No key may come twice in a batch.

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
select v.message_id,
    v.status,
    v.sent_at::timestamp with time zone,
    v.error::bigint,
    v.error_version
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as v (message_id, status, sent_at, error, error_version)
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
set error = case when excluded.error_version collate "C" >= coalesce(t.error_version, '') collate "C" then excluded.error else t.error end,
    error_version = case when excluded.error_version collate "C" >= coalesce(t.error_version, '') collate "C" then excluded.error_version else t.error_version end,
    status = case when excluded.status is not null and (t.status is null or case excluded.status collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end > case t.status collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end) then excluded.status else t.status end,
    sent_at = case when excluded.sent_at is not null and (t.sent_at is null or t.sent_at > excluded.sent_at) then excluded.sent_at else t.sent_at end
from (select v.message_id as message_id,
    v.status as status,
    v.sent_at::timestamp with time zone as sent_at,
    v.error::bigint as error,
    v.error_version as error_version
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as v (message_id, status, sent_at, error, error_version)) as excluded
where t.message_id = excluded.message_id
  and ((excluded.error_version collate "C" >= coalesce(t.error_version, '') collate "C" and (excluded.error is distinct from t.error or excluded.error_version is distinct from t.error_version))
   or (excluded.status is not null and (t.status is null or case excluded.status collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end > case t.status collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end))
   or (excluded.sent_at is not null and (t.sent_at is null or t.sent_at > excluded.sent_at)));

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
set error = case when excluded.error_version collate binary >= coalesce(t.error_version, '') collate binary then excluded.error else t.error end,
    error_version = case when excluded.error_version collate binary >= coalesce(t.error_version, '') collate binary then excluded.error_version else t.error_version end,
    status = case when excluded.status is not null and (t.status is null or case excluded.status collate binary when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end > case t.status collate binary when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end) then excluded.status else t.status end,
    sent_at = case when excluded.sent_at is not null and (t.sent_at is null or t.sent_at collate binary > excluded.sent_at) then excluded.sent_at else t.sent_at end
from (select ?1 as message_id, ?2 as status, ?3 as sent_at, ?4 as error, ?5 as error_version) as excluded
where t.message_id = excluded.message_id
  and ((excluded.error_version collate binary >= coalesce(t.error_version, '') collate binary and (excluded.error is not t.error or excluded.error_version collate binary is not t.error_version))
   or (excluded.status is not null and (t.status is null or case excluded.status collate binary when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end > case t.status collate binary when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 when 'played' then 5 else 0 end))
   or (excluded.sent_at is not null and (t.sent_at is null or t.sent_at collate binary > excluded.sent_at)));

