package hasuratest

import (
	"context"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
)

// table is a table of the database that is tracked.
type table struct {
	schema, name string
	gql          string // the name of its root fields
	columns      []*column
	constraints  []constraint
	key          []string // of the primary key
}

type column struct {
	name string
	// typ is the type to cast to, without a length; domains count as what is
	// behind them.
	typ, internal string
	array         bool
	notNull       bool
	generated     bool
	comment       string
}

type constraint struct {
	name    string
	columns []string
}

func (t *table) column(name string) *column {
	for _, c := range t.columns {
		if c.name == name {
			return c
		}
	}
	return nil
}

// sql is the table's name in statements.
func (t *table) sql() string { return ident(t.schema) + "." + ident(t.name) }

const columnsQuery = `select n.nspname::text, c.relname::text, a.attname::text,
    pg_catalog.format_type(b.oid, null), b.typname::text, b.typcategory = 'A', a.attnotnull,
    a.attgenerated <> '' or a.attidentity = 'a', coalesce(pg_catalog.col_description(c.oid, a.attnum), '')
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
join pg_catalog.pg_type t on t.oid = a.atttypid
join pg_catalog.pg_type b on b.oid = case when t.typtype = 'd' then t.typbasetype else t.oid end
where c.relkind in ('r', 'p') and n.nspname = any($1)
order by 1, 2, a.attnum`

// Only constraints have a name that ON CONFLICT ON CONSTRAINT takes: unique
// indexes by themselves, partial ones among them, have none.
const constraintsQuery = `select n.nspname::text, c.relname::text, k.conname::text, k.contype = 'p',
    array(select a.attname::text from pg_catalog.unnest(k.conkey) with ordinality as u (n, at)
        join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = u.n order by u.at)
from pg_catalog.pg_constraint k
join pg_catalog.pg_class c on c.oid = k.conrelid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where k.contype in ('p', 'u') and n.nspname = any($1)
order by 1, 2, k.contype, 3`

// load reads the tables of the default schema and of the others, by
// schema.name.
func load(ctx context.Context, db *pgx.Conn, others []string) (map[string]*table, string, error) {
	var dflt string
	if err := db.QueryRow(ctx, "select current_schema()::text").Scan(&dflt); err != nil {
		return nil, "", err
	}
	schemas := append([]string{dflt}, others...)
	tables := map[string]*table{}
	rows, err := db.Query(ctx, columnsQuery, pgx.QueryExecModeExec, schemas)
	if err != nil {
		return nil, "", err
	}
	var schema, name string
	c := column{}
	_, err = pgx.ForEachRow(rows, []any{&schema, &name, &c.name, &c.typ, &c.internal, &c.array, &c.notNull, &c.generated, &c.comment}, func() error {
		t := tables[schema+"."+name]
		if t == nil {
			t = &table{schema: schema, name: name, gql: schema + "_" + name}
			if schema == dflt {
				t.gql = name
			}
			tables[schema+"."+name] = t
		}
		column := c
		if graphQLName.MatchString(c.name) { // others are left out of the schema
			t.columns = append(t.columns, &column)
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	if rows, err = db.Query(ctx, constraintsQuery, pgx.QueryExecModeExec, schemas); err != nil {
		return nil, "", err
	}
	var k constraint
	var primary bool
	_, err = pgx.ForEachRow(rows, []any{&schema, &name, &k.name, &primary, &k.columns}, func() error {
		if t := tables[schema+"."+name]; t != nil {
			if primary {
				t.key = k.columns
			}
			if graphQLName.MatchString(k.name) {
				t.constraints = append(t.constraints, k)
			}
		}
		k.columns = nil
		return nil
	})
	return tables, dflt, err
}

var graphQLName = regexp.MustCompile(`^[_A-Za-z][_0-9A-Za-z]*$`)

func ident(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
