package sqlsink

import (
	"context"
	"errors"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sinktest"
)

var errCut = errors.New("the connection was cut")

// Cut lets a sink's transactions fail as fault says, which is asked when all
// statements of one have run.
func Cut(s sink.Sink, fault func() sinktest.Fault) {
	sql := s.(*sqlSink)
	sql.engine = &cutEngine{sql.engine, fault}
}

// HoldAll lets a sink write every table under locks.
func HoldAll(s sink.Sink) {
	sql := s.(*sqlSink)
	sql.engine = &heldEngine{sql.engine}
}

type heldEngine struct{ engine }

func (e *heldEngine) dialect() compile.Dialect { return e.engine.dialect().HoldAll() }

type cutEngine struct {
	engine
	fault func() sinktest.Fault
}

func (e *cutEngine) transact(ctx context.Context, fn func(conn) error) error {
	var at sinktest.Fault
	err := e.engine.transact(ctx, func(c conn) error {
		if err := fn(c); err != nil {
			return err
		}
		if at = e.fault(); at == sinktest.BeforeCommit {
			return errCut
		}
		return nil
	})
	if err == nil && at == sinktest.AfterCommit {
		return errCut
	}
	return err
}

// alone runs its statement in a transaction: where it would fail is the same.
func (e *cutEngine) alone(ctx context.Context, fn func(conn) error) error {
	return e.transact(ctx, fn)
}

// DialectOf is the dialect of a sink's database.
func DialectOf(s sink.Sink) compile.Dialect { return s.(*sqlSink).dialect() }
