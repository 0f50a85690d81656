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

func compileOccupants(d dialect, t *sink.Table, r, o *relation, live, records *sink.Live) (*OccupantStatements, error) {
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
	p := projection{table: quoteTable(d, o.name), place: "hookfold_n"}
	for slices.ContainsFunc(slices.Concat(keys, columns, mine), func(f field) bool { return f.Name == p.place }) {
		p.place += "_"
	}
	for i := range keys {
		keys[i].n = i + 1
		p.params = append(p.params, keys[i].Param)
		p.keys = append(p.keys, d.param(keys[i]))
		p.on = append(p.on, fmt.Sprintf("o.%s = %s", d.quote(keys[i].Name), d.matched(keys[i])))
		p.exprs = append(p.exprs, d.matched(keys[i])+" as "+d.quote(keys[i].Name))
	}
	p.params = append(p.params, id.Param)
	p.on = append(p.on, fmt.Sprintf("o.%s = %s", d.quote(id.Name), d.matched(id)))
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
		p.exprs = append(p.exprs, recorded(d, f, o, shown)+" as "+d.quote(f.Name))
	}
	if r.beside {
		mine = mine[:len(r.values)]
	}
	reproject := p
	reproject.exprs = append([]string{}, p.exprs...)
	for _, f := range mine {
		p.exprs = append(p.exprs, own.fresh(d, f)+" as "+d.quote(f.Name))
	}

	table := quoteTable(d, r.name)
	identified := append([]field{}, identity...)
	for _, f := range shown.scopes {
		if t.Scopes()[f.Index] == merge.RowScope {
			identified = append(identified, f)
		}
	}
	// become is what the row shows, in which way ever it gets there.
	become := func(in, at func(field) string) (set []assignment, guard, differs string) {
		var touch []assignment
		var differ, values []string
		for _, f := range columns {
			set = append(set, assignment{f.Name, in(f)})
			differ = append(differ, d.distinct(in(f), at(f), f))
			if f.Kind == CellParam {
				values = append(values, d.distinct(in(f), at(f), f))
			}
		}
		for _, f := range shown.touch {
			if len(values) > 0 {
				touch = append(touch, assignment{f.Name, fmt.Sprintf("case when %s then %s else %s end", strings.Join(values, " or "), d.now(f), at(f))})
			}
		}
		if d.sequential() {
			set = append(touch, lastOf(set, identified)...)
		} else {
			set = append(set, touch...)
		}
		if !r.beside {
			guard = newer(d, identified, in, at)
		}
		if len(differ) > 0 {
			differs = "(" + strings.Join(differ, " or ") + ")"
		}
		return set, guard, differs
	}

	var names, from []string
	for _, f := range append(append(append([]field{}, keys...), columns...), mine...) {
		names = append(names, d.quote(f.Name))
		from = append(from, "p."+d.quote(f.Name))
	}
	for _, f := range append(append([]field{}, shown.touch...), r.touch...) {
		names = append(names, d.quote(f.Name))
		from = append(from, d.now(f))
	}
	var lacks []string
	for _, q := range required(t, r, live) {
		switch {
		case q.Column < 0:
			lacks = append(lacks, "false")
		default:
			lacks = append(lacks, "p."+d.quote(q.Name)+" is not null")
		}
	}
	if len(lacks) == 0 {
		lacks = []string{"true"}
	}
	project := &upsert{table: table, key: r.keyNames(d), columns: names, exprs: from, params: p.params,
		source: d.records(&p), where: strings.Join(lacks, " and "), order: d.inOrder(&p)}
	for _, k := range project.key {
		project.matched = append(project.matched, "p."+k)
	}
	project.set, project.guard, project.differs = become(d.incoming, func(f field) string { return d.resident(table, f) })
	s := &OccupantStatements{Join: o.insert(d.over(t, records, append(keyOf(t), OccupantColumn)), false), Project: statement(d.upsert(project), p.params)}
	in, at := func(f field) string { return incoming(d, f) }, func(f field) string { return at(d, f) }
	if set, guard, differs := become(in, at); len(set) > 0 {
		s.Reproject = Statement{SQL: d.update(&update{table: table, set: set, from: "(" + d.records(&reproject) + ") as excluded",
			on: r.sameKey(d, in), guard: guard, differs: differs}), Params: p.params}
	}
	if r.beside {
		q := p
		q.exprs = []string{"o." + SinceColumn + " as " + SinceColumn, "o." + OccupantColumn + " as " + OccupantColumn}
		for _, f := range append(append([]field{}, o.scopes...), o.firsts...) {
			q.exprs = append(q.exprs, "o."+d.quote(f.Name)+" as "+d.quote(f.Name))
			s.Versions = append(s.Versions, f.Param)
		}
		q.params = p.params[:len(keys)+1]
		s.Records = Statement{SQL: d.records(&q), Params: q.params}
	}
	return s, nil
}

// recorded is what a column shows of a record. A column that may not be NULL
// shows its default for what no event has set.
func recorded(d dialect, f field, o, shown *relation) string {
	expr := d.convert("o."+d.quote(f.Name), o.named(f.Name), f)
	if f.Kind == CellParam && f.rule == merge.Latest && f.Live.NotNull && f.Live.Default != "" {
		for _, s := range shown.scopes {
			if s.Index == f.scope {
				return fmt.Sprintf("case when o.%s is null then %s else %s end", d.quote(s.Name), d.dflt(f), expr)
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

// newer says that a record is not older than what the row shows, by fields in
// their order: since, the occupant, the version of scope row.
func newer(d dialect, order []field, in, at func(field) string) string {
	var a, b []string
	for _, f := range order {
		a = append(a, d.version("coalesce("+in(f)+", '')"))
		b = append(b, d.version("coalesce("+at(f)+", '')"))
	}
	return d.newer(a, b)
}

// lastOf puts the assignments of what newer reads last, the most significant at
// the very end: then what newer says stays while they are made one by one.
func lastOf(set []assignment, order []field) []assignment {
	at := func(a assignment) int {
		return slices.IndexFunc(order, func(f field) bool { return f.Name == a.column })
	}
	out := slices.Clone(set)
	slices.SortStableFunc(out, func(a, b assignment) int {
		i, j := at(a), at(b)
		switch {
		case i < 0 && j < 0:
			return 0
		case i < 0:
			return -1
		case j < 0:
			return 1
		}
		return j - i
	})
	return out
}
