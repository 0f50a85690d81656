-- The columns of one table, in order. $1 is the table's oid.
with recursive behind as (
    select a.attnum, a.atttypid as typ, a.atttypmod as mod, false as refuses, null::text as dflt
    from pg_catalog.pg_attribute a
    where a.attrelid = $1::oid and a.attnum > 0 and not a.attisdropped
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
        when a.attidentity = 'd' then 'nextval(' || pg_catalog.quote_literal(pg_catalog.pg_get_serial_sequence($1::oid::regclass::text, a.attname)) || '::regclass)'
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
where a.attrelid = $1::oid and a.attnum > 0 and not a.attisdropped
order by a.attnum
