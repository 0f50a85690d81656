package postgresttest

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// cache is what the API knows of the database. It is read at the start and when
// a session says NOTIFY pgrst: what changed since is not seen.
type cache struct {
	tables    map[string]*tableInfo // by schema and name, with a NUL between
	functions map[string][]*functionInfo
}

type tableInfo struct {
	Schema, Name string
	Columns      []columnInfo
	Key          []string
}

type columnInfo struct {
	Name, Type, Default, Nominal string
	Comment                      string
	NotNull                      bool
	MaxLength                    int
	Labels                       []string
}

func (t *tableInfo) column(name string) *columnInfo {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return &t.Columns[i]
		}
	}
	return nil
}

type functionInfo struct {
	Schema, Name string
	Args, Types  []string
	Optional     int // so many of the last arguments have defaults
	Set          bool
	Composite    bool
	Volatile     bool
	Isolation    string
}

// takes tells whether a call with these arguments is one of the function.
func (f *functionInfo) takes(args []string) bool {
	for _, a := range args {
		if !slices.Contains(f.Args, a) {
			return false
		}
	}
	for _, a := range f.Args[:len(f.Args)-f.Optional] {
		if !slices.Contains(args, a) {
			return false
		}
	}
	return true
}

func (s *Server) known() *cache {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.schema
}

const tablesQuery = `select n.nspname, c.relname, a.attname,
    case when t.typtype = 'd' then format_type(t.typbasetype, null) else format_type(a.atttypid, null) end,
    case when a.attgenerated <> '' then '' else coalesce(pg_get_expr(d.adbin, d.adrelid), case a.attidentity when '' then t.typdefault else 'nextval(' || quote_literal(pg_get_serial_sequence(c.oid::regclass::text, a.attname)) || ')' end, '') end,
    format_type(a.atttypid, null), a.attnotnull or t.typtype = 'd' and t.typnotnull,
    case when t.typname in ('varchar', 'bpchar') and a.atttypmod > 4 then a.atttypmod - 4 else 0 end,
    array(select e.enumlabel::text from pg_enum e where e.enumtypid = t.oid order by e.enumsortorder),
    exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary and a.attnum = any (i.indkey)), coalesce(col_description(c.oid, a.attnum), '')
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
join pg_type t on t.oid = a.atttypid
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where n.nspname = any ($1) and c.relkind in ('r', 'p', 'v', 'm', 'f')
order by 1, 2, a.attnum`

const functionsQuery = `select n.nspname, p.proname,
    coalesce(p.proargnames[1:p.pronargs], '{}')::text[], array(select format_type(x, null) from unnest(p.proargtypes) with ordinality as u (x, n) order by n),
    p.pronargdefaults, p.proretset, t.typtype = 'c' or p.proargmodes is not null, p.provolatile = 'v',
    coalesce((select split_part(x, '=', 2) from unnest(p.proconfig) as x where x like 'default_transaction_isolation=%'), '')
from pg_proc p
join pg_namespace n on n.oid = p.pronamespace
join pg_type t on t.oid = p.prorettype
where n.nspname = any ($1) and p.prokind = 'f'`

func (s *Server) reload(ctx context.Context) error {
	c := &cache{tables: map[string]*tableInfo{}, functions: map[string][]*functionInfo{}}
	rows, err := s.pool.Query(ctx, tablesQuery, s.opts.Schemas)
	if err != nil {
		return err
	}
	var schema, table string
	var col columnInfo
	var key bool
	_, err = pgx.ForEachRow(rows, []any{&schema, &table, &col.Name, &col.Type, &col.Default, &col.Nominal, &col.NotNull, &col.MaxLength, &col.Labels, &key, &col.Comment}, func() error {
		t := c.tables[schema+"\x00"+table]
		if t == nil {
			t = &tableInfo{Schema: schema, Name: table}
			c.tables[schema+"\x00"+table] = t
		}
		x := col
		x.Labels = slices.Clone(col.Labels)
		t.Columns = append(t.Columns, x)
		if key {
			t.Key = append(t.Key, x.Name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if rows, err = s.pool.Query(ctx, functionsQuery, s.opts.Schemas); err != nil {
		return err
	}
	var f functionInfo
	_, err = pgx.ForEachRow(rows, []any{&f.Schema, &f.Name, &f.Args, &f.Types, &f.Optional, &f.Set, &f.Composite, &f.Volatile, &f.Isolation}, func() error {
		x := f
		x.Args, x.Types = slices.Clone(f.Args), slices.Clone(f.Types)
		c.functions[x.Schema+"\x00"+x.Name] = append(c.functions[x.Schema+"\x00"+x.Name], &x)
		return nil
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.schema = c
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

// Await returns when the schema was read again after do.
func (s *Server) Await(do func()) {
	s.mu.Lock()
	changed := s.changed
	s.mu.Unlock()
	do()
	<-changed
}
