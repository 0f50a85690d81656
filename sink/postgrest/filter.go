package postgrest

import (
	"regexp"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Filters in a query string. Outside of lists and trees a value stands as it is,
// and a quote would be a part of it; inside, every value stands in quotes, so
// that no comma, point or parenthesis in it is read as more than that:
// https://docs.postgrest.org/en/v12/references/api/url_grammar.html#reserved-characters

var quoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// quoted writes a value for a list or a tree.
func quoted(s string) string { return `"` + quoter.Replace(s) + `"` }

var plainColumn = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// columnIn writes the name of a column.
func columnIn(name string) string {
	if plainColumn.MatchString(name) {
		return name
	}
	return quoted(name)
}

// is writes a condition for a tree: column.operator."value".
func is(column, operator, value string) string {
	return columnIn(column) + "." + operator + "." + quoted(value)
}

func isNull(column string) string { return columnIn(column) + ".is.null" }

func list(values []string) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = quoted(v)
	}
	return "(" + strings.Join(out, ",") + ")"
}

func all(conditions ...string) string { return "and(" + strings.Join(conditions, ",") + ")" }

// either is a filter of which one condition has to hold.
func either(conditions ...string) filter {
	return filter{"or", "(" + strings.Join(conditions, ",") + ")"}
}

// keyFilters are those of one row.
func keyFilters(t *sink.Table, k merge.Key) []filter {
	var out []filter
	for i, part := range k.Parts() {
		out = append(out, filter{columnIn(t.Key[i].Name), "eq." + part})
	}
	return out
}

// keysFilter is that of several rows.
func keysFilter(t *sink.Table, keys []merge.Key) filter {
	if len(t.Key) == 1 {
		var values []string
		for _, k := range keys {
			values = append(values, string(k))
		}
		return filter{columnIn(t.Key[0].Name), "in." + list(values)}
	}
	var rows []string
	for _, k := range keys {
		var parts []string
		for i, part := range k.Parts() {
			parts = append(parts, is(t.Key[i].Name, "eq", part))
		}
		rows = append(rows, all(parts...))
	}
	return either(rows...)
}

// after is that of the rows behind a key.
func after(t *sink.Table, k merge.Key) filter {
	parts := k.Parts()
	if len(parts) == 1 {
		return filter{columnIn(t.Key[0].Name), "gt." + parts[0]}
	}
	var rows []string
	for i := range parts {
		var conditions []string
		for j := range i {
			conditions = append(conditions, is(t.Key[j].Name, "eq", parts[j]))
		}
		rows = append(rows, all(append(conditions, is(t.Key[i].Name, "gt", parts[i]))...))
	}
	return either(rows...)
}
