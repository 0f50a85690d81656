package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/journal"
)

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, problems := config.Parse("hookfold.yaml", []byte(text), config.Options{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// A target that the config had is told of until it is forgotten.
func TestATargetThatIsGoneIsToldOf(t *testing.T) {
	r := newRig(t, testdb.SQLite(t))
	r.o.NoListen = true
	r.start()
	r.stop()
	old := r.cfg
	text := strings.ReplaceAll(fmt.Sprintf(yaml, strings.TrimPrefix(old.Journal.URL.Text, "sqlite:"), testdb.SQLite(t)), "db: {url", "other: {url")
	r.cfg = parse(t, text)
	r.open()
	if got := r.daemon.readiness(t.Context()).Abandoned; len(got) != 1 || got[0] != "db" {
		t.Errorf("abandoned: %v", got)
	}
	if !strings.Contains(r.log.String(), "hookfold forget db") {
		t.Error(r.log)
	}
	r.stop()
	for _, c := range []struct{ target, want string }{{"other", "the config has it, for table "}, {"nope", "does not know it"}} {
		if err := Forget(t.Context(), r.cfg, c.target); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("forget %s: %v", c.target, err)
		}
	}
	if err := Forget(t.Context(), r.cfg, "db"); err != nil {
		t.Fatal(err)
	}
	r.open()
	if got := r.daemon.readiness(t.Context()).Abandoned; len(got) != 0 {
		t.Errorf("abandoned after it was forgotten: %v", got)
	}
}

// A config without a table: what cannot be split is dead all the same.
func TestAConfigWithoutATable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "j.db")
	const head = "version: 1\nlisten: 127.0.0.1:0\njournal: \"sqlite:%s\"\nsources:\n  in: {preset: http, verify: none}\n"
	r := newRig(t, testdb.SQLite(t))
	r.o.NoListen = true
	r.cfg = parse(t, fmt.Sprintf(head, file))
	r.start()
	if err := r.daemon.Append(t.Context(), &event.Delivery{Source: "in", Body: []byte("{")}); err != nil {
		t.Fatal(err)
	}
	if s := r.drain(); s.Dead != 1 {
		t.Errorf("%+v", s)
	}
	// What is JSON and yet no event is listed too; an event that nobody wants is
	// skipped.
	for _, body := range []string{"null", `"text"`, "7", "[]", "{}", "[null]", `{"id":"1"}`} {
		if err := r.daemon.Append(t.Context(), &event.Delivery{Source: "in", Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	if s := r.drain(); s.Dead != 5 {
		t.Errorf("%+v", s)
	}
	r.stop()
	// It gets a table: what was found before is found again for its target.
	r.cfg = parse(t, fmt.Sprintf(head, file)+"targets:\n  db: {url: \""+testdb.SQLite(t)+"\"}\ntables:\n  x: {key: {id: text}, columns: {}, events: [{from: in, key: {id: event.id}}]}\n")
	r.start()
	if s := r.drain(); s.Dead != 7 { // all but the one that has an id
		t.Errorf("%+v", s)
	}
	if got := r.daemon.abandoned; got != nil {
		t.Errorf("abandoned: %v", got)
	}
}

// Embedded or served, a config that is not sound is refused.
func TestOpenRefusesWhatIsNotSound(t *testing.T) {
	text := fmt.Sprintf(yaml, filepath.Join(t.TempDir(), "j.db"), testdb.SQLite(t))
	text = strings.Replace(text, "set: {user_id: event.user, amount: event.amount, top: \"event.?top\"}", "set: {amount: event.amount}", 1) +
		"      - {from: shop, type: other, key: {id: event.id}, set: {user_id: event.user}}\n"
	d, err := Open(t.Context(), parse(t, text), Options{NoListen: true})
	var problems *config.Problems
	if !errors.As(err, &problems) {
		t.Errorf("got %v", err)
	}
	if d != nil {
		d.Stop(t.Context())
	}
}

// Deletes are forgotten up to where every event is settled.
func TestSettledBefore(t *testing.T) {
	r := newRig(t, testdb.SQLite(t))
	r.o.NoListen = true
	r.start()
	r.migrate()
	now := time.Now()
	ask := func() time.Time {
		t.Helper()
		at, err := r.daemon.settledBefore(context.Background(), "db", r.daemon.runners[0].Lag, now)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	if got := ask(); !got.Equal(now) {
		t.Errorf("with nothing: %s before now", now.Sub(got))
	}
	received := now.Add(-time.Hour)
	x := &event.Delivery{Source: "shop", Received: received, Body: []byte(`{"id":"p1","type":"note","at":"2026-01-01T00:00:00Z","note":"n"}`)}
	if err := r.daemon.Append(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if s := r.drain(); s.Waiting != 1 {
		t.Fatalf("%+v", s)
	}
	if got := ask(); !got.Equal(received.UTC().Truncate(time.Microsecond)) && got.Sub(received).Abs() > time.Millisecond {
		t.Errorf("with an event that waits: %s before now", now.Sub(got))
	}
	if n, err := r.daemon.Journal().Drop(t.Context(), journal.Filter{}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if got := ask(); !got.Equal(now) {
		t.Errorf("after it was dropped: %s before now", now.Sub(got))
	}
}
