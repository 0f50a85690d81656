package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/hookfold/hookfold/event"
)

// Append implements journal.Journal. What it keeps of the delivery it has
// copied before it returns, with or without an error.
func (j *Journal) Append(ctx context.Context, d *event.Delivery) error {
	a, err := j.appending(ctx, d)
	if err == nil {
		err = j.queue.append(a)
	}
	if err != nil {
		return err
	}
	return a.wait(ctx, d)
}

// AppendAll implements journal.Appender.
func (j *Journal) AppendAll(ctx context.Context, list []*event.Delivery) error {
	all := make([]*appending, len(list))
	for i, d := range list {
		var err error
		if all[i], err = j.appending(ctx, d); err != nil {
			return err
		}
	}
	if err := j.queue.append(all...); err != nil {
		return err
	}
	var failed error
	for i, a := range all {
		failed = cmp.Or(failed, a.wait(ctx, list[i]))
	}
	return failed
}

// appending is a delivery as it is to be written.
func (j *Journal) appending(ctx context.Context, d *event.Delivery) (*appending, error) {
	if j.options.Access != Owner {
		return nil, errors.New("append: the journal is open for reading only")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a := &appending{frame: encodeFrame(d), received: d.Received, fetched: cloneFetched(d.Fetched), done: make(chan error, 1)}
	if len(a.frame) > maxPayload-64 {
		return nil, fmt.Errorf("append: a delivery of %d bytes is more than a journal takes (%d)", len(a.frame), maxPayload-64)
	}
	return a, nil
}

// wait waits until a delivery is written, and tells it its place.
func (a *appending) wait(ctx context.Context, d *event.Delivery) error {
	select {
	case err := <-a.done:
		if err == nil {
			d.Position = a.position
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
