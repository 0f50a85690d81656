package hasuratest

import (
	"maps"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// introspect answers __schema and __type.
func introspect(s *ast.Schema, f *ast.Field, args map[string]any) any {
	if f.Name == "__type" {
		name, _ := args["name"].(string)
		d := s.Types[name]
		if d == nil {
			return nil
		}
		return object(f.SelectionSet, typeFields(s, d))
	}
	return object(f.SelectionSet, func(g *ast.Field) any {
		switch g.Name {
		case "queryType", "mutationType":
			d := s.Query
			if g.Name == "mutationType" {
				d = s.Mutation
			}
			if d == nil {
				return nil
			}
			return object(g.SelectionSet, typeFields(s, d))
		case "types":
			var out []any
			for _, name := range slices.Sorted(maps.Keys(s.Types)) {
				out = append(out, object(g.SelectionSet, typeFields(s, s.Types[name])))
			}
			return out
		}
		return nil
	})
}

func object(set ast.SelectionSet, value func(*ast.Field) any) map[string]any {
	out := map[string]any{}
	for _, sel := range set {
		switch x := sel.(type) {
		case *ast.Field:
			out[x.Alias] = value(x)
		case *ast.FragmentSpread:
			maps.Copy(out, object(x.Definition.SelectionSet, value))
		case *ast.InlineFragment:
			maps.Copy(out, object(x.SelectionSet, value))
		}
	}
	return out
}

func typeFields(s *ast.Schema, d *ast.Definition) func(*ast.Field) any {
	return func(f *ast.Field) any {
		switch f.Name {
		case "kind":
			return string(d.Kind)
		case "name":
			return d.Name
		case "description":
			return null(d.Description)
		case "fields":
			if d.Kind != ast.Object {
				return nil
			}
			return inputs(s, f, d.Fields)
		case "inputFields":
			if d.Kind != ast.InputObject {
				return nil
			}
			return inputs(s, f, d.Fields)
		case "enumValues":
			if d.Kind != ast.Enum {
				return nil
			}
			out := []any{}
			for _, v := range d.EnumValues {
				out = append(out, object(f.SelectionSet, func(g *ast.Field) any {
					return map[string]any{"name": v.Name, "description": null(v.Description)}[g.Name]
				}))
			}
			return out
		}
		return nil
	}
}

func inputs(s *ast.Schema, f *ast.Field, fields ast.FieldList) any {
	out := []any{}
	for _, x := range fields {
		if len(x.Name) > 1 && x.Name[:2] == "__" {
			continue
		}
		out = append(out, object(f.SelectionSet, func(g *ast.Field) any {
			switch g.Name {
			case "name":
				return x.Name
			case "description":
				return null(x.Description)
			case "type":
				return typeRef(s, g, x.Type)
			case "args":
				args := []any{}
				for _, y := range x.Arguments {
					args = append(args, object(g.SelectionSet, func(h *ast.Field) any {
						if h.Name == "type" {
							return typeRef(s, h, y.Type)
						}
						return map[string]any{"name": y.Name, "description": null(y.Description)}[h.Name]
					}))
				}
				return args
			}
			return nil
		}))
	}
	return out
}

func typeRef(s *ast.Schema, f *ast.Field, t *ast.Type) any {
	wrap := func(kind string, of *ast.Type) any {
		return object(f.SelectionSet, func(g *ast.Field) any {
			switch g.Name {
			case "kind":
				return kind
			case "ofType":
				return typeRef(s, g, of)
			}
			return nil
		})
	}
	switch {
	case t.NonNull:
		inner := *t
		inner.NonNull = false
		return wrap("NON_NULL", &inner)
	case t.Elem != nil:
		return wrap("LIST", t.Elem)
	}
	return object(f.SelectionSet, typeFields(s, s.Types[t.NamedType]))
}
