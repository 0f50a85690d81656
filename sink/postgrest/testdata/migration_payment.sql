-- Made by Hookfold. Run it in one go (Supabase: SQL editor); it adds, and changes or removes nothing.
begin;

create table app_user (
    id uuid not null,
    primary key (id)
);

alter table app_user enable row level security;

create table payment (
    id text collate "C" not null,
    user_id uuid,
    amount numeric,
    origin text,
    top numeric,
    tags text[],
    row_version text collate "C",
    origin__first text collate "C",
    primary key (id)
);

alter table payment enable row level security;

create or replace function public.hookfold_rows_app_user_a7765c267586(hookfold_group json) returns json
language plpgsql volatile security invoker
set search_path = public, extensions, pg_temp
as $hookfold$
#variable_conflict use_column
declare
    hookfold_rows json;
    hookfold_places bigint[];
    hookfold_count bigint;
    hookfold_written bigint := 0;
    hookfold_out jsonb := '{}';
begin
    -- Rows that have all that a new row needs.
    hookfold_rows := hookfold_group -> 'upsert';
    if hookfold_rows is not null then
        insert into app_user as t (id)
        select v.p1::uuid
        from rows from (json_to_recordset(hookfold_rows) as (id text)) as v (p1)
        on conflict (id) do nothing;
        get diagnostics hookfold_count = row_count;
        hookfold_written := hookfold_written + hookfold_count;
    end if;
    -- Rows of which nothing is known but the key.
    hookfold_rows := hookfold_group -> 'stubs';
    if hookfold_rows is not null then
        insert into app_user as t (id)
        select v.p1::uuid
        from rows from (json_to_recordset(hookfold_rows) as (id text)) as v (p1)
        on conflict (id) do nothing;
        get diagnostics hookfold_count = row_count;
        hookfold_written := hookfold_written + hookfold_count;
    end if;
    -- Rows that are only written if they are there.
    hookfold_rows := hookfold_group -> 'guests';
    if hookfold_rows is not null then
        hookfold_places := array(select l.place from (
            select v.hookfold_n, array[]::bool[]
            from rows from (json_to_recordset(hookfold_rows) as (id text)) with ordinality as v (p1, hookfold_n)
            join app_user as t on t.id = v.p1::uuid
            order by v.hookfold_n
            for no key update of t
        ) as l (place, empty));
        hookfold_out := hookfold_out || jsonb_build_object('guests', array(
            select n from generate_series(1, json_array_length(hookfold_rows)) as n where n <> all (hookfold_places)));
        hookfold_rows := (select coalesce(json_agg(e.item order by e.place), '[]') from json_array_elements(hookfold_rows) with ordinality as e (item, place)
            where e.place = any (hookfold_places));
    end if;
    return hookfold_out || jsonb_build_object('written', hookfold_written);
end
$hookfold$;

revoke all on function public.hookfold_rows_app_user_a7765c267586(json) from public;

do $hookfold$ declare r text; begin for r in select rolname from pg_catalog.pg_roles where rolname in ('anon', 'authenticated') loop execute format('revoke all on function public.hookfold_rows_app_user_a7765c267586(json) from %I', r); end loop; end $hookfold$;

grant execute on function public.hookfold_rows_app_user_a7765c267586(json) to service_role;

create or replace function public.hookfold_rows_payment_b19cd9caab50(hookfold_group json) returns json
language plpgsql volatile security invoker
set search_path = public, extensions, pg_temp
as $hookfold$
#variable_conflict use_column
declare
    hookfold_rows json;
    hookfold_places bigint[];
    hookfold_count bigint;
    hookfold_written bigint := 0;
    hookfold_out jsonb := '{}';
