package journaltest

import (
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// lanes gives the journal as a journal.Lanes; one that is none has nothing to
// show.
func (s *suite) lanes() (journal.Lanes, bool) {
	l, ok := s.j.(journal.Lanes)
	return l, ok
}

func (s *suite) marks() map[string]string {
	s.t.Helper()
	l, _ := s.lanes()
	marks, err := l.Marks(s.ctx())
	if err != nil {
		s.t.Fatal("marks:", err)
	}
	return marks
}

func testMarks(t *testing.T, s *suite) {
	l, ok := s.lanes()
	if !ok {
		return
	}
	same(t, "marks of a new journal", s.marks(), map[string]string{})
	for _, m := range [][2]string{{"rows/a", "1"}, {"rows/a", "2"}, {"other", "x"}, {"gone", "y"}, {"gone", ""}} {
		if err := l.SetMark(s.ctx(), m[0], m[1]); err != nil {
			t.Fatal(err)
		}
	}
	s.reopen()
	same(t, "marks", s.marks(), map[string]string{"rows/a": "2", "other": "x"})
}

// Whatever a person changes, the mark of edits tells of it; what the consumer
// does itself leaves it alone.
func testEdits(t *testing.T, s *suite) {
	l, ok := s.lanes()
	if !ok {
		return
	}
	ds := s.append(3)
	c := s.consumer("rows")
	a, b := waiting("rows", ds[0], 0, start), dead("rows", ds[1], 0)
	a.On = "something"
	before := s.marks()[journal.EditsMark]
	edited := func(what string, want bool) {
		t.Helper()
		now := s.marks()[journal.EditsMark]
		if (now != before) != want {
			t.Errorf("%s: the mark was %q and is %q", what, before, now)
		}
		before = now
	}
	s.settle(c, 3, a, b)
	edited("done", false)
	for _, op := range []struct {
		name string
		do   func() (int, error)
		want bool
	}{
		{"retry of nothing", func() (int, error) { return s.j.Retry(s.ctx(), journal.Filter{Position: 99}) }, false},
		{"retry", func() (int, error) { return s.j.Retry(s.ctx(), journal.Filter{Position: ds[0].Position}) }, true},
		{"park", func() (int, error) { return l.Park(s.ctx(), journal.Filter{Position: ds[0].Position}) }, true},
		{"drop", func() (int, error) { return s.j.Drop(s.ctx(), journal.Filter{Position: ds[1].Position}) }, true},
	} {
		if n, err := op.do(); (n == 1) != op.want || err != nil {
			t.Errorf("%s: %d, %v", op.name, n, err)
		}
		edited(op.name, op.want)
	}
	a.State, a.On, a.Next = journal.Dead, "", time.Time{}
	same(t, "entries", s.entries(journal.Filter{}), []journal.Entry{a})
}

func testAmend(t *testing.T, s *suite) {
	l, ok := s.lanes()
	if !ok {
		return
	}
	ds := s.append(5)
	c := s.consumer("rows")
	amender, ok := c.(journal.Amender)
	if !ok {
		t.Fatal("the journal is a journal.Lanes, and its consumer no journal.Amender")
	}
	settled, changed, dropped := waiting("rows", ds[0], 0, start), waiting("rows", ds[1], 0, start), waiting("rows", ds[2], 0, start)
	parked := waiting("rows", ds[4], 0, start)
	s.settle(c, 5, settled, changed, dropped, parked)
	if _, err := s.j.Drop(s.ctx(), journal.Filter{Position: ds[2].Position}); err != nil {
		t.Fatal(err)
	}
	if n, err := l.Park(s.ctx(), journal.Filter{Position: ds[4].Position}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	failed := parked
	parked.State, parked.On, parked.Next = journal.Dead, "", time.Time{}
	changed.State, changed.Next, changed.Attempts, changed.Reason = journal.Dead, time.Time{}, 7, "enough"
	changed.Since = changed.Since.Add(time.Hour)
	fresh := waiting("rows", ds[3], 2, start)
	bad := fresh
	bad.State = journal.Settled
	if err := amender.Amend(s.ctx(), journal.Amendment{Settled: []event.Ref{settled.Ref}, New: []journal.Entry{bad}}); err == nil {
		t.Error("an entry was taken that is settled")
	}
	err := amender.Amend(s.ctx(), journal.Amendment{Settled: []event.Ref{settled.Ref}, Changed: []journal.Entry{changed, dropped, failed}, New: []journal.Entry{fresh}})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "entries", s.entries(journal.Filter{}), []journal.Entry{changed, fresh, parked})
	s.state("rows", settled.Ref, journal.Settled)
	s.reopen()
	same(t, "entries after reopening", s.entries(journal.Filter{}), []journal.Entry{changed, fresh, parked})
	if err := amender.Amend(s.ctx(), journal.Amendment{Settled: []event.Ref{parked.Ref}}); err == nil {
		t.Error("a consumer that was closed amends")
	}
	again, ok := s.consumer("rows").(journal.Amender)
	if !ok {
		t.Fatal("no Amender")
	}
	if err := again.Amend(s.ctx(), journal.Amendment{Settled: []event.Ref{parked.Ref}}); err != nil { // its try was through after all
		t.Fatal(err)
	}
	same(t, "entries", s.entries(journal.Filter{}), []journal.Entry{changed, fresh})
}

// Entries of one key, a page at a time.
func testPages(t *testing.T, s *suite) {
	ds := s.append(6)
	c := s.consumer("rows")
	var es, of []journal.Entry
	for i, d := range ds {
		for n := range 2 {
			e := waiting("rows", d, n, start)
			if e.Key = "even"; i%2 == 1 {
				e.Key = "odd"
			}
			if es = append(es, e); e.Key == "odd" {
				of = append(of, e)
			}
		}
	}
	s.settle(c, 6, es...)
	for _, consumer := range []string{"", "rows"} {
		var got []journal.Entry
		f := journal.Filter{Consumer: consumer, Key: "odd", Limit: 4}
		for {
			page := s.entries(f)
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
			f.After = page[len(page)-1].Ref
		}
		same(t, "entries of the key", got, of)
	}
	same(t, "after an event", s.entries(journal.Filter{After: es[9].Ref}), es[10:])
	if n, err := s.j.Drop(s.ctx(), journal.Filter{Key: "even", After: es[1].Ref}); n != 4 || err != nil {
		t.Errorf("dropped %d, %v", n, err)
	}
}
