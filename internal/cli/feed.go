package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/internal/ndjson"
)

// What is appended at once: it shares a commit of the journal.
const (
	feedDeliveries = 1000
	feedBytes      = 4 << 20
)

// feed reads deliveries to the end, or to the first line that cannot be read,
// and appends them in their order. The next ones are read while some are
// appended. It returns how many have been appended, and the last line that was
// read.
func feed(ctx context.Context, plan *mapping.Plan, in io.Reader, bar *progress, add func(context.Context, []*event.Delivery) error) (n int64, line int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	parts := make(chan []*event.Delivery, 1)
	var readErr error
	lines := ndjson.NewReader(in, 0)
	go func() {
		defer close(parts)
		for more := true; more; {
			var part []*event.Delivery
			for bytes := 0; more && len(part) < feedDeliveries && bytes < feedBytes; {
				x, err := lines.Next()
				switch {
				case errors.Is(err, io.EOF):
					more = false
				case err != nil:
					readErr, more = err, false
				case plan.Source(x.Source) == nil:
					readErr, more = fmt.Errorf("line %d: the config has no source %s", lines.Line(), x.Source), false
				default:
					part, bytes = append(part, x), bytes+len(x.Body)
				}
			}
			select {
			case parts <- part:
			case <-ctx.Done():
				return
			}
		}
	}()
	var addErr error
	for part := range parts {
		if addErr == nil && len(part) > 0 {
			if addErr = add(ctx, part); addErr != nil {
				cancel()
				continue
			}
			n += int64(len(part))
			bar.set(n)
		}
	}
	cancel()
	if readErr != nil && n > 0 {
		readErr = fmt.Errorf("%w. The lines before it have been replayed", readErr)
	}
	return n, lines.Line(), errors.Join(addErr, readErr)
}
