package source_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/source"
)

// open makes a source of a preset, or ends the test.
func open(t testing.TB, preset string, o source.Options) source.Source {
	t.Helper()
	o.Name = preset
	s, err := source.PresetNamed(preset).New(o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return s
}

func secrets(values ...string) []source.Secret {
	list := make([]source.Secret, len(values))
	for i, v := range values {
		list[i].Value = v
	}
	return list
}

// headers makes headers of names and values in turn.
func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

const (
	signedAt = 1786000000 // the time of the vectors made for this test

	calendlySecret = "cal_sk_Zq3vT9xN5mB1"
	calendlyBody   = `{"event":"invitee.created","payload":{"name":"Ana Müller"}}`
	calendlySum    = "8ee5deb7c61aac89ee22e39729b4123e4b5eed74e7a4847d2c379efa6f756cd7"

	stripeSecret = "whsec_test_secret"
	stripeBody   = `{"id":"evt_1","object":"event"}`
	stripeSum    = "491540129fe742e30169eceb3133ff3ed03e37b7f09f59148203356957a8831d"

	metaSecret    = "0123456789abcdef0123456789abcdef"
	metaEmpty     = `{"object":"whatsapp_business_account","entry":[]}`
	metaEscaped   = `{"text":"caf\u00e9 \/ ok"}`
	metaUnescaped = `{"text":"café / ok"}`

	// The vector of the test suites of the Standard Webhooks and Svix libraries.
	webhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	webhookID     = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	webhookAt     = 1614265330
	webhookBody   = `{"test": 2432232314}`
	webhookSum    = "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

	// The first key of RFC 8032, section 7.1, over the message of the vector.
	ed25519Public  = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
	ed25519Private = "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="
	ed25519Sum     = "fldxM4gAKugP6nnt1hdz3sgGfZ6d99nzrMFnZOELIxbzEHoVmAb2ADpkJK7zgPePmPsle0zV9jSeGlHFG2NVAw=="

	webhookWrong = "Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="
)

// A vector is one request with the answer that it must get.
type vector struct {
	name    string
	options source.Options
	header  http.Header
	body    string
	at      int64  // the clock; 0 is the time of the vector
	refused string // a part of the reason; "" is believed
}

func run(t *testing.T, preset string, signed int64, vectors []vector) {
	t.Helper()
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			at := v.at
			if at == 0 {
				at = signed
			}
			r := &source.Request{Method: "POST", Header: v.header, Body: []byte(v.body)}
			err := open(t, preset, v.options).Verify(r, time.Unix(at, 0))
			switch {
			case v.refused == "" && err != nil:
				t.Fatalf("refused: %v", err)
			case v.refused != "" && err == nil:
				t.Fatal("believed")
			case v.refused != "" && !strings.Contains(err.Error(), v.refused):
				t.Fatalf("reason %q\nlacks  %q", err, v.refused)
			}
			if err == nil {
				return
			}
			if _, ok := err.(*source.Refusal); !ok {
				t.Errorf("error is a %T", err)
			}
			for _, s := range v.options.Secrets {
				if strings.Contains(err.Error(), s.Value) {
					t.Errorf("the reason holds the secret: %q", err)
				}
			}
			for _, values := range v.header {
				for _, value := range values {
					if len(value) >= 16 && strings.Contains(err.Error(), value) {
						t.Errorf("the reason holds what was sent: %q", err)
					}
				}
			}
		})
	}
}

