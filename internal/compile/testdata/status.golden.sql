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

