package sqlsink

import (
	"context"
	_ "embed"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/sink"
)

//go:embed inspect_postgres.sql
var postgresColumns string

const (
	// A name that holds no schema is looked up along the search path.
	postgresTable = `select c.oid, c.relkind::text, exists (
    select from pg_catalog.pg_trigger g
    where g.tgrelid = c.oid and not g.tgisinternal and g.tgenabled <> 'D' and g.tgtype & 7 = 7)
from pg_catalog.pg_class c
where c.oid = pg_catalog.to_regclass($1)`

	// Partial indexes, indexes on expressions and those that are checked later
	// cannot decide a conflict.
	postgresUniques = `select i.indexrelid::regclass::text, array(
    select a.attname::text
    from pg_catalog.unnest(i.indkey::int2[]) with ordinality as k (n, at)
    join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.n
    where k.at <= i.indnkeyatts
    order by k.at)
from pg_catalog.pg_index i
where i.indrelid = $1::oid and i.indisunique and i.indisvalid and i.indimmediate and i.indpred is null and i.indexprs is null
order by not i.indisprimary, 1`
)

var notATable = map[string]string{
	"v": "it is a view; name the table behind it",
	"m": "it is a materialized view",
	"f": "it is a foreign table, which cannot decide conflicts",
	"S": "it is a sequence", "c": "it is a type", "i": "it is an index",
}

func (p *postgresEngine) inspect(ctx context.Context, name string) (*sink.Live, error) {
	parts := compile.SplitTable(name)
	for i, s := range parts {
		parts[i] = `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	}
	var oid uint32
	var kind string
	live := &sink.Live{}
	err := p.pool.QueryRow(ctx, postgresTable, strings.Join(parts, ".")).Scan(&oid, &kind, &live.FillsRows)
	if errors.Is(err, pgx.ErrNoRows) {
		return live, nil
	}
	if err != nil {
		return nil, err
	}
	live.Exists, live.ReadOnly = true, notATable[kind]
	rows, err := p.pool.Query(ctx, postgresColumns, oid)
	if err != nil {
		return nil, err
	}
	live.Columns, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (sink.LiveColumn, error) {
		var c sink.LiveColumn
		var typ string
		err := row.Scan(&c.Name, &c.Type, &c.Base, &typ, &c.Length, &c.Precision, &c.Scale, &c.Labels, &c.NotNull, &c.Default, &c.Generated, &c.Collation)
		if len(c.Labels) == 0 {
			c.Labels = nil
		}
		c.Bits = map[string]int{"int2": 16, "int4": 32, "int8": 64}[typ]
		return c, err
	})
	if err != nil {
		return nil, err
	}
	if rows, err = p.pool.Query(ctx, postgresUniques, oid); err != nil {
		return nil, err
	}
	live.Uniques, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (sink.Unique, error) {
		var u sink.Unique
		err := row.Scan(&u.Name, &u.Columns)
		return u, err
	})
	return live, err
}
