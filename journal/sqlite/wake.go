package sqlite

import (
	"context"
	"fmt"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

var _ journal.Waker = (*Journal)(nil)

// Wake implements journal.Waker. An entry that is being tried just then is tried
// again after.
func (j *Journal) Wake(ctx context.Context, consumer string, refs []event.Ref) (int, error) {
	if len(refs) == 0 {
		return 0, nil
	}
	var n int64
	err := j.do(ctx, func(ctx context.Context, s *store) error {
		n = 0
		for _, r := range refs {
			woken, err := s.exec(ctx, "wake", int64(r.Position), r.Index, consumer)
			if err != nil {
				return err
			}
			n += woken
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("wake entries: %w", err)
	}
	return int(n), nil
}
