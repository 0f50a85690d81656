package demo

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// naive is the handler that people write first: look whether the row is there,
// then insert or update it. It works when it is tried with one request after
// another. It runs on the same engine as ours, with the same tables, and does
// not check signatures.
type naive struct {
	db     *sql.DB
	server *http.Server
	url    string

	mu     sync.Mutex
	errors map[string]int
}

//go:embed naive.sql
var naiveSchema string

// startNaive starts the handler on a free port of the loopback interface.
func startNaive(ctx context.Context, file string) (*naive, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(wal)&_pragma=synchronous(normal)&_pragma=busy_timeout(20000)")
	if err != nil {
		return nil, fmt.Errorf("open the naive handler's database: %w", err)
	}
	db.SetMaxOpenConns(16)
	if _, err := db.ExecContext(ctx, naiveSchema); err != nil {
		return nil, errors.Join(fmt.Errorf("create the naive handler's tables: %w", err), db.Close())
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listen for the naive handler: %w", err), db.Close())
	}
	n := &naive{db: db, url: "http://" + listener.Addr().String(), errors: map[string]int{}}
	n.server = &http.Server{Handler: n, ReadHeaderTimeout: 10 * time.Second}
	go n.server.Serve(listener) //nolint:errcheck // ends with Shutdown
	return n, nil
}

func (n *naive) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(n.server.Shutdown(ctx), n.db.Close())
}

func (n *naive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 5<<20))
	if err == nil {
		switch strings.TrimPrefix(r.URL.Path, "/in/") {
		case "calendly":
			err = n.calendly(r.Context(), body)
		case "whatsapp":
			err = n.whatsapp(r.Context(), body)
		case "shop":
			err = n.shop(r.Context(), body)
		}
	}
	if err != nil {
		n.mu.Lock()
		n.errors[strings.TrimPrefix(err.Error(), "constraint failed: ")]++
		n.mu.Unlock()
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (n *naive) exists(ctx context.Context, query string, key any) (bool, error) {
	var there bool
	err := n.db.QueryRowContext(ctx, "select exists ("+query+")", key).Scan(&there)
	return there, err
}

func (n *naive) calendly(ctx context.Context, body []byte) error {
	var e struct {
		Event   string
		Payload struct {
			URI      string
			Tracking struct {
				Term string `json:"utm_term"`
			}
			Meeting struct {
				Start string `json:"start_time"`
			} `json:"scheduled_event"`
		}
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return err
	}
	ref := e.Payload.Tracking.Term
	there, err := n.exists(ctx, "select 1 from booking where ref = ?", ref)
	if err != nil {
		return err
	}
	switch {
	case e.Event == "invitee.canceled" && there:
		_, err = n.db.ExecContext(ctx, "update booking set status = 'canceled' where ref = ?", ref)
	case e.Event == "invitee.canceled":
		_, err = n.db.ExecContext(ctx, "insert into booking (ref, status, invitee, start_at) values (?, 'canceled', ?, ?)", ref, e.Payload.URI, e.Payload.Meeting.Start)
	case there:
		_, err = n.db.ExecContext(ctx, "update booking set status = 'active', invitee = ?, start_at = ? where ref = ?", e.Payload.URI, e.Payload.Meeting.Start, ref)
	default:
		_, err = n.db.ExecContext(ctx, "insert into booking (ref, status, invitee, start_at) values (?, 'active', ?, ?)", ref, e.Payload.URI, e.Payload.Meeting.Start)
	}
	return err
}

func (n *naive) whatsapp(ctx context.Context, body []byte) error {
	var e struct {
		Entry []struct {
			Changes []struct {
				Value struct {
					Statuses []struct{ ID, Status, Timestamp string }
				}
			}
		}
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return err
	}
	for _, entry := range e.Entry {
		for _, c := range entry.Changes {
			for _, s := range c.Value.Statuses {
				if err := n.status(ctx, s.ID, s.Status, s.Timestamp); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// status updates the message's row and, if there was none, inserts one.
func (n *naive) status(ctx context.Context, id, status, unix string) error {
	column := map[string]string{"sent": "sent_at", "delivered": "delivered_at", "read": "read_at"}[status]
	set, at := "", ""
	if column != "" {
		var sec int64
		if _, err := fmt.Sscan(unix, &sec); err != nil {
			return err
		}
		set, at = ", "+column+" = ?3", micro(time.Unix(sec, 0))
	}
	done, err := n.db.ExecContext(ctx, "update message_status set status = ?2"+set+" where message_id = ?1", id, status, at)
	if err != nil {
		return err
	}
	if rows, err := done.RowsAffected(); err != nil || rows > 0 {
		return err
	}
	if column == "" {
		_, err = n.db.ExecContext(ctx, "insert into message_status (message_id, status) values (?1, ?2)", id, status)
	} else {
		_, err = n.db.ExecContext(ctx, "insert into message_status (message_id, status, "+column+") values (?1, ?2, ?3)", id, status, at)
	}
	return err
}

func (n *naive) shop(ctx context.Context, body []byte) error {
	var e struct {
		Type, User, Email, Plan, Payment, Ticket string
		Amount                                   json.Number
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return err
	}
	there, err := n.exists(ctx, "select 1 from app_user where id = ?", e.User)
	if err != nil {
		return err
	}
	if !there {
		if _, err := n.db.ExecContext(ctx, "insert into app_user (id) values (?)", e.User); err != nil {
			return err
		}
	}
	kind, what, _ := strings.Cut(e.Type, ".")
	switch kind {
	case "user":
		_, err = n.db.ExecContext(ctx, "update app_user set email = ?, plan = ? where id = ?", e.Email, e.Plan, e.User)
		return err
	case "payment":
		there, err = n.exists(ctx, "select 1 from payment where id = ?", e.Payment)
		if err == nil && there {
			_, err = n.db.ExecContext(ctx, "update payment set status = ? where id = ?", what, e.Payment)
		} else if err == nil {
			_, err = n.db.ExecContext(ctx, "insert into payment (id, user_id, amount, status) values (?, ?, ?, ?)", e.Payment, e.User, e.Amount.String(), what)
		}
		return err
	}
	status := map[string]string{"opened": "open", "closed": "closed"}[what]
	there, err = n.exists(ctx, "select 1 from ticket where id = ?", e.Ticket)
	if err == nil && there {
		_, err = n.db.ExecContext(ctx, "update ticket set status = ? where id = ?", status, e.Ticket)
	} else if err == nil {
		_, err = n.db.ExecContext(ctx, "insert into ticket (id, user_id, status) values (?, ?, ?)", e.Ticket, e.User, status)
	}
	return err
}
