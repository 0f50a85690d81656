package source

import (
	"fmt"
	"net/http"
	"time"

	"github.com/hookfold/hookfold/event"
)

// built is a source made of parts. Every preset is one.
type built struct {
	verifier
	options Options
	// split takes the body apart, which has been read as the format says. It
	// sets of each event Body, Envelope, ID, Type and Time or TimeError.
	split func(d *event.Delivery, body event.JSON) ([]*event.Event, error)
	// handshake is nil for a provider without one. With signedHandshake one
	// that is no GET has to be verified.
	handshake       func(r *Request) (*Answer, bool)
	signedHandshake bool
}

// build finishes a preset's New.
func build(v verifier, err error, b built) (Source, error) {
	if err != nil {
		return nil, err
	}
	b.verifier = v
	return &b, nil
}

func (b *built) Verify(r *Request, now time.Time) error { return b.verify(r, now) }

func (b *built) Handshake(r *Request, now time.Time) (*Answer, bool) {
	if b.handshake == nil {
		return nil, false
	}
	a, ok := b.handshake(r)
	if ok && b.signedHandshake && r.Method != http.MethodGet && b.verify(r, now) != nil {
		return nil, false // it is refused as a delivery is
	}
	return a, ok
}

func (b *built) Sign(h http.Header, body []byte, at time.Time) error {
	if h.Get("Content-Type") == "" {
		kind := "application/json"
		if b.options.Format == FormatForm {
			kind = "application/x-www-form-urlencoded"
		}
		h.Set("Content-Type", kind)
	}
	return b.sign(h, body, at)
}

func (b *built) Split(d *event.Delivery) ([]*event.Event, error) {
	body, err := ReadBody(d, b.options.Format)
	if err != nil {
		return nil, err
	}
	events, err := b.events(d, body)
	if err != nil {
		return nil, err
	}
	for i, e := range events {
		e.Delivery, e.Index, e.FirstReceived = d, i, d.Received
		if err := b.override(e); err != nil {
			return nil, fmt.Errorf("event %d of the delivery: %w", i, err)
		}
	}
	return events, nil
}

func (b *built) events(d *event.Delivery, body event.JSON) ([]*event.Event, error) {
	if b.options.Split == nil {
		return b.split(d, body)
	}
	parts, err := b.options.Split(d, body)
	if err != nil {
		return nil, fmt.Errorf("split: %w", err)
	}
	if len(parts) > MaxEvents {
		return nil, fmt.Errorf("the delivery holds %s, more than the %s that one may hold: have the sender send fewer at a time", count(len(parts), "event"), thousands(MaxEvents))
	}
	events := make([]*event.Event, len(parts))
	for i, p := range parts {
		events[i] = &event.Event{Body: p, Envelope: body}
	}
	return events, nil
}

// override puts what the options say in place of what the preset does: first
// the type, then the time, then the id.
func (b *built) override(e *event.Event) (err error) {
	if f := b.options.Type; f != nil {
		if e.Type, err = f(e); err != nil {
			return fmt.Errorf("type: %w", err)
		}
	}
	if f := b.options.Time; f != nil {
		e.TimeError = ""
		if e.Time, err = f(e); err != nil {
			e.Time, e.TimeError = time.Time{}, err.Error()
		}
	}
	if f := b.options.ID; f != nil {
		if e.ID, err = f(e); err != nil {
			return fmt.Errorf("id: %w", err)
		}
	}
	return nil
}

// whole makes the one event of a delivery whose body is the event.
func whole(body event.JSON) *event.Event { return &event.Event{Body: body, Envelope: body} }

// setTime reads the time of an event from a value; path names it in the error.
// A value that is missing or null is no time, and said so.
func setTime(e *event.Event, v event.JSON, path string, zone *time.Location) {
	text, ok := v.Scalar()
	if !ok || v.Kind() == event.Bool {
		if v.Kind() <= event.Null {
			e.TimeError = "the event has no " + path
		} else {
			e.TimeError = fmt.Sprintf("%s is %s, not a time", path, v.Kind())
		}
		return
	}
	t, err := event.ParseTime(text, zone)
	if err != nil {
		e.TimeError = path + ": " + err.Error()
		return
	}
	e.Time = t
}
