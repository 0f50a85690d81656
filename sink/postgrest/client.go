package postgrest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// client makes requests to one host and no other.
type client struct {
	base    *url.URL
	gateway bool // Supabase's asks for the key once more
	opts    Options
	web     *http.Client
}

func httpClient(opts Options) *http.Client {
	transport := opts.Transport
	if transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = 16
		transport = t
	}
	return &http.Client{
		Transport: transport,
		// A redirect could carry the key elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// request is one request. Its query is in the order to be sent.
type request struct {
	method  string
	path    string // a table, or rpc/function; "" is the root
	query   []filter
	prefer  string
	profile string // the schema
	body    []byte
}

type filter struct{ key, value string }

// url writes the request's URL: a plus would be read as a space, so it goes
// encoded, and a space as %20.
func (r request) url(base *url.URL) string {
	var b strings.Builder
	b.WriteString(base.String() + "/")
	parts := strings.Split(r.path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	b.WriteString(strings.Join(parts, "/"))
	for i, f := range r.query {
		b.WriteByte("?&"[min(i, 1)])
		b.WriteString(escape(f.key) + "=" + escape(f.value))
	}
	return b.String()
}

// plain are characters that need no escape in a query, and make it readable.
var plain = strings.NewReplacer("+", "%20", "%28", "(", "%29", ")", "%2C", ",", "%3A", ":", "%2F", "/", "%2A", "*")

func escape(s string) string { return plain.Replace(url.QueryEscape(s)) }

// reply is an answer that is no error.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// do makes a request. An error is a *fault.
func (c *client) do(ctx context.Context, r request) (*reply, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	if len(r.body) > c.opts.MaxRequestBytes {
		return nil, tooLarge(fmt.Sprintf("%d bytes are more than one request may have (max_request: %d)", len(r.body), c.opts.MaxRequestBytes))
	}
	req, err := http.NewRequestWithContext(ctx, r.method, r.url(c.base), bytes.NewReader(r.body))
	if err != nil {
		return nil, c.unreachable(ctx, errors.New("the request cannot be made"))
	}
	for k, v := range c.opts.Headers {
		req.Header[http.CanonicalHeaderKey(k)] = v
	}
	req.Header.Set("Accept", "application/json")
	if r.path == "" {
		req.Header.Set("Accept", "application/openapi+json, application/json")
	}
	profile := "Content-Profile"
	if r.method == http.MethodGet || r.method == http.MethodHead {
		profile = "Accept-Profile"
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set(profile, r.profile)
	if r.prefer != "" {
		req.Header.Set("Prefer", r.prefer)
	}
	if c.opts.Key != "" {
		if c.gateway {
			req.Header.Set("apikey", c.opts.Key)
		}
		if !c.gateway || isToken(c.opts.Key) { // the gateway makes a token of other keys
			req.Header.Set("Authorization", "Bearer "+c.opts.Key)
		}
	}
	res, err := c.web.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, c.opts.MaxResponseBytes+1))
	switch {
	case err != nil:
		return nil, c.unreachable(ctx, err)
	case int64(len(body)) > c.opts.MaxResponseBytes:
		return nil, &fault{judged: operator("the REST API at %s answered more than %d bytes", c.base.Host, c.opts.MaxResponseBytes)}
	case res.StatusCode >= 300:
		return nil, c.judge(res, body)
	}
	return &reply{status: res.StatusCode, header: res.Header, body: body}, nil
}
