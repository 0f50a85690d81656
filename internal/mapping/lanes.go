package mapping

import (
	"fmt"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Lane is a lane at run time. Its key and version are found as those of a row
// are: it is mapped as if it were a table of keys, in a place of its own.
type Lane struct {
	Name   string
	Config *config.Lane
	Source *Source
	// Mapping gives key and version; nil if the source is broken.
	Mapping *Mapping
	// Args gives the parameters of the lane's statement, in the order of
	// Config.SQL.With.
	Args []*Expr
}

// Consumer is the name of the lane's consumer of the journal.
func (l *Lane) Consumer() string { return LanePrefix + l.Name }

// Statement is what a lane with sql: runs; its parameters are the places of With.
func (l *Lane) Statement() *sink.OwnStatement {
	own := &sink.OwnStatement{Parts: l.Config.SQL.Statement.Parts}
	for _, name := range l.Config.SQL.Statement.Places {
		for i, a := range l.Config.SQL.With {
			if a.Column.Text == name {
				own.Places = append(own.Places, i)
			}
		}
	}
	return own
}

// LanePrefix begins the names of the lanes' consumers. No target's name can
// begin so.
const LanePrefix = "lane:"

// Ordered is an event as a lane takes it.
type Ordered struct {
	Key string
	// Version is "" where the order is that of acceptance.
	Version merge.Version
}

const laneKey = "key"

// lane compiles a lane.
func (c *compiler) lane(cfg *config.Lane) {
	s := c.plan.Source(cfg.From.Text)
	if s == nil || s.broken {
		return // reported: it is not a source, or the source itself is wrong
	}
	l := &Lane{Name: cfg.Text, Config: cfg, Source: s}
	c.plan.Lanes = append(c.plan.Lanes, l)
	if !s.HasID() {
		c.problems.Add(config.Error, cfg.From.Pos, cfg.From.Path,
			"events of %s have no identity, by which your code could know one that comes again. Give sources.%s an id:, what tells one event from every other.", s.Name, s.Name)
	}
	name := config.Name{Text: LanePrefix + cfg.Text, Pos: cfg.Pos, Path: cfg.Path}
	m := &config.Mapping{
		Pos: cfg.Pos, Path: cfg.Path, From: cfg.From, Types: cfg.Types, When: cfg.When, Version: cfg.Version,
		Key: []config.Assignment{{Column: config.Name{Text: laneKey, Pos: cfg.Key.Pos, Path: cfg.Key.Path}, Expr: cfg.Key}},
	}
	table := &config.Table{Name: name, Target: name, Physical: name, Key: []config.Column{{Name: config.Name{Text: laneKey}}}, Events: []*config.Mapping{m}}
	t := &Table{Table: sink.Table{Table: mergeTable(table), Name: name.Text}, Target: name.Text, Config: table}
	c.mapping(t, 0, m)
	l.Mapping = t.Mappings[0]
	l.Mapping.versioned = cfg.ByVersion
	for _, p := range l.Mapping.Version {
		if p.Kind == 0 {
			p.Kind = sampledKind(l.Mapping, p.Expr)
		}
	}
	if cfg.SQL == nil {
		return
	}
	for _, a := range cfg.SQL.With {
		e := c.compile(s, a.Expr, expr.ForMapping)
		c.never(e, "a parameter")
		l.Args = append(l.Args, e)
	}
	l.Mapping.beside = l.Args
}

// Order tells whether a lane takes an event, and with which key and version. A
// reason tells why it would take it and cannot.
func (p *Plan) Order(l *Lane, e *event.Event) (o Ordered, wanted bool, reason string) {
	if e.Delivery.Source != l.Source.Name {
		return o, false, ""
	}
	out := p.Map(e, l.Consumer())
	switch {
	case len(out.Faults) > 0:
		return o, true, out.Faults[0].Reason
	case len(out.Changes) == 0:
		return o, false, ""
	case e.ID == "":
		return o, true, fmt.Sprintf("it has no identity (sources.%s.id) to know it by when it comes again", l.Source.Name)
	}
	c := out.Changes[0]
	if o = (Ordered{Key: c.Key.Parts()[0], Version: c.Version}); o.Key == "" {
		return o, true, "its key is an empty text. Events without a key belong in a when:."
	}
	return o, true, ""
}

// Values gives the parameters of a lane's statement for an event.
func (p *Plan) Values(l *Lane, e *event.Event) ([]sink.Arg, error) {
	s := l.Source
	v := &evaluation{results: make([]evaluated, s.slots)}
	v.begin(s, e, &Outcome{})
	args := make([]sink.Arg, len(l.Args))
	for i, x := range l.Args {
		r := v.eval(x)
		err := r.err
		if err == nil {
			args[i], err = v.arg(r)
		}
		if err != nil {
			return nil, fmt.Errorf("with.%s: %w", l.Config.SQL.With[i].Column.Text, err)
		}
	}
	return args, nil
}

// arg makes a parameter of a result, by its own kind.
func (v *evaluation) arg(r *evaluated) (sink.Arg, error) {
	if isNothing(r.val) {
		return sink.Arg{Value: merge.NullValue}, nil
	}
	t := merge.Type{Kind: argKind(r.val)}
	val, _, err := v.valuer.value(t, r.val, r.bad)
	if err != nil && t.Kind == merge.Int { // more than 64 bits, or a fraction
		t.Kind = merge.Numeric
		val, _, err = v.valuer.value(t, r.val, r.bad)
	}
	return sink.Arg{Kind: t.Kind, Value: val}, err
}

func argKind(v ref.Val) merge.TypeKind {
	switch v.(type) {
	case types.Bool:
		return merge.Bool
	case types.Int, *expr.Number:
		return merge.Int
	case types.Timestamp:
		return merge.Timestamp
	case types.Bytes:
		return merge.Bytes
	case traits.Lister, traits.Mapper:
		return merge.JSON
	}
	return merge.Text
}
