package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// ErrStopped says that a runner was stopped.
var ErrStopped = errors.New("stopped")

// landing is a batch on its way into the sink.
type landing struct {
	r *Runner
	w *work
	// waits tells that changes wait for parents; asked are the parents that the
	// sink was asked for, deferred the changes whose parents did not land.
	waits    bool
	asked    map[rowID]bool
	deferred []unit
	// parked tells that it was tried to let rows swap unique values.
	parked bool
	// alike counts single changes blamed in a row for the same reason, last.
	alike int
	last  string
}

// landAll lands a batch, and maps the rest of it piece by piece. It fails only
// when the runner stops.
func (r *Runner) landAll(ctx context.Context, w *work) error {
	for {
		if err := r.land(ctx, w); err != nil || len(w.rest) == 0 {
			return err
		}
		if err := r.complete(ctx, w); err != nil {
			return err
		}
	}
}

// land writes all that can be written of a batch, and judges the rest. It fails
// only when the runner stops.
func (r *Runner) land(ctx context.Context, w *work) error {
	l := &landing{r: r, w: w, asked: map[rowID]bool{}}
	if w.folded != nil {
		for _, f := range w.folded {
			l.parked = false
			if err := l.land(ctx, f); err != nil {
				return err
			}
		}
		w.folded = nil
		return nil
	}
	l.waits = true
	for pending := w.units; len(pending) > 0; {
		ready, rest, err := l.ready(ctx, pending)
		if err != nil {
			return err
		}
		if len(ready) == 0 {
			l.unready(rest)
			return nil
		}
		l.deferred = rest
		for _, units := range r.parts(w, ready) {
			l.parked = false
			if err := l.part(ctx, units); err != nil {
				return err
			}
		}
		pending = l.deferred
	}
	return nil
}

// parts cuts changes into what is tried in a transaction each: the changes of
// events that wait for each other by themselves, the others as many as one may
// hold.
func (r *Runner) parts(w *work, units []unit) [][]unit {
	circles := map[int][]unit{}
	others := units
	if w.retried {
		others = nil
		for _, u := range units {
			if n := r.waits.circleOf(w.items[u.item].ref); n > 0 {
				circles[n] = append(circles[n], u)
				continue
			}
			others = append(others, u)
		}
	}
	var parts [][]unit
	for _, n := range slices.Sorted(maps.Keys(circles)) {
		parts = append(parts, circles[n])
	}
	return slices.AppendSeq(parts, slices.Chunk(others, r.o.Changes))
}

// unready judges changes whose parents are not known.
func (l *landing) unready(units []unit) {
	now := l.r.o.Now()
	for _, u := range units {
		it := &l.w.items[u.item]
		since := now
		if it.prior != nil {
			since = it.prior.Since
		}
		it.add(l.r.unready(u, since, now))
	}
}

// part lands those of some changes whose parents are known or among them; the
// others are left for later.
func (l *landing) part(ctx context.Context, units []unit) error {
	if l.waits {
		ready, rest := l.standing(units)
		l.deferred = append(l.deferred, rest...)
		units = ready
	}
	return l.land(ctx, l.r.fold(units))
}

// land applies changes together, and where they fail through a fault of their
// own it looks for the culprits and applies the others.
func (l *landing) land(ctx context.Context, f folded) error {
	if len(f.units) == 0 {
		return nil
	}
	res, fault, err := l.try(ctx, f)
	if err == nil && unique(fault) && len(f.units) > 1 && !l.parked {
		// Perhaps rows take values from each other.
		l.parked, f.batch.Park = true, true
		res, fault, err = l.try(ctx, f)
	}
	if err != nil {
		return err
	}
	if fault == nil {
		l.landed(f, res)
		return nil
	}
	if len(f.units) == 1 {
		l.blame(f.units[0], fault)
		return nil
	}
	if l.hopeless(f.units, fault) {
		for _, u := range f.units {
			l.blame(u, fault)
		}
		return nil
	}
	accused, rest := accuse(f.units, fault)
	if len(accused) == 0 {
		return l.apart(ctx, f.units)
	}
	if err := l.part(ctx, rest); err != nil {
		return err
	}
	for _, a := range accused {
		switch {
		case len(a.units) == 1 || a.stub:
			// What a parent's key alone does wrong, it does wrong for each child.
			for _, u := range a.units {
				l.blame(u, a.err)
			}
		default:
			if err := l.apart(ctx, a.units); err != nil {
				return err
			}
		}
	}
	return nil
}

