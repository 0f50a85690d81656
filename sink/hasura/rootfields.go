package hasura

import (
	"context"
	"encoding/json"
	"slices"
)

// rootFields are the names of a table's root fields: insert_x, update_x and x,
// unless they were customised.
type rootFields struct{ insert, update, query string }

func usualFields(root string) rootFields {
	return rootFields{insert: "insert_" + root, update: "update_" + root, query: root}
}

// gqlRoots are the root types of a schema.
type gqlRoots struct {
	MutationType, QueryType struct{ Fields []gqlRoot }
}

// gqlRoot is a root field.
type gqlRoot struct {
	Name string
	Type gqlRef
	Args []gqlField
}

// takes tells whether a root field has an argument of a type; "" is any.
func (f *gqlRoot) takes(arg, typ string) bool {
	return slices.ContainsFunc(f.Args, func(a gqlField) bool {
		return a.Name == arg && (typ == "" || a.Type.named() == typ)
	})
}

// named is the name of a type, without what stands around it.
func (r *gqlRef) named() string {
	for r.OfType != nil {
		r = r.OfType
	}
	return r.Name
}

// nameFields finds the names of the tables' root fields. They are the usual ones
// if these are there; otherwise those that take and give the tables' types.
func (h *hasura) nameFields(ctx context.Context, tables []*gqlTable, names json.RawMessage) error {
	var short gqlRoots
	if err := json.Unmarshal(names, &short); err != nil {
		return operator("Hasura's introspection is not as expected: %v", err)
	}
	there := map[string]bool{}
	for _, f := range slices.Concat(short.MutationType.Fields, short.QueryType.Fields) {
		there[f.Name] = true
	}
	var full *gqlRoots
	for _, t := range tables {
		t.fields = usualFields(t.root)
		usual := (!t.exists || there[t.fields.query]) && (!t.inserts || there[t.fields.insert]) && (!t.updates || there[t.fields.update])
		if usual {
			continue
		}
		if full == nil {
			var err error
			if full, err = h.roots(ctx); err != nil {
				return err
			}
		}
		t.customFields(full)
	}
	return nil
}

func (h *hasura) roots(ctx context.Context) (*gqlRoots, error) {
	const what = "fields{name type{...T} args{name type{...T}}}"
	data, err := h.graphql(ctx, "query{roots:__schema{mutationType{"+what+"}queryType{"+what+"}}}"+typeFragment, nil)
	if err != nil {
		return nil, err
	}
	out := &gqlRoots{}
	if err := json.Unmarshal(data["roots"], out); err != nil {
		return nil, operator("Hasura's introspection is not as expected: %v", err)
	}
	return out, nil
}

// customFields finds root fields by their types. What is not found stays as it is
// called usually: Hasura then says that it is not there.
func (t *gqlTable) customFields(roots *gqlRoots) {
	find := func(fields []gqlRoot, usual string, is func(*gqlRoot) bool) string {
		found := ""
		for i := range fields {
			f := &fields[i]
			switch {
			case !is(f):
			case f.Name == usual:
				return usual
			case found == "":
				found = f.Name
			}
		}
		if found == "" {
			return usual
		}
		return found
	}
	t.fields.insert = find(roots.MutationType.Fields, t.fields.insert, func(f *gqlRoot) bool { return f.takes("objects", t.root+"_insert_input") })
	t.fields.update = find(roots.MutationType.Fields, t.fields.update, func(f *gqlRoot) bool {
		return f.takes("where", t.root+"_bool_exp") && f.takes("_set", t.root+"_set_input")
	})
	t.fields.query = find(roots.QueryType.Fields, t.fields.query, func(f *gqlRoot) bool {
		function := f.takes("args", "")
		return !function && f.Type.list() && f.Type.named() == t.root && f.takes("where", t.root+"_bool_exp")
	})
}

// list tells whether a type is a list.
func (r *gqlRef) list() bool {
	return r.Kind == "LIST" || r.Kind == "NON_NULL" && r.OfType != nil && r.OfType.Kind == "LIST"
}
