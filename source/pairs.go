package source

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxSignatures is how many signatures of one request are looked at. Providers
// send one per active secret.
const maxSignatures = 32

// pairs verifies a header of pairs, t=<seconds>,v1=<hex>, where v1 is the
// HMAC-SHA256 of t, a dot and the body. Stripe's and Calendly's are of this
// kind.
type pairs struct {
	header    string
	ring      keyring[[]byte]
	tolerance time.Duration
	// missing and advice end the refusals of a request without the header and
	// of one that no secret matches.
	missing, advice string
}

func (p *pairs) verify(r *Request, now time.Time) error {
	text := strings.Join(r.Header.Values(p.header), ",")
	if text == "" {
		return refuse("no %s header. %s", p.header, p.missing)
	}
	t, v1, err := parsePairs(text)
	if err != nil {
		return refuse("%s cannot be read: %s", p.header, err.(*Refusal).Reason)
	}
	signed, _ := signedSeconds(t)
	o := p.ring.try(now, func(key []byte) bool {
		want := p.sum(key, t, r.Body)
		match := false
		for _, got := range v1 {
			match = hmac.Equal(got, want) || match
		}
		return match
	})
	told := proof{"signature", []string{bodyFact(r.Body), ageFact(signed, now)}, p.advice}
	if err := told.judge(o); err != nil {
		return err
	}
	return checkAge(signed, now, p.tolerance)
}

func (p *pairs) sum(key []byte, t string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(t))
	mac.Write([]byte{'.'})
	mac.Write(body)
	return mac.Sum(nil)
}

func (p *pairs) sign(h http.Header, body []byte, at time.Time) error {
	key, err := p.ring.first(at)
	if err != nil {
		return err
	}
	t := strconv.FormatInt(at.Unix(), 10)
	h.Set(p.header, "t="+t+",v1="+hex.EncodeToString(p.sum(key, t, body)))
	return nil
}

// parsePairs reads t=…,v1=…: exactly one t, of digits, and the v1 that are hex.
// Other schemes are passed over, and so is a v1 that is not hex; a pair without
// exactly one "=" makes the header unreadable. The error is a *Refusal, and
// holds nothing of the header.
func parsePairs(text string) (t string, v1 [][]byte, err error) {
	n := 0
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok || strings.Contains(value, "=") {
			return "", nil, refuse("a part between its commas is not name=value.")
		}
		switch name {
		case "t":
			if _, digits := signedSeconds(value); !digits {
				return "", nil, refuse("its t is not a number of seconds since 1970.")
			}
			if t != "" {
				return "", nil, refuse("it has two t.")
			}
			t = value
		case "v1":
			if n++; n > maxSignatures {
				return "", nil, refuse("it has more than %d signatures.", maxSignatures)
			}
			if sig, err := hex.DecodeString(value); err == nil {
				v1 = append(v1, sig)
			}
		}
	}
	switch {
	case t == "":
		return "", nil, refuse("it has no t.")
	case n == 0:
		return "", nil, refuse("it has no v1 signature.")
	}
	return t, v1, nil
}
