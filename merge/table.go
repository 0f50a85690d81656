package merge

import (
	"slices"
	"strings"
)

// Rule says how two changes to one column join; see the package comment.
type Rule uint8

// The merge rules.
const (
	Latest Rule = iota
	First
	Max
	Min
	Ladder
	Union
	Touch
	Sum
	Count
	Chain
	Flag
)

// ruleNames are the names in a config; Flag has none, since it comes from
// on_delete.
var ruleNames = []string{"latest", "first", "max", "min", "ladder", "union", "touch", "sum", "count", "chain"}

// String returns the rule's name in a config.
func (r Rule) String() string {
	if r == Flag {
		return "on_delete"
	}
	return ruleNames[r]
}

// ParseRule returns the rule of a name.
func ParseRule(name string) (Rule, bool) {
	i := slices.Index(ruleNames, name)
	return Rule(max(i, 0)), i >= 0
}

// The names of the scopes that need not be declared.
const (
	// RowScope is the scope of every latest column that names no other.
	RowScope = "row"
	// KeyScope holds the columns of an occupant table that belong to the row
	// itself, whoever occupies it.
	KeyScope = "key"
)

// KeyColumn is one part of a table's key.
type KeyColumn struct {
	Name string
	Type Type
}

// Column is one column that Hookfold maps.
type Column struct {
	Name string
	Type Type
	Rule Rule
	// Scope names the register a Latest column belongs to: RowScope, a scope of
	// its own, or KeyScope. For every other rule it is "" or KeyScope.
	Scope string
	// Rungs are the steps of a Ladder, lowest first, each once.
	Rungs []string
	// OnDelete, if not nil, is what the column shows while the row's delete is
	// newer than the column's scope (Latest), or than the row (Flag). Only on
	// tables with DeleteSet.
	OnDelete *Value
}

// DeleteRule says what becomes of a row that is deleted.
type DeleteRule uint8

// The rules of a delete.
const (
	// DeleteNone: the table knows no deletes.
	DeleteNone DeleteRule = iota
	// DeleteMark keeps the row, with delete_version and deleted_at.
	DeleteMark
	// DeleteRemove removes the row and remembers the delete beside the table.
	DeleteRemove
	// DeleteSet keeps the row and shows OnDelete of its columns.
	DeleteSet
)

// Table is the rule of one table: its key, and how each column joins. It is
// made by NewTable and not changed afterwards.
type Table struct {
	// Name is the table's name in the config.
	Name    string
	Key     []KeyColumn
	Columns []Column
	// Occupied says that rows are held by occupants.
	Occupied bool
	// Chained says that the key is an identity that others follow: the row of a
	// chain has the key of its first identity, and shows its last one. A chained
	// table is Occupied, by its identities.
	Chained bool
	// OnDelete says what becomes of a deleted row.
	OnDelete DeleteRule
	// Group holds the places among Key of the columns by which rows are replaced
	// together, when a list says that it is complete. Nil if none does; empty if
	// the list is of the whole table.
	Group []int

	scopes  []string
	scopeOf []int // per column, its place in scopes, or -1
}

// NewTable completes a table: scopes in a fixed order, RowScope first and the
// others by name.
func NewTable(t Table) *Table {
	seen := map[string]bool{}
	for _, c := range t.Columns {
		if c.Rule == Latest && !seen[c.Scope] {
			seen[c.Scope] = true
			t.scopes = append(t.scopes, c.Scope)
		}
	}
	slices.SortFunc(t.scopes, func(a, b string) int {
		if a == RowScope || b == RowScope {
			return btoi(b == RowScope) - btoi(a == RowScope)
		}
		return strings.Compare(a, b)
	})
	for _, c := range t.Columns {
		s := -1
		if c.Rule == Latest {
			s = slices.Index(t.scopes, c.Scope)
		}
		t.scopeOf = append(t.scopeOf, s)
	}
	return &t
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Scopes returns the names of the scopes that hold Latest columns. The caller
// must not change it.
func (t *Table) Scopes() []string { return t.scopes }

// ScopeOf returns the place in Scopes of column i, or -1 if the column's rule
// is not Latest.
func (t *Table) ScopeOf(i int) int { return t.scopeOf[i] }

// ScopeColumns returns the places of the columns of scope s.
func (t *Table) ScopeColumns(s int) []int {
	var cols []int
	for i, of := range t.scopeOf {
		if of == s {
			cols = append(cols, i)
		}
	}
	return cols
}

// Column returns the place of a column by name, or -1.
func (t *Table) Column(name string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
}

// Versioned says whether changes need a version.
func (t *Table) Versioned() bool {
	return t.OnDelete != DeleteNone || t.Group != nil || slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Rule == Latest || c.Rule == First })
}

// Local says whether what a change does to a row can be told from that row
// alone. If not, a sink first locks what else decides: the memory of deletes,
// complete lists, links, or counted events.
func (t *Table) Local() bool {
	return t.OnDelete == DeleteNone && t.Group == nil && !t.Chained && !t.links() &&
		!slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Rule == Sum || c.Rule == Count })
}

// links says whether the table keeps links between identities.
func (t *Table) links() bool {
	return t.Chained || slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Rule == Chain })
}

// GroupOf returns the group that a key belongs to.
func (t *Table) GroupOf(k Key) Key {
	parts := k.Parts()
	group := make([]string, len(t.Group))
	for i, at := range t.Group {
		group[i] = parts[at]
	}
	return NewKey(group...)
}

// OfKey says whether column i belongs to the row whoever occupies it. On a
// table without occupants every column does.
func (t *Table) OfKey(i int) bool { return !t.Occupied || t.Columns[i].Scope == KeyScope }

// rung returns the place of a value on the ladder, from 1; 0 for a value that
// is not a rung, which is below all.
func (c *Column) rung(v Value) int { return slices.Index(c.Rungs, v.text) + 1 }

// Key is the key of a row: the canonical texts of its parts. It is comparable,
// and its order is the order in which every writer takes rows.
type Key string

const keySeparator = "\x00"

// NewKey makes a key. Canonical texts hold no NUL, so keys of different parts
// differ.
func NewKey(parts ...string) Key { return Key(strings.Join(parts, keySeparator)) }

// Parts returns the canonical texts of the key's columns.
func (k Key) Parts() []string { return strings.Split(string(k), keySeparator) }

// Show renders the key for a person: id=7, tenant=a.
func (t *Table) Show(k Key) string {
	var out []string
	for i, p := range k.Parts() {
		if i < len(t.Key) {
			out = append(out, t.Key[i].Name+"="+p)
		}
	}
	return strings.Join(out, ", ")
}
