package source_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/source"
)

func FuzzSplitCalendly(f *testing.F)         { fuzzSplit(f, "calendly") }
func FuzzSplitHasura(f *testing.F)           { fuzzSplit(f, "hasura") }
func FuzzSplitStandardWebhooks(f *testing.F) { fuzzSplit(f, "standard-webhooks") }
func FuzzSplitStripe(f *testing.F)           { fuzzSplit(f, "stripe") }
func FuzzSplitSupabase(f *testing.F)         { fuzzSplit(f, "supabase") }
func FuzzSplitWhatsApp(f *testing.F)         { fuzzSplit(f, "whatsapp") }

// fuzzSplit: no body makes a splitter panic, change the body, or give an event
// that is not whole; and a body is split the same each time.
func fuzzSplit(f *testing.F, preset string) {
	for _, s := range source.PresetNamed(preset).Samples {
		f.Add(s.Body)
	}
	s := opened(f, preset)
	f.Fuzz(func(t *testing.T, body []byte) { splitTwice(t, s, body, http.Header{"Webhook-Id": {"msg_1"}}) })
}

// FuzzSplitForm does the same for forms, plain and packed.
func FuzzSplitForm(f *testing.F) {
	f.Add([]byte("To=%2B1555&Body=caf%C3%A9&tag=a&tag=b"), "")
	f.Add([]byte("a[b][]=1&a[b][]=2&l[][x]=1&l[][x]=2&l[0]=3&a=4&m[1]=a&m[0]=b&[[]]=5"), "")
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"), "gzip")
	s := open(f, "http", source.Options{Verify: source.Scheme{Kind: source.SchemeNone}, Format: source.FormatForm})
	f.Fuzz(func(t *testing.T, body []byte, coding string) {
		splitTwice(t, s, body, http.Header{"Content-Encoding": {coding}})
	})
}

func splitTwice(t *testing.T, s source.Source, body []byte, h http.Header) {
	d := delivery(string(body))
	d.Header = h
	events, err := s.Split(d)
	if err != nil && len(events) > 0 {
		t.Fatalf("%d events beside the error %v", len(events), err)
	}
	var first []string
	for i, e := range events {
		if e.Delivery != d || e.Index != i || e.FirstReceived.IsZero() || e.Body.Kind() == event.Missing || e.Envelope.Kind() == event.Missing {
			t.Fatalf("event %d is not whole: %+v", i, e)
		}
		if !e.Time.IsZero() && (e.TimeError != "" || e.Time.Location() != time.UTC) {
			t.Fatalf("event %d: time %v, error %q", i, e.Time, e.TimeError)
		}
		first = append(first, string(e.Body.Raw())+string(e.Envelope.Raw()))
	}
	again, err2 := s.Split(delivery2(d))
	if (err == nil) != (err2 == nil) {
		t.Fatalf("first %v, then %v", err, err2)
	}
	if diff := cmp.Diff(lines(events), lines(again)); diff != "" {
		t.Fatal(diff)
	}
	for i, e := range again {
		if string(e.Body.Raw())+string(e.Envelope.Raw()) != first[i] {
			t.Fatalf("event %d differs the second time", i)
		}
	}
	if !bytes.Equal(d.Body, body) {
		t.Fatal("the body was changed")
	}
}

func delivery2(d *event.Delivery) *event.Delivery {
	again := *d
	return &again
}

// FuzzSignVerify: what a preset signs, it believes, and not with another body.
func FuzzSignVerify(f *testing.F) {
	f.Add([]byte(`{"a":1}`), int64(signedAt))
	f.Add([]byte{}, int64(0))
	f.Add([]byte("\xff\x00"), int64(999_999_999_999))
	all := map[string]source.Source{}
	for name, o := range signable() {
		preset, _, _ := strings.Cut(name, "/")
		all[name] = open(f, preset, o)
	}
	f.Fuzz(func(t *testing.T, body []byte, seconds int64) {
		if seconds < 0 || seconds > 99_999_999_999 {
			return // beyond what a time in seconds can be
		}
		at := time.Unix(seconds, 0)
		for name, s := range all {
			h := http.Header{}
			if err := s.(source.Signer).Sign(h, body, at); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := s.Verify(&source.Request{Header: h, Body: body}, at); err != nil {
				t.Fatalf("%s: own signature refused: %v", name, err)
			}
			preset, _, _ := strings.Cut(name, "/")
			other := append(bytes.Clone(body), 0)
			if !static(signable()[name], preset) && s.Verify(&source.Request{Header: h, Body: other}, at) == nil {
				t.Fatalf("%s: believed with another body", name)
			}
		}
	})
}

