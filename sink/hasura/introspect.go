package hasura

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/sink"
)

// gqlColumn is a column as GraphQL shows it.
type gqlColumn struct {
	name string
	// scalar is the name of its type, and of a list that of its elements.
	scalar  string
	list    bool
	notNull bool
	// insert and update say that it may be written.
	insert, update bool
	// comment is the column's in the database.
	comment string
}

// gqlTable is a table as the role sees it.
type gqlTable struct {
	// root is what its types are named after, fields are its root fields.
	root    string
	fields  rootFields
	exists  bool // it may be read
	columns map[string]*gqlColumn
	order   []string
	uniques []sink.Unique // Columns is nil where it is not told
	// inserts and updates say that there are such root fields.
	inserts, updates bool
	key              []string // of the primary key, where it is told
}

const typeFragment = "fragment T on __Type{kind name ofType{kind name ofType{kind name ofType{kind name}}}}"

// introspect asks for what GraphQL shows of tables. Types are asked for by
// name: a whole schema can be large.
func (h *hasura) introspect(ctx context.Context, roots []string) ([]*gqlTable, error) {
	var b strings.Builder
	b.WriteString("query{")
	ask := func(alias, name, what string) { fmt.Fprintf(&b, "%s:__type(name:%q){%s}", alias, name, what) }
	for i, root := range roots {
		if !graphQLName.MatchString(root) {
			return nil, operator("table %s has no name in GraphQL. Give it one in Hasura (customise its root fields), and name it here", root)
		}
		ask(fmt.Sprint("o", i), root, "fields{name description type{...T}}")
		ask(fmt.Sprint("i", i), root+"_insert_input", "inputFields{name type{...T}}")
		ask(fmt.Sprint("s", i), root+"_set_input", "inputFields{name type{...T}}")
		ask(fmt.Sprint("c", i), root+"_constraint", "enumValues{name description}")
		ask(fmt.Sprint("k", i), root+"_pk_columns_input", "inputFields{name type{...T}}")
	}
	b.WriteString("roots:__schema{mutationType{fields{name}}queryType{fields{name}}}}" + typeFragment)
	data, err := h.graphql(ctx, b.String(), nil)
	if err != nil {
		return nil, err
	}
	out := make([]*gqlTable, len(roots))
	for i, root := range roots {
		part := func(alias string) (t gqlType) {
			if err == nil {
				err = json.Unmarshal(data[fmt.Sprint(alias, i)], &t)
			}
			return t
		}
		out[i] = tableOf(root, part("o"), part("i"), part("s"), part("c"), part("k"))
		if err != nil {
			return nil, operator("Hasura's introspection is not as expected: %v", err)
		}
	}
	return out, h.nameFields(ctx, out, data["roots"])
}

type gqlRef struct {
	Kind, Name string
	OfType     *gqlRef
}

type gqlField struct {
	Name, Description string
	Type              gqlRef
}

type gqlType struct {
	Fields, InputFields []gqlField
	EnumValues          []struct{ Name, Description string }
}

func tableOf(root string, object, insert, set, constraints, key gqlType) *gqlTable {
	t := &gqlTable{root: root, exists: object.Fields != nil, inserts: insert.InputFields != nil, updates: set.InputFields != nil, columns: map[string]*gqlColumn{}}
	add := func(f gqlField) *gqlColumn {
		c := t.columns[f.Name]
		if c == nil {
			c = &gqlColumn{name: f.Name, comment: f.Description}
			c.scalar, c.list, c.notNull = unwrap(&f.Type)
			t.columns[f.Name] = c
			t.order = append(t.order, f.Name)
		}
		return c
	}
	for _, f := range object.Fields {
		if _, _, ok := leaf(&f.Type); ok {
			add(f)
		}
	}
	for _, f := range insert.InputFields {
		if c := t.columns[f.Name]; c != nil { // others are relationships
			c.insert = true
		}
	}
	for _, f := range set.InputFields {
		if c := t.columns[f.Name]; c != nil {
			c.update = true
		}
	}
	for _, f := range key.InputFields {
		t.key = append(t.key, f.Name)
	}
	for _, v := range constraints.EnumValues {
		t.uniques = append(t.uniques, sink.Unique{Name: v.Name, Columns: described(v.Description)})
	}
	return t
}

// leaf tells whether a type is a scalar or an enum, or a list of them, and which.
func leaf(r *gqlRef) (name string, list, ok bool) {
	for r != nil {
		switch r.Kind {
		case "LIST":
			list = true
		case "SCALAR", "ENUM":
			return r.Name, list, true
		case "OBJECT", "INTERFACE", "UNION", "INPUT_OBJECT":
			return "", list, false
		}
		r = r.OfType
	}
	return "", list, false
}

