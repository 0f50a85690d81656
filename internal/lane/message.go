package lane

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/hookfold/hookfold/event"
)

// Message is an event as it is given to somebody's code.
type Message struct {
	// Lane is the lane's name, Attempt the number of the try, from 1 and as far as
	// is known after a crash.
	Lane    string
	Key     string
	Attempt int
	Event   *event.Event
}

// MessageID names an event to the receiver: the same in every try, and in every
// delivery by its sender, whatever lane it is read in; two lanes give it two
// names, since each has work of its own. An identity that would not do in a
// header, or that a dot would make ambiguous in what is signed, is hashed.
func MessageID(lane, id string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-:/|", r)
	}
	if len(id) > 200 || strings.ContainsFunc(id, func(r rune) bool { return !plain(r) }) {
		sum := sha256.Sum256([]byte(id))
		id = "sha256:" + hex.EncodeToString(sum[:])
	}
	return lane + "/" + id
}

// ID is the message's MessageID.
func (m *Message) ID() string { return MessageID(m.Lane, m.Event.ID) }

// Body renders the message as Standard Webhooks has it, type, timestamp and data,
// with what the lane adds. The event's own bytes are not changed.
func (m *Message) Body() []byte {
	e := m.Event
	var b []byte
	text := func(name, value string) {
		b = append(append(append(b, '"'), name...), `":`...)
		b = append(append(b, event.Quote(value).Raw()...), ',')
	}
	b = append(b, '{')
	if e.Type != "" {
		text("type", e.Type)
	}
	if !e.Time.IsZero() {
		text("timestamp", e.Time.UTC().Format(time.RFC3339Nano))
	}
	text("id", e.ID)
	text("source", e.Delivery.Source)
	text("lane", m.Lane)
	text("key", m.Key)
	b = append(strconv.AppendInt(append(b, `"sequence":`...), Sequence(e.Ref()), 10), ',')
	text("received", e.FirstReceived.UTC().Format(time.RFC3339Nano))
	b = append(b, `"data":`...)
	if raw := e.Body.Raw(); len(raw) > 0 {
		b = append(b, raw...)
	} else {
		b = append(b, "null"...)
	}
	return append(b, '}')
}
