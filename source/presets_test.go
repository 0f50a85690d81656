package source_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/source"
)

func TestPresetsKeepTheContract(t *testing.T) {
	var names []string
	for _, p := range source.Presets() {
		names = append(names, p.Name)
		for _, word := range []string{"event", "type", "id", "time"} {
			if !strings.Contains(p.Doc, word) {
				t.Errorf("%s: Doc does not say what %s is", p.Name, word)
			}
		}
		if p.HasTime != (p.Grain > 0) {
			t.Errorf("%s: HasTime is %v, Grain %d", p.Name, p.HasTime, p.Grain)
		}
		if p.TimeCaution != "" && !p.HasTime {
			t.Errorf("%s: a caution about no time", p.Name)
		}
		if len(p.Samples) == 0 && p.Name != "http" {
			t.Errorf("%s: no samples", p.Name)
		}
		if types := slices.Clone(p.Types); len(slices.Compact(slices.Sorted(slices.Values(types)))) != len(p.Types) {
			t.Errorf("%s: a type stands twice", p.Name)
		}
		if got := source.PresetNamed(p.Name); got == nil || got.Name != p.Name {
			t.Errorf("PresetNamed(%q) is %v", p.Name, got)
		}
		if _, ok := opened(t, p.Name).(source.Signer); !ok {
			t.Errorf("%s does not sign", p.Name)
		}
	}
	if !slices.IsSorted(names) || len(slices.Compact(names)) != len(source.Presets()) {
		t.Errorf("names are not in order, each once: %v", names)
	}
	if p := source.PresetNamed("nobody"); p != nil {
		t.Errorf("PresetNamed of nobody is %v", p)
	}
}

func TestPresetsDoNotShare(t *testing.T) {
	p := source.PresetNamed("calendly")
	p.Types[0], p.Samples[0].Body[0], p.Doc = "x", 'x', ""
	if q := source.PresetNamed("calendly"); q.Types[0] == "x" || q.Samples[0].Body[0] == 'x' || q.Doc == "" {
		t.Error("a change to a preset shows in the next one")
	}
}

func TestSourcesAreSafeForConcurrentUse(t *testing.T) {
	now := time.Unix(signedAt, 0)
	for name, o := range signable() {
		preset, _, _ := strings.Cut(name, "/")
		s := open(t, preset, o)
		body := []byte(`{"object":"event","event":"x","type":"x","table":"x"}`)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				r := &source.Request{Method: "GET", Header: http.Header{}, Body: body, Query: "hub.mode=subscribe"}
				if err := s.(source.Signer).Sign(r.Header, body, now); err != nil {
					t.Error(err)
				}
				if err := s.Verify(r, now); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				s.Handshake(r, now)
				s.Split(&event.Delivery{Header: r.Header, Body: body})
			})
		}
		all.Wait()
	}
}

func ExamplePreset() {
	preset := source.PresetNamed("stripe")
	s, err := preset.New(source.Options{Name: "billing", Secrets: []source.Secret{{Value: "whsec_example"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	body := []byte(`{"id":"evt_1","object":"event","type":"invoice.paid","created":1789000002}`)
	now := time.Unix(1789000004, 0)

	// As the provider would send it.
	header := http.Header{}
	if err := s.(source.Signer).Sign(header, body, now); err != nil {
		fmt.Println(err)
		return
	}

	fmt.Println(s.Verify(&source.Request{Method: "POST", Header: header, Body: body}, now))
	fmt.Println(s.Verify(&source.Request{Method: "POST", Header: header, Body: []byte(`{}`)}, now.Add(4*time.Second)))
	events, err := s.Split(&event.Delivery{Header: header, Body: body, Received: now})
	fmt.Println(events[0].Type, events[0].ID, events[0].Time.Format(time.RFC3339), err)
	// Output:
	// <nil>
	// signature does not match any of 1 secret (body 2 bytes, signed time 4 s ago). Is it the secret of this endpoint?
	// invoice.paid evt_1 2026-09-10T00:26:42Z <nil>
}

func BenchmarkVerify(b *testing.B) {
	for _, c := range []struct{ preset, sample string }{{"calendly", "calendly/invitee.created"}, {"whatsapp", "whatsapp/status.sent"}} {
		b.Run(c.preset, func(b *testing.B) {
			s := open(b, c.preset, signable()[c.preset])
			sample, _ := source.SampleNamed(c.sample)
			r := &source.Request{Method: "POST", Header: http.Header{}, Body: sample.Body}
			now := time.Unix(signedAt, 0)
			if err := s.(source.Signer).Sign(r.Header, r.Body, now); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(r.Body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Verify(r, now); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSplit(b *testing.B) {
	for _, c := range []struct{ preset, sample string }{{"calendly", "calendly/invitee.created"}, {"whatsapp", "whatsapp/status.sent"}} {
		b.Run(c.preset, func(b *testing.B) {
			s := open(b, c.preset, signable()[c.preset])
			sample, _ := source.SampleNamed(c.sample)
			d := delivery(string(sample.Body))
			b.SetBytes(int64(len(d.Body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Split(d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
