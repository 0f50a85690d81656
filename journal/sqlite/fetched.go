package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// A reading is stored as a sealed block (see block.go) of one frame at position
// 0:
//
//	reading = varint seconds, uvarint nanoseconds (since 1970 UTC), uvarint status,
//	          headers, bytes body
func encodeReading(f *event.Fetched) []byte {
	b := binary.AppendVarint(make([]byte, 0, 64+len(f.Body)), f.At.Unix())
	b = binary.AppendUvarint(b, uint64(f.At.Nanosecond()))
	b = binary.AppendUvarint(b, uint64(max(0, f.Status)))
	b = appendHeader(b, f.Header)
	return sealBlock(0, [][]byte{appendBytes(b, f.Body)})
}

func decodeReading(data []byte) (event.Fetched, error) {
	var f event.Fetched
	frames, err := openBlock(0, data)
	if err != nil {
		return f, err
	}
	if len(frames) != 1 {
		return f, fmt.Errorf("%w: %d frames where there is one answer", errDamaged, len(frames))
	}
	r := reader{b: frames[0]}
	var dec decoder
	sec, nsec := r.varint(), r.uvarint()
	if nsec >= 1e9 {
		r.failed = true
	} else {
		f.At = time.Unix(sec, int64(nsec)).UTC()
	}
	f.Status = int(r.uvarint())
	f.Header = dec.header(&r)
	f.Body = r.bytes()
	if r.failed || len(r.b) != 0 {
		return f, fmt.Errorf("%w: what was fetched cannot be read", errDamaged)
	}
	return f, nil
}

func cloneFetched(all []event.Fetched) []event.Fetched {
	out := slices.Clone(all)
	for i := range out {
		out[i].Header, out[i].Body = out[i].Header.Clone(), bytes.Clone(out[i].Body)
	}
	return out
}

// putFetched writes what a delivery that is appended has brought along. It is
// for the goroutine that writes.
func (j *Journal) putFetched(ctx context.Context, p event.Position, all []event.Fetched) error {
	for i := range all {
		if all[:i] != nil && slices.ContainsFunc(all[:i], func(f event.Fetched) bool { return f.Index == all[i].Index && f.Name == all[i].Name }) {
			continue // the first counts
		}
		id, err := j.file.putReading(ctx, &all[i])
		if err != nil {
			return err
		}
		if _, err := j.file.exec(ctx, "put-fetched", int64(p), all[i].Index, all[i].Name, id); err != nil {
			return err
		}
		j.fetches.Store(true)
	}
	return nil
}

func (s *store) putReading(ctx context.Context, f *event.Fetched) (id int64, err error) {
	st, err := s.stmt(ctx, "put-reading")
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(ctx, encodeReading(f))
	if err != nil {
		return 0, fmt.Errorf("put-reading: %w", err)
	}
	return res.LastInsertId()
}

// FirstFetched implements journal.Journal. On a journal that is open for reading
// it answers what is not recorded with itself.
func (j *Journal) FirstFetched(ctx context.Context, reads []journal.Fetched) (firsts []journal.Fetched, err error) {
	if len(reads) == 0 {
		return nil, nil
	}
	if j.options.Access == Owner {
		if err := j.do(ctx, func(ctx context.Context, s *store) error { return s.recordFetched(ctx, reads) }); err != nil {
			return nil, fmt.Errorf("record what was fetched: %w", err)
		}
		j.fetches.Store(true)
	}
	known := map[event.Position]*event.Delivery{}
	for _, r := range reads {
		known[r.Position] = &event.Delivery{Position: r.Position}
	}
	var all []*event.Delivery
	for _, p := range slices.Sorted(maps.Keys(known)) {
		all = append(all, known[p])
	}
	if err := j.withFetched(ctx, all); err != nil {
		return nil, err
	}
	for _, r := range reads {
		if f := known[r.Position].FetchedFor(r.Index, r.Name); f != nil {
			r.Fetched = *f
		}
		firsts = append(firsts, r)
	}
	return firsts, nil
}

