package sqlsink

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/sink"
)

func (p *postgresEngine) inspect(ctx context.Context, name string) (*sink.Live, error) {
	var oid uint32
	var kind string
	live := &sink.Live{}
	err := p.pool.QueryRow(ctx, compile.PostgresTable, compile.PostgresName(name)).Scan(&oid, &kind, &live.FillsRows)
	if errors.Is(err, pgx.ErrNoRows) {
		return live, nil
	}
	if err != nil {
		return nil, err
	}
	live.Exists, live.ReadOnly = true, compile.PostgresReadOnly[kind]
	rows, err := p.pool.Query(ctx, compile.PostgresColumns, oid)
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
		c.Bits = compile.PostgresBits[typ]
		return c, err
	})
	if err != nil {
		return nil, err
	}
	if rows, err = p.pool.Query(ctx, compile.PostgresUniques, oid); err != nil {
		return nil, err
	}
	live.Uniques, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (sink.Unique, error) {
		var u sink.Unique
		err := row.Scan(&u.Name, &u.Columns)
		return u, err
	})
	if err != nil {
		return nil, err
	}
	if rows, err = p.pool.Query(ctx, compile.PostgresTriggers, oid); err != nil {
		return nil, err
	}
	live.Triggers, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (sink.Trigger, error) {
		var g sink.Trigger
		err := row.Scan(&g.Name, &g.Body, &g.Enabled, &g.Before)
		return g, err
	})
	if err != nil {
		return nil, err
	}
	if rows, err = p.pool.Query(ctx, compile.PostgresReferences, oid); err != nil {
		return nil, err
	}
	var f sink.Reference
	var names, named bool
	_, err = pgx.ForEachRow(rows, []any{&f.Name, &f.Table, &f.Columns, &f.To, &f.ToColumns, &f.CascadesUpdate, &names, &named}, func() error {
		if names {
			live.References = append(live.References, f)
		}
		if named {
			live.ReferencedBy = append(live.ReferencedBy, f)
		}
		f.Columns, f.ToColumns = nil, nil
		return nil
	})
	return live, err
}