begin
    -- Rows that have all that a new row needs.
    hookfold_rows := hookfold_group -> 'upsert';
    if hookfold_rows is not null then
        insert into payment as t (id, user_id, amount, origin, top, tags, row_version, origin__first)
        select v.p1,
            v.p2::uuid,
            v.p3::numeric,
            v.p4,
            v.p5::numeric,
            v.p6::text[],
            v.p7,
            v.p8
        from rows from (json_to_recordset(hookfold_rows) as (id text, user_id text, amount text, origin text, top text, tags text, row_version text, origin__first text)) as v (p1, p2, p3, p4, p5, p6, p7, p8)
        on conflict (id) do update set
            user_id = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.user_id else t.user_id end,
            amount = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.amount else t.amount end,
            row_version = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.row_version else t.row_version end,
            origin = case when excluded.origin__first is not null and (t.origin__first is null and t.origin is null or excluded.origin__first collate "C" <= t.origin__first collate "C") then excluded.origin else t.origin end,
            origin__first = case when excluded.origin__first is not null and (t.origin__first is null and t.origin is null or excluded.origin__first collate "C" <= t.origin__first collate "C") then excluded.origin__first else t.origin__first end,
            top = case when excluded.top is not null and (t.top is null or excluded.top > t.top) then excluded.top else t.top end,
            tags = case when excluded.tags is not null then case when t.tags is null then excluded.tags else array(select distinct x collate "C" from unnest(t.tags || excluded.tags) as x where x is not null order by 1) end else t.tags end
        where (excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" and (excluded.user_id is distinct from t.user_id or excluded.amount is distinct from t.amount or excluded.row_version is distinct from t.row_version))
           or (excluded.origin__first is not null and (t.origin__first is null and t.origin is null or excluded.origin__first collate "C" <= t.origin__first collate "C") and (excluded.origin is distinct from t.origin or excluded.origin__first is distinct from t.origin__first))
           or (excluded.top is not null and (t.top is null or excluded.top > t.top))
           or (excluded.tags is not null and ((t.tags is null or array(select distinct x collate "C" from unnest(t.tags || excluded.tags) as x where x is not null order by 1) is distinct from t.tags)));
        get diagnostics hookfold_count = row_count;
        hookfold_written := hookfold_written + hookfold_count;
    end if;
    -- Rows of which nothing is known but the key.
    hookfold_rows := hookfold_group -> 'stubs';
    if hookfold_rows is not null then
        insert into payment as t (id, user_id, amount, origin, top, tags, row_version, origin__first)
        select v.p1,
            v.p2::uuid,
            v.p3::numeric,
            v.p4,
            v.p5::numeric,
            v.p6::text[],
            v.p7,
            v.p8
        from rows from (json_to_recordset(hookfold_rows) as (id text, user_id text, amount text, origin text, top text, tags text, row_version text, origin__first text)) as v (p1, p2, p3, p4, p5, p6, p7, p8)
        on conflict (id) do nothing;
        get diagnostics hookfold_count = row_count;
        hookfold_written := hookfold_written + hookfold_count;
    end if;
    -- Rows that are only written if they are there.
    hookfold_rows := hookfold_group -> 'guests';
    if hookfold_rows is not null then
        hookfold_places := array(select l.place from (
            select v.hookfold_n, array[]::bool[]
            from rows from (json_to_recordset(hookfold_rows) as (id text)) with ordinality as v (p1, hookfold_n)
            join payment as t on t.id = v.p1
            order by v.hookfold_n
            for no key update of t
        ) as l (place, empty));
        hookfold_out := hookfold_out || jsonb_build_object('guests', array(
            select n from generate_series(1, json_array_length(hookfold_rows)) as n where n <> all (hookfold_places)));
        hookfold_rows := (select coalesce(json_agg(e.item order by e.place), '[]') from json_array_elements(hookfold_rows) with ordinality as e (item, place)
            where e.place = any (hookfold_places));
        update payment as t
        set user_id = case when excluded.p7 collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.p2 else t.user_id end,
            amount = case when excluded.p7 collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.p3 else t.amount end,
            row_version = case when excluded.p7 collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.p7 else t.row_version end,
            origin = case when excluded.p8 is not null and (t.origin__first is null and t.origin is null or excluded.p8 collate "C" <= t.origin__first collate "C") then excluded.p4 else t.origin end,
            origin__first = case when excluded.p8 is not null and (t.origin__first is null and t.origin is null or excluded.p8 collate "C" <= t.origin__first collate "C") then excluded.p8 else t.origin__first end,
            top = case when excluded.p5 is not null and (t.top is null or excluded.p5 > t.top) then excluded.p5 else t.top end,
            tags = case when excluded.p6 is not null then case when t.tags is null then excluded.p6 else array(select distinct x collate "C" from unnest(t.tags || excluded.p6) as x where x is not null order by 1) end else t.tags end
        from (select v.p1 as p1,
            v.p2::uuid as p2,
            v.p3::numeric as p3,
            v.p4 as p4,
            v.p5::numeric as p5,
            v.p6::text[] as p6,
            v.p7 as p7,
            v.p8 as p8
            from rows from (json_to_recordset(hookfold_rows) as (id text, user_id text, amount text, origin text, top text, tags text, row_version text, origin__first text)) as v (p1, p2, p3, p4, p5, p6, p7, p8)) as excluded
        where t.id = excluded.p1
          and ((excluded.p7 collate "C" >= coalesce(t.row_version, '') collate "C" and (excluded.p2 is distinct from t.user_id or excluded.p3 is distinct from t.amount or excluded.p7 is distinct from t.row_version))
           or (excluded.p8 is not null and (t.origin__first is null and t.origin is null or excluded.p8 collate "C" <= t.origin__first collate "C") and (excluded.p4 is distinct from t.origin or excluded.p8 is distinct from t.origin__first))
           or (excluded.p5 is not null and (t.top is null or excluded.p5 > t.top))
           or (excluded.p6 is not null and ((t.tags is null or array(select distinct x collate "C" from unnest(t.tags || excluded.p6) as x where x is not null order by 1) is distinct from t.tags))));
        get diagnostics hookfold_count = row_count;
        hookfold_written := hookfold_written + hookfold_count;
    end if;
    return hookfold_out || jsonb_build_object('written', hookfold_written);
end
$hookfold$;

revoke all on function public.hookfold_rows_payment_b19cd9caab50(json) from public;

do $hookfold$ declare r text; begin for r in select rolname from pg_catalog.pg_roles where rolname in ('anon', 'authenticated') loop execute format('revoke all on function public.hookfold_rows_payment_b19cd9caab50(json) from %I', r); end loop; end $hookfold$;

grant execute on function public.hookfold_rows_payment_b19cd9caab50(json) to service_role;

create or replace function public.hookfold_inspect_bc2fc937db84(hookfold_tables text[]) returns json
language sql stable security invoker
set search_path = public, extensions, pg_temp
as $hookfold$
select json_build_object(
    'functions', (select coalesce(json_agg(p.proname::text order by p.proname::text), '[]') from pg_catalog.pg_proc p
        where p.pronamespace = 'public'::regnamespace and starts_with(p.proname::text, 'hookfold_')),
    'tables', (select coalesce(json_object_agg(x.name, x.live), '{}') from (
        select n.name, json_build_object('kind', r.kind, 'fills', r.fills,
            'columns', (select json_agg(c) from (
with recursive behind as (
    select a.attnum, a.atttypid as typ, a.atttypmod as mod, false as refuses, null::text as dflt
    from pg_catalog.pg_attribute a
    where a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
    union all
    select b.attnum, t.typbasetype, t.typtypmod, t.typnotnull, t.typdefault collate "default"
    from behind b
    join pg_catalog.pg_type t on t.oid = b.typ
    where t.typtype = 'd'
), base as (
    select b.attnum, b.typ, b.mod
    from behind b
    join pg_catalog.pg_type t on t.oid = b.typ and t.typtype <> 'd'
), domain as (
    select attnum, bool_or(refuses) as refuses, min(dflt) as dflt
    from behind
    group by attnum
)
select
    a.attname::text,
    pg_catalog.format_type(a.atttypid, a.atttypmod),
    pg_catalog.format_type(base.typ, base.mod),
    t.typname::text,
    case when coalesce(e.typname, t.typname) in ('varchar', 'bpchar') and base.mod > 4 then base.mod - 4 else 0 end,
    case when t.typname = 'numeric' and base.mod > 4 then ((base.mod - 4) >> 16) & 65535 else 0 end,
    case when t.typname = 'numeric' and base.mod > 4 then (base.mod - 4) & 2047 else 0 end,
    array(select x.enumlabel::text from pg_catalog.pg_enum x where x.enumtypid = coalesce(e.oid, base.typ) order by x.enumsortorder),
    a.attnotnull or domain.refuses,
    case
        when a.attidentity = 'd' then 'nextval(' || pg_catalog.quote_literal(pg_catalog.pg_get_serial_sequence(r.oid::regclass::text, a.attname)) || '::regclass)'
        when a.attgenerated <> '' or a.attidentity <> '' then ''
        else coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), domain.dflt, '')
    end,
    a.attgenerated <> '' or a.attidentity = 'a',
    case when coalesce(e.typname, t.typname) = 'citext' then 'citext' when l.collisdeterministic then '' else coalesce(l.collname::text, '') end
from pg_catalog.pg_attribute a
join base on base.attnum = a.attnum
join domain on domain.attnum = a.attnum
join pg_catalog.pg_type t on t.oid = base.typ
left join pg_catalog.pg_type e on e.oid = t.typelem and e.typarray = t.oid -- of a list's elements
left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
left join pg_catalog.pg_collation l on l.oid = a.attcollation
where a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
order by a.attnum

) as c (name, "type", base, internal, "length", "precision", scale, labels, not_null, dflt, generated, "collation")),
            'uniques', (select json_agg(u) from (
select i.indexrelid::regclass::text, array(
    select a.attname::text
    from pg_catalog.unnest(i.indkey::int2[]) with ordinality as k (n, at)
    join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.n
    where k.at <= i.indnkeyatts
    order by k.at)
from pg_catalog.pg_index i
where i.indrelid = r.oid and i.indisunique and i.indisvalid and i.indimmediate and i.indpred is null and i.indexprs is null
order by not i.indisprimary, 1
) as u (name, columns))) as live
        from unnest(hookfold_tables) as n (name)
        cross join lateral (
select c.oid, c.relkind::text, exists (
    select from pg_catalog.pg_trigger g
    where g.tgrelid = c.oid and not g.tgisinternal and g.tgenabled <> 'D' and g.tgtype & 7 = 7)
from pg_catalog.pg_class c
where c.oid = pg_catalog.to_regclass(n.name)
) as r (oid, kind, fills)) as x))
$hookfold$;

