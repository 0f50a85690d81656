// This program is a service that a lane is for: it keeps the credit of each
// customer, which may not fall below zero, so a withdrawal means something else
// depending on what came before it. It does what docs/lanes.md asks of a service.
package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	_ "modernc.org/sqlite"
)

const schema = `
create table if not exists account (customer text primary key, cents integer not null, refused integer not null default 0);
create table if not exists done (customer text primary key, sequence integer not null);`

func main() {
	service, err := open("credit.db", os.Getenv("LANE_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:9000", service))
}

// service is the HTTP handler.
type service struct {
	db     *sql.DB
	secret []byte
}

func open(file, secret string) (*service, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) == 0 {
		return nil, errors.New("LANE_SECRET is no whsec_… secret")
	}
	db, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err == nil {
		_, err = db.Exec(schema)
	}
	return &service{db: db, secret: key}, err
}

// ServeHTTP answers 2xx when the work is done, and only then.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 10<<20))
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case !s.genuine(r.Header, body, time.Now()):
		http.Error(w, "the signature does not match", http.StatusUnauthorized)
		return
	}
	if err := s.handle(r.Context(), body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError) // it is tried again
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// genuine checks the signature. A library of Standard Webhooks does the same.
func (s *service) genuine(h http.Header, body []byte, now time.Time) bool {
	at, err := strconv.ParseInt(h.Get("Webhook-Timestamp"), 10, 64)
	if err != nil || now.Sub(time.Unix(at, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, s.secret)
	mac.Write([]byte(h.Get("Webhook-Id") + "." + h.Get("Webhook-Timestamp") + "."))
	mac.Write(body)
	want := mac.Sum(nil)
	for _, one := range strings.Fields(h.Get("Webhook-Signature")) {
		got, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(one, "v1,"))
		if err == nil && hmac.Equal(got, want) {
			return true
		}
	}
	return false
}

// handle does the work and remembers the event in one transaction, so that the
// work is done once however often the event comes.
func (s *service) handle(ctx context.Context, body []byte) error {
	var m struct {
		Type     string
		Key      string
		Sequence int64
		Data     struct{ Cents int64 }
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return err
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a commit it does nothing
	var last int64
	err = tx.QueryRowContext(ctx, "select sequence from done where customer = ?", m.Key).Scan(&last)
	switch {
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return err
	case m.Sequence <= last:
		return nil // it has been
	}
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{"insert into account (customer, cents) values (?, 0) on conflict do nothing", []any{m.Key}},
		{"update account set cents = cents + ?2 where customer = ?1 and ?3 = 'payment.in'", []any{m.Key, m.Data.Cents, m.Type}},
		{"update account set cents = iif(cents < ?2, cents, cents - ?2), refused = refused + iif(cents < ?2, 1, 0) where customer = ?1 and ?3 = 'payment.out'", []any{m.Key, m.Data.Cents, m.Type}},
		{"insert into done values (?, ?) on conflict do update set sequence = excluded.sequence", []any{m.Key, m.Sequence}},
	} {
		if _, err := tx.ExecContext(ctx, step.sql, step.args...); err != nil {
			return err
		}
	}
	return tx.Commit()
}
