package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/hookfold/hookfold/journal"
)

var (
	_ journal.Lanes   = (*Journal)(nil)
	_ journal.Amender = (*consumer)(nil)
)

// Park implements journal.Lanes.
func (j *Journal) Park(ctx context.Context, filter journal.Filter) (int, error) {
	return j.change(ctx, "park", filter)
}

// SetMark implements journal.Lanes.
func (j *Journal) SetMark(ctx context.Context, name, value string) error {
	statement, args := "set-mark", []any{name, value}
	if value == "" {
		statement, args = "delete-mark", args[:1]
	}
	var err error
	switch j.options.Access {
	case Operator:
		err = j.operate(ctx, func(_ context.Context, exec func(string, ...any) (int64, error)) error {
			_, err := exec(statement, args...)
			return err
		})
	default:
		err = j.do(ctx, func(ctx context.Context, s *store) error {
			_, err := s.exec(ctx, statement, args...)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("set mark %s: %w", name, err)
	}
	return nil
}

// Marks implements journal.Lanes.
func (j *Journal) Marks(ctx context.Context) (map[string]string, error) {
	marks := map[string]string{}
	err := j.reading(func(s *store) (err error) {
		rows, err := s.read.QueryContext(ctx, query("marks"))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			var name, value string
			if err := rows.Scan(&name, &value); err != nil {
				return err
			}
			marks[name] = value
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("read marks: %w", err)
	}
	return marks, nil
}

// operate runs statements in one transaction of an operator's connection.
func (j *Journal) operate(ctx context.Context, f func(ctx context.Context, exec func(name string, args ...any) (int64, error)) error) error {
	return j.reading(func(s *store) error {
		exec := func(name string, args ...any) (int64, error) {
			res, err := s.conn.ExecContext(ctx, query(name), args...)
			if err != nil {
				return 0, s.writeError(err)
			}
			return res.RowsAffected()
		}
		if _, err := exec("begin"); err != nil {
			return err
		}
		err := f(ctx, exec)
		if err == nil {
			_, err = exec("commit")
		}
		if err != nil {
			_, _ = s.conn.ExecContext(context.WithoutCancel(ctx), query("rollback")) // there may be no transaction
		}
		return err
	})
}

// Amend implements journal.Amender.
func (c *consumer) Amend(ctx context.Context, a journal.Amendment) error {
	for _, list := range [][]journal.Entry{a.Changed, a.New} {
		for _, e := range list {
			if e.State != journal.Waiting && e.State != journal.Dead {
				return fmt.Errorf("consumer %s: an entry is %s or %s, and that of event %s is %q", c.name, journal.Waiting, journal.Dead, e.Ref, e.State)
			}
		}
	}
	c.mu.Lock()
	ended := c.ended
	c.mu.Unlock()
	if ended {
		return journal.ErrClosed
	}
	err := c.j.do(ctx, func(ctx context.Context, s *store) error {
		for _, r := range a.Settled {
			if _, err := s.exec(ctx, "delete-entry", int64(r.Position), r.Index, c.name); err != nil {
				return err
			}
		}
		for _, e := range a.Changed {
			if _, err := s.exec(ctx, "amend-entry", entryArgs(c.name, e)...); err != nil {
				return err
			}
		}
		for _, e := range a.New {
			if err := s.putEntry(ctx, c.name, e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("consumer %s: change entries: %w", c.name, err)
	}
	return nil
}
