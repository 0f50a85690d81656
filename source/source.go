package source

import (
	"errors"
	"net/http"
	"time"

	"github.com/hookfold/hookfold/event"
)

// Request is what a source sees of an HTTP request.
type Request struct {
	Method string
	// URL is the public URL of the request, for schemes that sign it.
	URL string
	// Query is the raw query string, without "?".
	Query  string
	Header http.Header
	Body   []byte
}

// Answer is the answer to a handshake.
type Answer struct {
	Status      int
	ContentType string
	Body        []byte
}

// Source is one configured source. It is safe for concurrent use and keeps no
// state.
type Source interface {
	// Verify checks that the request comes from whoever knows a secret of the
	// source. now is the time of receipt: secrets that have run out and signed
	// times outside the tolerance, in either direction, are refused. The error
	// is a *Refusal. Comparisons take constant time.
	Verify(r *Request, now time.Time) error

	// Handshake answers a request that is no delivery (a challenge when an
	// endpoint is registered). ok is false for every other request, whether GET
	// or POST. A POST handshake that its provider signs is verified here.
	Handshake(r *Request, now time.Time) (answer *Answer, ok bool)

	// Split returns the events of a delivery, in their order in the body. A
	// delivery without events (an empty list) gives none. An error means that
	// the delivery as a whole cannot be read: broken JSON, or a shape that is
	// not the provider's. Signatures are not looked at: a journaled delivery
	// has passed Verify, and is never checked against a later clock or secret.
	Split(d *event.Delivery) ([]*event.Event, error)
}

// Refusal is the error of a request that is not believed. The reason is for the
// operator's log; the sender learns only the status.
type Refusal struct {
	// Reason says what is wrong and what to do, without any secret or
	// signature in it.
	Reason string
}

func (r *Refusal) Error() string { return r.Reason }

// ErrUnsigned is in the chain of the error of a Signer that cannot sign, because
// its scheme is none or no secret is known.
var ErrUnsigned = errors.New("this source does not sign")

// Signer is a Source that can sign as its provider does, to send deliveries to
// a running server and to test it. Every preset is one.
type Signer interface {
	// Sign sets the headers with which the provider would send body at a time,
	// under the first secret.
	Sign(h http.Header, body []byte, at time.Time) error
}

// Secret is one secret of a source.
type Secret struct {
	Value string
	// Until is when the secret stops being accepted; zero is never.
	Until time.Time
}

// Options configure a source. What a preset does not need it ignores, but for
// what it says in its page; config has checked which keys may be given.
type Options struct {
	// Name is the source's name in the config.
	Name    string
	Secrets []Secret
	// VerifyToken is the token of a GET handshake (Meta).
	VerifyToken string
	// Tolerance is how far a signed time may lie from the clock, either way.
	// Zero takes the preset's; negative switches the check off.
	Tolerance time.Duration
	// Verify is the scheme of the http preset, and for presets whose provider
	// only sends a static header (hasura, supabase) the header's name.
	Verify Scheme
	// Zone is where times that carry no offset are read; nil refuses them.
	Zone *time.Location
	// Format says how a body is read; "" is FormatJSON.
	Format Format
	// Split, ID, Type and Time, where not nil, take the place of what the
	// preset does. They are compiled from the config's expressions.
	Split func(d *event.Delivery, body event.JSON) ([]event.JSON, error)
	// Handshake, for preset http, gives the answer to a request that is no
	// delivery; ok is false for one that is. A POST is answered only if it is
	// verified.
	Handshake func(r *Request) (answer *Answer, ok bool)
	ID        func(e *event.Event) (id string, err error)
	Type      func(e *event.Event) (typ string, err error)
	Time      func(e *event.Event) (at time.Time, err error)
}

// Format says how a body is read.
type Format string

// The formats of a body.
const (
	FormatJSON Format = "json"
	FormatForm Format = "form"
)

// SchemeKind is the kind of a verification scheme.
type SchemeKind string

// The verification schemes of the http preset.
const (
	SchemeHMAC   SchemeKind = "hmac"
	SchemeBasic  SchemeKind = "basic"
	SchemeBearer SchemeKind = "bearer"
	SchemeHeader SchemeKind = "header"
	SchemeNone   SchemeKind = "none"
)

// Scheme is how a request of the http preset is verified.
type Scheme struct {
	Kind SchemeKind
	// Hash is sha256, sha1 or sha512, for hmac.
	Hash string
	// Header is the name of the header with the signature (hmac) or with the
	// secret (header).
	Header string
	// Encoding of the signature: hex or base64.
	Encoding string
	// Prefix stands before the signature in the header.
	Prefix string
	// Signed is what is signed, a text with {body}, {timestamp} and {id} in it;
	// "" is {body}.
	Signed string
	// TimestampHeader and IDHeader name the headers of {timestamp} and {id}.
	TimestampHeader, IDHeader string
	// Username is the expected user name of basic; the secret is the password.
	Username string
}

// Grain is how finely a provider's times tell its events apart.
type Grain time.Duration

// Sample is one delivery as the provider sends it.
type Sample struct {
	// Name is calendly/reschedule.new.invitee.created.
	Name string
	Body []byte
	// Header holds the headers that carry parts of the event, if any.
	Header http.Header
}

// Preset is the contract of a ready source: what it sends, and what event, id,
// type, time and envelope are.
type Preset struct {
	Name string
	// Doc tells in a few lines what the provider signs and sends, with the
	// source of each fact.
	Doc string
	// Types are the event types that it can send. Nil is any.
	Types []string
	// HasID and HasTime tell whether events carry an identity and a time.
	HasID, HasTime bool
	// Volatile are members of an event's body that differ from one delivery of
	// the event to the next.
	Volatile []string
	// Grain is the step of its times; 0 if HasTime is false.
	Grain Grain
	// TimeCaution tells why times may not order the events of one thing, and
	// what to do; "" if they do as well as their grain allows.
	TimeCaution string
	// Samples hold at least one delivery per type that is often used.
	Samples []Sample
	// Host is the host of the provider's API, "" if it has none.
	Host string
	// New makes a source. The error says which option is missing or wrong.
	New func(o Options) (Source, error)
}
