package config

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"
)

// row is one key as the reference shows it.
type row struct{ name, form, def, doc string }

// page is one section as the reference shows it.
type page struct {
	path, doc string
	rows      []row
	later     []string
}

func (s section[T]) page() page {
	p := page{path: s.path, doc: s.doc}
	for _, k := range s.keys {
		if k.of != nil {
			k.doc = "*" + k.kinds() + ".* " + k.doc
		}
		switch {
		case k.later != nil:
			p.later = append(p.later, k.name)
		case k.needed != "":
			p.rows = append(p.rows, row{k.name, k.form, "needed", k.doc})
		default:
			p.rows = append(p.rows, row{k.name, k.form, k.def, k.doc})
		}
	}
	return p
}

// reference returns every section, in the order of the reference.
func reference() []page {
	return []page{
		configKeys().page(), journalKeys().page(),
		sourceKeys().page(), verifyKeys().page(), secretKeys().page(),
		targetKeys().page(),
		tableKeys().page(), onDeleteKeys().page(), keyColumnKeys().page(), columnKeys().page(), mergeKeys().page(), referenceKeys().page(),
		mappingKeys().page(), occupantKeys().page(), chainKeys().page(),
		laneKeys().page(), laneSQLKeys().page(),
		fetchKeys().page(), basicKeys().page(),
		testKeys().page(), deliveryKeys().page(),
	}
}

// referenceHead is what stands before the tables.
//
//go:embed testdata/reference.head.md
var referenceHead string

// referenceText renders the reference as Markdown.
func referenceText() string {
	var out strings.Builder
	out.WriteString(referenceHead)
	for _, p := range reference() {
		title := "The file"
		if p.path != "" {
			title = "`" + strings.ReplaceAll(p.path, ", ", "`, `") + "`"
		}
		fmt.Fprintf(&out, "## %s\n\n", title)
		if p.doc != "" {
			out.WriteString(p.doc + "\n\n")
		}
		out.WriteString("| key | value | default | meaning |\n| --- | --- | --- | --- |\n")
		for _, r := range p.rows {
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", r.name, r.form, r.def, r.doc)
		}
		if len(p.later) > 0 {
			fmt.Fprintf(&out, "\nIn a later version: `%s`.\n", strings.Join(p.later, "`, `"))
		}
		out.WriteString("\n")
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

// TestReference keeps docs/config.md equal to what the loader reads.
func TestReference(t *testing.T) {
	for _, p := range reference() {
		for _, r := range p.rows {
			if r.form == "" || r.def == "" || !strings.HasSuffix(r.doc, ".") || strings.Contains(r.form+r.def+r.doc, "|") {
				t.Errorf("%s.%s is not documented: %+v", p.path, r.name, r)
			}
		}
	}
	golden(t, "../../docs/config.md", referenceText())
}
