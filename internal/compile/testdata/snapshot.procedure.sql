==== postgres

-- Function that joins a row into table payment for postgres. It may be called by any number of sessions, in any order, as
-- often as one likes; it tells whether anything has changed. Versions are text and compared as bytes; NULL is older than all.
-- Arguments go by name, and what is left out says nothing: select hookfold_payment(id => …, user_id => …, amount => …, …);
--   id: key, text
--   user_id: uuid, latest, set if row_version is not NULL
--   amount: numeric, latest, set if row_version is not NULL
--   paid_at: timestamp, latest, set if row_version is not NULL
--   row_version: version of scope row, NULL if it is not set
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