// unique tells whether a fault is, among others, that other rows have unique
// values.
func unique(fault error) bool {
	var be *sink.BatchError
	if errors.As(fault, &be) {
		return slices.ContainsFunc(be.Rows, func(re sink.RowError) bool { return re.Err != nil && re.Err.Why == sink.UniqueValue })
	}
	var e *sink.Error
	return errors.As(fault, &e) && e.Why == sink.UniqueValue
}

// apart lands units in two parts: by table where there are several, else by
// halves; or one by one where most of them turn out to be at fault.
func (l *landing) apart(ctx context.Context, units []unit) error {
	if l.alike >= enough && len(units) <= few {
		for i := range units {
			if err := l.part(ctx, units[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	first, second := halves(units)
	if err := l.part(ctx, first); err != nil {
		return err
	}
	return l.part(ctx, second)
}

// few is how many changes are tried one by one while one after the other is at
// fault: halving them would take twice as many transactions.
const few = 64

// halves cuts at least two units in two parts, neither of them empty.
func halves(units []unit) (first, second []unit) {
	for _, u := range units {
		if u.change.Table == units[0].change.Table {
			first = append(first, u)
		} else {
			second = append(second, u)
		}
	}
	if len(second) == 0 {
		return units[:len(units)/2], units[len(units)/2:]
	}
	return first, second
}

// try applies a batch until it is in, until it fails through its own fault, or
// until the runner stops. While the target is at fault it backs off.
func (l *landing) try(ctx context.Context, f folded) (res *sink.Result, fault, err error) {
	r := l.r
	for n := 1; ; n++ {
		res, err := r.apply(ctx, f.batch)
		if err == nil {
			r.up()
			return res, nil, nil
		}
		if ctx.Err() != nil {
			return nil, nil, ErrStopped
		}
		if !transient(err) {
			r.up()
			return nil, err, nil
		}
		r.health.down(err)
		if r.o.Observer != nil {
			r.o.Observer.Fault(r.o.Target)
		}
		if (n >= r.o.Stubborn || r.stubborn()) && r.o.Sink.Ping(ctx) == nil {
			// The target answers, and still this batch fails: some of its
			// changes may be the cause, whatever the error says.
			r.stubbornUntil.Store(r.o.Now().Add(stubbornFor).UnixNano())
			return nil, &stubborn{err}, nil
		}
		pause := max(r.o.Backoff.Pause(n, rand.Float64()), after(err))
		r.log.Line(slog.LevelWarn, "down", func() string {
			return fmt.Sprintf("down  %s: %v. Try %d; the next in %s. Deliveries are received and kept meanwhile.", r.o.Target, err, n, pause.Round(time.Millisecond))
		})
		if !r.pause(pause) {
			return nil, nil, ErrStopped
		}
	}
}

// up takes down that the target answered, and tells if that is news.
func (r *Runner) up() {
	if was := r.health.up(); was.Tries > 0 {
		r.log.Line(slog.LevelInfo, "up", func() string {
			return fmt.Sprintf("up    %s: takes batches again, after %s", r.o.Target, r.o.Now().Sub(was.Since).Round(time.Second))
		})
	}
}

// apply is Sink.Apply; a panic in it is a fault of the batch.
func (r *Runner) apply(ctx context.Context, b *sink.Batch) (res *sink.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = nil, &sink.Error{Action: sink.Reject, Message: fmt.Sprintf("writing it panicked: %v. This is a fault of Hookfold: please report it with the event", p)}
		}
	}()
	res, err = r.o.Sink.Apply(ctx, b)
	if err == nil && res == nil {
		res = &sink.Result{}
	}
	return res, err
}

// stubbornFor is how long, after a batch had to be taken apart for a fault of
// the target's own, the next such fault takes its batch apart at once.
const stubbornFor = 5 * time.Minute

func (r *Runner) stubborn() bool { return r.o.Now().UnixNano() < r.stubbornUntil.Load() }

// stubborn is a fault of the target that meets some changes and not others.
type stubborn struct{ error }

func (e *stubborn) Unwrap() error { return e.error }

// transient tells whether the same batch is to be tried again.
func transient(err error) bool {
	var be *sink.BatchError
	if errors.As(err, &be) {
		return len(be.Rows) > 0 && !slices.ContainsFunc(be.Rows, func(re sink.RowError) bool {
			return re.Err != nil && re.Err.Action != sink.Retry
		})
	}
	return sink.ActionOf(err) == sink.Retry
}

func after(err error) time.Duration {
	var e *sink.Error
	if errors.As(err, &e) {
		return min(e.After, 5*time.Minute)
	}
	return 0
}

// enough is how many single changes in a row must have to wait for one reason
// before the rest of their part is left to wait untried.
const enough = 4

// hopeless tells whether trying single changes on is a waste: a fault of the
// target's own that goes on meeting them, or changes of one row that all have
// to wait for the same. They are left to wait, and so are tried again; none is
// dead untried.
func (l *landing) hopeless(units []unit, fault error) bool {
	if l.alike < enough || fault.Error() != l.last || sink.ActionOf(first(fault)) == sink.Reject {
		return false
	}
	var s *stubborn
	return errors.As(fault, &s) || !slices.ContainsFunc(units, func(u unit) bool {
		return u.change.Table != units[0].change.Table || u.change.Key != units[0].change.Key
	})
}

// first is the first of the errors of a batch, or the error itself.
func first(err error) error {
	var be *sink.BatchError
	if errors.As(err, &be) && len(be.Rows) > 0 && be.Rows[0].Err != nil {
		return be.Rows[0].Err
	}
	return err
}

// blame gives a change the verdict of an error.
func (l *landing) blame(u unit, err error) {
	if text := err.Error(); text == l.last {
		l.alike++
	} else {
		l.last, l.alike = text, 1
	}
	l.w.items[u.item].add(l.r.judge(u.change, err))
}

// landed counts what was written, lets those wait whose row is not there, and
// wakes who waits for what was written.
func (l *landing) landed(f folded, res *sink.Result) {
	r := l.r
	l.last, l.alike = "", 0
	l.w.stats.Written += int64(res.Written)
	l.w.stats.Unchanged += int64(res.Unchanged)
	absent := map[*merge.Change]bool{}
	for _, ref := range res.Absent {
		for _, u := range f.units {
			if contributes(u.change, ref) {
				absent[u.change] = true
				l.w.items[u.item].add(r.absent(u.change))
			}
		}
	}
	if r.o.Landed != nil {
		var in []*merge.Change
		for _, u := range f.units {
			if !absent[u.change] {
				in = append(in, u.change)
			}
		}
		r.o.Landed(in)
	}
	if r.known.any() {
		for _, u := range f.units {
			r.makes(u.change, r.known.add)
		}
	}
	if res.Written > 0 {
		r.waits.written(r.writing(f.batch))
	}
}

// writing names the rows of a batch.
func (r *Runner) writing(b *sink.Batch) *writing {
	w := &writing{}
	for _, g := range b.Groups {
		table := r.rank[g.Table.Table]
		w.tables = append(w.tables, table)
		for _, row := range g.Rows {
			w.rows = append(w.rows, rowID{table, row.Key})
		}
		if len(g.Sets) > 0 {
			w.lists = append(w.lists, table)
		}
	}
	return w
}
