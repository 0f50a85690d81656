package source

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hookfold/hookfold/event"
)

// standardWebhooks is the preset of the Standard Webhooks specification, which
// Svix and whoever sends through it follow.
func standardWebhooks() *Preset {
	return &Preset{
		Name: "standard-webhooks",
		Doc: `Standard Webhooks (standardwebhooks.com), and Svix.

Signed: webhook-id, webhook-timestamp and webhook-signature, or the same with svix-. The signature is a list, separated by spaces, of v1,<base64> (HMAC-SHA256) and v1a,<base64> (ed25519) over the id, a dot, the timestamp, a dot and the raw body; one that matches is enough, and other versions do not count. A request with svix-id is read by its svix- headers alone.
secrets: whsec_… (base64, with or without the prefix) for v1; the sender's public key whpk_… for v1a. A private key whsk_… also signs.
Tolerance: 300 s, both ways. (specification and reference libraries of standard-webhooks; Svix libraries)
event: the whole body. The specification recommends type, timestamp and data in it, and requires nothing.
type: the body's type. id: the webhook-id header, the same in every retry. time: the body's timestamp, when the event happened; the webhook-timestamp header is only when this attempt was made.
Sent in no order.`,
		HasID:   true,
		HasTime: true,
		Grain:   Grain(time.Microsecond),
		Samples: samples("standard-webhooks"),
		New: func(o Options) (Source, error) {
			ring, err := newKeyring(o.Secrets, "the signing secret of the endpoint (whsec_…), or the sender's public key (whpk_…)", newWebhookKey)
			return build(&webhooks{ring, tolerance(o.Tolerance, fiveMinutes)}, err, built{options: o, split: splitWebhooks(o.Zone)})
		},
	}
}

func splitWebhooks(zone *time.Location) func(*event.Delivery, event.JSON) ([]*event.Event, error) {
	return func(d *event.Delivery, body event.JSON) ([]*event.Event, error) {
		e := whole(body)
		e.ID = d.Header.Get(headerFamily(d.Header) + "Id")
		e.Type = body.Get("type").Text()
		setTime(e, body.Get("timestamp"), "timestamp", zone)
		return []*event.Event{e}, nil
	}
}

// headerFamily tells by which headers a request is read, for its signature and
// for its id alike.
func headerFamily(h http.Header) string {
	if h.Get("Svix-Id") != "" {
		return "Svix-"
	}
	return "Webhook-"
}

// webhooks verifies requests as the specification says.
type webhooks struct {
	ring      keyring[webhookKey]
	tolerance time.Duration
}

// webhookKey is a symmetric key, or a public key with or without its private
// one.
type webhookKey struct {
	symmetric []byte
	public    ed25519.PublicKey
	private   ed25519.PrivateKey
}

func newWebhookKey(text string) (webhookKey, error) {
	kind, rest := "whsec_", strings.TrimPrefix(strings.TrimPrefix(text, "v1,"), "v1a,")
	for _, prefix := range []string{"whsec_", "whpk_", "whsk_"} {
		if after, ok := strings.CutPrefix(rest, prefix); ok {
			kind, rest = prefix, after
			break
		}
	}
	key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(rest, "="))
	switch {
	case err != nil:
		return webhookKey{}, errors.New(`is not base64 after its prefix. If the sender signs with the text itself, use preset http with signed: "{id}.{timestamp}.{body}"`)
	case len(key) == 0:
		return webhookKey{}, errors.New("has nothing after its prefix: with an empty key anybody could sign")
	case kind == "whpk_" && len(key) == ed25519.PublicKeySize:
		return webhookKey{public: key}, nil
	case kind == "whpk_":
		return webhookKey{}, fmt.Errorf("is a public key of %d bytes, where ed25519 has %d", len(key), ed25519.PublicKeySize)
	case kind == "whsk_" && len(key) == ed25519.SeedSize, kind == "whsk_" && len(key) == ed25519.PrivateKeySize:
		private := ed25519.NewKeyFromSeed(key[:ed25519.SeedSize])
		return webhookKey{private: private, public: private.Public().(ed25519.PublicKey)}, nil
	case kind == "whsk_":
		return webhookKey{}, fmt.Errorf("is a private key of %d bytes, where ed25519 has %d or %d", len(key), ed25519.SeedSize, ed25519.PrivateKeySize)
	}
	return webhookKey{symmetric: key}, nil
}

