==== postgres

-- Table payment for postgres. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for a batch: a parameter is an array with one element per row. No key may come twice in a batch.

-- What has to be there:
create table payment (
    id text collate "C" not null,
    user_id uuid,
    amount numeric,
    paid_at timestamp with time zone,
    row_version text collate "C",
    primary key (id)
);

-- Join rows into the table:
--   $1 id: key, text
--   $2 user_id: uuid, latest, set if row_version is not NULL
--   $3 amount: numeric, latest, set if row_version is not NULL
--   $4 paid_at: timestamp, latest, set if row_version is not NULL
--   $5 row_version: version of scope row, NULL if it is not set
insert into payment as t (id, user_id, amount, paid_at, row_version)
select v.id,
    v.user_id::uuid,
    v.amount::numeric,
    v.paid_at::timestamp with time zone,
    v.row_version
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as v (id, user_id, amount, paid_at, row_version)
on conflict (id) do update set
    user_id = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.user_id else t.user_id end,
    amount = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.amount else t.amount end,
    paid_at = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.paid_at else t.paid_at end,
    row_version = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.row_version else t.row_version end
where (excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" and (excluded.user_id is distinct from t.user_id or excluded.amount is distinct from t.amount or excluded.paid_at is distinct from t.paid_at or excluded.row_version is distinct from t.row_version));

-- Join into rows that are there, and insert none:
-- The same parameters.
update payment as t
set user_id = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.user_id else t.user_id end,
    amount = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.amount else t.amount end,
    paid_at = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.paid_at else t.paid_at end,
    row_version = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.row_version else t.row_version end
from (select v.id as id,
    v.user_id::uuid as user_id,
    v.amount::numeric as amount,
    v.paid_at::timestamp with time zone as paid_at,
    v.row_version as row_version
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) as v (id, user_id, amount, paid_at, row_version)) as excluded
where t.id = excluded.id
  and ((excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" and (excluded.user_id is distinct from t.user_id or excluded.amount is distinct from t.amount or excluded.paid_at is distinct from t.paid_at or excluded.row_version is distinct from t.row_version)));

==== sqlite

-- Table payment for sqlite. Versions are text and compared as bytes; NULL is older than all.
-- Each statement is for one row.

-- What has to be there:
create table payment (
    id text not null,
    user_id text,
    amount text,
    paid_at text,
    row_version text,
    primary key (id)
);

-- Join rows into the table:
--   ?1 id: key, text
--   ?2 user_id: uuid, latest, set if row_version is not NULL
--   ?3 amount: numeric, latest, set if row_version is not NULL
--   ?4 paid_at: timestamp, latest, set if row_version is not NULL
--   ?5 row_version: version of scope row, NULL if it is not set
insert into payment as t (id, user_id, amount, paid_at, row_version)
values (?1,
    ?2,
    ?3,
    ?4,
    ?5)
on conflict (id) do update set
    user_id = case when excluded.row_version collate binary >= coalesce(t.row_version, '') collate binary then excluded.user_id else t.user_id end,
    amount = case when excluded.row_version collate binary >= coalesce(t.row_version, '') collate binary then excluded.amount else t.amount end,
    paid_at = case when excluded.row_version collate binary >= coalesce(t.row_version, '') collate binary then excluded.paid_at else t.paid_at end,
    row_version = case when excluded.row_version collate binary >= coalesce(t.row_version, '') collate binary then excluded.row_version else t.row_version end
where (excluded.row_version collate binary >= coalesce(t.row_version, '') collate binary and (excluded.user_id collate binary is not t.user_id or excluded.amount collate binary is not t.amount or excluded.paid_at collate binary is not t.paid_at or excluded.row_version collate binary is not t.row_version));

-- Join into rows that are there, and insert none:
-- The same parameters.
update payment as t
set user_id = case when excluded.row_version collate binary >= coalesce(t.row_version, '') collate binary then excluded.user_id else t.user_id end,
    amount = case when excluded.row_version collate binary >= coalesce(t.row_version, '') collate binary then excluded.amount else t.amount end,
    paid_at = case when excluded.row_version collate binary >= coalesce(t.row_version, '') collate binary then excluded.paid_at else t.paid_at end,
    row_version = case when excluded.row_version collate binary >= coalesce(t.row_version, '') collate binary then excluded.row_version else t.row_version end
from (select ?1 as id, ?2 as user_id, ?3 as amount, ?4 as paid_at, ?5 as row_version) as excluded
where t.id = excluded.id
  and ((excluded.row_version collate binary >= coalesce(t.row_version, '') collate binary and (excluded.user_id collate binary is not t.user_id or excluded.amount collate binary is not t.amount or excluded.paid_at collate binary is not t.paid_at or excluded.row_version collate binary is not t.row_version)));