// FuzzPairsHeader, FuzzWebhooksHeader, FuzzHMACHeader and FuzzStaticHeader: no
// header makes a scheme panic, is believed without the signature in it, or is
// repeated in the reason.
func FuzzPairsHeader(f *testing.F) {
	for _, s := range []string{"t=1786000000,v1=" + stripeSum, "t=1,v1=", "t=,v1=a", "v0=1", "t=1786000000,v1=zz, v1 = 00", "=,=", "t=99999999999999999999,v1=00"} {
		f.Add(s)
	}
	s := open(f, "stripe", source.Options{Secrets: secrets(stripeSecret)})
	f.Fuzz(func(t *testing.T, value string) {
		refused(t, s, stripeBody, signedAt, stripeSum, http.Header{"Stripe-Signature": {value}})
	})
}

func FuzzWebhooksHeader(f *testing.F) {
	for _, s := range []string{"v1," + webhookSum, "v1a," + ed25519Sum, "v1,", "v1", ", ,", "v2,x v1,AAAA\tv1a,AAAA", "v1a,=="} {
		f.Add(webhookID, "1614265330", s)
	}
	s := open(f, "standard-webhooks", source.Options{Secrets: secrets(webhookSecret, ed25519Public)})
	f.Fuzz(func(t *testing.T, id, at, value string) {
		h := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {at}, "Webhook-Signature": {value}}
		if strings.Contains(value, ed25519Sum) {
			return
		}
		refused(t, s, webhookBody, webhookAt, webhookSum, h)
	})
}

func FuzzHMACHeader(f *testing.F) {
	for _, s := range []string{"sha256=00", "sha256=", "sha1=00", "", "sha256=zz"} {
		f.Add(s, "1786000000")
	}
	s := open(f, "http", source.Options{Secrets: secrets("k"), Verify: source.Scheme{Kind: source.SchemeHMAC, Hash: "sha256", Header: "X-Sig",
		Encoding: "base64", Prefix: "sha256=", Signed: "{timestamp}.{body}", TimestampHeader: "X-Time"}})
	f.Fuzz(func(t *testing.T, value, at string) {
		if len(strings.TrimPrefix(strings.TrimSpace(value), "sha256=")) >= 40 {
			return // long enough to hold the signature
		}
		refused(t, s, "body", signedAt, "\x00", http.Header{"X-Sig": {value}, "X-Time": {at}})
	})
}

func FuzzStaticHeader(f *testing.F) {
	for _, s := range []string{"Basic aG9vazpvcGVu", "Basic", "Basic ", "basic ====", "Bearer x", ":"} {
		f.Add(s)
	}
	s := open(f, "http", source.Options{Secrets: secrets("a-long-enough-password"), Verify: source.Scheme{Kind: source.SchemeBasic, Username: "hook"}})
	f.Fuzz(func(t *testing.T, value string) {
		refused(t, s, "", signedAt, "aG9vazphLWxvbmctZW5vdWdoLXBhc3N3b3Jk", http.Header{"Authorization": {value}})
	})
}

// refused checks that a request is refused unless its headers hold the proof,
// in either case of its letters.
func refused(t *testing.T, s source.Source, body string, at int64, proof string, h http.Header) {
	err := s.Verify(&source.Request{Method: "POST", Header: h, Body: []byte(body)}, time.Unix(at, 0))
	for _, values := range h {
		for _, v := range values {
			if strings.Contains(strings.ToLower(v), strings.ToLower(proof)) {
				return
			}
			if err != nil && len(v) >= 24 && strings.Contains(err.Error(), v) {
				t.Fatalf("the reason holds what was sent: %q", err)
			}
		}
	}
	if err == nil {
		t.Fatalf("believed: %q", h)
	}
	if _, ok := err.(*source.Refusal); !ok {
		t.Fatalf("error is a %T", err)
	}
}
