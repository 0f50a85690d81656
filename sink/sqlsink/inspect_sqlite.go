package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/sink"
)

const (
	sqliteTable   = `select type from pragma_table_list where name = ?1 collate nocase and schema = coalesce(?2, 'main')`
	sqliteColumns = `select name, type, "notnull", coalesce(dflt_value, ''), pk, hidden from pragma_table_xinfo(?1, coalesce(?2, 'main')) order by cid`
	// Hidden 2 and 3 are generated columns.
	sqliteIndexes = `select name from pragma_index_list(?1, coalesce(?2, 'main')) where "unique" and not partial order by seq`
	// A foreign key without columns names the primary key.
	sqliteForeignKeys = `select m.name, f.id, f."table", f."from", coalesce(f."to", ''), f.on_update = 'CASCADE'
from sqlite_schema m join pragma_foreign_key_list(m.name) f
where m.type = 'table' and (m.name = ?1 collate nocase or f."table" = ?1 collate nocase)
order by m.name, f.id, f.seq`
	sqliteIndex = `select coalesce(name, ''), coll, cid from pragma_index_xinfo(?1, coalesce(?2, 'main')) where key order by seqno`
)

func (e *sqliteEngine) inspect(ctx context.Context, name string) (*sink.Live, error) {
	if !e.exists() {
		return &sink.Live{}, nil
	}
	parts := compile.SplitTable(name)
	table := parts[len(parts)-1]
	var schema any
	if len(parts) > 1 {
		schema = parts[0]
	}
	live := &sink.Live{}
	var kind string
	err := e.reads.QueryRowContext(ctx, sqliteTable, table, schema).Scan(&kind)
	if errors.Is(err, sql.ErrNoRows) {
		return live, nil
	}
	if err != nil {
		return nil, err
	}
	live.Exists = true
	if kind != "table" {
		live.ReadOnly = "it is a " + kind
	}
	var primary []string
	err = queryRows(ctx, e.reads, sqliteColumns, []any{table, schema}, func(scan func(...any) error) error {
		var c sink.LiveColumn
		var pk, hidden int
		if err := scan(&c.Name, &c.Type, &c.NotNull, &c.Default, &pk, &hidden); err != nil {
			return err
		}
		c.Type = strings.ToLower(c.Type) // SQLite itself writes some types in capitals
		c.Base = compile.Affinity(c.Type)
		if c.Base == "integer" {
			c.Bits = 64
		}
		c.Generated = hidden == 2 || hidden == 3
		if pk > 0 {
			primary = append(primary, c.Name)
		}
		live.Columns = append(live.Columns, c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var indexes []string
	err = queryRows(ctx, e.reads, sqliteIndexes, []any{table, schema}, func(scan func(...any) error) error {
		var n string
		err := scan(&n)
		indexes = append(indexes, n)
		return err
	})
	if err != nil {
		return nil, err
	}
	if primary != nil {
		live.Uniques = append(live.Uniques, sink.Unique{Name: "primary key", Columns: primary})
	}
	for _, index := range indexes {
		u := sink.Unique{Name: index}
		plain := true
		err := queryRows(ctx, e.reads, sqliteIndex, []any{index, schema}, func(scan func(...any) error) error {
			var column, collation string
			var cid int
			if err := scan(&column, &collation, &cid); err != nil {
				return err
			}
			plain = plain && cid >= 0
			u.Columns = append(u.Columns, column)
			if c := live.Column(column); c != nil && !strings.EqualFold(collation, "binary") {
				c.Collation = strings.ToUpper(collation)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if plain && !live.HasUnique(u.Columns) {
			live.Uniques = append(live.Uniques, u)
		}
	}
	return live, e.foreignKeys(ctx, table, live)
}

// foreignKeys reads the foreign keys that concern a table.
func (e *sqliteEngine) foreignKeys(ctx context.Context, table string, live *sink.Live) error {
	var list []sink.Reference
	var last struct {
		table string
		id    int
	}
	err := queryRows(ctx, e.reads, sqliteForeignKeys, []any{table}, func(scan func(...any) error) error {
		var f sink.Reference
		var id int
		var from, to string
		if err := scan(&f.Table, &id, &f.To, &from, &to, &f.CascadesUpdate); err != nil {
			return err
		}
		if n := len(list); n > 0 && last.table == f.Table && last.id == id {
			list[n-1].Columns, list[n-1].ToColumns = append(list[n-1].Columns, from), append(list[n-1].ToColumns, to)
			return nil
		}
		last.table, last.id = f.Table, id
		f.Columns, f.ToColumns = []string{from}, []string{to}
		list = append(list, f)
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range list {
		if f.ToColumns[0] == "" {
			f.ToColumns = nil
			err := queryRows(ctx, e.reads, sqliteColumns, []any{f.To, nil}, func(scan func(...any) error) error {
				var name, typ, dflt string
				var notNull bool
				var pk, hidden int
				if err := scan(&name, &typ, &notNull, &dflt, &pk, &hidden); err != nil || pk == 0 {
					return err
				}
				f.ToColumns = append(f.ToColumns, name)
				return nil
			})
			if err != nil {
				return err
			}
		}
		if strings.EqualFold(f.Table, table) {
			live.References = append(live.References, f)
		}
		if strings.EqualFold(f.To, table) {
			live.ReferencedBy = append(live.ReferencedBy, f)
		}
	}
	return nil
}

func queryRows(ctx context.Context, db *sql.DB, text string, args []any, row func(scan func(...any) error) error) error {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