revoke all on function public.hookfold_inspect_bc2fc937db84(text[]) from public;

do $hookfold$ declare r text; begin for r in select rolname from pg_catalog.pg_roles where rolname in ('anon', 'authenticated') loop execute format('revoke all on function public.hookfold_inspect_bc2fc937db84(text[]) from %I', r); end loop; end $hookfold$;

grant execute on function public.hookfold_inspect_bc2fc937db84(text[]) to service_role;

create or replace function public.hookfold_apply_576c62bdc62a(hookfold_batch json) returns json
language plpgsql volatile security invoker
set search_path = pg_catalog, pg_temp
set default_transaction_isolation = 'read committed'
as $hookfold$
declare
    hookfold_group json;
    hookfold_answer json;
    hookfold_answers jsonb := '[]';
    hookfold_lacking bigint := 0;
begin
    for hookfold_group in select e.item from json_array_elements(hookfold_batch) with ordinality as e (item, place) order by e.place loop
        if hookfold_group ->> 'function' !~ '^hookfold_rows_[a-z0-9_]+$' then
            raise exception 'not a function of Hookfold: %', hookfold_group ->> 'function';
        end if;
        execute format('select %I.%I($1)', 'public', hookfold_group ->> 'function') into hookfold_answer using hookfold_group;
        hookfold_answers := hookfold_answers || jsonb_build_array(hookfold_answer::jsonb - 'there_visits');
        hookfold_lacking := hookfold_lacking
            + coalesce(json_array_length(hookfold_answer -> 'partial'), 0) + coalesce(json_array_length(hookfold_answer -> 'shown'), 0);
    end loop;
    if hookfold_lacking > 0 then
        raise exception using errcode = 'HF001', message = 'rows lack columns that are NOT NULL', detail = hookfold_answers::text;
    end if;
    return hookfold_answers;
end
$hookfold$;

revoke all on function public.hookfold_apply_576c62bdc62a(json) from public;

do $hookfold$ declare r text; begin for r in select rolname from pg_catalog.pg_roles where rolname in ('anon', 'authenticated') loop execute format('revoke all on function public.hookfold_apply_576c62bdc62a(json) from %I', r); end loop; end $hookfold$;

grant execute on function public.hookfold_apply_576c62bdc62a(json) to service_role;

grant select, insert, update on app_user to service_role;

grant select, insert, update on payment to service_role;

notify pgrst, 'reload schema';

commit;
