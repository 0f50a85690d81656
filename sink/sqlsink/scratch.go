package sqlsink

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/sink"
)

const (
	// placePrefix begins the name of every place for trials, followed by chance.
	placePrefix = "hookfold_prove_"
	// beatEvery is how often a place is marked as being in use; one that was not
	// marked for deadAfter belongs to nobody any more.
	beatEvery = 10 * time.Second
	deadAfter = 2 * time.Minute
	// placeTimeout bounds what is done about a place when its owner ends.
	placeTimeout = 30 * time.Second
)

// copied is a table to be copied, and how it lives.
type copied struct {
	*sink.Table
	live *sink.Live
}

// place is a place for trials.
type place struct {
	engine engine
	// tables are those that were to be copied, under their names there.
	tables []*sink.Table
	notes  []string
	// empty removes the rows of tables, in this order.
	empty func(ctx context.Context, tables []string) error
	// beat marks it as being in use, and remove removes it with all in it.
	beat, remove func(ctx context.Context) error
}

// placeName makes a name for a place.
func placeName() string {
	var b [8]byte
	rand.Read(b[:])
	return placePrefix + hex.EncodeToString(b[:])
}

// scratch is sink.Scratch.
type scratch struct {
	*sqlSink
	*place
	names  []string // of the tables to be emptied, children first
	cancel context.CancelFunc
	beats  sync.WaitGroup
	once   sync.Once
	closed error
}

// Scratch is sink.Scratcher's.
func (s *sqlSink) Scratch(ctx context.Context, tables []*sink.Table) (sink.Scratch, error) {
	var list []copied
	for _, t := range tables {
		live, err := s.inspect(ctx, t.Name)
		if err != nil {
			return nil, s.judged(err, t.Name)
		}
		if live.ReadOnly != "" {
			return nil, fmt.Errorf("table %s cannot be copied: %s", t.Name, live.ReadOnly)
		}
		list = append(list, copied{t, live})
	}
	p, err := s.place(ctx, list, s.opts)
	if err != nil {
		return nil, s.judged(err, "")
	}
	beating, cancel := context.WithCancel(context.WithoutCancel(ctx))
	x := &scratch{
		sqlSink: &sqlSink{engine: p.engine, opts: s.opts, all: p.tables, tables: map[tableKey]*tableState{}},
		place:   p, cancel: cancel,
	}
	x.beats.Go(func() { x.keepAlive(beating) })
	statements, err := x.Plan(ctx, p.tables)
	if err == nil {
		err = x.Execute(ctx, statements)
	}
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	for _, t := range slices.Backward(p.tables) {
		for _, name := range compile.AllTables(s.dialect(), t) {
			if !slices.Contains(x.names, name) {
				x.names = append(x.names, name)
			}
		}
	}
	return x, nil
}

// Sweep is sink.Scratcher's.
func (s *sqlSink) Sweep(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, placeTimeout)
	defer cancel()
	n, err := s.sweep(ctx)
	if err != nil {
		return n, s.judged(err, "")
	}
	return n, nil
}

// keepAlive marks the place as being in use until ctx ends. A mark that cannot
// be made is made the next time.
func (x *scratch) keepAlive(ctx context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = x.beat(ctx)
		}
	}
}

// Tables is sink.Scratch's.
func (x *scratch) Tables() []*sink.Table { return x.place.tables }

// Notes is sink.Scratch's.
func (x *scratch) Notes() []string { return x.notes }

// Empty is sink.Scratch's.
func (x *scratch) Empty(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, x.opts.BatchTimeout)
	defer cancel()
	if err := x.empty(ctx, x.names); err != nil {
		return x.judged(err, "")
	}
	return nil
}

// Close removes the place.
func (x *scratch) Close() error {
	x.once.Do(func() {
		x.cancel()
		x.beats.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), placeTimeout)
		defer cancel()
		err := x.remove(ctx)
		if err != nil {
			err = fmt.Errorf("remove the tables of a trial: %w. The next prove or serve removes them", err)
		}
		x.closed = errors.Join(err, x.sqlSink.Close())
	})
	return x.closed
}

// within tells whether a table is one of those that are copied.
func within(tables []copied, name string) bool {
	last := func(name string) string {
		parts := compile.SplitTable(name)
		return parts[len(parts)-1]
	}
	return slices.ContainsFunc(tables, func(t copied) bool {
		return name == t.Name || strings.EqualFold(last(name), last(t.Name)) && (len(compile.SplitTable(name)) == 1 || len(compile.SplitTable(t.Name)) == 1)
	})
}

// outside are the tables that foreign keys of a table name and that are not
// copied.
func (t copied) outside(tables []copied) []string {
	var out []string
	for _, f := range t.live.References {
		if !within(tables, f.To) && !slices.Contains(out, f.To) {
			out = append(out, f.To)
		}
	}
	return out
}
