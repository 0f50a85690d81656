package source

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// static verifies a header that is the same in every request: a bearer token,
// the user and password of basic authentication, or a header of any name.
type static struct {
	header string
	// what names the secret part in refusals; prefix stands before it.
	what, prefix string
	// username is the expected user of basic authentication; "" for the other
	// kinds.
	username string
	ring     keyring[staticKey]
}

// staticKey is a secret and its digest. Digests are compared, so that not even
// the length of a secret shows in the time taken.
type staticKey struct {
	text   string
	digest [sha256.Size]byte
}

func newStaticKey(text string) (staticKey, error) {
	for _, c := range []byte(text) {
		if c < ' ' || c == 0x7f {
			return staticKey{}, errors.New("holds a control character, which no header can carry")
		}
	}
	return staticKey{text, sha256.Sum256([]byte(text))}, nil
}

// newStatic makes the scheme of kind bearer, header or basic.
func newStatic(s Scheme, o Options, missingSecret string) (*static, error) {
	v := &static{header: "Authorization"}
	switch s.Kind {
	case SchemeBearer:
		v.what, v.prefix = "bearer token", "Bearer "
	case SchemeBasic:
		if s.Username == "" {
			return nil, errors.New("verify.username is missing: name the user; the secret is the password")
		}
		if strings.Contains(s.Username, ":") {
			return nil, errors.New(`verify.username holds a ":", which basic authentication cannot carry`)
		}
		v.what, v.prefix, v.username = "password", "Basic ", s.Username
	case SchemeHeader:
		if s.Header == "" {
			return nil, errors.New("verify.header is missing: name the header that holds the secret")
		}
		v.header, v.what, v.prefix = s.Header, "value of "+s.Header, s.Prefix
	default:
		return nil, fmt.Errorf("verify: %q is no scheme with a static header", s.Kind)
	}
	ring, err := newKeyring(o.Secrets, missingSecret, newStaticKey)
	v.ring = ring
	return v, err
}

func (v *static) verify(r *Request, now time.Time) error {
	text := r.Header.Get(v.header)
	if text == "" {
		return refuse("no %s header. The sender must send the secret in it with every request.", v.header)
	}
	user, secret, ok := v.read(text)
	if !ok {
		return refuse("%s is not of the kind expected: it must begin with %q.", v.header, v.prefix)
	}
	got := sha256.Sum256([]byte(secret))
	o := v.ring.try(now, func(key staticKey) bool {
		return subtle.ConstantTimeCompare(got[:], key.digest[:]) == 1
	})
	advice := "Is it the one that the sender was given?"
	if subtle.ConstantTimeCompare([]byte(user), []byte(v.username)) == 0 {
		if o.matched {
			return refuse("the user name is not the expected %s; the password is right.", v.username)
		}
		advice = "The user name is not the expected " + v.username + " either."
	}
	return proof{v.what, nil, advice}.judge(o)
}

// read takes the value of the header apart; user is "" but for basic
// authentication.
func (v *static) read(text string) (user, secret string, ok bool) {
	if v.username != "" {
		return (&http.Request{Header: http.Header{"Authorization": {text}}}).BasicAuth()
	}
	if len(text) < len(v.prefix) || !strings.EqualFold(text[:len(v.prefix)], v.prefix) {
		return "", "", false
	}
	return "", text[len(v.prefix):], true
}

func (v *static) sign(h http.Header, _ []byte, at time.Time) error {
	key, err := v.ring.first(at)
	if err != nil {
		return err
	}
	text := key.text
	if v.username != "" {
		text = base64.StdEncoding.EncodeToString([]byte(v.username + ":" + text))
	}
	h.Set(v.header, v.prefix+text)
	return nil
}
