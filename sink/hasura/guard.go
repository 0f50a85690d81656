package hasura

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
)

// exp is a condition over the row that is there (a bool_exp), in JSON.
type exp []byte

func is(column, op string, value []byte) exp {
	b := append([]byte(`{"`), column...)
	b = append(append(append(b, `":{"`...), op...), `":`...)
	return append(append(b, value...), "}}"...)
}

func isNull(column string) exp  { return is(column, "_is_null", []byte("true")) }
func notNull(column string) exp { return is(column, "_is_null", []byte("false")) }

func anyOf(list ...exp) exp { return combine(`{"_or":[`, list) }
func allOf(list ...exp) exp { return combine(`{"_and":[`, list) }

func combine(open string, list []exp) exp {
	if len(list) == 1 {
		return list[0]
	}
	b := []byte(open)
	for i, e := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, e...)
	}
	return append(b, "]}"...)
}

// sameKey says that the row that is there has a row's key.
func (r *relation) sameKey(row *merge.Row) exp {
	var list []exp
	for _, c := range r.key {
		v, _ := c.value(row)
		list = append(list, is(c.name, "_eq", v))
	}
	return allOf(list...)
}

// differs says that one of the columns has another value than a row, as far as
// PostgreSQL tells; nil if it never does.
func differs(columns []*column, row *merge.Row) []exp {
	var list []exp
	for _, c := range columns {
		v, ok := c.value(row)
		switch {
		case !ok:
			list = append(list, notNull(c.name))
		case c.scalar == "json": // not compared
			list = append(list, isNull(c.name))
		default:
			list = append(list, isNull(c.name), is(c.name, "_neq", v))
		}
	}
	return list
}

// move is one way for a register to move a row: when guard holds.
type move struct {
	guard exp
	// value says that a value changes, and not only a version.
	value bool
}

// moves gives the guards under which a row's register replaces what is there.
// With apart, what changes a value and what changes but a version are told apart.
func (g *register) moves(row *merge.Row, apart bool) []move {
	switch g.rule {
	case merge.Latest:
		v, _ := g.version.value(row)
		differ := differs(g.columns, row)
		v1 := g.version.name
		newer := []exp{isNull(v1), is(v1, "_lt", v)}
		if apart && len(differ) > 0 {
			return []move{
				{allOf(anyOf(append(newer, is(v1, "_eq", v))...), anyOf(differ...)), true},
				{anyOf(newer...), false},
			}
		}
		if len(differ) > 0 { // the same event under another config
			newer = append(newer, allOf(is(v1, "_eq", v), anyOf(differ...)))
		}
		return []move{{anyOf(newer...), true}}
	case merge.First:
		v, _ := g.version.value(row)
		f, v1 := g.columns[0], g.version.name
		differ := anyOf(differs(g.columns, row)...)
		// A value without a version was there before any event, and stays.
		none := allOf(isNull(v1), isNull(f.name))
		older := is(v1, "_gt", v)
		if apart {
			return []move{
				{allOf(anyOf(none, older, is(v1, "_eq", v)), differ), true},
				{anyOf(none, older), false},
			}
		}
		return []move{{anyOf(none, older, allOf(is(v1, "_eq", v), differ)), true}}
	}
	c := g.columns[0]
	v, _ := c.value(row)
	switch g.rule {
	case merge.Max:
		return []move{{anyOf(isNull(c.name), is(c.name, "_lt", v)), true}}
	case merge.Min:
		return []move{{anyOf(isNull(c.name), is(c.name, "_gt", v)), true}}
	default: // a ladder: what is no rung is below all
		text, _ := c.Of(row)
		at := slices.Index(g.rungs, text)
		if at < 0 {
			return []move{{isNull(c.name), true}}
		}
		var reached []byte
		for _, rung := range g.rungs[at:] {
			reached = append(append(reached, ','), encode(c.gqlColumn, c.Type.Kind, rung)...)
		}
		list := append(append([]byte("["), reached[1:]...), ']')
		return []move{{anyOf(isNull(c.name), is(c.name, "_nin", list)), true}}
	}
}

// stored are the columns of a row that were read, by name.
type stored map[string]json.RawMessage

// swapped joins what is stored with a row's cell. It gives the guard, that the
// column still is what was read, and the joined value; a nil guard says that
// nothing changes.
func (g *register) swapped(t *merge.Table, row *merge.Row, was stored) (exp, []byte) {
	c := g.columns[0]
	raw := was[c.name]
	old := &merge.Row{Key: row.Key, Scopes: make([]merge.Version, len(row.Scopes)), Cells: make([]merge.Cell, len(row.Cells))}
	v := valueOf(c.Type, c.gqlColumn, raw)
	old.Cells[c.Index] = merge.Cell{Set: !v.IsNull(), Value: v}
	joined := merge.Join(t, &merge.Row{Key: row.Key, Scopes: row.Scopes, Cells: row.Cells}, old).Cells[c.Index].Value
	if joined == v {
		return nil, nil
	}
	value := encode(c.gqlColumn, c.Type.Kind, joined.Text())
	if v.IsNull() {
		return isNull(c.name), value
	}
	return is(c.name, "_eq", again(c.gqlColumn, raw)), value
}

// touched is the time of a write: the database's, where the type reads it.
func touched(c *column) []byte {
	if c.scalar == "timestamptz" {
		return []byte(`"now()"`)
	}
	v, _ := merge.TimestampValue(time.Now())
	return quoteJSON(v.Text())
}

// set writes the columns of a register as an update takes them.
func (g *register) set(row *merge.Row, value []byte, touch []*column) []byte {
	b := []byte{'{'}
	put := func(name string, v []byte) {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(append(b, '"'), name...), `":`...), v...)
	}
	for _, c := range g.columns {
		v, ok := c.value(row)
		switch {
		case value != nil:
			v = value
		case !ok:
			v = []byte("null")
		}
		put(c.name, v)
	}
	if g.version != nil {
		v, _ := g.version.value(row)
		put(g.version.name, v)
	}
	for _, c := range touch {
		put(c.name, touched(c))
	}
	return append(b, '}')
}

// names lists what a register writes, as update_columns has it.
func (g *register) names(touch []*column) string {
	s := ""
	for _, c := range g.columns {
		s += c.name + " "
	}
	if g.version != nil {
		s += g.version.name + " "
	}
	for _, c := range touch {
		s += c.name + " "
	}
	return s[:len(s)-1]
}

// newer says that what shows is not newer than a record: by since, and of one
// occupant by the version of scope row. Which of two occupants of one since
// shows is not told by it, since a collation could have the last word.
func (r *relation) newer(rec *merge.Row) exp {
	since, id := r.identity[0], r.identity[1]
	v, known := since.value(rec)
	me, _ := id.value(rec)
	same := []exp{isNull(id.name), is(id.name, "_neq", me)}
	if s := slices.Index(r.table.Scopes(), merge.RowScope); s >= 0 {
		name := compile.ScopeColumn(merge.RowScope)
		same = append(same, isNull(name))
		if rv := rec.Scopes[s]; rv != "" {
			same = append(same, is(name, "_lte", quoteJSON(string(rv))))
		}
	} else {
		same = append(same, is(id.name, "_eq", me))
	}
	if !known {
		return allOf(isNull(since.name), anyOf(same...))
	}
	return anyOf(isNull(since.name), is(since.name, "_lt", v), allOf(is(since.name, "_eq", v), anyOf(same...)))
}
