package sqlsink

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// tableKey tells tables apart: the same live table under another config is
// another.
type tableKey struct {
	rules    *merge.Table
	name     string
	versions sink.Placement
}

func keyOf(t *sink.Table) tableKey { return tableKey{t.Table, t.Name, t.Versions} }

// tableState is what is known of a live table.
type tableState struct {
	table      *sink.Table
	statements *compile.Statements
	live       *sink.Live
}

// state returns the statements of a table as it lives.
func (s *sqlSink) state(ctx context.Context, t *sink.Table) (*tableState, error) {
	s.mu.Lock()
	have := s.tables[keyOf(t)]
	s.mu.Unlock()
	if have != nil {
		return have, nil
	}
	live, err := s.inspect(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	if live.ReadOnly != "" {
		return nil, operator("table %s cannot be written: %s", t.Name, live.ReadOnly)
	}
	var records *sink.Live
	if t.Occupied {
		if records, err = s.inspect(ctx, compile.OccupantsTable(t.Name)); err != nil {
			return nil, err
		}
	}
	statements, err := compile.Compile(s.dialect(), t, live, records)
	if err != nil {
		var missing *compile.MissingError
		if errors.As(err, &missing) {
			return nil, operator("%w. Bring the database in line (hookfold migrate shows how); until then events wait", err)
		}
		return nil, operator("%w. Until then events wait (hookfold check --connect tells what else there is)", err)
	}
	if compile.Beside(t) {
		if v, err := s.inspect(ctx, compile.VersionsTable(t.Name)); err != nil {
			return nil, err
		} else if !v.Exists {
			return nil, operator("there is no table %s. Bring the database in line (hookfold migrate shows how); until then events wait", compile.VersionsTable(t.Name))
		}
	}
	if s.opts.Rewrite != nil {
		s.opts.Rewrite(t, statements)
	}
	st := &tableState{table: t, statements: statements, live: live}
	s.mu.Lock()
	s.tables[keyOf(t)] = st
	s.mu.Unlock()
	return st, nil
}

// forget drops what is known of live tables.
func (s *sqlSink) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tables)
}

// Inspect is sink.Sink's.
func (s *sqlSink) Inspect(ctx context.Context, t *sink.Table) (*sink.Live, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.BatchTimeout)
	defer cancel()
	live, err := s.inspect(ctx, t.Name)
	if err != nil {
		return nil, s.judged(err, t.Name)
	}
	return live, nil
}

func (s *sqlSink) judged(err error, table string) error {
	if f := s.fault(located(err, table)); f != nil {
		return f.Error
	}
	return err
}

// Plan is sink.Sink's.
func (s *sqlSink) Plan(ctx context.Context, tables []*sink.Table) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.BatchTimeout)
	defer cancel()
	var out []string
	done := map[string]bool{}
	for _, t := range tables {
		if err := sink.Refused(t, compile.Refuses(t)); err != nil {
			return nil, err
		}
		have, err := compile.Look(s.dialect(), t, func(name string) (*sink.Live, error) {
			live, err := s.inspect(ctx, name)
			if err != nil {
				return nil, s.judged(err, name)
			}
			return live, nil
		})
		if err != nil {
			return nil, err
		}
		if err := cannotAlter(t, have); err != nil {
			return nil, err
		}
		for _, sql := range compile.Migrate(s.dialect(), t, have) {
			if !done[sql] {
				done[sql] = true
				out = append(out, sql)
			}
		}
	}
	return out, nil
}

// Execute is sink.Sink's.
func (s *sqlSink) Execute(ctx context.Context, statements []string) error {
	defer s.forget()
	err := s.execute(ctx, statements)
	if err == nil {
		return nil
	}
	err = s.judged(err, "")
	var at *statementError
	var e *sink.Error
	if errors.As(err, &e) && errors.As(e.Err, &at) {
		e.Message = fmt.Sprintf("%v. It was the answer to: %s", at.err, at.sql)
	}
	return err
}

// statementError is an error of a statement of Plan.
type statementError struct {
	sql string
	err error
}

func (e *statementError) Error() string { return e.sql + ": " + e.err.Error() }
func (e *statementError) Unwrap() error { return e.err }

// cannotAlter says that what lives under the name of a table is none that can be
// brought in line.
func cannotAlter(t *sink.Table, have compile.Schemas) error {
	named := map[string]*sink.Live{t.Name: have.Table, compile.OccupantsTable(t.Name): have.Records, compile.VersionsTable(t.Name): have.Versions}
	maps.Copy(named, have.Sides)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if live := named[name]; live != nil && live.Exists && live.ReadOnly != "" {
			return &sink.Error{Action: sink.Reject, Message: fmt.Sprintf("table %s cannot be brought in line: %s", name, live.ReadOnly)}
		}
	}
	return nil
}
