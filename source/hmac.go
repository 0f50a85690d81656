package source

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hookfold/hookfold/event"
)

// hmacScheme verifies a header that holds one signature, an HMAC over the body
// or over a template with the body in it.
type hmacScheme struct {
	scheme    Scheme
	hash      func() hash.Hash
	template  []piece
	ring      keyring[[]byte]
	tolerance time.Duration
	// missing and advice end the refusals of a request without the header and
	// of one that no secret matches.
	missing, advice string
}

// piece is a literal of a template, or one of its placeholders.
type piece struct{ literal, name string }

// hashes are the hash functions by name.
func hashNamed(name string) (func() hash.Hash, error) {
	switch name {
	case "sha256":
		return sha256.New, nil
	case "sha1":
		return sha1.New, nil
	case "sha512":
		return sha512.New, nil
	case "":
		return nil, errors.New("verify.hmac is missing: it is sha256, sha1 or sha512")
	}
	return nil, fmt.Errorf("verify.hmac: %q is not known: it is sha256, sha1 or sha512", name)
}

// newHMAC checks a scheme. The preset that makes it from fixed values sees no
// error but those of the secrets.
func newHMAC(s Scheme, o Options, missingSecret string) (*hmacScheme, error) {
	h := &hmacScheme{
		scheme: s, tolerance: tolerance(o.Tolerance, fiveMinutes),
		missing: "Does the sender sign its requests, and under this name?",
		advice:  "Is it the secret of this endpoint, and are hash, encoding and signed what the sender uses?",
	}
	var err error
	if h.hash, err = hashNamed(s.Hash); err != nil {
		return nil, err
	}
	if s.Header == "" {
		return nil, errors.New("verify.header is missing: name the header that holds the signature")
	}
	switch s.Encoding {
	case "hex", "base64":
	case "":
		return nil, errors.New("verify.encoding is missing: it is hex or base64")
	default:
		return nil, fmt.Errorf("verify.encoding: %q is not known: it is hex or base64", s.Encoding)
	}
	if h.template, err = parseTemplate(s); err != nil {
		return nil, err
	}
	h.ring, err = newKeyring(o.Secrets, missingSecret, textKey)
	return h, err
}

// parseTemplate reads what is signed. Everything that a scheme names must be
// in it: what is not signed can be changed by anybody on the way.
func parseTemplate(s Scheme) ([]piece, error) {
	text := s.Signed
	if text == "" {
		text = "{body}"
	}
	var pieces []piece
	used := map[string]bool{}
	for text != "" {
		open := strings.IndexByte(text, '{')
		if open < 0 {
			pieces = append(pieces, piece{literal: text})
			break
		}
		if open > 0 {
			pieces = append(pieces, piece{literal: text[:open]})
		}
		name, rest, closed := strings.Cut(text[open+1:], "}")
		if !closed || name != "body" && name != "timestamp" && name != "id" {
			return nil, errors.New("verify.signed: after { stands body}, timestamp} or id}, nothing else")
		}
		used[name] = true
		pieces, text = append(pieces, piece{name: name}), rest
	}
	switch {
	case !used["body"]:
		return nil, errors.New("verify.signed has no {body}: anybody could change the body of a signed request")
	case used["timestamp"] && s.TimestampHeader == "":
		return nil, errors.New("verify.timestamp_header is missing: name the header whose value is the {timestamp} of verify.signed")
	case used["id"] && s.IDHeader == "":
		return nil, errors.New("verify.id_header is missing: name the header whose value is the {id} of verify.signed")
	case s.TimestampHeader != "" && !used["timestamp"]:
		return nil, errors.New(`verify.timestamp_header is given, but verify.signed has no {timestamp}: a time that is not signed proves nothing. Write, for example, signed: "{timestamp}.{body}"`)
	case s.IDHeader != "" && !used["id"]:
		return nil, errors.New(`verify.id_header is given, but verify.signed has no {id}: an id that is not signed can be changed. Write, for example, signed: "{id}.{timestamp}.{body}"`)
	}
	return pieces, nil
}

