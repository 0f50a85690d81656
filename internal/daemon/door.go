package daemon

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/ndjson"
	"github.com/hookfold/hookfold/journal"
)

// Door is how a program of the same user hands deliveries to the server that
// owns a journal: whoever may read the journal's folder may read the token, and
// nobody else. It stands in a file beside the journal while the server runs.
type Door struct {
	// Admin is the server's admin address.
	Admin string `json:"admin"`
	Token string `json:"token"`
}

// ImportPath takes deliveries on the admin address: a POST of lines of NDJSON,
// with the door's token as bearer. The answer is an Imported, when all of them
// are durable, or an error and none of them is.
const ImportPath = "/import"

// maxImport bounds the body of one import.
const maxImport = 2 * ndjson.DefaultMaxLine

// Imported is the answer to an import.
type Imported struct {
	// Positions are the deliveries' in the journal, in the order of the lines.
	Positions []event.Position `json:"positions,omitempty"`
	Error     string           `json:"error,omitempty"`
}

func doorFile(journal string) string { return journal + ".admin" }

// OpenDoor finds the door of the server that owns a journal.
func OpenDoor(journal string) (*Door, error) {
	text, err := os.ReadFile(doorFile(journal))
	if errors.Is(err, os.ErrNotExist) {
		return nil, errors.New("the server that runs on the journal has no admin: address to take deliveries on: give it one, or stop it first")
	}
	door := &Door{}
	if err == nil {
		err = json.Unmarshal(text, door)
	}
	if err != nil {
		return nil, fmt.Errorf("read how to reach the server that runs on the journal: %w", err)
	}
	return door, nil
}

// openDoor writes the door's file, with a token of this run.
func (d *Daemon) openDoor() error {
	if d.journalFile == "" || d.admin == nil {
		return nil
	}
	var b [32]byte
	rand.Read(b[:])
	d.door = &Door{Admin: d.AdminAddr(), Token: hex.EncodeToString(b[:])}
	text, err := json.Marshal(d.door)
	if err != nil {
		return err
	}
	file := doorFile(d.journalFile)
	// A file that was left behind may be readable by others: a new one is not.
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("let deliveries be imported: %w", err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("let deliveries be imported: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}

func (d *Daemon) closeDoor() error {
	if d.door == nil {
		return nil
	}
	if err := os.Remove(doorFile(d.journalFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// importing answers an import.
func (d *Daemon) importing(w http.ResponseWriter, r *http.Request) {
	answer := func(status int, text string) { writeJSON(w, status, Imported{Error: text}) }
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		answer(http.StatusMethodNotAllowed, "method not allowed")
		return
	}
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if d.door == nil || !bearer || subtle.ConstantTimeCompare([]byte(token), []byte(d.door.Token)) != 1 {
		answer(http.StatusUnauthorized, "the token is not that of this server")
		return
	}
	var list []*event.Delivery
	lines := ndjson.NewReader(http.MaxBytesReader(w, r.Body, maxImport), 0)
	for {
		x, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			answer(http.StatusBadRequest, err.Error())
			return
		}
		list = append(list, x)
	}
	if err := d.AppendAll(r.Context(), list); err != nil {
		status := http.StatusServiceUnavailable
		if errors.As(err, new(noSourceError)) {
			status = http.StatusBadRequest
		}
		answer(status, err.Error())
		return
	}
	out := Imported{Positions: make([]event.Position, len(list))}
	for i, x := range list {
		out.Positions[i] = x.Position
	}
	writeJSON(w, http.StatusOK, out)
}

// noSourceError is the name of a source that the config does not have.
type noSourceError string

func (e noSourceError) Error() string { return "the config has no source " + string(e) }

// AppendAll journals deliveries that did not come over HTTP, in their order. A
// delivery without a time of receipt is received now.
func (d *Daemon) AppendAll(ctx context.Context, list []*event.Delivery) error {
	for _, x := range list {
		if err := d.accept(x); err != nil {
			return err
		}
	}
	if a, ok := d.journal.(journal.Appender); ok {
		return a.AppendAll(ctx, list)
	}
	for _, x := range list {
		if err := d.journal.Append(ctx, x); err != nil {
			return err
		}
	}
	return nil
}
