package hasura

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hookfold/hookfold/sink"
)

// client makes requests to one host and no other.
type client struct {
	endpoint *url.URL
	opts     Options
	web      *http.Client
	names    sync.Map // of tables, by their root names
}

func newClient(u *url.URL, opts Options) *client {
	transport := opts.Transport
	if transport == nil {
		transport = &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 8,
			IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second}
	}
	return &client{endpoint: u, opts: opts, web: &http.Client{
		Transport: transport,
		// A redirect could carry the secret elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (c *client) close() { c.web.CloseIdleConnections() }

// admin gives the URL of another API of the same Hasura, or "" where the
// endpoint's path does not tell it.
func (c *client) admin(path string) string {
	base, ok := strings.CutSuffix(c.endpoint.Path, "/v1/graphql")
	if !ok {
		return ""
	}
	u := *c.endpoint
	u.Path = base + path
	return u.String()
}

// graphql runs a request and returns its data. Errors are judged.
func (c *client) graphql(ctx context.Context, query string, variables json.RawMessage) (map[string]json.RawMessage, error) {
	body := requestBody(query, variables)
	status, header, answer, err := c.post(ctx, c.endpoint.String(), c.opts.Role, body)
	if err != nil {
		return nil, c.unreachable(err)
	}
	var out struct {
		Data   map[string]json.RawMessage `json:"data"`
		Errors []answerError              `json:"errors"`
	}
	parsed := json.Unmarshal(answer, &out) == nil
	switch {
	case parsed && len(out.Errors) > 0:
		return nil, c.judge(out.Errors[0], after(header))
	case status != http.StatusOK:
		return nil, c.judgeStatus(status, header, len(body))
	case !parsed || out.Data == nil:
		return nil, c.failed(sink.Retry, "", "the answer of %s is not GraphQL. Is it the GraphQL endpoint (…/v1/graphql)?", c.endpoint.Redacted())
	}
	return out.Data, nil
}

func requestBody(query string, variables json.RawMessage) []byte {
	var b bytes.Buffer
	b.WriteString(`{"query":`)
	quoted, _ := json.Marshal(query)
	b.Write(quoted)
	if variables != nil {
		b.WriteString(`,"variables":`)
		b.Write(variables)
	}
	b.WriteString("}")
	return b.Bytes()
}

var errLarge = errors.New("the answer is larger than MaxResponseBytes")

func (c *client) post(ctx context.Context, to, role string, body []byte) (int, http.Header, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	for k, v := range c.opts.Headers {
		r.Header[http.CanonicalHeaderKey(k)] = v
	}
	r.Header.Set("Content-Type", "application/json")
	if c.opts.AdminSecret != "" {
		r.Header.Set("X-Hasura-Admin-Secret", c.opts.AdminSecret)
	}
	if role != "" {
		r.Header.Set("X-Hasura-Role", role)
	}
	if c.opts.JWT != nil {
		token, err := c.opts.JWT(ctx)
		if err != nil {
			return 0, nil, nil, fmt.Errorf("getting a JWT: %w", err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w, err := c.web.Do(r)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) {
			err = at.Err
		}
		return 0, nil, nil, err
	}
	defer w.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(w.Body, c.opts.MaxResponseBytes+1))
	if err == nil && int64(len(answer)) > c.opts.MaxResponseBytes {
		err = errLarge
	}
	return w.StatusCode, w.Header, answer, err
}

// after reads Retry-After, in seconds or as a date; at most an hour counts.
func after(h http.Header) time.Duration {
	s := h.Get("Retry-After")
	if s == "" {
		return 0
	}
	d := time.Duration(0)
	if n, err := strconv.Atoi(s); err == nil {
		d = time.Duration(min(n, 3600)) * time.Second
	} else if at, err := http.ParseTime(s); err == nil {
		d = time.Until(at)
	}
	return min(max(d, 0), time.Hour)
}
