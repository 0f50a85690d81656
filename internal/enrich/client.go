package enrich

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/backoff"
)

const (
	maxRedirects   = 3
	maxHeaderBytes = 64 << 10
	maxSaid        = 200      // bytes of an answer that is no object that are told
	maxScrubbed    = 64 << 10 // bytes of it that are looked through for secrets, before it is cut
)

// kept are the headers of an answer that are kept with it.
var kept = []string{"Content-Type", "Etag", "Last-Modified", "Date"}

// newTransport makes the connections of one fetch. No proxy of the environment
// is used: it would look addresses up where nobody judges them.
func newTransport(s *Spec) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			d := &net.Dialer{Timeout: s.Timeout, KeepAlive: 30 * time.Second}
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			if !s.AllowsPrivate(&url.URL{Host: address}) {
				d.Control = control(host)
			}
			return d.DialContext(ctx, network, address)
		},
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    max(1, s.Concurrency),
		IdleConnTimeout:        time.Minute,
		TLSHandshakeTimeout:    s.Timeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

// outcome is what came of one request.
type outcome struct {
	answer *event.Fetched // nil if it failed
	// Of a failure: what a person reads; whether it is of no use to try again;
	// whether it counts towards the limit of tries; whether the API does not know,
	// or not want, who asks.
	reason               string
	final, counts        bool
	denied, unauthorized bool
	// hold tells that the host wants nothing for so long; asked that it said how
	// long.
	hold, asked bool
	pause       time.Duration
}

func failed(format string, args ...any) outcome {
	return outcome{reason: fmt.Sprintf(format, args...), counts: true}
}

func useless(format string, args ...any) outcome {
	return outcome{reason: fmt.Sprintf(format, args...), final: true}
}

// ask makes one request, with its redirects.
func (s *Spec) ask(ctx context.Context, client *http.Client, f *flight) outcome {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	at, header := f.url, s.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	for name, values := range f.header {
		header[name] = values
	}
	header.Set("User-Agent", "hookfold")
	for hop := 0; ; hop++ {
		r := (&http.Request{Method: http.MethodGet, URL: at, Header: header, Host: at.Host}).WithContext(ctx)
		resp, err := client.Do(r)
		if err != nil {
			return s.unreached(at, err)
		}
		next, o := s.answered(at, resp, f.began)
		if err := resp.Body.Close(); err != nil && o.answer != nil {
			return failed("%s: %v", shown(at), err)
		}
		if next == nil {
			return o
		}
		if hop == maxRedirects {
			return useless("%s redirects more than %d times", shown(f.url), maxRedirects)
		}
		if err := s.Allows(next); err != nil {
			return useless("%s redirects to %v", shown(at), err)
		}
		if at.Scheme == "https" && next.Scheme != "https" {
			return useless("%s redirects to %s, which is not https", shown(at), shown(next))
		}
		if !sameOrigin(at, next) {
			header = http.Header{"Accept": header["Accept"], "User-Agent": header["User-Agent"]}
		}
		at = next
	}
}

// sameOrigin tells whether credentials for one URL may be sent to another.
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// unreached tells of a request without an answer.
func (s *Spec) unreached(at *url.URL, err error) outcome {
	var address *addressError
	if errors.As(err, &address) {
		return useless("%s: %v", shown(at), address)
	}
	var of *url.Error // which repeats the URL
	if errors.As(err, &of) {
		err = of.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return failed("%s did not answer within %s", shown(at), s.Timeout)
	}
	return failed("%s cannot be read: %s", shown(at), s.scrub(err.Error()))
}

// answered judges an answer. next is where it redirects to, nil if it does not.
func (s *Spec) answered(at *url.URL, resp *http.Response, began time.Time) (next *url.URL, o outcome) {
	now := time.Now()
	status := resp.StatusCode
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		to, err := resp.Location()
		if err != nil {
			return nil, useless("%s answered %d without a Location that can be read", shown(at), status)
		}
		return to, o
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, s.MaxBody+1))
	long := int64(len(body)) > s.MaxBody
	if err == nil && !long && (status/100 == 2 || status == http.StatusNotFound || status == http.StatusGone) {
		o = s.object(at, resp, body, began)
	} else {
		o = s.refusal(at, status, resp.Header, body, now)
		switch {
		case err != nil && errors.Is(err, context.DeadlineExceeded):
			o = failed("%s did not answer within %s", shown(at), s.Timeout)
		case err != nil && status/100 == 2:
			o = failed("%s cannot be read to the end: %s", shown(at), s.scrub(err.Error()))
		case long && status/100 == 2:
			o = useless("%s answered with more than %d bytes: raise max_body: of the fetch", shown(at), s.MaxBody)
		}
	}
	if pause, left := exhausted(resp.Header, now); left && !o.hold {
		o.hold, o.asked, o.pause = true, true, pause
	}
	return nil, o
}