func TestVerifyCalendly(t *testing.T) {
	key := source.Options{Secrets: secrets(calendlySecret)}
	sig := func(text string) http.Header { return headers("Calendly-Webhook-Signature", text) }
	good := sig("t=1786000000,v1=" + calendlySum)
	run(t, "calendly", signedAt, []vector{
		{name: "UTF-8 body", options: key, header: good, body: calendlyBody},
		{name: "space after the comma", options: key, header: sig("t=1786000000, v1=" + calendlySum), body: calendlyBody},
		{name: "second of two keys", options: source.Options{Secrets: secrets("new", calendlySecret)}, header: good, body: calendlyBody},
		{name: "180 s late", options: key, header: good, body: calendlyBody, at: signedAt + 180},
		{name: "180 s early", options: key, header: good, body: calendlyBody, at: signedAt - 180},
		{name: "181 s late", options: key, header: good, body: calendlyBody, at: signedAt + 181,
			refused: "signed time is 181 s in the past, tolerance is 180 s. Is the clock of this machine right? (now 2026-08-06T07:09:41Z)"},
		{name: "181 s early", options: key, header: good, body: calendlyBody, at: signedAt - 181, refused: "signed time is 181 s in the future, tolerance is 180 s."},
		{name: "tolerance of the config", options: source.Options{Secrets: key.Secrets, Tolerance: 10 * time.Second}, header: good, body: calendlyBody,
			at: signedAt + 11, refused: "tolerance is 10 s"},
		{name: "tolerance off", options: source.Options{Secrets: key.Secrets, Tolerance: -1}, header: good, body: calendlyBody, at: signedAt + 1e9},
		{name: "body written in ASCII", options: key, header: good, body: `{"event":"invitee.created","payload":{"name":"Ana M\u00fcller"}}`,
			refused: "signature does not match any of 1 secret (body 64 bytes, signed time 0 s ago). Is it the signing_key of this subscription?"},
		{name: "no header", options: key, header: headers(), body: calendlyBody,
			refused: "no Calendly-Webhook-Signature header. The subscription was made without a signing_key; make it again with one."},
		{name: "other time", options: key, header: sig("t=1786000001,v1=" + calendlySum), body: calendlyBody, refused: "does not match"},
	})
}

func TestVerifyStripe(t *testing.T) {
	key := source.Options{Secrets: secrets(stripeSecret)}
	sig := func(text string) http.Header { return headers("Stripe-Signature", text) }
	zeros := strings.Repeat("0", 64)
	bad := func(name, text, reason string) vector {
		return vector{name: name, options: key, header: sig(text), body: stripeBody, refused: reason}
	}
	good := func(name, text string) vector {
		return vector{name: name, options: key, header: sig(text), body: stripeBody}
	}
	run(t, "stripe", signedAt, []vector{
		good("one v1", "t=1786000000,v1="+stripeSum),
		good("second of several v1", "t=1786000000,v1="+zeros+",v1="+stripeSum),
		good("first of several v1", "t=1786000000,v1="+stripeSum+",v1="+zeros),
		{name: "first of two secrets", options: source.Options{Secrets: secrets(stripeSecret, "other")}, header: sig("t=1786000000,v1=" + stripeSum), body: stripeBody},
		good("unknown schemes", "t=1786000000,v0="+zeros+",v1="+stripeSum+",v9=zz"),
		good("a v1 that is not hex is passed over", "t=1786000000,v1=xyz,v1="+stripeSum),
		{name: "300 s late", options: key, header: sig("t=1786000000,v1=" + stripeSum), body: stripeBody, at: signedAt + 300},
		{name: "3,612 s late", options: key, header: sig("t=1786000000,v1=" + stripeSum), body: stripeBody, at: signedAt + 3612,
			refused: "signed time is 3,612 s in the past, tolerance is 300 s."},
		{name: "301 s early", options: key, header: sig("t=1786000000,v1=" + stripeSum), body: stripeBody, at: signedAt - 301, refused: "in the future"},
		{name: "secret without its prefix", options: source.Options{Secrets: secrets("test_secret")}, header: sig("t=1786000000,v1=" + stripeSum),
			body: stripeBody, refused: "does not match any of 1 secret"},
		bad("only v0", "t=1786000000,v0="+stripeSum, "it has no v1 signature."),
		bad("only a v1 that is not hex", "t=1786000000,v1=xyz", "does not match"),
		bad("pair without =", "t=1786000000,v1", "is not name=value"),
		bad("pair with two =", "t=1786000000,v1="+stripeSum+"=", "is not name=value"),
		bad("comma at the end", "t=1786000000,v1="+stripeSum+",", "is not name=value"),
		bad("no t", "v1="+stripeSum, "it has no t."),
		bad("two t", "t=1786000000,t=1786000000,v1="+stripeSum, "it has two t."),
		bad("t with a sign", "t=+1786000000,v1="+stripeSum, "is not a number of seconds"),
		bad("t in milliseconds", "t=1786000000000,v1="+stripeSum, "is not a number of seconds"),
		bad("33 signatures", "t=1786000000"+strings.Repeat(",v1="+zeros, 33), "more than 32 signatures"),
		bad("shorter signature", "t=1786000000,v1="+stripeSum[:62], "does not match"),
		bad("empty signature", "t=1786000000,v1=", "does not match"),
		{name: "no header", options: key, header: headers(), body: stripeBody, refused: "no Stripe-Signature header."},
	})
}

