package postgresttest

import (
	"net/http"
	"strings"

	"github.com/hookfold/hookfold/internal/compile"
)

// The filters of the query string:
// https://docs.postgrest.org/en/v12/references/api/tables_views.html#horizontal-filtering

func badFilter(what string) *apiError {
	return failure(http.StatusBadRequest, "PGRST100", `"failed to parse `+what+`"`)
}

var operators = map[string]string{
	"eq": "=", "neq": "<>", "gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "like": "like", "ilike": "ilike", "isdistinct": "is distinct from",
}

// condition reads [not.]operator.value as a condition on a column. With tree,
// the value ends at a comma or a closing parenthesis, and may be quoted.
func (p *parser) condition(column string, tree bool) (string, *apiError) {
	not := p.take("not.")
	name := p.until(".")
	if !p.take(".") {
		return "", badFilter("filter (" + p.all + ")")
	}
	sql := "r." + quote(column)
	switch op := operators[name]; {
	case name == "is":
		v := strings.ToLower(p.rest(tree))
		if v != "null" && v != "true" && v != "false" && v != "unknown" {
			return "", badFilter("filter (is." + v + ")")
		}
		sql += " is " + v
	case name == "in":
		list, ok := p.list()
		if !ok {
			return "", badFilter("filter (" + p.all + ")")
		}
		sql += " = any (" + compile.Literal(arrayText(list)) + ")"
	case op != "":
		v := ""
		if tree {
			v = p.value()
		} else {
			v = p.rest(false) // outside a tree a quote is a character like any other
		}
		sql += " " + op + " " + compile.Literal(v)
	default:
		return "", badFilter("filter (" + p.all + ")")
	}
	if not {
		sql = "not (" + sql + ")"
	}
	return sql, nil
}

// tree reads (condition,condition,…), in which and(…) and or(…) may stand.
func (p *parser) tree(join string) (string, *apiError) {
	bad := badFilter("logic tree (" + p.all + ")")
	if !p.take("(") {
		return "", bad
	}
	var parts []string
	for {
		part, fault := p.branch()
		if fault != nil {
			return "", fault
		}
		parts = append(parts, part)
		if p.take(")") {
			return "(" + strings.Join(parts, " "+join+" ") + ")", nil
		}
		if !p.take(",") {
			return "", bad
		}
	}
}

func (p *parser) branch() (string, *apiError) {
	for _, b := range []struct{ prefix, join, not string }{{"and(", "and", ""}, {"or(", "or", ""}, {"not.and(", "and", "not "}, {"not.or(", "or", "not "}} {
		if strings.HasPrefix(p.text, b.prefix) {
			p.text = p.text[len(b.prefix)-1:]
			sql, fault := p.tree(b.join)
			return b.not + sql, fault
		}
	}
	column := ""
	if strings.HasPrefix(p.text, `"`) {
		column = p.quoted()
	} else {
		column = p.until(".,()")
	}
	if column == "" || !p.take(".") {
		return "", badFilter("logic tree (" + p.all + ")")
	}
	return p.condition(column, true)
}

// parser reads the value of a parameter.
type parser struct{ text, all string }

func newParser(s string) *parser { return &parser{s, s} }

func (p *parser) take(s string) bool {
	rest, ok := strings.CutPrefix(p.text, s)
	if ok {
		p.text = rest
	}
	return ok
}

func (p *parser) until(any string) string {
	i := strings.IndexAny(p.text, any)
	if i < 0 {
		i = len(p.text)
	}
	out := p.text[:i]
	p.text = p.text[i:]
	return out
}

func (p *parser) rest(tree bool) string {
	if tree {
		return p.until(",)")
	}
	out := p.text
	p.text = ""
	return out
}

// value reads a value of a tree or a list: quoted only if the quotes hold all of
// it.
func (p *parser) value() string {
	if strings.HasPrefix(p.text, `"`) {
		before := p.text
		v := p.quoted()
		if p.text == "" || p.text[0] == ',' || p.text[0] == ')' {
			return v
		}
		p.text = before
	}
	return p.until(",)")
}

func (p *parser) quoted() string {
	var b strings.Builder
	for i := 1; i < len(p.text); i++ {
		switch c := p.text[i]; {
		case c == '\\' && i+1 < len(p.text):
			i++
			b.WriteByte(p.text[i])
		case c == '"':
			p.text = p.text[i+1:]
			return b.String()
		default:
			b.WriteByte(c)
		}
	}
	return p.until(",)")
}

func (p *parser) list() ([]string, bool) {
	if !p.take("(") {
		return nil, false
	}
	if p.take(")") {
		return nil, true
	}
	var out []string
	for {
		out = append(out, p.value())
		if p.take(")") {
			return out, true
		}
		if !p.take(",") {
			return nil, false
		}
	}
}

func arrayText(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
	}
	return "{" + strings.Join(out, ",") + "}"
}
