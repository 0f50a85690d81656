package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// sent is what a load did.
type sent struct {
	// deliveries are those that were answered 200.
	deliveries []delivery
	// took is from the first request until the last answer, latencies are those of
	// the answers, sorted.
	took      time.Duration
	latencies []time.Duration
}

func (s *sent) p(q float64) time.Duration {
	if len(s.latencies) == 0 {
		return 0
	}
	return s.latencies[min(len(s.latencies)-1, int(q*float64(len(s.latencies))))]
}

// shape is how a load is sent.
type shape struct {
	connections int
	// during is how long new requests are begun; 0 is until there are no more.
	during time.Duration
	// rate is how many requests begin in a second, whatever the answers do; then
	// latencies count from when a request was due. 0 is as fast as answers come.
	rate float64
	// after is called after each answer, with the delivery's place.
	after func(i int)
}

// load sends deliveries over a few connections. It does little more than write
// requests that are made and read until the answer's end, so that it costs less
// than what it measures.
func load(addr string, w *workload, s shape) (*sent, error) {
	var next atomic.Int64
	var mu sync.Mutex
	out := &sent{}
	var all sync.WaitGroup
	errs := make(chan error, s.connections)
	begin := time.Now()
	until := begin.Add(s.during)
	for range s.connections {
		all.Go(func() {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				errs <- err
				return
			}
			defer c.Close()
			in := bufio.NewReaderSize(c, 4096)
			var mine []delivery
			var latencies []time.Duration
			for {
				i := int(next.Add(1) - 1)
				now := time.Now()
				if i >= len(w.deliveries) || s.during > 0 && now.After(until) {
					break
				}
				from := now
				if s.rate > 0 {
					from = begin.Add(time.Duration(float64(i) / s.rate * float64(time.Second)))
					if s.during > 0 && from.After(until) {
						break
					}
					time.Sleep(time.Until(from)) // until the request is due
				}
				d := w.deliveries[i]
				if err := exchange(c, in, d.request); err != nil {
					errs <- err
					return
				}
				latencies = append(latencies, time.Since(from))
				mine = append(mine, d)
				if s.after != nil {
					s.after(i)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			out.deliveries = append(out.deliveries, mine...)
			out.latencies = append(out.latencies, latencies...)
		})
	}
	all.Wait()
	out.took = time.Since(begin)
	close(errs)
	var err error
	for e := range errs {
		err = errors.Join(err, e)
	}
	slices.Sort(out.latencies)
	return out, err
}

var (
	okStatus = []byte("HTTP/1.1 200")
	length   = []byte("Content-Length: ")
)

// exchange sends a request and reads its answer, which has to be 200.
func exchange(c net.Conn, in *bufio.Reader, request []byte) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	var body int
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.HasPrefix(line, okStatus) {
			rest, _ := io.ReadAll(io.LimitReader(in, 500))
			return fmt.Errorf("answered %q %s", line, rest)
		}
		if n, ok := bytes.CutPrefix(line, length); ok {
			if body, err = strconv.Atoi(string(bytes.TrimSpace(n))); err != nil {
				return err
			}
		}
		if len(line) <= 2 {
			break
		}
	}
	_, err := in.Discard(body)
	return err
}