func unwrap(r *gqlRef) (scalar string, list, notNull bool) {
	scalar, list, _ = leaf(r)
	return scalar, list, r.Kind == "NON_NULL"
}

var quotedName = regexp.MustCompile(`"([^"]+)"`)

// described reads the columns of a constraint out of its description, which
// newer versions give: unique or primary key constraint on columns "a", "b".
func described(text string) []string {
	_, list, ok := strings.Cut(text, "on columns ")
	if !ok {
		return nil
	}
	var out []string
	for _, m := range quotedName.FindAllStringSubmatch(list, -1) {
		out = append(out, m[1])
	}
	return out
}

// constraintOn names the unique constraint on exactly these columns.
func (h *hasura) constraintOn(g *gqlTable, table string, columns []string) (string, error) {
	var names []string
	for _, u := range g.uniques {
		names = append(names, u.Name)
	}
	list := strings.Join(names, ", ")
	if c := h.opts.Constraints[table]; c != "" {
		if !slices.Contains(names, c) {
			return "", operator("table %s: there is no unique constraint %s; Hasura shows %s", table, c, orNone(list))
		}
		return c, nil
	}
	parts := compile.SplitTable(table)
	short := parts[len(parts)-1]
	likely := []string{short + "_" + strings.Join(columns, "_") + "_key"}
	if len(g.key) > 0 && sameSet(g.key, columns) {
		likely = append([]string{short + "_pkey"}, likely...)
	}
	told := false
	for _, u := range g.uniques {
		told = told || u.Columns != nil
		if u.Columns != nil && sameSet(u.Columns, columns) {
			return u.Name, nil
		}
	}
	if !told { // an old version: by the names that PostgreSQL gives
		for _, l := range likely {
			if slices.Contains(names, l) {
				return l, nil
			}
		}
		if list != "" {
			return "", operator("table %s: Hasura shows the constraints %s, and not on which columns they are. Say which of them is on (%s): constraint", table, list, strings.Join(columns, ", "))
		}
	}
	return "", operator("table %s: Hasura shows no unique constraint on (%s), only %s. Two events at once could insert two rows. Create one: alter table %s add unique (%s); (a unique index alone, or a partial one, cannot be named in a mutation)",
		table, strings.Join(columns, ", "), orNone(list), compile.QuoteTable(table), strings.Join(columns, ", "))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// databaseType is a scalar's type as PostgreSQL writes it.
func databaseType(c *gqlColumn) (name string, bits int) {
	name, bits = c.scalar, map[string]int{"smallint": 16, "Int": 32, "bigint": 64}[c.scalar]
	if n, ok := map[string]string{
		"Int": "integer", "Boolean": "boolean", "String": "text", "Float": "real", "float8": "double precision", "bpchar": "character",
		"timestamptz": "timestamp with time zone", "_text": "text[]", "_varchar": "character varying[]",
	}[name]; ok {
		name = n
	}
	if name == "timestamp" {
		name = "timestamp without time zone"
	}
	if c.list {
		name += "[]"
		bits = 0
	}
	return name, bits
}

// live is a table's schema as far as GraphQL tells: lengths, precisions,
// defaults and collations it does not.
func (g *gqlTable) live() *sink.Live {
	l := &sink.Live{Exists: g.exists}
	if !g.exists {
		return l
	}
	for _, name := range g.order {
		c := g.columns[name]
		typ, bits := databaseType(c)
		lc := sink.LiveColumn{Name: name, Type: typ, Base: typ, Bits: bits, NotNull: c.notNull, Generated: g.inserts && !c.insert, Comment: c.comment}
		if c.scalar == "citext" {
			lc.Collation = "citext"
		}
		l.Columns = append(l.Columns, lc)
	}
	for _, u := range g.uniques {
		switch {
		case u.Columns != nil:
			l.Uniques = append(l.Uniques, u)
		case strings.HasSuffix(u.Name, "_pkey") && g.key != nil:
			l.Uniques = append(l.Uniques, sink.Unique{Name: u.Name, Columns: g.key})
		}
	}
	switch {
	case !g.inserts:
		l.ReadOnly = "the role may not insert into it, or it is a view"
	case len(g.uniques) == 0:
		l.ReadOnly = "it has no unique constraint, so nothing decides which row is meant"
	}
	return l
}
