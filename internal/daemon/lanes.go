package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/lane"
	"github.com/hookfold/hookfold/internal/lane/post"
	"github.com/hookfold/hookfold/internal/lane/run"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/sink"
)

// openLanes makes the runners of the lanes; nothing runs yet.
func (d *Daemon) openLanes() error {
	for _, l := range d.plan.Lanes {
		r, err := d.lane(l)
		if err != nil {
			return fmt.Errorf("lane %s: %w", l.Name, err)
		}
		d.lanes = append(d.lanes, r)
	}
	return nil
}

func (d *Daemon) lane(l *mapping.Lane) (*run.Runner, error) {
	lanes, ok := d.journal.(laneJournal)
	if !ok {
		return nil, errors.New("this journal keeps no lanes")
	}
	c := l.Config
	o := run.Options{
		Name: l.Name, Consumer: l.Consumer(), Source: l.Source.Name, Journal: lanes,
		Events:  l.Source.Events,
		Order:   func(e *event.Event) (mapping.Ordered, bool, string) { return d.plan.Order(l, e) },
		Lines:   lane.Options{Concurrency: c.Concurrency, ByVersion: c.ByVersion, Hold: c.Hold},
		Policy:  lane.Policy{Retry: c.Retry, Parks: c.Parks},
		Timeout: c.Timeout, History: c.History, Log: d.o.Log, Observer: d.metrics,
	}
	if c.Settled {
		o.Settled = d.settledIn(d.readersOf(l.Source.Name))
	}
	if c.SQL != nil {
		once, ok := d.sinks[c.SQL.Target.Text].(sink.Once)
		if !ok {
			return nil, fmt.Errorf("target %s cannot run statements", c.SQL.Target.Text)
		}
		o.Deliver = newStatement(d.plan, l, once)
		return run.New(o), nil
	}
	p := post.New(post.Options{Post: c.Post, Timeout: c.Timeout, Connections: c.Concurrency})
	d.posters = append(d.posters, p)
	o.Deliver, o.Guard = p, true
	return run.New(o), nil
}

// laneJournal is a journal that keeps lanes.
type laneJournal interface {
	journal.Journal
	journal.Lanes
}

// readersOf returns the targets that have a table which reads a source.
func (d *Daemon) readersOf(source string) []string {
	return slices.DeleteFunc(d.plan.Targets(), func(target string) bool {
		return !slices.ContainsFunc(d.plan.Tables, func(t *mapping.Table) bool {
			return t.Target == target && slices.ContainsFunc(t.Mappings, func(m *mapping.Mapping) bool { return m.Source.Name == source })
		})
	})
}

// settledIn asks whether an event is settled in all of some targets.
func (d *Daemon) settledIn(targets []string) func(context.Context, event.Ref) (bool, string, error) {
	return func(ctx context.Context, r event.Ref) (bool, string, error) {
		for _, target := range targets {
			state, err := d.journal.State(ctx, target, r)
			switch {
			case err != nil:
				return false, "", err
			case state == journal.Settled:
				continue
			case state == journal.Pending:
				return false, "its rows are not yet written in " + target, nil
			}
			return false, fmt.Sprintf("its rows are %s in %s, and with them its key here: hookfold %s show %d", state, target, state, r.Position), nil
		}
		return true, "", nil
	}
}

// statement gives the events of a lane to a statement.
type statement struct {
	plan *mapping.Plan
	lane *mapping.Lane
	once sink.Once
	own  *sink.OwnStatement
}

func newStatement(plan *mapping.Plan, l *mapping.Lane, once sink.Once) *statement {
	return &statement{plan: plan, lane: l, once: once, own: l.Statement()}
}

// Deliver implements run.Deliverer.
func (s *statement) Deliver(ctx context.Context, m *lane.Message) lane.Answer {
	args, err := s.plan.Values(s.lane, m.Event)
	if err != nil {
		return lane.Answer{Reason: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, s.lane.Config.Timeout)
	defer cancel()
	d := m.Event.Delivery
	_, err = s.once.RunOnce(ctx, s.own, sink.OnceEvent{
		Lane: m.Lane, ID: m.ID(), Key: m.Key, Position: int64(d.Position), Received: d.Received.UnixMicro(),
	}, args)
	var e *sink.Error
	switch {
	case err == nil:
		return lane.Answer{OK: true}
	case errors.As(err, &e) && e.Action == sink.Retry && ctx.Err() == nil:
		return lane.Answer{Down: true, Reason: err.Error()}
	}
	return lane.Answer{Reason: err.Error()}
}

// LaneHealth tells how a lane is.
type LaneHealth struct {
	Name string `json:"name"`
	Up   bool   `json:"up"`
	// Error tells why nothing goes, Since when that began.
	Error string     `json:"error,omitempty"`
	Since *time.Time `json:"since,omitempty"`
	// Paused tells that a person has to resume it.
	Paused bool `json:"paused"`
	// Pending counts deliveries not yet done, Oldest is the receipt of the oldest.
	Pending int64      `json:"pending"`
	Oldest  *time.Time `json:"oldest,omitempty"`
	// StuckKeys wait for their first event, which has failed or waits itself; of
	// these DeadKeys wait for a person.
	StuckKeys int `json:"stuck_keys"`
	DeadKeys  int `json:"dead_keys"`
}

func (d *Daemon) laneHealth(ctx context.Context) []LaneHealth {
	out := []LaneHealth{}
	for i, r := range d.lanes {
		h, st := r.Health(), r.State()
		x := LaneHealth{
			Name: d.plan.Lanes[i].Name, Up: h.Up, Error: h.Error, Since: at(h.Since),
			Paused: st.Paused != "", StuckKeys: st.Stuck, DeadKeys: st.Dead,
		}
		pending, oldest, err := r.Lag(ctx)
		if err != nil && x.Error == "" {
			x.Error = err.Error()
		}
		x.Pending, x.Oldest = pending, at(oldest)
		out = append(out, x)
	}
	return out
}

// measureLanes adds the gauges of the lanes.
func (d *Daemon) measureLanes() {
	for i, r := range d.lanes {
		labels := map[string]string{"lane": d.plan.Lanes[i].Name}
		d.metrics.Gauge("lane_pending_deliveries", "Deliveries that are not yet done for a lane.", labels, func() float64 {
			n, _, err := r.Lag(context.Background())
			if err != nil {
				return -1
			}
			return float64(n)
		})
		d.metrics.Gauge("lane_lag_seconds", "Age of the oldest delivery that is not yet done for a lane; 0 if there is none.", labels, func() float64 {
			_, oldest, err := r.Lag(context.Background())
			if err != nil || oldest.IsZero() {
				return 0
			}
			return time.Since(oldest).Seconds()
		})
		for name, x := range map[string]struct {
			help string
			of   func(run.State) int
		}{
			"lane_stuck_keys": {"Keys of a lane that wait for their first event, which has failed or waits itself.", func(s run.State) int { return s.Stuck }},
			"lane_dead_keys":  {"Keys of a lane that wait for a person.", func(s run.State) int { return s.Dead }},
			"lane_busy":       {"Tries of a lane that are under way.", func(s run.State) int { return s.Busy }},
			"lane_paused":     {"1 while a lane waits for a person to resume it.", func(s run.State) int { return min(len(s.Paused), 1) }},
		} {
			d.metrics.Gauge(name, x.help, labels, func() float64 { return float64(x.of(r.State())) })
		}
	}
}
