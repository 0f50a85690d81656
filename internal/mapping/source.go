package mapping

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/source"
)

// source makes a source at run time.
func (c *compiler) source(cfg *config.Source) {
	s := &Source{Name: cfg.Text, Config: cfg, mappings: map[string][]*Mapping{}, readBody: bodyReader(cfg)}
	c.plan.Sources = append(c.plan.Sources, s)
	c.plan.bySource[s.Name] = s
	if s.Preset = source.PresetNamed(cfg.Preset.Text); s.Preset == nil {
		if cfg.Preset.Text != "" {
			c.problems.Add(config.Error, cfg.Preset.Pos, cfg.Preset.Path, "%s is not a preset.", cfg.Preset.Text)
		}
		s.broken = true
		return
	}
	before := len(c.problems.List)
	o := options(cfg)
	if e := c.compileRef(nil, cfg.Split, expr.ForSplit); e != nil {
		o.Split = splitHook(e, cfg)
	}
	if e := c.compileRef(nil, cfg.Type, expr.ForEvent); e != nil {
		o.Type = typeHook(e, cfg)
		s.typed = !e.MaybeAbsent
	}
	if e := c.compileRef(nil, cfg.Time, expr.ForEvent|expr.Type); e != nil {
		o.Time = timeHook(e, cfg)
	}
	var id []*Expr
	for _, x := range cfg.ID {
		if e := c.compile(nil, x, expr.ForID); e != nil {
			id = append(id, e)
			s.IDReads |= e.Reads
		}
	}
	if len(id) > 0 {
		o.ID = idHook(id, cfg)
	}
	if e := c.compileRef(nil, cfg.Handshake, expr.ForHandshake); e != nil {
		o.Handshake = handshakeHook(e, cfg)
	}
	s.when = c.compileRef(nil, cfg.When, expr.ForWhen)
	c.wantBool(s.when)
	if len(c.problems.List) > before {
		s.broken = true
		return
	}
	var err error
	if s.Source, err = s.Preset.New(o); err != nil {
		c.problems.Add(config.Error, cfg.Pos, cfg.Path, "%v", err)
		s.broken = true
	}
}

func options(cfg *config.Source) source.Options {
	o := source.Options{
		Name: cfg.Text, VerifyToken: cfg.VerifyToken, Tolerance: cfg.Tolerance, Zone: cfg.Zone, Format: source.Format(cfg.Format),
	}
	for _, s := range cfg.Secrets {
		o.Secrets = append(o.Secrets, source.Secret{Value: s.Value, Until: s.Until})
	}
	if v := cfg.Verify; v != nil {
		o.Verify = source.Scheme{
			Kind: source.SchemeKind(v.Kind), Hash: v.Hash, Header: v.Header, Encoding: v.Encoding, Prefix: v.Prefix, Signed: v.Signed,
			TimestampHeader: v.TimestampHeader, IDHeader: v.IDHeader, Username: v.Username,
		}
	}
	return o
}

// HasTime tells whether the source's events have a time.
func (s *Source) HasTime() bool { return s.Config.Time != nil || s.Preset != nil && s.Preset.HasTime }

// HasID tells whether the source's events have an identity.
func (s *Source) HasID() bool { return len(s.Config.ID) > 0 || s.Preset != nil && s.Preset.HasID }

// value evaluates an expression of a source. What is missing, absent or null is
// nil.
func value(e *Expr, in *expr.Input) (ref.Val, error) {
	v, err := e.Eval(in)
	var missing *expr.MissingError
	switch {
	case errors.As(err, &missing):
		return nil, nil
	case err != nil:
		return nil, err
	case v == expr.Absent || v == types.NullValue:
		return nil, nil
	}
	return v, nil
}

func eventInput(e *event.Event, cfg *config.Source) *expr.Input {
	in := &expr.Input{}
	in.Reset(e, cfg.Zone)
	in.ReadBody = bodyReader(cfg)
	return in
}

func bodyReader(cfg *config.Source) func(*event.Delivery) (event.JSON, error) {
	return func(d *event.Delivery) (event.JSON, error) { return source.ReadBody(d, source.Format(cfg.Format)) }
}

