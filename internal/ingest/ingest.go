// Package ingest is the HTTP receive path: it takes the deliveries of the
// sources, verifies them over their raw bytes, makes them durable in the
// journal, and only then answers 200.
//
//	POST /in/{source}[/more] → limit → verify → append to the journal → 200 {"received":true}
//
// The other answers, each with a short JSON body that never holds the reason of
// a refusal (that goes to the operator's log):
//
//	400  the request is malformed
//	401  the signature is missing or wrong
//	404  no source has this name
//	405  the method is not POST, and this is no handshake (with Allow)
//	413  the body is larger than the source's limit
//	503  the delivery could not be made durable, or not be received in time;
//	     with Retry-After
//
// It never redirects and never answers 410: some providers take that as a wish
// to unsubscribe. What the target databases do never decides an answer.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/calm"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/source"
)

// Prefix is the path under which sources receive.
const Prefix = "/in/"

// Journal is where deliveries go. Append returns nil only once the delivery is
// durable.
type Journal interface {
	Append(ctx context.Context, d *event.Delivery) error
}

// Observer is told of every answer, for metrics. It must be quick and safe for
// concurrent use.
type Observer interface {
	// Answered tells of one request: the source's name ("" if there is no such
	// source), the status (0 if the client went away before one was sent), the
	// size of the body read, and the time from the end of the header to the
	// answer.
	Answered(source string, status, bytes int, took time.Duration)
}

// Source is one source as the receive path sees it.
type Source struct {
	source.Source
	// MaxBody is the most bytes of a body; 0 is DefaultMaxBody.
	MaxBody int64
	// URL is the public URL of the source's endpoint, for schemes that sign it;
	// "" takes it from each request.
	URL string
	// Secrets are the source's secrets. A header that holds one of them as
	// plain text is a credential, and is not kept.
	Secrets []string
}

// Defaults of Options.
const (
	DefaultMaxBody       = 5 << 20
	DefaultMaxInHand     = 64 << 20
	DefaultAppendTimeout = 15 * time.Second
)

// Options configure a Handler.
type Options struct {
	// Sources by name. Required.
	Sources map[string]Source
	// Journal takes the deliveries. Required.
	Journal Journal
	// Log gets a line for every refusal, in bounded number; nil is silent.
	Log *slog.Logger
	// Observer is told of every answer; nil is nobody.
	Observer Observer
	// MaxInHand is the most bytes of bodies held at one time, by all requests
	// together; beyond it the answer is 503. Default DefaultMaxInHand.
	MaxInHand int64
	// AppendTimeout is how long a request waits for the journal before it is
	// answered 503. Default DefaultAppendTimeout.
	AppendTimeout time.Duration
	// Now is the clock for times of receipt; default time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxInHand <= 0 {
		o.MaxInHand = DefaultMaxInHand
	}
	if o.AppendTimeout <= 0 {
		o.AppendTimeout = DefaultAppendTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Handler is the receive path. It is safe for concurrent use.
type Handler struct {
	o       Options
	sources map[string]*endpoint
	inHand  atomic.Int64 // bytes of bodies being read or journaled
	log     *calm.Logger
}

// endpoint is a source with its name and defaults.
type endpoint struct {
	Source
	name string
}

// New returns a handler.
func New(o Options) *Handler {
	o = o.withDefaults()
	h := &Handler{o: o, sources: make(map[string]*endpoint, len(o.Sources)), log: calm.New(o.Log, o.Now)}
	for name, s := range o.Sources {
		if s.MaxBody <= 0 {
			s.MaxBody = DefaultMaxBody
		}
		h.sources[name] = &endpoint{Source: s, name: name}
	}
	return h
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := h.o.Now()
	e, more := h.find(r)
	rq := &request{Request: r, h: h, source: e, more: more}
	rep := rq.safely(w)
	if rep.status != 0 {
		rep.write(w, r)
	}
	h.inHand.Add(-rq.reserved)
	if h.o.Observer != nil {
		name := ""
		if e != nil {
			name = e.name
		}
		h.o.Observer.Answered(name, rep.status, len(rq.body), h.o.Now().Sub(begun))
	}
}

// say writes the line "401 stripe: reason" for the operator, without the source
// if there is none. A status of 0 is written as "gone".
func (h *Handler) say(level slog.Level, source string, status int, reason string) {
	answer := "gone"
	if status != 0 {
		answer = strconv.Itoa(status)
	}
	h.log.Line(level, answer+" "+source, func() string {
		if source == "" {
			return answer + " " + reason
		}
		return answer + " " + source + ": " + reason
	})
}

// find returns the source a path names, and what follows its name: "" or a path
// that begins with "/".
func (h *Handler) find(r *http.Request) (*endpoint, string) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), Prefix)
	if !ok {
		return nil, ""
	}
	name, more := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		name, more = rest[:i], rest[i:]
	}
	if strings.IndexByte(name, '%') >= 0 {
		var err error
		if name, err = url.PathUnescape(name); err != nil {
			return nil, ""
		}
	}
	return h.sources[name], more
}

