package sqlsink

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Page is sink.Sink's. A cursor is the key of the last row as the database gave
// it, part by part.
func (s *sqlSink) Page(ctx context.Context, t *sink.Table, after sink.Cursor, limit int) ([]*merge.Row, sink.Cursor, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.BatchTimeout)
	defer cancel()
	rows, next, err := s.page(ctx, t, after, max(limit, 1))
	if err != nil {
		return nil, "", s.judged(err, t.Name)
	}
	return rows, next, nil
}

func (s *sqlSink) page(ctx context.Context, t *sink.Table, after sink.Cursor, limit int) (rows []*merge.Row, next sink.Cursor, err error) {
	live, err := s.inspect(ctx, t.Name)
	if err != nil {
		return nil, "", err
	}
	how, err := compile.Read(s.dialect(), t, live)
	if err != nil {
		return nil, "", operator("%w", err)
	}
	sql, args := how.First, []any{}
	if after != "" {
		var key []string
		if err := json.Unmarshal([]byte(after), &key); err != nil || len(key) != len(t.Key) {
			return nil, "", fmt.Errorf("read a page of %s: %q is no cursor of it", t.Name, after)
		}
		sql = how.Next
		for _, part := range key {
			args = append(args, part)
		}
	}
	args = append(args, limit)
	last := make([]string, len(t.Key))
	var keys []merge.Key
	err = s.read(ctx, func(c conn) error {
		if err := c.all(ctx, sql, args, func(cols []cell) error {
			for i := range last {
				last[i] = cols[i].text
			}
			if r := rowOf(t, how.Fields, cols); !keyless(cols[:len(t.Key)]) {
				rows, keys = append(rows, r), append(keys, r.Key)
			}
			return nil
		}); err != nil {
			return err
		}
		return s.besides(ctx, c, how, t, rows, keys)
	})
	if err != nil || len(rows) < limit {
		return rows, "", err
	}
	cursor, err := json.Marshal(last)
	return rows, sink.Cursor(cursor), err
}

// keyless tells of a row whose key is NULL: it is none of Hookfold's.
func keyless(key []cell) bool {
	for _, c := range key {
		if !c.ok {
			return true
		}
	}
	return false
}
