package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// OccupantStatements are what a sink runs for the occupants of a table, in this
// order. Their rows are those with an occupant. Project and Reproject take from
// a row the cells of what belongs to the row itself, so that a new row has them.
type OccupantStatements struct {
	// Join joins rows into the occupants' records.
	Join Statement
	// Project shows the records in the table: the newest of each key takes the
	// place of what shows, if it is not older than that. Reproject is the same
	// for rows that are there. Project leaves out records that lack a required
	// column.
	Project, Reproject Statement
	// Records reads the joined records: what versions lie beside need to decide.
	// It gives, after the place of the parameters on PostgreSQL, since and the
	// versions of Versions. It is empty where versions live in rows.
	Records  Statement
	Versions []Param
}

// projection is what records of occupants show in the table.
type projection struct {
	table  string   // of the occupants
	keys   []string // the key of the rows, as parameters
	on     []string // conditions between parameters and o
	exprs  []string // what the records show, each named as its column
	params []Param
	place  string // names the place of the parameters, as no column of it is named
}

func compileOccupants(d dialect, t *sink.Table, r, o *relation, live *sink.Live) (*OccupantStatements, error) {
	shown := layout(t, t.Name, func(i int) bool { return !t.OfKey(i) })
	shown.beside = r.beside
	if err := shown.bind(live); err != nil {
		return nil, err
	}
	columns := append([]field{}, shown.values...)
	versions := append(append([]field{}, shown.scopes...), shown.firsts...)
	identity := []field{*o.since, o.key[len(o.key)-1]}
	if !r.beside {
		for i := range identity {
			if err := bindField(&identity[i], t.Name, live); err != nil {
				return nil, err
			}
		}
		columns = append(append(columns, versions...), identity...)
	}

	// The parameters: the key, the occupant, then what the row itself has.
	id := o.key[len(o.key)-1]
	id.n = len(r.key) + 1
	keys := append([]field{}, r.key...)
	mine := append(append(append([]field{}, r.values...), r.scopes...), r.firsts...)
	if r.beside {
		mine = mine[:len(r.values)+len(r.scopes)] // scopes as parameters, not as columns
	}
	p := projection{table: QuoteTable(o.name), place: "hookfold_n"}
	for slices.ContainsFunc(slices.Concat(keys, columns, mine), func(f field) bool { return f.Name == p.place }) {
		p.place += "_"
	}
	for i := range keys {
		keys[i].n = i + 1
		p.params = append(p.params, keys[i].Param)
		p.keys = append(p.keys, d.param(keys[i]))
		p.on = append(p.on, fmt.Sprintf("o.%s = %s", Quote(keys[i].Name), d.param(keys[i])))
		p.exprs = append(p.exprs, d.param(keys[i])+" as "+Quote(keys[i].Name))
	}
	p.params = append(p.params, id.Param)
	p.on = append(p.on, fmt.Sprintf("o.%s = %s", Quote(id.Name), d.param(id)))
	own := *r
	own.scopes = append([]field{}, r.scopes...)
	for i := range mine {
		mine[i].n = len(p.params) + 1
		p.params = append(p.params, mine[i].Param)
		for j := range own.scopes {
			if own.scopes[j].Name == mine[i].Name {
				own.scopes[j].n = mine[i].n
			}
		}
	}
	for _, f := range columns {
		p.exprs = append(p.exprs, recorded(d, f, o, shown)+" as "+Quote(f.Name))
	}
	if r.beside {
		mine = mine[:len(r.values)]
	}
	reproject := p
	reproject.exprs = append([]string{}, p.exprs...)
	for _, f := range mine {
		p.exprs = append(p.exprs, own.fresh(d, f)+" as "+Quote(f.Name))
	}

	var lines, differ, values []string
	for _, f := range columns {
		lines = append(lines, fmt.Sprintf("%s = %s", Quote(f.Name), in(f)))
		differ = append(differ, d.distinct(in(f), at(f), f))
		if f.Kind == CellParam {
			values = append(values, d.distinct(in(f), at(f), f))
		}
	}
	for _, f := range shown.touch {
		if len(values) > 0 {
			lines = append(lines, fmt.Sprintf("%s = case when %s then %s else t.%[1]s end", Quote(f.Name), strings.Join(values, " or "), d.now(f)))
		}
	}
	var where []string
	if !r.beside {
		where = append(where, newer(d, identity, shown.scopes, t))
	}
	if len(differ) > 0 {
		where = append(where, "("+strings.Join(differ, " or ")+")")
	}

	var names, from []string
	for _, f := range append(append(append([]field{}, keys...), columns...), mine...) {
		names = append(names, Quote(f.Name))
		from = append(from, "p."+Quote(f.Name))
	}
	for _, f := range append(append([]field{}, shown.touch...), r.touch...) {
		names = append(names, Quote(f.Name))
		from = append(from, d.now(f))
	}
	var lacks []string
	for _, q := range required(t, r, live) {
		switch {
		case q.Column < 0:
			lacks = append(lacks, "false")
		default:
			lacks = append(lacks, "p."+Quote(q.Name)+" is not null")
		}
	}
	if len(lacks) == 0 {
		lacks = []string{"true"}
	}
	project := fmt.Sprintf("insert into %s as t (%s)\nselect %s\nfrom (%s) as p\nwhere %s%s\non conflict (%s) do ",
		QuoteTable(r.name), strings.Join(names, ", "), strings.Join(from, ", "), d.records(&p), strings.Join(lacks, " and "), d.inOrder(&p),
		strings.Join(r.keyNames(), ", "))
	s := &OccupantStatements{Join: o.insert(d, false)}
	if len(lines) == 0 {
		s.Project = Statement{project + "nothing", p.params}
	} else {
		set := "set " + strings.Join(lines, ",\n    ")
		s.Project = Statement{project + "update " + set + "\nwhere " + strings.Join(where, "\n  and "), p.params}
		s.Reproject = Statement{fmt.Sprintf("update %s as t\n%s\nfrom (%s) as excluded\nwhere %s\n  and %s",
			QuoteTable(r.name), set, d.records(&reproject), r.sameKey(in), strings.Join(where, "\n  and ")), p.params}
	}
	if r.beside {
		q := p
		q.exprs = []string{"o." + SinceColumn + " as " + SinceColumn, "o." + OccupantColumn + " as " + OccupantColumn}
		for _, f := range append(append([]field{}, o.scopes...), o.firsts...) {
			q.exprs = append(q.exprs, "o."+Quote(f.Name)+" as "+Quote(f.Name))
			s.Versions = append(s.Versions, f.Param)
		}
		q.params = p.params[:len(keys)+1]
		s.Records = Statement{d.records(&q), q.params}
	}
	return s, nil
}

