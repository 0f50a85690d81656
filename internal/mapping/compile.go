package mapping

import (
	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
)

// Compile compiles the expressions of a config and makes its sources and
// tables. The plan holds what could be compiled, whatever the problems; it must
// not be run if the problems' Err is not nil.
func Compile(cfg *config.Config) (*Plan, *config.Problems) {
	return &Plan{Config: cfg}, &config.Problems{File: cfg.File}
}

// Events splits a delivery and applies the source's when:. An error means that
// the delivery as a whole cannot be read.
func (s *Source) Events(d *event.Delivery) (*Split, error) {
	events, err := s.Split(d)
	if err != nil {
		return nil, err
	}
	return &Split{Events: events}, nil
}

// Map gives the changes of one event for one target. It depends on nothing but
// its arguments.
func (p *Plan) Map(e *event.Event, target string) Outcome {
	return Outcome{}
}
