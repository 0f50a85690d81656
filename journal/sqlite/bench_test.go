package sqlite

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/journal"
)

// realistic makes a WhatsApp delivery of about 1.2 KB, in which whatever is
// random in a real one is random: identifiers, signature, times, numbers.
func realistic(r *rand.Rand) *event.Delivery {
	token := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	status := []string{"sent", "delivered", "read"}[r.IntN(3)]
	at := 1_700_000_000 + r.IntN(50_000_000)
	body := fmt.Appendf(nil, `{"object":"whatsapp_business_account","entry":[{"id":"102290129340398","changes":[{"value":{"messaging_product":"whatsapp","metadata":{"display_phone_number":"15550783881","phone_number_id":"106540352242922"},"statuses":[{"id":"wamid.%s","status":"%s","timestamp":"%d","recipient_id":"1650%07d","conversation":{"id":"%s","expiration_timestamp":"%d","origin":{"type":"utility"}},"pricing":{"billable":true,"pricing_model":"CBP","category":"utility"}}]},"field":"messages"}]}]}`,
		base64.StdEncoding.EncodeToString(token(42)), status, at, r.IntN(10_000_000), hex.EncodeToString(token(16)), at+86400)
	mac := hmac.New(sha256.New, []byte("secret"))
	mac.Write(body)
	return &event.Delivery{
		Source: "whatsapp",
		Header: http.Header{
			"Accept":              {"*/*"},
			"Accept-Encoding":     {"deflate, gzip"},
			"Content-Type":        {"application/json"},
			"Content-Length":      {fmt.Sprint(len(body))},
			"User-Agent":          {"facebookexternalua"},
			"X-Forwarded-For":     {fmt.Sprintf("173.252.%d.%d", r.IntN(256), r.IntN(256))},
			"X-Amzn-Trace-Id":     {fmt.Sprintf("Root=1-%08x-%s", at, hex.EncodeToString(token(12)))},
			"Traceparent":         {fmt.Sprintf("00-%s-%s-01", hex.EncodeToString(token(16)), hex.EncodeToString(token(8)))},
			"X-Forwarded-Host":    {"hooks.example.com"},
			"X-Forwarded-Port":    {"443"},
			"X-Forwarded-Proto":   {"https"},
			"X-Hub-Signature":     {"sha1=" + hex.EncodeToString(token(20))},
			"X-Hub-Signature-256": {"sha256=" + hex.EncodeToString(mac.Sum(nil))},
			"X-Request-Id":        {hex.EncodeToString(token(16))},
		},
		Body:     body,
		Received: time.Now().UTC(),
	}
}

func realisticMany(n int) []*event.Delivery {
	r := rand.New(rand.NewPCG(1, 2))
	ds := make([]*event.Delivery, n)
	for i := range ds {
		ds[i] = realistic(r)
	}
	return ds
}

func benchJournal(b *testing.B) *Journal {
	j, err := Open(filepath.Join(b.TempDir(), "journal.db"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := j.Close(); err != nil {
			b.Error(err)
		}
	})
	return j
}

// appendAll appends n deliveries from so many goroutines.
func appendAll(b *testing.B, j *Journal, ds []*event.Delivery, n, writers int) (longest time.Duration) {
	var next, slowest atomic.Int64
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for {
				i := next.Add(1)
				if i > int64(n) {
					return
				}
				d := *ds[i%int64(len(ds))]
				t := time.Now()
				if err := j.Append(context.Background(), &d); err != nil {
					b.Error(err)
					return
				}
				for took := int64(time.Since(t)); ; {
					old := slowest.Load()
					if took <= old || slowest.CompareAndSwap(old, took) {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	return time.Duration(slowest.Load())
}

func BenchmarkAppend(b *testing.B) {
	ds := realisticMany(20_000)
	size := 0
	for _, d := range ds {
		size += len(encodeFrame(d))
	}
	for _, writers := range []int{1, 16, 64, 128, 256} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			j := benchJournal(b)
			b.ResetTimer()
			longest := appendAll(b, j, ds, b.N, writers)
			b.StopTimer()
			st, err := j.Stats(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
			b.ReportMetric(float64(st.Bytes)/float64(b.N), "disk-bytes/delivery")
			b.ReportMetric(float64(size)/float64(len(ds)), "raw-bytes/delivery")
			b.ReportMetric(float64(longest.Microseconds())/1000, "slowest-ms")
		})
	}
}

// BenchmarkConsume reads a backlog in batches of 500, from the disk.
func BenchmarkConsume(b *testing.B) {
	ds := realisticMany(20_000)
	j := benchJournal(b)
	appendAll(b, j, ds, b.N, 128)
	j.cache.clear()
	c, err := j.Consumer(b.Context(), "rows")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		batch, err := c.Next(b.Context(), journal.Limit{Deliveries: 500, Bytes: 4 << 20})
		if err != nil {
			b.Fatal(err)
		}
		n += len(batch.Deliveries)
		if err := c.Done(b.Context(), batch, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
}

// BenchmarkAppendAndConsume appends while two consumers keep up.
func BenchmarkAppendAndConsume(b *testing.B) {
	ds := realisticMany(20_000)
	j := benchJournal(b)
	var wg sync.WaitGroup
	for i := range 2 {
		c, err := j.Consumer(b.Context(), fmt.Sprint(i))
		if err != nil {
			b.Fatal(err)
		}
		wg.Go(func() {
			for n := 0; n < b.N; {
				batch, err := c.Next(context.Background(), journal.Limit{Deliveries: 500, Bytes: 4 << 20})
				if err != nil {
					b.Error(err)
					return
				}
				n += len(batch.Deliveries)
				if err := c.Done(context.Background(), batch, nil); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	b.ResetTimer()
	appendAll(b, j, ds, b.N, 128)
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
}

func BenchmarkFirstReceipts(b *testing.B) {
	j := benchJournal(b)
	r := rand.New(rand.NewPCG(1, 2))
	for n := 0; n < b.N; n += 500 {
		ids := make([]journal.Receipt, 500)
		for i := range ids {
			ids[i] = journal.Receipt{Source: "whatsapp", ID: fmt.Sprintf("wamid.%x", r.Uint64()), Received: time.Now()}
		}
		if _, err := j.FirstReceipts(b.Context(), ids); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "receipts/s")
}