// object gives an answer to be mapped.
func (s *Spec) object(at *url.URL, resp *http.Response, body []byte, began time.Time) outcome {
	answer := &event.Fetched{Status: resp.StatusCode, At: began.UTC(), Header: http.Header{}}
	if resp.StatusCode/100 != 2 {
		switch s.NotFound {
		case NotFoundRetry:
			return failed("%s answered %d %s: the object is not there, or not yet", shown(at), resp.StatusCode, http.StatusText(resp.StatusCode))
		case NotFoundDead:
			return useless("%s answered %d %s", shown(at), resp.StatusCode, http.StatusText(resp.StatusCode))
		}
		return outcome{answer: answer}
	}
	if len(strings.TrimSpace(string(body))) > 0 {
		if _, err := event.ParseJSON(body); err != nil {
			return failed("%s answered %d with what is no JSON (%s): %v", shown(at), resp.StatusCode, said(resp.Header.Get("Content-Type")), err)
		}
		answer.Body = body
	}
	for _, name := range kept {
		if v := resp.Header.Values(name); len(v) > 0 {
			answer.Header[name] = v
		}
	}
	return outcome{answer: answer}
}

// refusal judges an answer that is none to be mapped.
func (s *Spec) refusal(at *url.URL, status int, h http.Header, body []byte, now time.Time) outcome {
	o := failed("%s answered %d %s", shown(at), status, http.StatusText(status))
	if text := said(s.scrub(string(body[:min(len(body), maxScrubbed)]))); text != "" {
		o.reason += ": " + text
	}
	pause, asked := backoff.RetryAfter(h, now)
	spent, left := exhausted(h, now)
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusForbidden && (asked || left):
		o.counts, o.hold = false, true
		if o.asked = asked || left; !asked {
			pause = spent
		}
		o.pause = pause
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		o.counts, o.denied, o.unauthorized = false, true, status == http.StatusUnauthorized
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusLocked, status == http.StatusTooEarly, status == http.StatusMisdirectedRequest:
		o.hold, o.asked, o.pause = asked, asked, pause
	default:
		o.counts, o.final = false, true
	}
	return o
}

// exhausted reads the headers by which APIs tell that nothing more is left until
// a time, which some give as seconds from now and some since 1970.
func exhausted(h http.Header, now time.Time) (pause time.Duration, is bool) {
	for _, prefix := range []string{"X-Ratelimit-", "Ratelimit-"} {
		left, ok := backoff.Seconds(strings.TrimSpace(h.Get(prefix + "Remaining")))
		if !ok || left > 0 {
			continue
		}
		reset, ok := backoff.Seconds(strings.TrimSpace(h.Get(prefix + "Reset")))
		switch {
		case !ok:
			continue
		case reset > 10*365*24*time.Hour:
			reset = max(0, time.Unix(0, 0).Add(reset).Sub(now))
		}
		return min(reset, maxHold), true
	}
	return 0, false
}

// maxHold is the longest pause that limit headers may ask for.
const maxHold = time.Hour

// shown is a URL for a person.
func shown(u *url.URL) string { return cut(u.Redacted(), 2*maxSaid) }

// said is the beginning of a text from outside, on one line.
func said(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text[:min(len(text), 4*maxSaid)], " "))
	return cut(strings.Join(strings.Fields(text), " "), maxSaid)
}

func cut(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// scrub takes the secrets of the fetch out of a text: an API may repeat them.
func (s *Spec) scrub(text string) string {
	for name, values := range s.Header {
		if name == "Accept" || name == "Accept-Language" || name == "Content-Type" {
			continue
		}
		for _, v := range values {
			secrets := []string{v}
			if scheme, rest, ok := strings.Cut(v, " "); ok {
				secrets = append(secrets, rest)
				if plain, err := base64.StdEncoding.DecodeString(rest); err == nil && scheme == "Basic" {
					_, password, _ := strings.Cut(string(plain), ":")
					secrets = append(secrets, password)
				}
			}
			for _, secret := range secrets {
				if len(secret) > 3 {
					text = strings.ReplaceAll(text, secret, "…")
				}
			}
		}
	}
	return text
}
