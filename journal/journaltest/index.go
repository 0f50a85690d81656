package journaltest

import (
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// find asks a store that is an Indexer; a store need not be one.
func (s *suite) find(consumer string, plan uint64, rows ...uint32) (journal.Found, bool) {
	s.t.Helper()
	ix, ok := s.j.(journal.Indexer)
	if !ok {
		return journal.Found{}, false
	}
	found, err := ix.Find(s.ctx(), consumer, plan, rows)
	if err != nil {
		s.t.Fatal("find:", err)
	}
	return found, true
}

// doneWith is done with a batch whose deliveries are each about the rows given
// for their positions.
func (s *suite) doneWith(c journal.Consumer, b *journal.Batch, plan uint64, rows map[event.Position][]uint32, unsettled ...journal.Entry) {
	s.t.Helper()
	b.Touches = &journal.Touches{Plan: plan}
	for _, d := range b.Deliveries {
		for _, row := range rows[d.Position] {
			b.Touches.Rows = append(b.Touches.Rows, journal.Touch{Row: row, Position: d.Position})
		}
	}
	s.done(c, b, unsettled...)
}

func testIndex(t *testing.T, s *suite) {
	ds := s.append(12)
	at := func(i int) event.Position { return ds[i].Position }
	c := s.consumer("rows")
	const high = 1<<32 - 1
	first := s.nextAll(c, 4)
	for _, b := range first {
		s.doneWith(c, b, 7, map[event.Position][]uint32{at(0): {5, high, 5}, at(1): {9}, at(3): {5, 0}})
	}
	for _, b := range s.nextAll(c, 4) { // of another plan
		s.doneWith(c, b, 8, map[event.Position][]uint32{at(4): {5}})
	}
	for _, b := range s.nextAll(c, 2) { // of none
		s.done(c, b)
	}
	for _, b := range s.nextAll(c, 2) {
		s.doneWith(c, b, 7, map[event.Position][]uint32{at(11): {9}})
	}
	check := func() {
		t.Helper()
		for _, x := range []struct {
			rows []uint32
			want []event.Position
		}{
			{[]uint32{5}, []event.Position{at(0), at(3)}},
			{[]uint32{9}, []event.Position{at(1), at(11)}},
			{[]uint32{high}, []event.Position{at(0)}},
			{[]uint32{9, 0, 9}, []event.Position{at(1), at(3), at(11)}},
			{[]uint32{6}, nil},
		} {
			found, ok := s.find("rows", 7, x.rows...)
			if !ok {
				return
			}
			same(t, "positions", found.Positions, x.want)
			same(t, "indexed", found.Indexed, []journal.Range{{First: at(0), Last: at(3)}, {First: at(10), Last: at(11)}})
		}
		if found, ok := s.find("others", 7, 5); ok && (found.Positions != nil || found.Indexed != nil) {
			t.Errorf("another consumer has %+v", found)
		}
	}
	check()
	s.retain(journal.Retention{Age: 24 * time.Hour}, start) // removes nothing, but may tidy
	check()
	s.reopen()
	check()
}

func testIndexRetry(t *testing.T, s *suite) {
	ds := s.append(2)
	c := s.consumer("rows")
	entry := waiting("rows", ds[0], 0, start)
	for _, b := range s.nextAll(c, 2) {
		s.doneWith(c, b, 7, map[event.Position][]uint32{ds[1].Position: {5}}, entry)
	}
	b := s.due(c, start.Add(time.Hour), 10)
	s.doneWith(c, b, 7, map[event.Position][]uint32{ds[0].Position: {6}})
	for row, want := range map[uint32]event.Position{5: ds[1].Position, 6: ds[0].Position} {
		if found, ok := s.find("rows", 7, row); ok {
			same(t, "positions", found.Positions, []event.Position{want})
			same(t, "indexed", found.Indexed, []journal.Range{{First: ds[0].Position, Last: ds[1].Position}})
		}
	}
	// What was tried again by another plan is no more than an addition there.
	if found, ok := s.find("rows", 8, 6); ok && found.Indexed != nil {
		t.Errorf("the other plan knows everything of %v", found.Indexed)
	}
}

func testIndexRetain(t *testing.T, s *suite) {
	ds := s.append(10) // a second apart
	c := s.consumer("rows")
	for n := range ds { // one by one, so that there is something to join
		b := s.next(c, 1)
		s.doneWith(c, b, 7, map[event.Position][]uint32{ds[n].Position: {5, uint32(n)}})
	}
	s.retain(journal.Retention{Age: time.Hour}, ds[4].Received.Add(time.Hour))
	found, ok := s.find("rows", 7, 5)
	if !ok {
		return
	}
	same(t, "positions of what is left", found.Positions[len(found.Positions)-6:], positions(ds[4:]))
	if n := len(found.Indexed); n != 1 || found.Indexed[0].Last != ds[9].Position || found.Indexed[0].First > ds[4].Position {
		t.Errorf("indexed %v", found.Indexed)
	}
}
