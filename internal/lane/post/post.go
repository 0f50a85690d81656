// Package post gives the events of a lane to an HTTP service, signed as Standard
// Webhooks says.
package post

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hookfold/hookfold/internal/backoff"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/lane"
)

// Options configure a Poster.
type Options struct {
	// Post says where to, with which secrets and headers. Required.
	Post *config.Post
	// Timeout bounds one request with its answer; default 15 s.
	Timeout time.Duration
	// Connections is the most connections that are kept; default 16.
	Connections int
	// Now is the clock; default time.Now.
	Now func() time.Time
}

// Poster posts messages. It is safe for concurrent use.
type Poster struct {
	o      Options
	client *http.Client
	host   string
}

// maxAnswer is how many bytes of an answer are read: enough to use the connection
// again, and to say what was wrong.
const maxAnswer = 64 << 10

// New returns a poster.
func New(o Options) *Poster {
	if o.Timeout <= 0 {
		o.Timeout = 15 * time.Second
	}
	if o.Connections <= 0 {
		o.Connections = 16
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	p := &Poster{o: o, client: &http.Client{
		// The service was named, and no other: neither its redirects nor a proxy of
		// the environment lead elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            (&net.Dialer{Timeout: min(o.Timeout, 5*time.Second)}).DialContext,
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    min(o.Timeout, 5*time.Second),
			MaxIdleConnsPerHost:    o.Connections,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
	}}
	if u, err := url.Parse(o.Post.URL); err == nil {
		p.host = u.Host
	}
	return p
}

// Close ends the connections that are not in use.
func (p *Poster) Close() { p.client.CloseIdleConnections() }

// Deliver posts a message once.
func (p *Poster) Deliver(ctx context.Context, m *lane.Message) lane.Answer {
	ctx, cancel := context.WithTimeout(ctx, p.o.Timeout)
	defer cancel()
	req, err := p.request(ctx, m)
	if err != nil {
		return lane.Answer{Reason: err.Error()}
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return p.failed(ctx, err)
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil && resp.StatusCode/100 != 2 {
		return p.failed(ctx, err)
	}
	return answer(resp, said, p.o.Now())
}

func (p *Poster) request(ctx context.Context, m *lane.Message) (*http.Request, error) {
	body := m.Body()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.o.Post.URL, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	h := req.Header
	for _, x := range p.o.Post.Headers {
		h.Set(x.Name, x.Value)
	}
	id, at := m.ID(), strconv.FormatInt(p.o.Now().Unix(), 10)
	h.Set("Content-Type", "application/json")
	if h.Get("User-Agent") == "" {
		h.Set("User-Agent", "Hookfold")
	}
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", at)
	if len(p.o.Post.Secrets) > 0 {
		h.Set("Webhook-Signature", Sign(p.o.Post.Secrets, id, at, body))
	}
	h.Set("Hookfold-Lane", m.Lane)
	h.Set("Hookfold-Key", url.PathEscape(m.Key)) // any text is a key, and not any text a header
	h.Set("Hookfold-Sequence", strconv.FormatInt(lane.Sequence(m.Event.Ref()), 10))
	h.Set("Hookfold-Attempt", strconv.Itoa(m.Attempt))
	return req, nil
}

// Sign gives the signatures of a body by each of the secrets, as Standard
// Webhooks writes them.
func Sign(secrets [][]byte, id, timestamp string, body []byte) string {
	var all []string
	for _, key := range secrets {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(all, " ")
}

// failed tells what a request without an answer means. Where no connection came
// to be, nothing was sent, and no key is at fault.
func (p *Poster) failed(ctx context.Context, err error) lane.Answer {
	var dial *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &dial) && dial.Op == "dial":
		return lane.Answer{Down: true, Reason: fmt.Sprintf("%s cannot be reached: %v", p.host, dial.Err)}
	case errors.As(err, &certificate):
		return lane.Answer{Down: true, Reason: fmt.Sprintf("%s: %v", p.host, certificate)}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return lane.Answer{Reason: fmt.Sprintf("%s did not answer within %s", p.host, p.o.Timeout)}
	}
	var u *url.Error // which repeats the URL, and that may hold a secret
	if errors.As(err, &u) {
		err = u.Err
	}
	return lane.Answer{Reason: fmt.Sprintf("%s: %v", p.host, err)}
}

// answer tells what an answer means.
func answer(resp *http.Response, said []byte, now time.Time) lane.Answer {
	a := lane.Answer{Reason: fmt.Sprintf("answered %d", resp.StatusCode)}
	if text := shown(said); text != "" {
		a.Reason += ": " + text
	}
	a.After, _ = backoff.RetryAfter(resp.Header, now)
	switch code := resp.StatusCode; {
	case code/100 == 2:
		return lane.Answer{OK: true}
	case code == http.StatusGone:
		a.Gone = true
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		a.Busy = true
	case code/100 == 3:
		a.Reason = fmt.Sprintf("answered %d, and redirects are not followed: give post: the URL it is at", code)
	}
	return a
}

// shown renders the beginning of an answer in a line.
func shown(said []byte) string {
	const most = 200
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(said[:min(len(said), 4*most)]), "\uFFFD")), " ")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text)
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return text
}