func TestVerifyWhatsApp(t *testing.T) {
	key := source.Options{Secrets: secrets(metaSecret)}
	sig := func(text string) http.Header { return headers("X-Hub-Signature-256", text) }
	const escapedSum = "fd721cfb9640b0ff3ad4ae83916d0589d6ce5e6ed151949bb6a90649a7e9b95c"
	run(t, "whatsapp", signedAt, []vector{
		{name: "published by an SDK", options: source.Options{Secrets: secrets("secret")}, body: "test",
			header: sig("sha256=0329a06b62cd16b33eb6792be8c60b158d89a2ee3a876fce9a881ebb488c0914")},
		{name: "empty entry", options: key, body: metaEmpty, header: sig("sha256=eefab58106e73358686845848feb95c56372e7391b3dc050b6a31c8c5f347ece")},
		{name: "escaped body", options: key, body: metaEscaped, header: sig("sha256=" + escapedSum)},
		{name: "un-escaped body does not match", options: key, body: metaUnescaped, header: sig("sha256=" + escapedSum),
			refused: "signature does not match any of 1 secret (body 21 bytes). Is it the app secret"},
		{name: "old app secret during a reset", options: source.Options{Secrets: secrets("fresh", metaSecret)}, body: metaEscaped, header: sig("sha256=" + escapedSum)},
		{name: "no prefix", options: key, body: metaEscaped, header: sig(escapedSum), refused: `does not begin with "sha256="`},
		{name: "sha1 instead", options: key, body: metaEscaped, header: sig("sha256=" + escapedSum[:40]), refused: "is not a signature of 32 bytes in hex"},
		{name: "no header", options: key, body: metaEscaped, header: headers("X-Hub-Signature", "sha1=00"), refused: "no X-Hub-Signature-256 header."},
	})
}

