==== postgres

-- Function that joins a row into table every_rule for postgres. It may be called by any number of sessions, in any order, as
-- often as one likes; it tells whether anything has changed. Versions are text and compared as bytes; NULL is older than all.
-- Arguments go by name, and what is left out says nothing: select hookfold_every_rule(tenant => …, "no" => …, status => …, …);
--   tenant: key, text
--   no: key, int
--   status: text, latest, set if row_version is not NULL
--   amount: numeric(10,2), latest, set if row_version is not NULL
--   note: text(20), latest, set if note_version is not NULL
--   origin: text, first
--   top: numeric, max
--   name: text, max
--   since: timestamp, min
--   step: text, ladder
--   tags: text[], union
--   row_version: version of scope row, NULL if it is not set
--   note_version: version of scope note, NULL if it is not set
--   origin__first: version of origin, NULL if it is not set
-- A version has one form for all that write the table: its elements, each with / behind it (a time in UTC with nine digits
-- of a second, a whole number n as n + 9223372036854775808 with twenty digits), then 0/ and sixteen hexadecimal digits that
-- tell apart two events of one version. Of a time at and the event's text body it is:
--   to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') || '000Z/0/' || left(encode(sha256(convert_to(body, 'UTF8')), 'hex'), 16)
-- To remove it: drop function if exists hookfold_every_rule;

begin;
drop function if exists hookfold_every_rule;
create function hookfold_every_rule(
    tenant text,
    "no" bigint,
    status text default null,
    amount numeric(10,2) default null,
    note character varying default null,
    origin text default null,
    top numeric default null,
    name text default null,
    since timestamp with time zone default null,
    step text default null,
    tags text[] default null,
    row_version text default null,
    note_version text default null,
    origin__first text default null
) returns boolean
language plpgsql
set search_path from current
as $hookfold$
#variable_conflict use_column
declare
    hookfold_count bigint;
    hookfold_written bigint := 0;
begin
    if $10 is not null and (case $10 collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end) = 0 then
        raise exception using errcode = '23514', message = concat($10, ' is not a step of the ladder of column step (sent, failed, delivered, read)');
    end if;
    if $11 is not null then
        $11 := array(select distinct x collate "C" from unnest($11 || $11) as x where x is not null order by 1);
    end if;
    if $12 is null and ($3 is not null or $4 is not null) then
        raise exception using errcode = '22023', message = 'row_version is NULL, so it cannot be told whether the row is newer';
    end if;
    if $12 not like '%/0/________________' then
        raise exception using errcode = '22023', message = concat($12, ' has not the form of a version');
    end if;
    if $13 is null and ($5 is not null) then
        raise exception using errcode = '22023', message = 'note_version is NULL, so it cannot be told whether the row is newer';
    end if;
    if $13 not like '%/0/________________' then
        raise exception using errcode = '22023', message = concat($13, ' has not the form of a version');
    end if;
    if $14 is null and ($6 is not null) then
        raise exception using errcode = '22023', message = 'origin__first is NULL, so it cannot be told whether the row is newer';
    end if;
    if $14 not like '%/0/________________' then
        raise exception using errcode = '22023', message = concat($14, ' has not the form of a version');
    end if;
    insert into every_rule as t (tenant, "no", status, amount, note, origin, top, name, since, step, tags, row_version, note_version, origin__first, changed_at)
    select v.p1,
        v.p2::bigint,
        v.p3,
        v.p4::numeric(10,2),
        v.p5::character varying,
        v.p6,
        v.p7::numeric,
        v.p8,
        v.p9::timestamp with time zone,
        v.p10,
        v.p11::text[],
        v.p12,
        v.p13,
        v.p14,
        clock_timestamp()
    from (values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)) as v (p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14)
    on conflict (tenant, "no") do update set
        status = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.status else t.status end,
        amount = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.amount else t.amount end,
        row_version = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.row_version else t.row_version end,
        note = case when excluded.note_version collate "C" >= coalesce(t.note_version, '') collate "C" then excluded.note else t.note end,
        note_version = case when excluded.note_version collate "C" >= coalesce(t.note_version, '') collate "C" then excluded.note_version else t.note_version end,
        origin = case when excluded.origin__first is not null and (t.origin__first is null and t.origin is null or excluded.origin__first collate "C" <= t.origin__first collate "C") then excluded.origin else t.origin end,
        origin__first = case when excluded.origin__first is not null and (t.origin__first is null and t.origin is null or excluded.origin__first collate "C" <= t.origin__first collate "C") then excluded.origin__first else t.origin__first end,
        top = case when excluded.top is not null and (t.top is null or excluded.top > t.top) then excluded.top else t.top end,
        name = case when excluded.name is not null and (t.name is null or excluded.name collate "C" > t.name collate "C") then excluded.name else t.name end,
        since = case when excluded.since is not null and (t.since is null or t.since > excluded.since) then excluded.since else t.since end,
        step = case when excluded.step is not null and (t.step is null or case excluded.step collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end > case t.step collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end) then excluded.step else t.step end,
        tags = case when excluded.tags is not null then case when t.tags is null then excluded.tags else array(select distinct x collate "C" from unnest(t.tags || excluded.tags) as x where x is not null order by 1) end else t.tags end,
        changed_at = case when (excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" and (excluded.status is distinct from t.status or excluded.amount is distinct from t.amount))
               or (excluded.note_version collate "C" >= coalesce(t.note_version, '') collate "C" and (excluded.note is distinct from t.note))
               or (excluded.origin__first is not null and (t.origin__first is null and t.origin is null or excluded.origin__first collate "C" <= t.origin__first collate "C") and (excluded.origin is distinct from t.origin))
               or (excluded.top is not null and (t.top is null or excluded.top > t.top))
               or (excluded.name is not null and (t.name is null or excluded.name collate "C" > t.name collate "C"))
               or (excluded.since is not null and (t.since is null or t.since > excluded.since))
               or (excluded.step is not null and (t.step is null or case excluded.step collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end > case t.step collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end))
               or (excluded.tags is not null and ((t.tags is null or array(select distinct x collate "C" from unnest(t.tags || excluded.tags) as x where x is not null order by 1) is distinct from t.tags)))
          then clock_timestamp() else t.changed_at end
    where (excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" and (excluded.status is distinct from t.status or excluded.amount is distinct from t.amount or excluded.row_version is distinct from t.row_version))
       or (excluded.note_version collate "C" >= coalesce(t.note_version, '') collate "C" and (excluded.note is distinct from t.note or excluded.note_version is distinct from t.note_version))
       or (excluded.origin__first is not null and (t.origin__first is null and t.origin is null or excluded.origin__first collate "C" <= t.origin__first collate "C") and (excluded.origin is distinct from t.origin or excluded.origin__first is distinct from t.origin__first))
       or (excluded.top is not null and (t.top is null or excluded.top > t.top))
       or (excluded.name is not null and (t.name is null or excluded.name collate "C" > t.name collate "C"))
       or (excluded.since is not null and (t.since is null or t.since > excluded.since))
       or (excluded.step is not null and (t.step is null or case excluded.step collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end > case t.step collate "C" when 'sent' then 1 when 'failed' then 2 when 'delivered' then 3 when 'read' then 4 else 0 end))
       or (excluded.tags is not null and ((t.tags is null or array(select distinct x collate "C" from unnest(t.tags || excluded.tags) as x where x is not null order by 1) is distinct from t.tags)));
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

-- table every_rule: occupants, unions, and max and min of text are joined outside of the database, under locks, since T-SQL cannot decide them exactly

