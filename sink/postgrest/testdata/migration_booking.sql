-- Made by Hookfold. Run it in one go (Supabase: SQL editor); it adds, and changes or removes nothing.
begin;

create table booking (
    ref text collate "C" not null,
    status text,
    no_show boolean,
    channel text,
    changed_at timestamp with time zone,
    row_version text collate "C",
    key_version text collate "C",
    no_show_version text collate "C",
    occupant_since text collate "C",
    occupant_id text collate "C",
    primary key (ref)
);

create table booking_occupants (
    ref text collate "C" not null,
    occupant_id text collate "C" not null,
    status text,
    no_show boolean,
    row_version text collate "C",
    no_show_version text collate "C",
    occupant_since text collate "C",
    primary key (ref, occupant_id)
);

alter table booking enable row level security;

alter table booking_occupants enable row level security;

create or replace function public.hookfold_rows_booking_701e87dba8a4(hookfold_group json) returns json
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
    -- Occupants of rows that are not inserted: which rows are there.
    hookfold_rows := hookfold_group -> 'visits';
    if hookfold_rows is not null then
        hookfold_places := array(select l.place from (
            select v.hookfold_n, array[]::bool[]
            from rows from (json_to_recordset(hookfold_rows) as (ref text)) with ordinality as v (p1, hookfold_n)
            join booking as t on t.ref = v.p1
            order by v.hookfold_n
            for no key update of t
        ) as l (place, empty));
        hookfold_out := hookfold_out || jsonb_build_object('visits', array(
            select n from generate_series(1, json_array_length(hookfold_rows)) as n where n <> all (hookfold_places)));
        hookfold_rows := (select coalesce(json_agg(e.item order by e.place), '[]') from json_array_elements(hookfold_rows) with ordinality as e (item, place)
            where e.place = any (hookfold_places));
        hookfold_out := hookfold_out || jsonb_build_object('there_visits', hookfold_rows);
    end if;
    -- Join the records of occupants.
    hookfold_rows := hookfold_group -> 'parts';
    if hookfold_rows is not null then
        insert into booking_occupants as t (ref, occupant_id, status, no_show, row_version, no_show_version, occupant_since)
        select v.p1,
            v.p2,
            v.p3,
            v.p4::boolean,
            v.p5,
            v.p6,
            v.p7
        from rows from (json_to_recordset(hookfold_rows) as (ref text, occupant_id text, status text, no_show text, row_version text, no_show_version text, occupant_since text)) as v (p1, p2, p3, p4, p5, p6, p7)
        on conflict (ref, occupant_id) do update set
            status = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.status else t.status end,
            row_version = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.row_version else t.row_version end,
            no_show = case when excluded.no_show_version collate "C" >= coalesce(t.no_show_version, '') collate "C" then excluded.no_show else t.no_show end,
            no_show_version = case when excluded.no_show_version collate "C" >= coalesce(t.no_show_version, '') collate "C" then excluded.no_show_version else t.no_show_version end,
            occupant_since = case when excluded.occupant_since is not null and (t.occupant_since is null or excluded.occupant_since collate "C" > t.occupant_since collate "C") then excluded.occupant_since else t.occupant_since end
        where (excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" and (excluded.status is distinct from t.status or excluded.row_version is distinct from t.row_version))
           or (excluded.no_show_version collate "C" >= coalesce(t.no_show_version, '') collate "C" and (excluded.no_show is distinct from t.no_show or excluded.no_show_version is distinct from t.no_show_version))
           or (excluded.occupant_since is not null and (t.occupant_since is null or excluded.occupant_since collate "C" > t.occupant_since collate "C"));
        get diagnostics hookfold_count = row_count;
        hookfold_written := hookfold_written + hookfold_count;
    end if;
    hookfold_rows := hookfold_out -> 'there_visits';
    if hookfold_rows is not null then
        insert into booking_occupants as t (ref, occupant_id, status, no_show, row_version, no_show_version, occupant_since)
        select v.p1,
            v.p2,
            v.p3,
            v.p4::boolean,
            v.p5,
            v.p6,
            v.p7
        from rows from (json_to_recordset(hookfold_rows) as (ref text, occupant_id text, status text, no_show text, row_version text, no_show_version text, occupant_since text)) as v (p1, p2, p3, p4, p5, p6, p7)
        on conflict (ref, occupant_id) do update set
            status = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.status else t.status end,
            row_version = case when excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" then excluded.row_version else t.row_version end,
            no_show = case when excluded.no_show_version collate "C" >= coalesce(t.no_show_version, '') collate "C" then excluded.no_show else t.no_show end,
            no_show_version = case when excluded.no_show_version collate "C" >= coalesce(t.no_show_version, '') collate "C" then excluded.no_show_version else t.no_show_version end,
            occupant_since = case when excluded.occupant_since is not null and (t.occupant_since is null or excluded.occupant_since collate "C" > t.occupant_since collate "C") then excluded.occupant_since else t.occupant_since end
        where (excluded.row_version collate "C" >= coalesce(t.row_version, '') collate "C" and (excluded.status is distinct from t.status or excluded.row_version is distinct from t.row_version))
           or (excluded.no_show_version collate "C" >= coalesce(t.no_show_version, '') collate "C" and (excluded.no_show is distinct from t.no_show or excluded.no_show_version is distinct from t.no_show_version))
           or (excluded.occupant_since is not null and (t.occupant_since is null or excluded.occupant_since collate "C" > t.occupant_since collate "C"));
        get diagnostics hookfold_count = row_count;
        hookfold_written := hookfold_written + hookfold_count;
    end if;
    -- Show the newest record of each key.
    hookfold_rows := hookfold_group -> 'shown';
    if hookfold_rows is not null then
        insert into booking as t (ref, status, no_show, row_version, no_show_version, occupant_since, occupant_id, channel, key_version, changed_at)
        select p.ref,
            p.status,
            p.no_show,
            p.row_version,
            p.no_show_version,
            p.occupant_since,
            p.occupant_id,
            p.channel,
            p.key_version,
            clock_timestamp()
        from (select distinct on (v.p1) v.hookfold_n, v.p1 as ref, o.status as status, o.no_show as no_show, o.row_version as row_version, o.no_show_version as no_show_version, o.occupant_since as occupant_since, o.occupant_id as occupant_id, v.p3 as channel, v.p4 as key_version
            from rows from (json_to_recordset(hookfold_rows) as (ref text, occupant_id text, channel text, key_version text)) with ordinality as v (p1, p2, p3, p4, hookfold_n)
            join booking_occupants as o on o.ref = v.p1 and o.occupant_id = v.p2
            order by v.p1, coalesce(o.occupant_since, '') collate "C" desc, o.occupant_id collate "C" desc) as p
        where true
        order by p.hookfold_n
        on conflict (ref) do update set
            status = excluded.status,
            no_show = excluded.no_show,
            row_version = excluded.row_version,
            no_show_version = excluded.no_show_version,
            occupant_since = excluded.occupant_since,
            occupant_id = excluded.occupant_id,
            changed_at = case when excluded.status is distinct from t.status or excluded.no_show is distinct from t.no_show then clock_timestamp() else t.changed_at end
        where (coalesce(excluded.occupant_since, '') collate "C", coalesce(excluded.occupant_id, '') collate "C", coalesce(excluded.row_version, '') collate "C")
            >= (coalesce(t.occupant_since, '') collate "C", coalesce(t.occupant_id, '') collate "C", coalesce(t.row_version, '') collate "C")
          and (excluded.status is distinct from t.status or excluded.no_show is distinct from t.no_show or excluded.row_version is distinct from t.row_version or excluded.no_show_version is distinct from t.no_show_version or excluded.occupant_since is distinct from t.occupant_since or excluded.occupant_id is distinct from t.occupant_id);
    end if;
    hookfold_rows := hookfold_out -> 'there_visits';
    if hookfold_rows is not null then
        update booking as t
        set status = excluded.status,
            no_show = excluded.no_show,
            row_version = excluded.row_version,
            no_show_version = excluded.no_show_version,
            occupant_since = excluded.occupant_since,
            occupant_id = excluded.occupant_id,
            changed_at = case when excluded.status is distinct from t.status or excluded.no_show is distinct from t.no_show then clock_timestamp() else t.changed_at end
        from (select distinct on (v.p1) v.hookfold_n, v.p1 as ref, o.status as status, o.no_show as no_show, o.row_version as row_version, o.no_show_version as no_show_version, o.occupant_since as occupant_since, o.occupant_id as occupant_id
            from rows from (json_to_recordset(hookfold_rows) as (ref text, occupant_id text, channel text, key_version text)) with ordinality as v (p1, p2, p3, p4, hookfold_n)
            join booking_occupants as o on o.ref = v.p1 and o.occupant_id = v.p2
            order by v.p1, coalesce(o.occupant_since, '') collate "C" desc, o.occupant_id collate "C" desc) as excluded
        where t.ref = excluded.ref
          and (coalesce(excluded.occupant_since, '') collate "C", coalesce(excluded.occupant_id, '') collate "C", coalesce(excluded.row_version, '') collate "C")
            >= (coalesce(t.occupant_since, '') collate "C", coalesce(t.occupant_id, '') collate "C", coalesce(t.row_version, '') collate "C")
          and (excluded.status is distinct from t.status or excluded.no_show is distinct from t.no_show or excluded.row_version is distinct from t.row_version or excluded.no_show_version is distinct from t.no_show_version or excluded.occupant_since is distinct from t.occupant_since or excluded.occupant_id is distinct from t.occupant_id);
    end if;
    -- Rows that have all that a new row needs.
    hookfold_rows := hookfold_group -> 'upsert';
    if hookfold_rows is not null then
        insert into booking as t (ref, channel, key_version)
        select v.p1,
            v.p2,
            v.p3
        from rows from (json_to_recordset(hookfold_rows) as (ref text, channel text, key_version text)) as v (p1, p2, p3)
        on conflict (ref) do update set
            channel = case when excluded.key_version collate "C" >= coalesce(t.key_version, '') collate "C" then excluded.channel else t.channel end,
            key_version = case when excluded.key_version collate "C" >= coalesce(t.key_version, '') collate "C" then excluded.key_version else t.key_version end
        where (excluded.key_version collate "C" >= coalesce(t.key_version, '') collate "C" and (excluded.channel is distinct from t.channel or excluded.key_version is distinct from t.key_version));
        get diagnostics hookfold_count = row_count;
        hookfold_written := hookfold_written + hookfold_count;
    end if;
    -- Rows of which nothing is known but the key.
    hookfold_rows := hookfold_group -> 'stubs';
    if hookfold_rows is not null then
        insert into booking as t (ref, channel, key_version)
        select v.p1,
            v.p2,
            v.p3
        from rows from (json_to_recordset(hookfold_rows) as (ref text, channel text, key_version text)) as v (p1, p2, p3)
        on conflict (ref) do nothing;
        get diagnostics hookfold_count = row_count;
        hookfold_written := hookfold_written + hookfold_count;
    end if;
    -- Rows that are only written if they are there.
    hookfold_rows := hookfold_group -> 'guests';
    if hookfold_rows is not null then
        hookfold_places := array(select l.place from (
            select v.hookfold_n, array[]::bool[]
            from rows from (json_to_recordset(hookfold_rows) as (ref text)) with ordinality as v (p1, hookfold_n)
            join booking as t on t.ref = v.p1
            order by v.hookfold_n
            for no key update of t
        ) as l (place, empty));
        hookfold_out := hookfold_out || jsonb_build_object('guests', array(
            select n from generate_series(1, json_array_length(hookfold_rows)) as n where n <> all (hookfold_places)));
        hookfold_rows := (select coalesce(json_agg(e.item order by e.place), '[]') from json_array_elements(hookfold_rows) with ordinality as e (item, place)
            where e.place = any (hookfold_places));
        update booking as t
        set channel = case when excluded.p3 collate "C" >= coalesce(t.key_version, '') collate "C" then excluded.p2 else t.channel end,
            key_version = case when excluded.p3 collate "C" >= coalesce(t.key_version, '') collate "C" then excluded.p3 else t.key_version end
        from (select v.p1 as p1,
            v.p2 as p2,
            v.p3 as p3
            from rows from (json_to_recordset(hookfold_rows) as (ref text, channel text, key_version text)) as v (p1, p2, p3)) as excluded
        where t.ref = excluded.p1
          and ((excluded.p3 collate "C" >= coalesce(t.key_version, '') collate "C" and (excluded.p2 is distinct from t.channel or excluded.p3 is distinct from t.key_version)));
        get diagnostics hookfold_count = row_count;
        hookfold_written := hookfold_written + hookfold_count;
    end if;
    return hookfold_out || jsonb_build_object('written', hookfold_written);
end
$hookfold$;

revoke all on function public.hookfold_rows_booking_701e87dba8a4(json) from public;

do $hookfold$ declare r text; begin for r in select rolname from pg_catalog.pg_roles where rolname in ('anon', 'authenticated') loop execute format('revoke all on function public.hookfold_rows_booking_701e87dba8a4(json) from %I', r); end loop; end $hookfold$;

grant execute on function public.hookfold_rows_booking_701e87dba8a4(json) to service_role;

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

grant select, insert, update on booking to service_role;

grant select, insert, update on booking_occupants to service_role;

notify pgrst, 'reload schema';

commit;
