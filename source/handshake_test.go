package source_test

import (
	"bufio"
	"bytes"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/source"
)

func TestHandshakeMeta(t *testing.T) {
	file, err := os.ReadFile("testdata/whatsapp/handshake.request.txt")
	if err != nil {
		t.Fatal(err)
	}
	documented, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(file)))
	if err != nil {
		t.Fatal(err)
	}
	const get, post = http.MethodGet, http.MethodPost
	for _, c := range []struct {
		name, token, method, query string
		status                     int // 0 is no handshake
		body                       string
	}{
		{"as documented", "my-verify-token", documented.Method, documented.URL.RawQuery, 200, "1158201444"},
		{"C83 right token", "tok", get, "hub.mode=subscribe&hub.verify_token=tok&hub.challenge=1537258", 200, "1537258"},
		{"C83 wrong token", "tok", get, "hub.mode=subscribe&hub.verify_token=WRONG&hub.challenge=1", 403, "The verify token is not the one in the config of this source.\n"},
		{"C83 HEAD", "tok", http.MethodHead, "", 0, ""},
		{"escaped token", "a b&c", get, "hub.mode=subscribe&hub.verify_token=a+b%26c&hub.challenge=x", 200, "x"},
		{"beginning of the token", "token", get, "hub.mode=subscribe&hub.verify_token=tok&hub.challenge=1", 403, "The verify token is not the one in the config of this source.\n"},
		{"no token given", "tok", get, "hub.mode=subscribe&hub.challenge=1", 403, "The verify token is not the one in the config of this source.\n"},
		{"no token configured", "", get, "hub.mode=subscribe&hub.verify_token=&hub.challenge=1", 403, "This source has no verify_token in its config.\n"},
		{"no challenge", "tok", get, "hub.mode=subscribe&hub.verify_token=tok", 400, "hub.challenge is missing or too long.\n"},
		{"long challenge", "tok", get, "hub.mode=subscribe&hub.verify_token=tok&hub.challenge=" + strings.Repeat("1", 1025), 400, "hub.challenge is missing or too long.\n"},
		{"broken query", "tok", get, "hub.mode=subscribe&hub.verify_token=tok&hub.challenge=1&%zz", 200, "1"},
		{"GET of a browser", "tok", get, "", 0, ""},
		{"POST", "tok", post, "hub.mode=subscribe&hub.verify_token=tok&hub.challenge=1", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, "whatsapp", source.Options{Secrets: secrets(metaSecret), VerifyToken: c.token})
			a, ok := s.Handshake(&source.Request{Method: c.method, Query: c.query}, time.Unix(signedAt, 0))
			if ok != (c.status != 0) {
				t.Fatalf("a handshake: %v", ok)
			}
			if !ok {
				return
			}
			if a.Status != c.status || string(a.Body) != c.body || a.ContentType != "text/plain; charset=utf-8" {
				t.Errorf("answer %d %q %s", a.Status, a.Body, a.ContentType)
			}
		})
	}
}

func TestNoHandshake(t *testing.T) {
	r := &source.Request{Method: http.MethodGet, Query: "hub.mode=subscribe&hub.verify_token=tok&hub.challenge=1"}
	for _, p := range source.Presets() {
		if p.Name == "whatsapp" {
			continue
		}
		if a, ok := opened(t, p.Name).Handshake(r, time.Unix(signedAt, 0)); ok {
			t.Errorf("%s answers %v", p.Name, a)
		}
	}
}
