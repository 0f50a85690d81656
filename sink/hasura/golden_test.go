package hasura_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/hasura"
	"github.com/hookfold/hookfold/sink/hasura/hasuratest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The requests of a few batches, as they are sent.
func TestGoldenRequests(t *testing.T) {
	user := tableOf(t, "user", "id uuid")
	payment := tableOf(t, "payment", "id text", "user_id uuid", "amount numeric", "paid_at timestamp")
	status := tableOf(t, "message_status", "message_id text", "status text ladder sent,delivered,read", "sent_at timestamp min", "error int scope error")
	every := tableOf(t, "every_rule", "tenant text, no int", "amount numeric(10,2)", "doc json", "origin text first", "top numeric max", "name text max", "tags text[] union", "changed_at timestamp touch")
	slot := booking(t)
	left := *every
	left.Guard = sink.ByTrigger
	const id = "00000000-0000-4000-8000-000000000001"
	stub := &merge.Change{Table: user.Table, Key: id, Version: "1"}
	late := say(t, payment, "p2", 2, set{"user_id": nil, "amount": "5", "paid_at": "2026-01-02T03:04:05Z"})
	late.IfMissing = merge.Skip
	for name, c := range map[string]struct {
		tables []*sink.Table
		before *sink.Batch
		batch  *sink.Batch
	}{
		"parent_and_child": {[]*sink.Table{user, payment}, nil, &sink.Batch{Groups: []sink.Group{
			{Table: user, Rows: merge.Fold(user.Table, []*merge.Change{stub})},
			{Table: payment, Rows: merge.Fold(payment.Table, []*merge.Change{
				say(t, payment, "p1", 1, set{"user_id": id, "amount": "129.90", "paid_at": "2026-01-02T03:04:05Z"}),
				say(t, payment, "p2", 3, set{"user_id": id, "amount": "5", "paid_at": nil})})}}}},
		"ladder_and_min": {[]*sink.Table{status}, nil, batch(status, say(t, status, "w1", 1, set{"status": "delivered", "error": "7"}), say(t, status, "w2", 1, set{"status": "sent", "sent_at": "2026-01-02T03:04:05Z"}))},
		"every_rule": {[]*sink.Table{every}, batch(every, say(t, every, "a|1", 1, set{"tags": `["x"]`, "name": "n"})),
			batch(every, say(t, every, "a|1", 2, set{"amount": "1.50", "doc": `{"a":[1]}`, "origin": "ad", "top": "9", "name": "z", "tags": `["y,"]`}))},
		"guarded": {[]*sink.Table{&left}, batch(&left, say(t, &left, "a|1", 1, set{"tags": `["x"]`, "name": "n"})),
			batch(&left, say(t, &left, "a|1", 2, set{"amount": "1.50", "doc": `{"a":[1]}`, "origin": "ad", "top": "9", "name": "z", "tags": `["y,"]`}), say(t, &left, "b|1", 1, set{"top": "1"}))},
		"if_missing": {[]*sink.Table{payment}, batch(payment, say(t, payment, "p2", 1, set{"user_id": nil, "amount": nil, "paid_at": nil})), batch(payment, late)},
		"occupant":   {[]*sink.Table{slot}, nil, batch(slot, occupant(say(t, slot, "r1", 1, set{"status": "active", "invitee": "A", "channel": "web"}), "A", 1))},
	} {
		t.Run(name, func(t *testing.T) {
			// The database's own clock is in the text of touch: "now()".
			r := start(t, hasuratest.Options{}, hasura.Options{}, nil, c.tables...)
			if c.before != nil {
				if _, err := r.Apply(t.Context(), c.before); err != nil {
					t.Fatal(err)
				}
			}
			var mu sync.Mutex
			var b bytes.Buffer
			r.server.Faults(func(q hasuratest.Request) *hasuratest.Fault {
				mu.Lock()
				defer mu.Unlock()
				render(&b, q.Body)
				return nil
			})
			if _, err := r.Apply(t.Context(), c.batch); err != nil {
				t.Fatal(err)
			}
			golden(t, name, b.String())
		})
	}
}

// render writes a request so that it can be read.
func render(b *bytes.Buffer, body string) {
	var in struct {
		Query     string
		Variables json.RawMessage
	}
	if json.Unmarshal([]byte(body), &in) != nil || strings.Contains(in.Query, "__type(") {
		return
	}
	open, fields, _ := strings.Cut(in.Query, "){")
	for _, f := range []string{" m1:", " m2:", " m3:", " m4:", " m5:", " m6:", " m7:", " m8:", " m9:"} {
		fields = strings.Replace(fields, f, "\n "+f, 1)
	}
	fmt.Fprintf(b, "%s) {\n  %s\n}\n", open, strings.TrimSuffix(fields, "}"))
	dec := json.NewDecoder(bytes.NewReader(in.Variables))
	if _, err := dec.Token(); err == nil {
		for dec.More() {
			name, _ := dec.Token()
			var raw json.RawMessage
			if dec.Decode(&raw) != nil {
				break
			}
			fmt.Fprintf(b, "  $%v = %s\n", name, raw)
		}
	}
	b.WriteString("\n")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden.txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run with -update to write it)", err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got; run with -update to take it):\n%s", file, d)
	}
}
