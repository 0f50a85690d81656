package daemon

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/pipeline"
	"github.com/hookfold/hookfold/internal/testdb"
)

// BenchmarkServe takes signed deliveries over HTTP from 64 connections until
// their rows are in the database: received and settled per second, client and
// database on the same machine.
func BenchmarkServe(b *testing.B) {
	for name, url := range map[string]func(testing.TB) string{"sqlite": testdb.SQLite, "postgres": testdb.Schema} {
		b.Run(name, func(b *testing.B) { serve(b, url(b)) })
	}
}

func serve(b *testing.B, url string) {
	text := fmt.Sprintf(yaml, filepath.Join(b.TempDir(), "journal.db"), url)
	cfg, problems := config.Parse("hookfold.yaml", []byte(text), config.Options{})
	if err := problems.Err(); err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	d, err := Open(ctx, cfg, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Stop(ctx)
	plan, err := d.Sink("db").Plan(ctx, pipeline.Tables(d.Plan(), "db"))
	if err != nil {
		b.Fatal(err)
	}
	if err := d.Sink("db").Execute(ctx, plan); err != nil {
		b.Fatal(err)
	}
	if err := d.Start(ctx); err != nil {
		b.Fatal(err)
	}
	requests := make([][]byte, 4096)
	for i := range requests {
		body := payment(i, i%60)
		mac := hmac.New(sha256.New, []byte("topsecret"))
		mac.Write([]byte(body))
		requests[i] = fmt.Appendf(nil, "POST /in/shop HTTP/1.1\r\nHost: x\r\nX-Signature: %s\r\nContent-Length: %d\r\n\r\n%s",
			hex.EncodeToString(mac.Sum(nil)), len(body), body)
	}
	b.ReportAllocs()
	b.ResetTimer()
	var next atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			c, err := net.Dial("tcp", d.Addr())
			if err != nil {
				b.Error(err)
				return
			}
			defer c.Close()
			answers := bufio.NewReader(c)
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if _, err := c.Write(requests[i%int64(len(requests))]); err != nil {
					b.Error(err)
					return
				}
				resp, err := http.ReadResponse(answers, nil)
				if err != nil || resp.StatusCode != 200 {
					b.Errorf("%v, %v", resp, err)
					return
				}
				answers.Discard(int(resp.ContentLength))
			}
		})
	}
	all.Wait()
	received := b.Elapsed()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	s, err := d.Drain(ctx, nil)
	if err != nil || s.Targets["db"].Settled != int64(b.N) {
		b.Errorf("%+v, %v", s, err)
	}
	b.ReportMetric(float64(b.N)/received.Seconds(), "received/s")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "settled/s")
}