// recorded is what a column shows of a record. A column that may not be NULL
// shows its default for what no event has set.
func recorded(d dialect, f field, o, shown *relation) string {
	expr := d.convert("o."+Quote(f.Name), o.named(f.Name), f)
	if f.Kind == CellParam && f.rule == merge.Latest && f.Live.NotNull && f.Live.Default != "" {
		for _, s := range shown.scopes {
			if s.Index == f.scope {
				return fmt.Sprintf("case when o.%s is null then %s else %s end", Quote(s.Name), d.dflt(f), expr)
			}
		}
	}
	return expr
}

func (r *relation) named(name string) field {
	for _, f := range r.fields() {
		if f.Name == name {
			return f
		}
	}
	return field{}
}

// newer says that a record is not older than what the row shows: by since, then
// the occupant, then the version of scope row.
func newer(d dialect, identity, scopes []field, t *sink.Table) string {
	order := append([]field{}, identity...)
	for _, s := range scopes {
		if t.Scopes()[s.Index] == merge.RowScope {
			order = append(order, s)
		}
	}
	var a, b []string
	for _, f := range order {
		a = append(a, d.version("coalesce("+in(f)+", '')"))
		b = append(b, d.version("coalesce("+at(f)+", '')"))
	}
	return fmt.Sprintf("(%s)\n    >= (%s)", strings.Join(a, ", "), strings.Join(b, ", "))
}
