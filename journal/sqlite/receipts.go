package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/hookfold/hookfold/journal"
)

// identity is how a receipt is found: half a SHA-256 is enough never to meet
// two alike, and shorter than most identities.
func identity(source, id string) []byte {
	h := sha256.New()
	h.Write(binary.AppendUvarint(nil, uint64(len(source))))
	h.Write([]byte(source))
	h.Write([]byte(id))
	return h.Sum(nil)[:16]
}

// FirstReceipts implements journal.Journal. Receipts are kept as long as
// Retain's age says. With Reader nothing is recorded: identities that are not
// known are given back as they came.
func (j *Journal) FirstReceipts(ctx context.Context, ids []journal.Receipt) ([]journal.Receipt, error) {
	firsts := make([]journal.Receipt, len(ids))
	var missing []int
	err := j.reading(func(s *store) (err error) {
		missing, err = knownReceipts(ctx, s.read, ids, firsts)
		return err
	})
	if j.options.Access == Reader {
		for _, i := range missing {
			firsts[i] = ids[i]
		}
		missing = nil
	}
	if j.options.Access != Owner {
		for _, i := range missing {
			firsts[i] = ids[i]
		}
		missing = nil
	}
	if err == nil && len(missing) > 0 {
		err = j.do(ctx, func(ctx context.Context, s *store) error {
			for _, i := range missing {
				r := ids[i]
				if _, err := s.exec(ctx, "put-receipt", identity(r.Source, r.ID), storedTime(r.Received), int64(r.Ref.Position), r.Ref.Index); err != nil {
					return err
				}
			}
			_, err := knownReceipts(ctx, s.conn, ids, firsts)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("first receipts: %w", err)
	}
	return firsts, nil
}

type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// knownReceipts fills in the receipts that are recorded, and returns which are
// not.
func knownReceipts(ctx context.Context, db preparer, ids, firsts []journal.Receipt) (missing []int, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	st, err := db.PrepareContext(ctx, query("receipt"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	for i, r := range ids {
		var received int64
		first := journal.Receipt{Source: r.Source, ID: r.ID}
		err := st.QueryRowContext(ctx, identity(r.Source, r.ID)).Scan(&received, &first.Ref.Position, &first.Ref.Index)
		if errors.Is(err, sql.ErrNoRows) {
			missing = append(missing, i)
			continue
		}
		if err != nil {
			return nil, err
		}
		first.Received = loadedTime(received)
		firsts[i] = first
	}
	return missing, nil
}
