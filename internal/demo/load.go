package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// connections is how many requests are under way at once.
const connections = 64

// Answers counts the answers of a server by status.
type Answers map[int]int

// signer sets the headers with which a provider would send a request.
type signer func(r Request, h http.Header) error

// fire sends every request, in order but 64 at a time, and again where the
// server asks for it (503), as a provider would.
func fire(ctx context.Context, base string, requests []Request, sign signer) (Answers, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	client := &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections},
		Timeout:   30 * time.Second,
	}
	defer client.CloseIdleConnections()
	queue := make(chan Request)
	var (
		mu      sync.Mutex
		answers = Answers{}
		workers sync.WaitGroup
	)
	for range connections {
		workers.Go(func() {
			for r := range queue {
				err := deliver(ctx, client, base, r, sign, func(status int) {
					mu.Lock()
					answers[status]++
					mu.Unlock()
				})
				if err != nil {
					cancel(fmt.Errorf("send to %s: %w", r.Source, err))
					return
				}
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
	return answers, context.Cause(ctx)
}

// deliver sends one request until the answer is another than 503.
func deliver(ctx context.Context, client *http.Client, base string, r Request, sign signer, count func(status int)) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/in/"+r.Source, bytes.NewReader(r.Body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		if err := sign(r, req.Header); err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil {
			return err
		}
		count(resp.StatusCode)
		if resp.StatusCode != http.StatusServiceUnavailable {
			return nil
		}
		after, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		select {
		case <-time.After(time.Duration(max(1, min(after, 5))) * time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
