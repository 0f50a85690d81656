package source

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// verifier is one scheme: it verifies requests, and signs as the sender does.
type verifier interface {
	verify(r *Request, now time.Time) error
	sign(h http.Header, body []byte, at time.Time) error
}

// newScheme makes the verifier of any scheme.
func newScheme(o Options) (verifier, error) {
	const secret = "the secret that the sender signs with or sends"
	switch s := o.Verify; s.Kind {
	case SchemeHMAC:
		return newHMAC(s, o, secret)
	case SchemeBasic, SchemeBearer, SchemeHeader:
		return newStatic(s, o, secret)
	case SchemeNone:
		return newUnverified(o)
	case "":
		return nil, errors.New("verify is missing: say how requests are verified: hmac, basic, bearer, header, or none to believe everybody")
	default:
		return nil, fmt.Errorf("verify: %q is not known: it is hmac, basic, bearer, header or none", s.Kind)
	}
}

// newUnsigned makes the verifier of a provider that signs nothing and only sends
// static headers: a bearer token unless the options say otherwise.
func newUnsigned(o Options, secret string) (verifier, error) {
	switch s := o.Verify; s.Kind {
	case "":
		if s.Header != "" {
			s.Kind = SchemeHeader
		} else {
			s.Kind = SchemeBearer
		}
		return newStatic(s, o, secret)
	case SchemeBasic, SchemeBearer, SchemeHeader:
		return newStatic(s, o, secret)
	case SchemeNone:
		return newUnverified(o)
	default:
		return nil, fmt.Errorf("verify: %q cannot be, because this provider does not sign: it is bearer (default), header, basic or none", s.Kind)
	}
}

// unverified believes every request.
type unverified struct{}

func newUnverified(o Options) (unverified, error) {
	if len(o.Secrets) > 0 {
		return unverified{}, errors.New("verify: none looks at no secrets, but some are given: remove them, or choose hmac, basic, bearer or header")
	}
	return unverified{}, nil
}

func (unverified) verify(*Request, time.Time) error { return nil }

func (unverified) sign(http.Header, []byte, time.Time) error {
	return fmt.Errorf("%w: its verify is none", ErrUnsigned)
}