func TestVerifyStandardWebhooks(t *testing.T) {
	key := source.Options{Secrets: secrets(webhookSecret)}
	at := strconv.Itoa(webhookAt)
	sig := func(text string) http.Header {
		return headers("webhook-id", webhookID, "webhook-timestamp", at, "webhook-signature", text)
	}
	svix := headers("svix-id", webhookID, "svix-timestamp", at, "svix-signature", "v1,"+webhookSum)
	both := svix.Clone()
	both.Set("webhook-id", "msg_other")
	both.Set("webhook-timestamp", at)
	both.Set("webhook-signature", "v1,"+webhookWrong)
	half := sig("v1," + webhookSum)
	half.Set("svix-id", "msg_forged")
	pub := source.Options{Secrets: secrets(ed25519Public)}
	run(t, "standard-webhooks", webhookAt, []vector{
		{name: "published by the SDKs", options: key, body: webhookBody, header: sig("v1," + webhookSum)},
		{name: "secret without prefix", options: source.Options{Secrets: secrets(strings.TrimPrefix(webhookSecret, "whsec_"))}, body: webhookBody, header: sig("v1," + webhookSum)},
		{name: "secret with version", options: source.Options{Secrets: secrets("v1," + webhookSecret)}, body: webhookBody, header: sig("v1," + webhookSum)},
		{name: "svix headers", options: key, body: webhookBody, header: svix},
		{name: "svix headers before webhook headers", options: key, body: webhookBody, header: both},
		{name: "an id of the other family cannot be slipped in", options: key, body: webhookBody, header: half, refused: "no svix-timestamp header"},
		{name: "first of a list", options: key, body: webhookBody, header: sig("v1," + webhookSum + " v1," + webhookWrong)},
		{name: "list", options: key, body: webhookBody, header: sig("v1," + webhookWrong + " v2,AAAA v1," + webhookSum)},
		{name: "unknown versions", options: key, body: webhookBody, header: sig("v0,x v1b," + webhookSum + " v1," + webhookSum)},
		{name: "entry without comma", options: key, body: webhookBody, header: sig("v1 " + webhookSum + " v1," + webhookSum)},
		{name: "300 s late", options: key, body: webhookBody, header: sig("v1," + webhookSum), at: webhookAt + 300},
		{name: "301 s late", options: key, body: webhookBody, header: sig("v1," + webhookSum), at: webhookAt + 301, refused: "301 s in the past"},
		{name: "301 s early", options: key, body: webhookBody, header: sig("v1," + webhookSum), at: webhookAt - 301, refused: "301 s in the future"},
		{name: "published wrong signature", options: key, body: webhookBody, header: sig("v1," + webhookWrong), refused: "does not match any of 1 secret (body 20 bytes, signed time 0 s ago)"},
		{name: "published empty signature", options: key, body: webhookBody, header: sig("v1,"), refused: "does not match"},
		{name: "only unknown versions", options: key, body: webhookBody, header: sig("v2," + webhookSum), refused: "no v1 or v1a signature"},
		{name: "no comma", options: key, body: webhookBody, header: sig(webhookSum), refused: "no v1 or v1a signature"},
		{name: "no id", options: key, body: webhookBody, header: headers("webhook-timestamp", at, "webhook-signature", "v1,"+webhookSum), refused: "no webhook-id header"},
		{name: "no timestamp", options: key, body: webhookBody, header: headers("webhook-id", webhookID, "webhook-signature", "v1,"+webhookSum), refused: "no webhook-timestamp header"},
		{name: "no signature", options: key, body: webhookBody, header: headers("webhook-id", webhookID, "webhook-timestamp", at), refused: "no webhook-signature header"},
		{name: "timestamp of no digits", options: key, body: webhookBody,
			header: headers("webhook-id", webhookID, "webhook-timestamp", "now", "webhook-signature", "v1,"+webhookSum), refused: "not a number of seconds"},
		{name: "other id", options: key, body: webhookBody,
			header: headers("webhook-id", "msg_2", "webhook-timestamp", at, "webhook-signature", "v1,"+webhookSum), refused: "does not match"},
		{name: "ed25519", options: pub, body: webhookBody, header: sig("v1a," + ed25519Sum)},
		{name: "ed25519 beside v1", options: pub, body: webhookBody, header: sig("v1," + webhookWrong + " v1a," + ed25519Sum)},
		{name: "ed25519, first of a list", options: pub, body: webhookBody, header: sig("v1a," + ed25519Sum + " v1a,AAAA")},
		{name: "ed25519 and another body", options: pub, body: webhookBody + " ", header: sig("v1a," + ed25519Sum), refused: "does not match"},
		{name: "ed25519 signature as v1", options: pub, body: webhookBody, header: sig("v1," + ed25519Sum), refused: "only v1 signatures, and only public keys"},
		{name: "v1a and no public key", options: key, body: webhookBody, header: sig("v1a," + ed25519Sum), refused: "only v1a signatures: add the sender's public key"},
		{name: "short v1a", options: pub, body: webhookBody, header: sig("v1a,AAAA"), refused: "does not match"},
	})
}
