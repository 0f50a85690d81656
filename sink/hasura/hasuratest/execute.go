package hasuratest

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// execute runs one GraphQL request.
func (s *Server) execute(ctx context.Context, r *http.Request, body []byte) (map[string]json.RawMessage, *failure) {
	role, f := s.role(r)
	if f != nil {
		return nil, f
	}
	var in struct {
		Query         string
		OperationName string
		Variables     map[string]any
	}
	if err := decode(body, &in); err != nil {
		return nil, failf("$", "invalid-json", "%v", err)
	}
	v, err := s.view(role)
	if err != nil {
		return nil, failf("$", "unexpected", "schema: %v", err)
	}
	doc, err := parser.ParseQuery(&ast.Source{Input: in.Query})
	if err != nil {
		return nil, failf("$.query", "validation-failed", "not a valid graphql query")
	}
	if f := known(v, doc); f != nil {
		return nil, f
	}
	if errs := validator.ValidateWithRules(v.schema, doc, rules.NewDefaultRules()); len(errs) > 0 {
		return nil, reword(errs[0])
	}
	op := doc.Operations.ForName(in.OperationName)
	if op == nil {
		return nil, failf("$", "validation-failed", "no such operation found in the document: '%s'", in.OperationName)
	}
	for _, d := range op.VariableDefinitions {
		if _, ok := in.Variables[d.Variable]; ok {
			continue
		}
		if d.DefaultValue == nil && d.Type.NonNull {
			return nil, failf("$", "validation-failed", "expecting a value for non-nullable variable: %q", d.Variable)
		}
	}
	for name := range in.Variables {
		if op.VariableDefinitions.ForName(name) == nil {
			return nil, failf("$.variableValues", "validation-failed", "unexpected variables in variableValues: %s", name)
		}
	}
	var roots []root
	for _, sel := range op.SelectionSet {
		field, ok := sel.(*ast.Field)
		if !ok {
			return nil, failf("$", "not-supported", "fragments at the root are not supported here")
		}
		translate := s.query
		if op.Operation == ast.Mutation {
			translate = s.mutation
		}
		x, f := translate(v, field, in.Variables)
		if f != nil {
			return nil, f
		}
		roots = append(roots, x)
	}
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, failf("$", "postgres-error", "connection error")
	}
	defer c.Release()
	if op.Operation == ast.Mutation {
		return v.mutate(ctx, c.Conn(), roots, s.opts.Concurrent)
	}
	return run(ctx, c.Conn(), roots, s.opts.Concurrent)
}

// known finds root fields and types of variables that are not there.
func known(v *view, doc *ast.QueryDocument) *failure {
	for _, op := range doc.Operations {
		for _, d := range op.VariableDefinitions {
			if name := d.Type.Name(); v.schema.Types[name] == nil {
				return failf("$.variables."+d.Variable, "validation-failed", "no such type exists in the schema: '%s'", name)
			}
		}
		root, name := v.schema.Query, "query_root"
		if op.Operation == ast.Mutation {
			if root, name = v.schema.Mutation, "mutation_root"; root == nil {
				return failf("$", "validation-failed", "no mutations exist")
			}
		}
		for _, sel := range op.SelectionSet {
			if f, ok := sel.(*ast.Field); ok && !strings.HasPrefix(f.Name, "__") && root.Fields.ForName(f.Name) == nil {
				return failf("$.selectionSet."+f.Name, "validation-failed", "field '%s' not found in type: '%s'", f.Name, name)
			}
		}
	}
	return nil
}

var cannotQuery = regexp.MustCompile(`^Cannot query field "(\w+)" on type "(\w+)"`)

func reword(err *gqlerror.Error) *failure {
	if m := cannotQuery.FindStringSubmatch(err.Message); m != nil {
		return failf("$.selectionSet."+m[1], "validation-failed", "field '%s' not found in type: '%s'", m[1], m[2])
	}
	return failf("$", "validation-failed", "%s", err.Message)
}
