-- What a table is, as one JSON value; no row if there is none. In braces stand its
-- name, as a literal, and queries by its oid.
with it as (
    select c.oid, c.relkind, n.nspname
    from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.oid = pg_catalog.to_regclass({table})
)
select json_build_object(
    'Schema', it.nspname,
    'Kind', it.relkind,
    'FillsRows', exists (select from pg_catalog.pg_trigger g
        where g.tgrelid = it.oid and not g.tgisinternal and g.tgenabled <> 'D' and g.tgtype & 7 = 7),
    'Triggers', (select coalesce(json_agg(json_build_object('Name', name, 'Body', body, 'Enabled', enabled, 'Before', before)), '[]')
        from ({triggers}) as g (name, body, enabled, before)),
    'Columns', (select json_agg(json_build_object('Name', name, 'Type', type, 'Base', base, 'Internal', internal, 'Length', length,
            'Precision', digits, 'Scale', scale, 'Labels', labels, 'NotNull', refuses, 'Default', dflt, 'Generated', generated, 'Collation', collation_name))
        from ({columns}) as c (name, type, base, internal, length, digits, scale, labels, refuses, dflt, generated, collation_name)),
    -- Of unique indexes only those of a constraint have a name that a mutation
    -- can give.
    'Uniques', (select json_agg(json_build_object('Name', k.conname, 'Columns', (
            select json_agg(a.attname order by u.at)
            from pg_catalog.unnest(k.conkey) with ordinality as u (n, at)
            join pg_catalog.pg_attribute a on a.attrelid = it.oid and a.attnum = u.n)) order by k.contype, k.conname)
        from pg_catalog.pg_constraint k
        where k.conrelid = it.oid and k.contype in ('p', 'u') and not k.condeferrable),
    'References', (select json_agg(json_build_object('Name', name, 'Table', tab, 'Columns', cols, 'To', other, 'ToColumns', others, 'CascadesUpdate', cascades)) filter (where first)
        from ({references}) as f (name, tab, cols, other, others, cascades, first, second)),
    'ReferencedBy', (select json_agg(json_build_object('Name', name, 'Table', tab, 'Columns', cols, 'To', other, 'ToColumns', others, 'CascadesUpdate', cascades)) filter (where second)
        from ({references}) as f (name, tab, cols, other, others, cascades, first, second))
)::text
from it
