package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// putEntry writes an entry of a consumer.
func (s *store) putEntry(ctx context.Context, consumer string, e journal.Entry) error {
	_, err := s.exec(ctx, "put-entry", entryArgs(consumer, e)...)
	return err
}

func entryArgs(consumer string, e journal.Entry) []any {
	var next any // NULL: never by itself
	if e.State == journal.Waiting {
		next = storedTime(e.Next)
	}
	return []any{
		int64(e.Ref.Position), e.Ref.Index, consumer, string(e.State), e.Reason, e.On,
		e.Source, e.ID, e.Type, e.Table, e.Key, storedTime(e.Since), e.Attempts, next,
	}
}

// storedTime is a time as it is stored; 0 is the zero time.
func storedTime(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return nanoseconds(t)
}

func loadedTime(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func scanEntry(rows *sql.Rows) (e journal.Entry, asked int64, err error) {
	var since int64
	var next sql.NullInt64
	err = rows.Scan(&e.Ref.Position, &e.Ref.Index, &e.Consumer, &e.State, &e.Reason, &e.On,
		&e.Source, &e.ID, &e.Type, &e.Table, &e.Key, &since, &e.Attempts, &next, &asked)
	e.Since, e.Next = loadedTime(since), loadedTime(next.Int64)
	return e, asked, err
}

func filterArgs(f journal.Filter) []any {
	var index any
	if f.Index != nil {
		index = *f.Index
	}
	after := f.After
	if after == (event.Ref{}) {
		after.Index = event.WholeDelivery - 1 // before any
	}
	return []any{f.Consumer, string(f.State), f.Source, f.Table, int64(f.Position), index, f.Key, int64(after.Position), after.Index}
}

// Entries implements journal.Journal.
func (j *Journal) Entries(ctx context.Context, filter journal.Filter) (entries []journal.Entry, err error) {
	limit := filter.Limit
	if limit <= 0 {
		limit = -1
	}
	err = j.reading(func(s *store) (err error) {
		name := "entries"
		if filter.Consumer != "" && filter.Key != "" {
			name = "entries-of-key"
		}
		rows, err := s.read.QueryContext(ctx, query(name), append(filterArgs(filter), limit)...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			e, _, err := scanEntry(rows)
			if err != nil {
				return err
			}
			entries = append(entries, e)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list entries: %w", err)
	}
	return entries, nil
}

// Retry implements journal.Journal. A dead entry is waiting from then on. An
// entry that is being tried just then is tried again after.
func (j *Journal) Retry(ctx context.Context, filter journal.Filter) (int, error) {
	return j.change(ctx, "retry", filter)
}

// Drop implements journal.Journal.
func (j *Journal) Drop(ctx context.Context, filter journal.Filter) (int, error) {
	return j.change(ctx, "drop", filter)
}

func (j *Journal) change(ctx context.Context, name string, filter journal.Filter) (int, error) {
	var n int64
	var err error
	switch j.options.Access {
	case Owner:
		err = j.do(ctx, func(ctx context.Context, s *store) (err error) {
			n, err = edit(name, filter, func(name string, args ...any) (int64, error) { return s.exec(ctx, name, args...) })
			return err
		})
	case Operator:
		err = j.operate(ctx, func(ctx context.Context, exec func(name string, args ...any) (int64, error)) (err error) {
			n, err = edit(name, filter, exec)
			return err
		})
	default:
		err = errors.New("the journal is open for reading only")
	}
	if err != nil {
		return 0, fmt.Errorf("%s entries: %w", name, err)
	}
	return int(n), nil
}

// edit changes the entries that match, and remembers which were dropped.
func edit(name string, filter journal.Filter, exec func(name string, args ...any) (int64, error)) (n int64, err error) {
	if name == "drop" {
		if _, err := exec("note-dropped", filterArgs(filter)...); err != nil {
			return 0, err
		}
	}
	if n, err = exec(name, filterArgs(filter)...); err == nil && n > 0 {
		_, err = exec("edited")
	}
	return n, err
}

// Dropped implements journal.Journal.
func (j *Journal) Dropped(ctx context.Context, name string) (refs []event.Ref, err error) {
	err = j.reading(func(s *store) (err error) {
		rows, err := s.read.QueryContext(ctx, query("dropped"), name)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			var r event.Ref
			if err := rows.Scan(&r.Position, &r.Index); err != nil {
				return err
			}
			refs = append(refs, r)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list what was dropped: %w", err)
	}
	return refs, nil
}

// Progress implements journal.Journal.
func (j *Journal) Progress(ctx context.Context, name string) (done event.Position, err error) {
	err = j.reading(func(s *store) error {
		var above []byte
		err := s.read.QueryRowContext(ctx, query("consumer"), name).Scan(&done, &above)
		if errors.Is(err, sql.ErrNoRows) {
			done = 0
			return nil
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("progress of consumer %s: %w", name, err)
	}
	return done, nil
}

// State implements journal.Journal. An event whose delivery was removed is
// settled; for a consumer that is not known everything is pending.
func (j *Journal) State(ctx context.Context, name string, r event.Ref) (state journal.State, err error) {
	err = j.reading(func(s *store) error {
		conn, err := s.read.Conn(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		// One view of the file: an event is never neither done nor an entry.
		if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
			return err
		}
		defer conn.ExecContext(context.WithoutCancel(ctx), query("rollback"))
		var removed, next, waiting, dead int64
		if err := conn.QueryRowContext(ctx, query("totals")).Scan(&removed, &next, &waiting, &dead); err != nil {
			return err
		}
		if r.Position < 1 || int64(r.Position) >= next {
			return fmt.Errorf("delivery #%d: %w", r.Position, journal.ErrNotFound)
		}
		err = conn.QueryRowContext(ctx, query("state"), int64(r.Position), r.Index, name).Scan(&state)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		var done event.Position
		var above []byte
		err = conn.QueryRowContext(ctx, query("consumer"), name).Scan(&done, &above)
		if errors.Is(err, sql.ErrNoRows) {
			state = journal.Pending
			return nil
		}
		if err != nil {
			return err
		}
		p, err := decodeProgress(done, above)
		state = journal.Pending
		if p.has(r.Position) {
			state = journal.Settled
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("state of event %s: %w", r, err)
	}
	return state, nil
}