// recordFetched writes what was not fetched before. Answers that are one, in
// the same memory, are stored once.
func (s *store) recordFetched(ctx context.Context, reads []journal.Fetched) error {
	type answer struct {
		at   time.Time
		body *byte
		size int
	}
	stored := map[answer]int64{}
	is, err := s.stmt(ctx, "is-fetched")
	if err != nil {
		return err
	}
	for i := range reads {
		r := &reads[i]
		var id int64
		err := is.QueryRowContext(ctx, int64(r.Position), r.Index, r.Name).Scan(&id)
		if err == nil {
			continue
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("is-fetched: %w", err)
		}
		key := answer{at: r.At, size: len(r.Body)}
		if key.size > 0 {
			key.body = &r.Body[0]
		}
		id, ok := stored[key]
		if !ok || key.size == 0 {
			if id, err = s.putReading(ctx, &r.Fetched); err != nil {
				return err
			}
			stored[key] = id
		}
		if _, err := s.exec(ctx, "put-fetched", int64(r.Position), r.Index, r.Name, id); err != nil {
			return err
		}
	}
	return nil
}

// fetchedAtOnce is of how many deliveries what was fetched is read at once.
const fetchedAtOnce = 64

// fetchedWithin adds what was fetched to deliveries, and returns of how many of
// them it is no more than so many bytes, at least one.
func (j *Journal) fetchedWithin(ctx context.Context, all []*event.Delivery, most int) (n int, err error) {
	bytes := 0
	for some := range slices.Chunk(all, fetchedAtOnce) {
		if err := j.withFetched(ctx, some); err != nil {
			return 0, err
		}
		for _, d := range some {
			if bytes += fetchedBytes(d); bytes > max(0, most) && n > 0 {
				return n, nil
			}
			n++
		}
	}
	return n, nil
}

func fetchedBytes(d *event.Delivery) (n int) {
	for i := range d.Fetched {
		n += len(d.Fetched[i].Body)
	}
	return n
}

// withFetched adds to deliveries, in the order of their positions, what was
// fetched for them.
func (j *Journal) withFetched(ctx context.Context, all []*event.Delivery) error {
	if len(all) == 0 || j.options.Access == Owner && !j.fetches.Load() {
		return nil
	}
	for _, d := range all {
		d.Fetched = nil // of an earlier lease
	}
	err := j.reading(func(s *store) error {
		for len(all) > 0 {
			n := 1
			for n < len(all) && all[n].Position <= all[n-1].Position+fetchedGap {
				n++
			}
			if err := s.fetchedFor(ctx, all[:n]); err != nil {
				return err
			}
			all = all[n:]
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read what was fetched: %w", err)
	}
	return nil
}

// fetchedGap is how far apart deliveries may be to be looked up together.
const fetchedGap = 16

func (s *store) fetchedFor(ctx context.Context, all []*event.Delivery) (err error) {
	rows, err := s.read.QueryContext(ctx, query("fetched"), int64(all[0].Position), int64(all[len(all)-1].Position))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var last int64
	var f event.Fetched
	for rows.Next() {
		var p event.Position
		var index int
		var name string
		var id int64
		var data sql.RawBytes
		if err := rows.Scan(&p, &index, &name, &id, &data); err != nil {
			return err
		}
		for len(all) > 0 && all[0].Position < p {
			all = all[1:]
		}
		if len(all) == 0 || all[0].Position != p {
			continue
		}
		if id != last {
			if f, err = decodeReading(data); err != nil {
				return fmt.Errorf("for #%d: %w", p, err)
			}
			last = id
		}
		f.Index, f.Name = index, name
		all[0].Fetched = append(all[0].Fetched, f)
	}
	return rows.Err()
}

// removeFetched removes what was fetched for the deliveries of a block that are
// not held.
func (s *store) removeFetched(ctx context.Context, c candidate, held []event.Position) error {
	from := c.first
	for _, p := range append(slices.Clone(held), c.last()+1) {
		if from < p {
			for _, name := range []string{"delete-readings", "delete-fetched"} {
				if _, err := s.exec(ctx, name, int64(from), int64(p)-1); err != nil {
					return err
				}
			}
		}
		from = p + 1
	}
	return nil
}
