package compile

import (
	"fmt"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

const (
	guardShows = "zz_hookfold_guard_shows"
	guardShown = "_shows"
)

// shownBy is what a row shows of its newest occupant. It is replaced as a whole,
// by a record that is not older, and else kept.
type shownBy struct {
	columns  []string
	versions []field
	// newer says that what comes is the record of an occupant, and not older.
	newer string
}

// postgresOccupied writes the guard of a table with occupants: writers send
// records, which the guard of their table joins, and a trigger behind it shows the
// joined record in the row. What belongs to the row itself is written there.
func postgresOccupied(t *sink.Table, r *relation, live, records *sink.Live) (*Guard, error) {
	d := postgres{}
	if records == nil {
		records = &sink.Live{}
	}
	o := occupants(Postgres, t)
	if err := o.bound(d, records); err != nil {
		return nil, err
	}
	if lacks := required(t, r, live); len(lacks) > 0 {
		return nil, fmt.Errorf("table %s: column %s belongs to the row itself and may not be NULL, so the guard trigger cannot show an occupant in a row that is not there yet. Allow NULL, or give it a default", t.Name, lacks[0].Name)
	}
	shown := layout(t, t.Name, func(i int) bool { return !t.OfKey(i) })
	if err := shown.bind(live); err != nil {
		return nil, err
	}
	identity := []field{*o.since, o.key[len(o.key)-1]}
	for i := range identity {
		if err := bindField(&identity[i], t.Name, live); err != nil {
			return nil, err
		}
	}
	row := newGuardBody(d, plpgsql{}, t, r, live)
	row.shows = &shownBy{}
	order := identity
	for _, fields := range [][]field{shown.values, shown.scopes, shown.firsts, identity, shown.touch} {
		for _, f := range fields {
			row.shows.columns = append(row.shows.columns, f.Name)
			if f.Kind != CellParam {
				row.shows.versions = append(row.shows.versions, f)
			}
		}
	}
	for _, f := range shown.scopes {
		if t.Scopes()[f.Index] == merge.RowScope {
			order = append(order[:len(order):len(order)], f)
		}
	}
	row.shows.newer = row.in(identity[1]) + " is not null and " + newer(d, order, row.in, row.at)

	args := postgres{args: map[string]string{}}
	s, err := compileWith(args, t, live, records)
	if err != nil {
		return nil, err
	}
	for _, p := range s.Occupants.Project.Params {
		args.args[p.Name] = "null"
		if p.Kind == KeyParam || p.Kind == IDParam {
			args.args[p.Name] = "new." + always(p.Name)
		}
	}
	if s, err = compileWith(args, t, live, records); err != nil {
		return nil, err
	}
	show := &guardBody{guardSyntax: plpgsql{}}
	show.b.WriteString("\nbegin\n")
	show.depth = 1
	show.when("current_setting('hookfold.guard', true) is distinct from 'off'", func() { show.line(s.Occupants.Project.SQL + ";") })
	show.line("return null;")
	show.b.WriteString("end\n")

	g := &Guard{Mark: guardMark + rules(t)}
	g.postgres(t.Name, r, postgresBody(row))
	g.postgres(o.name, o, postgresBody(newGuardBody(d, plpgsql{}, t, o, records)))
	part := &g.Parts[1]
	part.Records = true
	part.Triggers = append(part.Triggers, sink.Trigger{Name: guardShows, Body: show.b.String(), Enabled: true})
	function := guardNamed(o.name, guardShown)
	g.function(function, show.b.String())
	g.trigger(QuoteTable(o.name), guardShows, "after insert or update", "row", function)
	g.Remove = append(g.Remove, "drop function if exists "+function+"()")
	return g, nil
}
