package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/sink"
)

func (e *sqlserverEngine) inspect(ctx context.Context, name string) (*sink.Live, error) {
	live := &sink.Live{}
	var id int64
	var kind string
	err := e.db.QueryRowContext(ctx, compile.SQLServerTable, compile.SQLServerName(name)).Scan(&id, &kind, &live.FillsRows)
	if errors.Is(err, sql.ErrNoRows) {
		return live, nil
	}
	if err != nil {
		return nil, err
	}
	live.Exists, live.ReadOnly = true, compile.SQLServerReadOnly[kind]
	err = queryRows(ctx, e.db, compile.SQLServerColumns, []any{id}, func(scan func(...any) error) error {
		c, err := sqlserverColumn(scan)
		live.Columns = append(live.Columns, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = queryRows(ctx, e.db, compile.SQLServerUniques, []any{id}, func(scan func(...any) error) error {
		var index, column string
		var ignores bool
		if err := scan(&index, &ignores, &column); err != nil {
			return err
		}
		if ignores && live.ReadOnly == "" {
			live.ReadOnly = fmt.Sprintf("its unique index %s leaves out rows without a word (IGNORE_DUP_KEY = ON). Make it anew with IGNORE_DUP_KEY = OFF", index)
		}
		if n := len(live.Uniques); n == 0 || live.Uniques[n-1].Name != index {
			live.Uniques = append(live.Uniques, sink.Unique{Name: index})
		}
		u := &live.Uniques[len(live.Uniques)-1]
		u.Columns = append(u.Columns, column)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return live, e.references(ctx, id, live)
}

func sqlserverColumn(scan func(...any) error) (sink.LiveColumn, error) {
	var c sink.LiveColumn
	var length, precision, scale int
	var nullable, identity, computed bool
	if err := scan(&c.Name, &c.Base, &length, &precision, &scale, &nullable, &identity, &computed, &c.Default, &c.DefaultName, &c.Collate, &c.CodePage); err != nil {
		return c, err
	}
	c.Type, c.NotNull, c.Bits, c.Unsigned = c.Base, !nullable, compile.SQLServerBits[c.Base], c.Base == "tinyint"
	c.Generated = identity || computed || c.Base == "timestamp" || c.Base == "rowversion"
	sized := func(n int) string {
		if n < 0 {
			return c.Base + "(max)"
		}
		return fmt.Sprintf("%s(%d)", c.Base, n)
	}
	switch c.Base {
	case "nvarchar", "nchar":
		if length > 0 {
			length /= 2
		}
		c.Type, c.Length, c.Units, c.CodePage = sized(length), max(length, 0), sink.UTF16, 0
	case "varchar", "char":
		c.Type, c.Length, c.Units = sized(length), max(length, 0), sink.Bytes
	case "varbinary", "binary":
		c.Type = sized(length)
	case "decimal", "numeric":
		c.Type, c.Precision, c.Scale = fmt.Sprintf("%s(%d,%d)", c.Base, precision, scale), precision, scale
	case "money", "smallmoney":
		c.Precision, c.Scale = precision, scale
	case "datetime2", "datetimeoffset":
		c.Type, c.Scale = fmt.Sprintf("%s(%d)", c.Base, scale), scale
	default:
		c.Collate = ""
	}
	if c.Collate == "" {
		c.CodePage = 0
	}
	c.Pads = slices.Contains([]string{"nvarchar", "varchar", "nchar", "char"}, c.Base)
	return c, nil
}

// references reads the foreign keys that concern a table.
func (e *sqlserverEngine) references(ctx context.Context, id int64, live *sink.Live) error {
	var last *sink.Reference
	var names, named bool
	add := func() {
		if last == nil {
			return
		}
		if names {
			live.References = append(live.References, *last)
		}
		if named {
			live.ReferencedBy = append(live.ReferencedBy, *last)
		}
	}
	err := queryRows(ctx, e.db, compile.SQLServerReferences, []any{id}, func(scan func(...any) error) error {
		var f sink.Reference
		var schema, column, toSchema, toColumn string
		var first, other bool
		if err := scan(&f.Name, &schema, &f.Table, &column, &toSchema, &f.To, &toColumn, &f.CascadesUpdate, &first, &other); err != nil {
			return err
		}
		f.Table, f.To = compile.JoinName(schema, f.Table), compile.JoinName(toSchema, f.To)
		if last == nil || last.Name != f.Name || last.Table != f.Table {
			add()
			last, names, named = &f, first, other
		}
		last.Columns, last.ToColumns = append(last.Columns, column), append(last.ToColumns, toColumn)
		return nil
	})
	add()
	return err
}
