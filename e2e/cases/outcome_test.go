package cases

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/witness"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
)

// compareRows tells how the tables differ from the rows that there must be, ""
// if they do not.
func (o *outcome) compareRows(t testing.TB, p *mapping.Plan, url string) (string, error) {
	db, err := witness.Open(url)
	if err != nil {
		return "", err
	}
	defer db.Close()
	var out []string
	for only, tables := range map[string]map[string][]map[string]yaml.Node{"": o.Rows, ` where "deleted" is not true`: o.Live} {
		for name, want := range tables {
			diff, err := compareTable(t, p, db, strings.HasPrefix(url, "sqlite:"), name, only, want)
			if err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
			if diff != "" {
				out = append(out, name+": "+diff)
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n"), nil
}

// same prints the rows that must be the same in every order.
func (o *outcome) same(p *mapping.Plan, url string, t testing.TB) (string, error) {
	db, err := witness.Open(url)
	if err != nil {
		return "", err
	}
	defer db.Close()
	var out []string
	for table, columns := range o.Same {
		rows, err := readRows(t, db, strings.HasPrefix(url, "sqlite:"), p.Table(table).Table.Name, "", columns, nil)
		if err != nil {
			return "", err
		}
		for _, r := range rows {
			out = append(out, fmt.Sprint(table, r))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n"), nil
}

func compareTable(t testing.TB, p *mapping.Plan, db *witness.DB, lite bool, name, only string, want []map[string]yaml.Node) (string, error) {
	types := map[string]merge.Type{}
	if table := p.Table(name); table != nil {
		name = table.Table.Name
		for _, k := range table.Key {
			types[k.Name] = k.Type
		}
		for _, c := range table.Columns {
			types[c.Name] = c.Type
		}
	}
	var columns []string
	for _, row := range want {
		for c := range row {
			if !slices.Contains(columns, c) {
				columns = append(columns, c)
			}
		}
	}
	slices.Sort(columns)
	have, err := readRows(t, db, lite, name, only, columns, types)
	if err != nil {
		return "", err
	}
	left := slices.Clone(have)
	for _, row := range want {
		i := slices.IndexFunc(left, func(r map[string]string) bool { return matches(r, row, types) })
		if i < 0 {
			return fmt.Sprintf("no row %s; there are %.2000v", show(row), fmt.Sprint(have)), nil
		}
		left = slices.Delete(left, i, i+1)
	}
	if len(left) > 0 {
		return fmt.Sprintf("rows that must not be there: %.2000v", fmt.Sprint(left)), nil
	}
	return "", nil
}

const null = "NULL"

func readRows(t testing.TB, db *witness.DB, lite bool, table, only string, columns []string, types map[string]merge.Type) ([]map[string]string, error) {
	selected := []string{"1"}
	for _, c := range columns {
		text := `cast("` + c + `" as text)`
		if db.MySQL() { // which casts to no text
			text = db.Text(c, types[c])
		}
		if types[c].Kind == merge.Bytes && lite {
			text = `'\x' || lower(hex("` + c + `"))`
		}
		selected = append(selected, text)
	}
	rows, err := db.QueryContext(t.Context(), `select `+strings.Join(selected, ", ")+` from "`+strings.ReplaceAll(table, ".", `"."`)+`"`+only)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []map[string]string{}
	for rows.Next() {
		var one int
		cells := make([]sql.NullString, len(columns))
		into := []any{&one}
		for i := range cells {
			into = append(into, &cells[i])
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		row := map[string]string{}
		for i, c := range columns {
			row[c] = canonical(types[c], cells[i].String)
			if !cells[i].Valid {
				row[c] = null
			}
		}
		out = append(out, row)
	}
	return out, rows.Err()
}

// canonical writes a value as its type does, so that 1.0 is 1 and a time is the
// same in every zone; what does not fit the type stays as it is.
func canonical(t merge.Type, text string) string {
	if t.Kind == merge.Bool && (text == "0" || text == "1") {
		return map[string]string{"0": "false", "1": "true"}[text]
	}
	if v, err := merge.ParseValue(t, text); err == nil {
		return v.Text()
	}
	return text
}

func matches(have map[string]string, want map[string]yaml.Node, types map[string]merge.Type) bool {
	for c, v := range want {
		text := canonical(types[c], v.Value)
		if v.Tag == "!!null" {
			text = null
		}
		if have[c] != text {
			return false
		}
	}
	return true
}

func show(row map[string]yaml.Node) string {
	var out []string
	for c, v := range row {
		out = append(out, c+":"+v.Value)
	}
	slices.Sort(out)
	return "{" + strings.Join(out, " ") + "}"
}

// compareEntries tells how the waiting and dead events differ from those that
// there must be.
func (o *outcome) compareEntries(entries []journal.Entry) string {
	var out []string
	for state, want := range map[journal.State][]string{journal.Waiting: o.Waiting, journal.Dead: o.Dead} {
		var left []journal.Entry
		for _, e := range entries {
			if e.State == state {
				left = append(left, e)
			}
		}
		for _, part := range want {
			i := slices.IndexFunc(left, func(e journal.Entry) bool { return strings.Contains(told(e), part) })
			if i < 0 {
				out = append(out, fmt.Sprintf("no %s event with %q; there are %v", state, part, reasons(left)))
				continue
			}
			left = slices.Delete(left, i, i+1)
		}
		if len(left) > 0 {
			out = append(out, fmt.Sprintf("%s events that must not be: %v", state, reasons(left)))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func told(e journal.Entry) string { return e.Table + " " + e.Key + ": " + e.Reason + " [" + e.On + "]" }

func reasons(entries []journal.Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, told(e))
	}
	return out
}