func (w *webhooks) verify(r *Request, now time.Time) error {
	family := headerFamily(r.Header)
	for _, name := range []string{"Id", "Timestamp", "Signature"} {
		if r.Header.Get(family+name) == "" {
			return refuse("no %s header. Does the sender sign as Standard Webhooks says, and does every proxy pass its headers on?", strings.ToLower(family+name))
		}
	}
	timestamp := r.Header.Get(family + "Timestamp")
	signed, ok := signedSeconds(timestamp)
	if !ok {
		return refuse("%s is not a number of seconds since 1970.", strings.ToLower(family+"Timestamp"))
	}
	v1, v1a, err := parseSignatures(strings.Join(r.Header.Values(family+"Signature"), " "))
	if err != nil {
		return err
	}
	message := signedMessage(r.Header.Get(family+"Id"), timestamp, r.Body)
	symmetric, public := false, false
	o := w.ring.try(now, func(key webhookKey) bool {
		match := false
		if key.symmetric != nil {
			symmetric = true
			want := hmacSHA256(key.symmetric, message)
			for _, got := range v1 {
				match = hmac.Equal(got, want) || match
			}
			return match
		}
		public = true
		for _, got := range v1a {
			match = ed25519.Verify(key.public, message, got) || match
		}
		return match
	})
	advice := "Is it the secret of this endpoint?"
	switch {
	case !symmetric && len(v1a) == 0:
		advice = "The request has only v1 signatures, and only public keys (whpk_) are given: add the whsec_ secret."
	case !public && len(v1) == 0:
		advice = "The request has only v1a signatures: add the sender's public key (whpk_)."
	}
	told := proof{"signature", []string{bodyFact(r.Body), ageFact(signed, now)}, advice}
	if err := told.judge(o); err != nil {
		return err
	}
	return checkAge(signed, now, w.tolerance)
}

// parseSignatures reads a list of v1,<base64> and v1a,<base64>. Other versions,
// parts without a comma and what is not base64 are passed over.
func parseSignatures(text string) (v1, v1a [][]byte, err error) {
	n := 0
	for part := range strings.FieldsSeq(text) {
		version, value, ok := strings.Cut(part, ",")
		if !ok || version != "v1" && version != "v1a" {
			continue
		}
		if n++; n > maxSignatures {
			return nil, nil, refuse("the signature header has more than %d signatures.", maxSignatures)
		}
		sig, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			continue
		}
		if version == "v1" {
			v1 = append(v1, sig)
		} else {
			v1a = append(v1a, sig)
		}
	}
	if n == 0 {
		return nil, nil, refuse("the signature header has no v1 or v1a signature.")
	}
	return v1, v1a, nil
}

func signedMessage(id, timestamp string, body []byte) []byte {
	m := make([]byte, 0, len(id)+len(timestamp)+len(body)+2)
	m = append(append(m, id...), '.')
	m = append(append(m, timestamp...), '.')
	return append(m, body...)
}

func hmacSHA256(key, message []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(message)
	return mac.Sum(nil)
}

// sign keeps an id that is set already; else the same body has the same id.
func (w *webhooks) sign(h http.Header, body []byte, at time.Time) error {
	key, err := w.ring.first(at)
	if err != nil {
		return err
	}
	if key.symmetric == nil && key.private == nil {
		return fmt.Errorf("%w: its first secret is a public key; signing needs the private one (whsk_)", ErrUnsigned)
	}
	family := headerFamily(h)
	if h.Get(family+"Id") == "" {
		h.Set(family+"Id", messageID(body))
	}
	timestamp := strconv.FormatInt(at.Unix(), 10)
	h.Set(family+"Timestamp", timestamp)
	message := signedMessage(h.Get(family+"Id"), timestamp, body)
	if key.private != nil {
		h.Set(family+"Signature", "v1a,"+base64.StdEncoding.EncodeToString(ed25519.Sign(key.private, message)))
		return nil
	}
	h.Set(family+"Signature", "v1,"+base64.StdEncoding.EncodeToString(hmacSHA256(key.symmetric, message)))
	return nil
}
