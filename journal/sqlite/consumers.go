package sqlite

import (
	"context"
	"errors"
	"fmt"
)

// Consumers returns the names of all consumers that the journal knows, sorted.
func (j *Journal) Consumers(ctx context.Context) (names []string, err error) {
	err = j.reading(func(s *store) (err error) {
		rows, err := s.read.QueryContext(ctx, query("consumers"))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return err
			}
			names = append(names, name)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("list consumers: %w", err)
	}
	return names, nil
}

// RemoveConsumer forgets a consumer, its entries and its marks, for a target that is gone
// for good: until then Retain keeps what the consumer has yet to settle. The
// consumer must not be open; one that is not known is no error.
func (j *Journal) RemoveConsumer(ctx context.Context, name string) error {
	j.mu.Lock()
	_, open := j.consumers[name]
	j.mu.Unlock()
	if open {
		return fmt.Errorf("remove consumer %s: it is in use: close it first", name)
	}
	err := j.do(ctx, func(ctx context.Context, s *store) error {
		for _, q := range []string{"forget-entries", "forget-dropped", "forget-touches", "forget-marks", "forget-consumer"} {
			if _, err := s.exec(ctx, q, name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove consumer %s: %w", name, err)
	}
	return nil
}
