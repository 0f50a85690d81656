package mapping

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/source"
)

func TestHandshake(t *testing.T) {
	p := compiled(t, head+`  slack:
    preset: http
    verify: {hmac: sha256, header: X-Sig}
    secrets: [k]
    handshake: 'body.?type.orValue("") == "url_verification" ? body.challenge : query.?challenge'
  form: {preset: http, verify: none, format: form, handshake: '{"challenge": body.c[0].d}'}
tables: {a: {key: {id: text}, columns: {}, events: [{from: slack, key: {id: event.id}}]}}
`)
	now := time.Now()
	const challenge = `{"type":"url_verification","challenge":"c-9","token":"x"}`
	for _, tc := range []struct {
		name, source, method, query, body string
		signed                            bool
		want                              string // kind and text, "" for no handshake
	}{
		{"C83 a signed POST", "slack", "POST", "", challenge, true, "text/plain; charset=utf-8 c-9"},
		{"one that is not signed", "slack", "POST", "", challenge, false, ""},
		{"a GET", "slack", "GET", "challenge=12", "", false, "text/plain; charset=utf-8 12"},
		{"a delivery", "slack", "POST", "", `{"id":1}`, true, ""},
		{"another method", "slack", "HEAD", "challenge=12", "", false, ""},
		{"no JSON", "slack", "POST", "", "{", true, ""},
		{"no challenge", "slack", "POST", "", `{"type":"url_verification"}`, true, ""},
		{"long", "slack", "GET", "challenge=" + strings.Repeat("x", maxAnswer+1), "", false, ""},
		{"an object", "form", "POST", "", "c[][d]=7", true, `application/json {"challenge":"7"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &source.Request{Method: tc.method, Query: tc.query, Header: http.Header{}, Body: []byte(tc.body)}
			if tc.signed && tc.source == "slack" {
				if err := p.Source(tc.source).Source.(source.Signer).Sign(r.Header, r.Body, now); err != nil {
					t.Fatal(err)
				}
			}
			a, ok := p.Source(tc.source).Handshake(r, now)
			got := ""
			if ok {
				got = a.ContentType + " " + string(a.Body)
			}
			if got != tc.want || ok && a.Status != 200 {
				t.Errorf("%v %q, want %q", ok, got, tc.want)
			}
		})
	}
}
