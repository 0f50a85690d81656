package demo

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/source"
)

// Connections is how many requests are under way at once.
const Connections = 64

// Signer sets the headers with which a provider would send a request.
type Signer func(r Request, h http.Header) error

// SignerOf signs as the sources of a plan expect it.
func SignerOf(plan *mapping.Plan) Signer {
	return func(r Request, h http.Header) error {
		signer, ok := plan.Source(r.Source).Source.(source.Signer)
		if !ok {
			return source.ErrUnsigned
		}
		return signer.Sign(h, r.Body, time.Now())
	}
}

// unsigned signs nothing.
func unsigned(Request, http.Header) error { return nil }

// Fire sends every request to the server at base, in order but 64 at a time,
// and again where the answer is 503, as a provider would. It tells of every
// answer, or of the error in place of one; calls of answered do not overlap.
// An error from it ends everything and is returned.
func Fire(ctx context.Context, base string, requests []Request, sign Signer, answered func(r Request, status int, err error) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	transport := &http.Transport{MaxIdleConnsPerHost: Connections, MaxConnsPerHost: Connections}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: 30 * time.Second}

	var mu sync.Mutex
	tell := func(r Request, status int, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err := answered(r, status, err); err != nil {
			cancel(err)
		}
	}
	queue := make(chan Request)
	var workers sync.WaitGroup
	for range Connections {
		workers.Go(func() {
			for r := range queue {
				deliver(ctx, client, base, r, sign, tell)
			}
		})
	}
feed:
	for _, r := range requests {
		select {
		case queue <- r:
		case <-ctx.Done():
			break feed
		}
	}
	close(queue)
	workers.Wait()
	return context.Cause(ctx)
}

// deliver sends one request until the answer is another than 503.
func deliver(ctx context.Context, client *http.Client, base string, r Request, sign Signer, tell func(Request, int, error)) {
	for {
		status, after, err := once(ctx, client, base, r, sign)
		tell(r, status, err)
		if err != nil || status != http.StatusServiceUnavailable {
			return
		}
		select {
		case <-time.After(after):
		case <-ctx.Done():
			return
		}
	}
}

func once(ctx context.Context, client *http.Client, base string, r Request, sign Signer) (status int, after time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/in/"+r.Source, bytes.NewReader(r.Body))
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if err := sign(r, req.Header); err != nil {
		return 0, 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, 0, err
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // absent: soon
	return resp.StatusCode, time.Duration(max(1, min(seconds, 5))) * time.Second, nil
}
