package postgrest

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// guarded tells whether the rows of a table are joined by its guard trigger.
func (s *rest) guarded(t *sink.Table) bool { return s.opts.Mode == REST && t.Guard == sink.ByTrigger }

// upsertAll sends rows as they are: the guard trigger joins them.
func (w *stepper) upsertAll(ctx context.Context) error {
	if err := w.upsert(ctx, w.insert, nil); err != nil {
		return err
	}
	var keys []merge.Key
	for _, r := range w.there {
		keys = append(keys, r.Key)
	}
	stored, err := w.reader.keys(ctx, slices.Compact(keys))
	if err != nil {
		return err
	}
	for left := w.there; len(left) > 0; { // a request names no key twice
		n := 1
		for n < len(left) && left[n].Key != left[n-1].Key {
			n++
		}
		if err := w.upsert(ctx, left[:n], stored); err != nil {
			return err
		}
		left = left[n:]
	}
	return nil
}

// upsert sends rows by merge-duplicates. stored are those that are known to be
// there, by key.
func (w *stepper) upsert(ctx context.Context, rows []*merge.Row, stored map[merge.Key]*merge.Row) error {
	for len(rows) > 0 {
		part := rows[:min(len(rows), postRows)]
		text, err := w.whole(part, stored)
		for len(text) > w.opts.MaxRequestBytes && len(part) > 1 && err == nil {
			part = part[:len(part)/2]
			text, err = w.whole(part, stored)
		}
		if err != nil {
			return err
		}
		var key []string
		for _, k := range w.table.Key {
			key = append(key, columnIn(k.Name))
		}
		schema, name := w.address(w.table)
		res, err := w.do(ctx, request{method: http.MethodPost, path: name, profile: schema, body: text,
			query: []filter{{"on_conflict", strings.Join(key, ",")}}, prefer: "resolution=merge-duplicates, return=minimal, count=exact"})
		if err != nil {
			return err
		}
		_, count, _ := strings.Cut(res.header.Get("Content-Range"), "/")
		n, err := strconv.Atoi(count)
		if err != nil {
			return &fault{judged: operator("the REST API answered an upsert in a way that is not known: Content-Range %q", res.header.Get("Content-Range"))}
		}
		w.joined += n
		rows = rows[len(part):]
	}
	return nil
}

// whole writes rows with all their columns, which the trigger reads: NULL is
// what is not said. A column that may not be NULL shows what is stored, since an
// INSERT is refused before it is seen that the row is there; without a version it
// says nothing.
func (w *stepper) whole(rows []*merge.Row, stored map[merge.Key]*merge.Row) ([]byte, error) {
	required := w.required()
	var body []map[string]any
	for _, r := range rows {
		fill := r
		if was := stored[r.Key]; was != nil {
			fill = was
		}
		o := map[string]any{}
		for i, part := range r.Key.Parts() {
			o[w.table.Key[i].Name] = part
		}
		for i, c := range w.table.Columns {
			if c.Rule != merge.Touch {
				w.set(o, r, i)
			}
		}
		for _, q := range required {
			if o[q.Name] == nil {
				w.set(o, fill, q.Column)
				if first := compile.FirstColumn(q.Name); w.table.Columns[q.Column].Rule == merge.First {
					o[first] = nil
				}
			}
		}
		for s, v := range r.Scopes {
			o[compile.ScopeColumn(w.table.Scopes()[s])] = null(string(v))
		}
		body = append(body, o)
	}
	return json.Marshal(body)
}

func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}