func splitHook(e *Expr, cfg *config.Source) func(*event.Delivery, event.JSON) ([]event.JSON, error) {
	return func(d *event.Delivery, body event.JSON) ([]event.JSON, error) {
		in := &expr.Input{Delivery: d, Body: body, Zone: cfg.Zone}
		v, err := e.Eval(in)
		if err != nil {
			return nil, err
		}
		switch list := v.(type) {
		case *expr.List:
			parts := make([]event.JSON, list.Len())
			for i := range parts {
				parts[i] = list.JSON.At(i)
			}
			return parts, nil
		case traits.Lister: // made by the expression: a part of a list, or a new one
			var parts []event.JSON
			size := 0
			for i := list.Iterator(); i.HasNext() == types.True; {
				text, err := encodeJSON(i.Next())
				if err != nil {
					return nil, err
				}
				if size += len(text); size > maxWritten || len(parts) > source.MaxEvents {
					return nil, fmt.Errorf("%s makes more than %d events, or %d MiB of them: have each hold less", e.Text, source.MaxEvents, maxWritten>>20)
				}
				j, err := event.ParseJSON([]byte(text))
				if err != nil {
					return nil, err
				}
				parts = append(parts, j)
			}
			return parts, nil
		}
		return nil, fmt.Errorf("%s gives %s, not a list of events", e.Text, expr.Describe(v))
	}
}

func typeHook(e *Expr, cfg *config.Source) func(*event.Event) (string, error) {
	return func(ev *event.Event) (string, error) {
		v, err := value(e, eventInput(ev, cfg))
		if v == nil || err != nil {
			return "", err
		}
		return expr.Text(v)
	}
}

func timeHook(e *Expr, cfg *config.Source) func(*event.Event) (time.Time, error) {
	return func(ev *event.Event) (time.Time, error) {
		v, err := value(e, eventInput(ev, cfg))
		if v == nil || err != nil {
			return time.Time{}, err
		}
		at, err := expr.TimeOf(v, cfg.Zone)
		if err != nil {
			return time.Time{}, fmt.Errorf("%s: %w", e.Text, err)
		}
		return at, nil
	}
}

// idParts keeps the parts of an identity apart: "a/b" and "c" is not "a" and
// "b/c".
var idParts = strings.NewReplacer(`\`, `\\`, "/", `\/`)

func idHook(parts []*Expr, cfg *config.Source) func(*event.Event) (string, error) {
	return func(ev *event.Event) (string, error) {
		in := eventInput(ev, cfg)
		in.Apart = true
		var texts []string
		for _, e := range parts {
			v, err := value(e, in)
			if v == nil || err != nil {
				return "", err
			}
			text, err := expr.Text(v)
			if err != nil {
				return "", fmt.Errorf("%s: %w", e.Text, err)
			}
			if len(parts) > 1 {
				text = idParts.Replace(text)
			}
			texts = append(texts, text)
		}
		return strings.Join(texts, "/"), nil
	}
}

// Events splits a delivery and applies the source's when:. An error means that
// the delivery as a whole cannot be read.
func (s *Source) Events(d *event.Delivery) (*Split, error) {
	own := *d // others may read the delivery too
	own.Memo = &event.Memo{}
	events, err := s.Split(&own)
	if err != nil {
		return nil, err
	}
	if s.when == nil {
		return &Split{Events: events}, nil
	}
	out := &Split{}
	for _, e := range events {
		switch wanted, err := truth(s.when.Eval(eventInput(e, s.Config))); {
		case err != nil:
			out.Faults = append(out.Faults, EventFault{Event: e, Reason: fmt.Sprintf("the source's when: %v", err)})
		case wanted:
			out.Events = append(out.Events, e)
		default:
			out.Skipped++
		}
	}
	return out, nil
}

func truth(v ref.Val, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, fmt.Errorf("it gives %s, not true or false", expr.Describe(v))
	}
	return bool(b), nil
}

const defaultMaxAhead = 24 * time.Hour

// Ahead tells why an event's time is not to be believed: it lies further ahead
// of its first receipt than max_ahead. It returns "" if it is.
func (s *Source) Ahead(e *event.Event) string {
	limit := s.Config.MaxAhead
	if limit == 0 {
		limit = defaultMaxAhead
	}
	ahead := e.Time.Sub(e.FirstReceived)
	if limit < 0 || e.Time.IsZero() || e.FirstReceived.IsZero() || ahead <= limit {
		return ""
	}
	return fmt.Sprintf("its time %s is %s ahead of its receipt, more than max_ahead (%s): it would shut out every later event. Is the sender's clock right?",
		e.Time.Format(time.RFC3339), ahead.Round(time.Second), limit)
}