// request is one request in hand.
type request struct {
	*http.Request
	h        *Handler
	source   *endpoint
	more     string
	body     []byte
	reserved int64 // of Handler.inHand
}

// safely answers, and turns a panic into a 503: the sender tries again, and
// the process goes on.
func (r *request) safely(w http.ResponseWriter) (rep reply) {
	defer func() {
		if p := recover(); p != nil {
			name := ""
			if r.source != nil {
				name = r.source.name
			}
			r.h.say(slog.LevelError, name, http.StatusServiceUnavailable, fmt.Sprintf("receiving panicked: %v. This is a fault of Hookfold.", p))
			rep = retryLater(pauseBroken)
		}
	}()
	return r.answer(w)
}

func (r *request) answer(w http.ResponseWriter) reply {
	e := r.source
	if e == nil {
		r.h.say(slog.LevelInfo, "", http.StatusNotFound, fmt.Sprintf("no source for %.100q", r.URL.EscapedPath()))
		return notFound
	}
	switch r.Method {
	case http.MethodPost:
	case http.MethodGet, http.MethodHead:
		if a, ok := e.Handshake(r.seen(), r.h.o.Now()); ok {
			return reply{status: a.Status, handshake: a}
		}
		return r.refuseMethod()
	default:
		return r.refuseMethod()
	}
	if rep, ok := r.read(w); !ok {
		return rep
	}
	now := r.h.o.Now()
	seen := r.seen()
	if a, ok := e.Handshake(seen, now); ok {
		return reply{status: a.Status, handshake: a}
	}
	if err := e.Verify(seen, now); err != nil {
		r.h.say(slog.LevelWarn, e.name, http.StatusUnauthorized, err.Error())
		return unauthorized
	}
	return r.keep(now)
}

func (r *request) refuseMethod() reply {
	r.h.say(slog.LevelInfo, r.source.name, http.StatusMethodNotAllowed, fmt.Sprintf("the method is %.20q; deliveries are POST, and this is no handshake of the source", r.Method))
	return notAllowed
}

// seen is what the source sees of the request.
func (r *request) seen() *source.Request {
	return &source.Request{Method: r.Method, URL: r.publicURL(), Query: r.URL.RawQuery, Header: r.Header, Body: r.body}
}

func (r *request) publicURL() string {
	base := r.source.URL
	if base == "" {
		scheme := "http"
		if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
			scheme = "https"
		}
		return scheme + "://" + r.Host + r.URL.RequestURI()
	}
	if r.more == "" && r.URL.RawQuery == "" {
		return base
	}
	u := base + r.more
	if r.URL.RawQuery != "" {
		u += "?" + r.URL.RawQuery
	}
	return u
}

// keep makes the delivery durable. A client that has gone away meanwhile does
// not undo that: what was sent is whole and verified.
func (r *request) keep(now time.Time) reply {
	d := &event.Delivery{
		Source: r.source.name, Path: r.more, Query: r.URL.RawQuery,
		Header: kept(r.Header, r.source.Secrets), Body: r.body, Received: now.UTC(),
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), r.h.o.AppendTimeout)
	defer cancel()
	err := r.h.o.Journal.Append(ctx, d)
	if err == nil {
		return received
	}
	r.h.say(slog.LevelError, r.source.name, http.StatusServiceUnavailable, journalReason(err))
	if errors.Is(err, journal.ErrOverloaded) || errors.Is(err, context.DeadlineExceeded) {
		return retryLater(pauseOverloaded)
	}
	return retryLater(pauseBroken)
}

func journalReason(err error) string {
	switch {
	case errors.Is(err, journal.ErrFull):
		return fmt.Sprintf("%v. Make room on its disk, or raise max_size or lower keep of the journal; the sender is told to come back.", err)
	case errors.Is(err, journal.ErrOverloaded), errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("the journal takes deliveries more slowly than they come: %v. The sender is told to come back.", err)
	}
	return fmt.Sprintf("the delivery could not be journaled: %v. The sender is told to come back.", err)
}

// Pauses of Retry-After, in seconds.
const (
	pauseOverloaded = 5
	pauseBroken     = 30
)

func retryLater(seconds int) reply {
	return reply{status: http.StatusServiceUnavailable, retryAfter: strconv.Itoa(seconds), body: `{"error":"try again later"}` + "\n"}
}