func (h *hmacScheme) verify(r *Request, now time.Time) error {
	values := r.Header.Values(h.scheme.Header)
	if len(values) == 0 {
		return refuse("no %s header. %s", h.scheme.Header, h.missing)
	}
	if len(values) > maxSignatures {
		return refuse("more than %d %s headers.", maxSignatures, h.scheme.Header)
	}
	sigs, err := h.decode(values)
	if err != nil {
		return err
	}
	told := proof{"signature", []string{bodyFact(r.Body)}, h.advice}
	timestamp, id, signed := "", "", now
	if name := h.scheme.TimestampHeader; name != "" {
		if timestamp = r.Header.Get(name); timestamp == "" {
			return refuse("no %s header, whose value is signed. %s", name, h.missing)
		}
		if signed, err = event.ParseTime(timestamp, nil); err != nil {
			return refuse("%s cannot be read as a time: give seconds or milliseconds since 1970, or ISO 8601 with an offset.", name)
		}
		told.facts = append(told.facts, ageFact(signed, now))
	}
	if name := h.scheme.IDHeader; name != "" {
		if id = r.Header.Get(name); id == "" {
			return refuse("no %s header, whose value is signed. %s", name, h.missing)
		}
	}
	o := h.ring.try(now, func(key []byte) bool {
		want := h.sum(key, timestamp, id, r.Body)
		match := false
		for _, got := range sigs {
			match = hmac.Equal(got, want) || match
		}
		return match
	})
	if err := told.judge(o); err != nil || h.scheme.TimestampHeader == "" {
		return err
	}
	return checkAge(signed, now, h.tolerance)
}

// decode reads the signatures of the header's values. The error is a refusal if
// none can be read.
func (h *hmacScheme) decode(values []string) ([][]byte, error) {
	var sigs [][]byte
	var why string
	for _, v := range values {
		text, ok := strings.CutPrefix(strings.TrimSpace(v), h.scheme.Prefix)
		if !ok {
			why = fmt.Sprintf("does not begin with %q", h.scheme.Prefix)
			continue
		}
		sig, err := decodeSignature(text, h.scheme.Encoding)
		if size := h.hash().Size(); err != nil || len(sig) != size {
			why = fmt.Sprintf("is not a signature of %d bytes in %s", size, h.scheme.Encoding)
			continue
		}
		sigs = append(sigs, sig)
	}
	if len(sigs) == 0 {
		return nil, refuse("%s %s. Are hash, encoding and prefix what the sender uses?", h.scheme.Header, why)
	}
	return sigs, nil
}

// decodeSignature reads hex in either case, or base64 in either alphabet with
// or without padding.
func decodeSignature(text, encoding string) ([]byte, error) {
	if encoding == "hex" {
		return hex.DecodeString(text)
	}
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	return base64.RawStdEncoding.DecodeString(text)
}

func (h *hmacScheme) sum(key []byte, timestamp, id string, body []byte) []byte {
	mac := hmac.New(h.hash, key)
	for _, p := range h.template {
		switch p.name {
		case "body":
			mac.Write(body)
		case "timestamp":
			mac.Write([]byte(timestamp))
		case "id":
			mac.Write([]byte(id))
		default:
			mac.Write([]byte(p.literal))
		}
	}
	return mac.Sum(nil)
}

func (h *hmacScheme) sign(header http.Header, body []byte, at time.Time) error {
	key, err := h.ring.first(at)
	if err != nil {
		return err
	}
	timestamp, id := "", ""
	if name := h.scheme.TimestampHeader; name != "" {
		timestamp = strconv.FormatInt(at.Unix(), 10)
		header.Set(name, timestamp)
	}
	if name := h.scheme.IDHeader; name != "" {
		if id = header.Get(name); id == "" {
			id = messageID(body)
			header.Set(name, id)
		}
	}
	sum := h.sum(key, timestamp, id, body)
	text := hex.EncodeToString(sum)
	if h.scheme.Encoding == "base64" {
		text = base64.StdEncoding.EncodeToString(sum)
	}
	header.Set(h.scheme.Header, h.scheme.Prefix+text)
	return nil
}

// messageID makes an id for a body that is sent without one: the same body has
// the same id, as a redelivery has.
func messageID(body []byte) string {
	sum := sha256.Sum256(body)
	return "msg_" + hex.EncodeToString(sum[:12])
}
