package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// ErrStopped says that a runner was stopped.
var ErrStopped = errors.New("stopped")

// landing is a batch on its way into the sink.
type landing struct {
	r *Runner
	w *work
	// alike counts single changes blamed in a row for the same reason, last.
	alike int
	last  string
}

// land writes all that can be written of a batch, and judges the rest. It fails
// only when the runner stops.
func (r *Runner) land(ctx context.Context, w *work) error {
	l := &landing{r: r, w: w}
	for _, f := range w.folded {
		if err := l.land(ctx, f); err != nil {
			return err
		}
	}
	w.folded = nil
	return nil
}

// land applies changes together, and where they fail through a fault of their
// own it looks for the culprits and applies the others.
func (l *landing) land(ctx context.Context, f folded) error {
	if len(f.units) == 0 {
		return nil
	}
	res, fault, err := l.try(ctx, f)
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
	if err := l.land(ctx, l.r.fold(rest)); err != nil {
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

// apart lands units in two parts: by table where there are several, else by
// halves.
func (l *landing) apart(ctx context.Context, units []unit) error {
	first, second := halves(units)
	if err := l.land(ctx, l.r.fold(first)); err != nil {
		return err
	}
	return l.land(ctx, l.r.fold(second))
}

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

// accusation is the changes of one row that a sink found at fault.
type accusation struct {
	units []unit
	err   error
	stub  bool // the row is a parent's, of which only the key is known
}

// accuse splits units by what a sink says of their rows. An error that names no
// rows accuses nobody.
func accuse(units []unit, fault error) (accused []accusation, rest []unit) {
	var be *sink.BatchError
	if !errors.As(fault, &be) {
		return nil, units
	}
	rest = units
	for _, re := range be.Rows {
		if re.Table == nil || re.Row == nil || re.Err == nil {
			continue
		}
		a := accusation{err: re.Err, stub: isStub(re.Row)}
		var others []unit
		for _, u := range rest {
			if contributes(u.change, re.RowRef) {
				a.units = append(a.units, u)
			} else {
				others = append(others, u)
			}
		}
		if len(a.units) > 0 {
			accused, rest = append(accused, a), others
		}
	}
	return accused, rest
}

func isStub(r *merge.Row) bool {
	return !slices.ContainsFunc(r.Cells, func(c merge.Cell) bool { return c.Set })
}

// contributes tells whether a change is part of a folded row.
func contributes(c *merge.Change, ref sink.RowRef) bool {
	if c.Table == ref.Table.Table && c.Key == ref.Row.Key && c.IfMissing == ref.Row.IfMissing {
		return ref.Row.Occupant == nil || c.Occupant != nil && c.Occupant.ID == ref.Row.Occupant.ID
	}
	return slices.ContainsFunc(c.Parents, func(p merge.Parent) bool {
		return p.Table == ref.Table.Table && p.Key == ref.Row.Key
	})
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

// landed counts what was written, and lets those wait whose row is not there.
func (l *landing) landed(f folded, res *sink.Result) {
	l.last, l.alike = "", 0
	l.w.stats.Written += int64(res.Written)
	l.w.stats.Unchanged += int64(res.Unchanged)
	for _, ref := range res.Absent {
		for _, u := range f.units {
			if contributes(u.change, ref) {
				l.w.items[u.item].add(l.r.absent(u.change))
			}
		}
	}
	if res.Written > 0 {
		l.r.waits.written(f.batch)
	}
}

// fits tells whether a change fits the live columns of its table, read again
// before a change is turned away: a person may just have altered them.
func (r *Runner) fits(ctx context.Context, c *merge.Change) (verdict, error) {
	for _, p := range c.Parents {
		if _, ok := r.rank[p.Table]; !ok {
			return r.strange(c, p.Table), nil
		}
	}
	i, ok := r.rank[c.Table]
	if !ok {
		return r.strange(c, c.Table), nil
	}
	for again := false; ; again = true {
		live, fresh, err := r.live(ctx, i, again)
		if err != nil {
			return verdict{}, err
		}
		if !live.Exists {
			return verdict{}, nil // the sink tells, and the change is kept until there is a table
		}
		misfit := compile.Fit(live, c)
		if misfit == nil {
			return verdict{}, nil
		}
		if fresh {
			return verdict{
				state: journal.Dead, table: c.Table.Name, key: c.Table.Show(c.Key),
				reason: fmt.Sprintf("%s.%v. Alter the column, or the mapping, and run: hookfold dead retry %d", c.Table.Name, misfit, c.From.Position),
			}, nil
		}
	}
}

func (r *Runner) strange(c *merge.Change, t *merge.Table) verdict {
	return verdict{state: journal.Dead, table: c.Table.Name, key: c.Table.Show(c.Key),
		reason: fmt.Sprintf("%s: table %s is not one of target %s. This is a fault of Hookfold: please report it", c.Table.Name, t.Name, r.o.Target)}
}
