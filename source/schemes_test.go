package source_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/source"
)

func TestVerifyHTTPHMAC(t *testing.T) {
	// GitHub's documented vector.
	const (
		secret = "It's a Secret to Everybody"
		body   = "Hello, World!"
		sum    = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	)
	plain := source.Scheme{Kind: source.SchemeHMAC, Hash: "sha256", Header: "X-Signature", Encoding: "hex", Prefix: "sha256="}
	key := source.Options{Secrets: secrets(secret), Verify: plain}
	run(t, "http", signedAt, []vector{
		{name: "documented by GitHub", options: key, body: body, header: headers("X-Signature", "sha256="+sum)},
		{name: "upper-case hex", options: key, body: body, header: headers("X-Signature", "sha256="+strings.ToUpper(sum))},
		{name: "second of two headers", options: key, body: body, header: headers("X-Signature", "sha256="+strings.Repeat("0", 64), "X-Signature", "sha256="+sum)},
		{name: "first of two headers", options: key, body: body, header: headers("X-Signature", "sha256="+sum, "X-Signature", "sha256="+strings.Repeat("0", 64))},
		{name: "no time is signed, so none is checked", options: key, body: body, header: headers("X-Signature", "sha256="+sum), at: signedAt + 1e6},
		{name: "other body", options: key, body: "Hello, World", header: headers("X-Signature", "sha256="+sum), refused: "signature does not match any of 1 secret (body 12 bytes)."},
		{name: "no prefix", options: key, body: body, header: headers("X-Signature", sum), refused: `X-Signature does not begin with "sha256="`},
		{name: "base64 instead of hex", options: key, body: body, header: headers("X-Signature", "sha256="+"dXEH6g6yUJ/CESIczphLijdXC211hsIsRvQ3nIsEPhc="), refused: "is not a signature of 32 bytes in hex"},
		{name: "no header", options: key, body: body, header: headers(), refused: "no X-Signature header."},
	})

	// Slack's documented vector: a signed template of version, time and body.
	slack := source.Options{
		Secrets: secrets("8f742231b10e8888abcd99yyyzzz85a5"),
		Verify: source.Scheme{Kind: source.SchemeHMAC, Hash: "sha256", Header: "X-Slack-Signature", Encoding: "hex", Prefix: "v0=",
			Signed: "v0:{timestamp}:{body}", TimestampHeader: "X-Slack-Request-Timestamp"},
	}
	const (
		slackAt   = 1531420618
		slackBody = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
		slackSum  = "a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
	)
	at := func(text string) http.Header {
		return headers("X-Slack-Signature", "v0="+slackSum, "X-Slack-Request-Timestamp", text)
	}
	run(t, "http", slackAt, []vector{
		{name: "documented by Slack", options: slack, body: slackBody, header: at("1531420618")},
		{name: "300 s late", options: slack, body: slackBody, header: at("1531420618"), at: slackAt + 300},
		{name: "301 s late", options: slack, body: slackBody, header: at("1531420618"), at: slackAt + 301, refused: "301 s in the past, tolerance is 300 s"},
		{name: "301 s early", options: slack, body: slackBody, header: at("1531420618"), at: slackAt - 301, refused: "301 s in the future"},
		{name: "other time", options: slack, body: slackBody, header: at("1531420619"), refused: "does not match"},
		{name: "no time", options: slack, body: slackBody, header: headers("X-Slack-Signature", "v0="+slackSum), refused: "no X-Slack-Request-Timestamp header"},
		{name: "a time that is none", options: slack, body: slackBody, header: at("yesterday"), refused: "cannot be read as a time"},
	})

	// Shopify's and LINE's vectors: base64; Twilio's hash of nothing but a text: sha1.
	in := func(hash, encoding string) source.Scheme {
		return source.Scheme{Kind: source.SchemeHMAC, Hash: hash, Header: "X-Sig", Encoding: encoding}
	}
	run(t, "http", signedAt, []vector{
		{name: "base64 of Shopify's SDK", options: source.Options{Secrets: secrets("test_secret_key"), Verify: in("sha256", "base64")},
			body: `{"foo": "bar"}`, header: headers("X-Sig", "B23tXN681gZ0qIWNRrgtzBE9XSDo5yaUu6wfmhu3a7g=")},
		{name: "base64 of LINE's SDK", options: source.Options{Secrets: secrets("channel_secret"), Verify: in("sha256", "base64")},
			body: "bodybodybodybody", header: headers("X-Sig", "/gg9a+LvFevTH1sd7XCQycD7tsWclCsInj7MhBHxN7k=")},
		{name: "base64 in the URL alphabet without padding", options: source.Options{Secrets: secrets("channel_secret"), Verify: in("sha256", "base64")},
			body: "bodybodybodybody", header: headers("X-Sig", "_gg9a-LvFevTH1sd7XCQycD7tsWclCsInj7MhBHxN7k")},
		{name: "sha1 of Twilio's SDK", options: source.Options{Secrets: secrets("12345"), Verify: in("sha1", "base64")},
			body:   "https://mycompany.com/myapp.php?foo=1&bar=2CallSid" + "CA1234567890ABCDECaller+14158675309Digits1234From+14158675309ReasonParticipantReasonConferenceEndedtestTo+18005551212",
			header: headers("X-Sig", "vOEb5UThFn24KEfnOFLQY2AE5FY=")},
		{name: "sha512 of RFC 4231, case 2", options: source.Options{Secrets: secrets("Jefe"), Verify: in("sha512", "hex")},
			body:   "what do ya want for nothing?",
			header: headers("X-Sig", "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737")},
	})
}

func TestVerifyFarFutureIsRefused(t *testing.T) {
	// The difference of such times does not fit a Duration.
	s := open(t, "stripe", source.Options{Secrets: secrets(stripeSecret)})
	h := http.Header{}
	if err := s.(source.Signer).Sign(h, []byte(stripeBody), time.Unix(999_999_999_999, 0)); err != nil {
		t.Fatal(err)
	}
	err := s.Verify(&source.Request{Header: h, Body: []byte(stripeBody)}, time.Unix(signedAt, 0))
	if err == nil || !strings.Contains(err.Error(), "in the future") {
		t.Fatalf("want a refusal, got %v", err)
	}
}

func TestVerifyStaticHeaders(t *testing.T) {
	bearer := source.Options{Secrets: secrets("s3cret-token-of-the-hook")}
	named := bearer
	named.Verify = source.Scheme{Kind: source.SchemeHeader, Header: "x-webhook-secret"}
	basic := source.Options{Secrets: secrets("open-sesame"), Verify: source.Scheme{Kind: source.SchemeBasic, Username: "hook"}}
	auth := func(user, password string) http.Header {
		return headers("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
	}
	for _, preset := range []string{"hasura", "supabase"} {
		run(t, preset, signedAt, []vector{
			{name: preset + ": bearer by default", options: bearer, header: headers("Authorization", "Bearer s3cret-token-of-the-hook")},
			{name: preset + ": scheme in any case", options: bearer, header: headers("Authorization", "bearer s3cret-token-of-the-hook")},
			{name: preset + ": wrong token", options: bearer, header: headers("Authorization", "Bearer s3cret-token-of-another"),
				refused: "bearer token does not match any of 1 secret. Is it the one that the sender was given?"},
			{name: preset + ": beginning of the token", options: bearer, header: headers("Authorization", "Bearer s3cret"), refused: "does not match"},
			{name: preset + ": no token", options: bearer, header: headers("Authorization", "Bearer "), refused: "does not match"},
			{name: preset + ": basic instead", options: bearer, header: auth("hook", "s3cret-token-of-the-hook"), refused: `must begin with "Bearer "`},
			{name: preset + ": no header", options: bearer, header: headers(), refused: "no Authorization header."},
			{name: preset + ": header of the config", options: named, header: headers("X-Webhook-Secret", "s3cret-token-of-the-hook")},
			{name: preset + ": wrong header of the config", options: named, header: headers("X-Webhook-Secret", "s3cret"), refused: "value of x-webhook-secret does not match"},
			{name: preset + ": rotation", options: source.Options{Secrets: secrets("s3cret-token-of-the-hook", "second")}, header: headers("Authorization", "Bearer second")},
			{name: preset + ": none, said explicitly", options: source.Options{Verify: source.Scheme{Kind: source.SchemeNone}}, header: headers()},
		})
	}
	run(t, "http", signedAt, []vector{
		{name: "basic", options: basic, header: auth("hook", "open-sesame")},
		{name: "basic with a colon in the password", options: source.Options{Secrets: secrets("a:b"), Verify: basic.Verify}, header: auth("hook", "a:b")},
		{name: "basic with another password", options: basic, header: auth("hook", "open"), refused: "password does not match any of 1 secret. Is it"},
		{name: "basic with another user", options: basic, header: auth("root", "open-sesame"), refused: "the user name is not the expected hook; the password is right."},
		{name: "basic with nothing right", options: basic, header: auth("root", "toor"), refused: "The user name is not the expected hook either."},
		{name: "basic that is not base64", options: basic, header: headers("Authorization", "Basic ???"), refused: `must begin with "Basic "`},
	})
}

func TestVerifyRotation(t *testing.T) {
	noon := time.Unix(signedAt, 0).UTC()
	h := headers("Stripe-Signature", "t=1786000000,v1="+stripeSum)
	old := func(until time.Time) source.Secret { return source.Secret{Value: stripeSecret, Until: until} }
	run(t, "stripe", signedAt, []vector{
		{name: "old secret until it runs out", header: h, body: stripeBody,
			options: source.Options{Secrets: []source.Secret{{Value: "fresh"}, old(noon.Add(time.Second))}}},
		{name: "old secret from when it runs out", header: h, body: stripeBody,
			options: source.Options{Secrets: []source.Secret{{Value: "fresh"}, old(noon)}},
			refused: "the signature is right for a secret that ran out on 2026-08-06T07:06:40Z. Has the sender still to change to the new one?"},
		{name: "one that ran out beside a wrong one", header: h, body: stripeBody,
			options: source.Options{Secrets: []source.Secret{{Value: "fresh"}, {Value: "older", Until: noon}}},
			refused: "does not match any of 1 secret (body 31 bytes, signed time 0 s ago, 1 more ran out)."},
		{name: "every one ran out", header: h, body: stripeBody,
			options: source.Options{Secrets: []source.Secret{{Value: "older", Until: noon.Add(-time.Hour)}, {Value: "oldest", Until: noon.Add(-2 * time.Hour)}}},
			refused: "every secret has run out (2 secrets, the last on 2026-08-06T06:06:40Z). Add the one that the sender uses now."},
	})
}

func TestSignThenVerify(t *testing.T) {
	at := time.Unix(signedAt, 0)
	for name, o := range signable() {
		preset, _, _ := strings.Cut(name, "/")
		t.Run(name, func(t *testing.T) {
			s := open(t, preset, o)
			body := []byte(`{"a":"é\u00e9"}`)
			h := http.Header{}
			if err := s.(source.Signer).Sign(h, body, at); err != nil {
				t.Fatal(err)
			}
			if got := h.Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type is %q", got)
			}
			r := &source.Request{Method: "POST", Header: h, Body: body}
			if err := s.Verify(r, at); err != nil {
				t.Fatalf("own signature refused: %v", err)
			}
			r.Body = append(body, ' ')
			if err := s.Verify(r, at); err == nil && !static(o, preset) {
				t.Error("believed with another body")
			}
			o.Secrets = secrets("d2hzZWNfQUFBQUFBQUFBQUFB") // base64, as Standard Webhooks wants
			if err := open(t, preset, o).Verify(&source.Request{Header: h, Body: body}, at); err == nil {
				t.Error("believed under another secret")
			}
		})
	}
}

// signable gives options under which every preset and scheme signs.
func signable() map[string]source.Options {
	hmac := func(s source.Scheme) source.Options {
		s.Kind, s.Header = source.SchemeHMAC, "X-Sig"
		return source.Options{Secrets: secrets("shop"), Verify: s}
	}
	kind := func(s source.Scheme) source.Options { return source.Options{Secrets: secrets("shop"), Verify: s} }
	return map[string]source.Options{
		"calendly":                  {Secrets: secrets(calendlySecret)},
		"stripe":                    {Secrets: secrets(stripeSecret)},
		"whatsapp":                  {Secrets: secrets(metaSecret)},
		"hasura":                    {Secrets: secrets("token")},
		"supabase":                  {Secrets: secrets("token")},
		"standard-webhooks":         {Secrets: secrets(webhookSecret)},
		"standard-webhooks/ed25519": {Secrets: secrets(ed25519Private)},
		"http/sha256-hex":           hmac(source.Scheme{Hash: "sha256", Encoding: "hex", Prefix: "sha256="}),
		"http/sha1-base64":          hmac(source.Scheme{Hash: "sha1", Encoding: "base64"}),
		"http/sha512-all":           hmac(source.Scheme{Hash: "sha512", Encoding: "hex", Signed: "v0:{id}:{timestamp}:{body}", TimestampHeader: "X-Time", IDHeader: "X-Id"}),
		"http/basic":                kind(source.Scheme{Kind: source.SchemeBasic, Username: "u"}),
		"http/bearer":               kind(source.Scheme{Kind: source.SchemeBearer}),
		"http/header":               kind(source.Scheme{Kind: source.SchemeHeader, Header: "X-Secret", Prefix: "Token "}),
	}
}

func static(o source.Options, preset string) bool {
	return preset == "hasura" || preset == "supabase" || preset == "http" && o.Verify.Kind != source.SchemeHMAC
}

func TestSignUsesTheFirstLiveSecret(t *testing.T) {
	at := time.Unix(signedAt, 0)
	s := open(t, "stripe", source.Options{Secrets: []source.Secret{{Value: "old", Until: at}, {Value: stripeSecret}}})
	h := http.Header{}
	if err := s.(source.Signer).Sign(h, []byte(stripeBody), at); err != nil {
		t.Fatal(err)
	}
	if got, want := h.Get("Stripe-Signature"), "t=1786000000,v1="+stripeSum; got != want {
		t.Errorf("signed %s, want %s", got, want)
	}
}

func TestSignThatCannot(t *testing.T) {
	at := time.Unix(signedAt, 0)
	for name, s := range map[string]source.Source{
		"none":             open(t, "http", source.Options{Verify: source.Scheme{Kind: source.SchemeNone}}),
		"public key alone": open(t, "standard-webhooks", source.Options{Secrets: secrets(ed25519Public)}),
		"run out":          open(t, "calendly", source.Options{Secrets: []source.Secret{{Value: "old", Until: at}}}),
	} {
		if err := s.(source.Signer).Sign(http.Header{}, nil, at); !errors.Is(err, source.ErrUnsigned) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	hmac := func(change func(*source.Scheme)) source.Options {
		s := source.Scheme{Kind: source.SchemeHMAC, Hash: "sha256", Header: "X-Sig", Encoding: "hex"}
		change(&s)
		return source.Options{Secrets: secrets("s"), Verify: s}
	}
	kind := func(k source.SchemeKind) source.Options {
		return source.Options{Secrets: secrets("s"), Verify: source.Scheme{Kind: k}}
	}
	for _, c := range []struct {
		name, preset string
		o            source.Options
		want         string
	}{
		{"calendly without secret", "calendly", source.Options{}, "secrets is missing: give the signing_key of the webhook subscription"},
		{"stripe without secret", "stripe", source.Options{}, "secrets is missing: give the signing secret of the endpoint (whsec_…)"},
		{"whatsapp without secret", "whatsapp", source.Options{}, "secrets is missing: give the app secret of the Meta app"},
		{"hasura without secret", "hasura", source.Options{}, "secrets is missing: give the secret that the trigger sends"},
		{"supabase without secret", "supabase", source.Options{}, "secrets is missing: give the secret that the webhook sends"},
		{"standard-webhooks without secret", "standard-webhooks", source.Options{}, "secrets is missing: give the signing secret of the endpoint (whsec_…), or the sender's public key"},
		{"empty secret", "stripe", source.Options{Secrets: secrets("a", "")}, "secrets[1] is empty"},
		{"API key of Stripe", "stripe", source.Options{Secrets: secrets("sk_test_x")}, "secrets[0] begins with sk_: it is an API key"},
		{"line break at the end", "stripe", source.Options{Secrets: secrets("a\n")}, "secrets[0] begins or ends with white space"},
		{"empty webhook key", "standard-webhooks", source.Options{Secrets: secrets("whsec_")}, "secrets[0] has nothing after its prefix"},
		{"webhook key of no base64", "standard-webhooks", source.Options{Secrets: secrets("whsec_not-base64!")}, "secrets[0] is not base64 after its prefix"},
		{"short public key", "standard-webhooks", source.Options{Secrets: secrets("whpk_AAAA")}, "secrets[0] is a public key of 3 bytes, where ed25519 has 32"},
		{"short private key", "standard-webhooks", source.Options{Secrets: secrets("whsk_AAAA")}, "secrets[0] is a private key of 3 bytes"},
		{"http without verify", "http", source.Options{}, "verify is missing: say how requests are verified"},
		{"http of unknown kind", "http", kind("rsa"), `verify: "rsa" is not known`},
		{"http without secret", "http", source.Options{Verify: hmac(func(*source.Scheme) {}).Verify}, "secrets is missing: give the secret"},
		{"none with a secret", "http", kind(source.SchemeNone), "verify: none looks at no secrets"},
		{"basic without user", "http", kind(source.SchemeBasic), "verify.username is missing"},
		{"header without name", "http", kind(source.SchemeHeader), "verify.header is missing"},
		{"hmac without hash", "http", hmac(func(s *source.Scheme) { s.Hash = "" }), "verify.hmac is missing"},
		{"hmac of md5", "http", hmac(func(s *source.Scheme) { s.Hash = "md5" }), `verify.hmac: "md5" is not known`},
		{"hmac without header", "http", hmac(func(s *source.Scheme) { s.Header = "" }), "verify.header is missing"},
		{"hmac without encoding", "http", hmac(func(s *source.Scheme) { s.Encoding = "" }), "verify.encoding is missing"},
		{"hmac in base32", "http", hmac(func(s *source.Scheme) { s.Encoding = "base32" }), `verify.encoding: "base32" is not known`},
		{"signed without body", "http", hmac(func(s *source.Scheme) { s.Signed, s.TimestampHeader = "{timestamp}", "X-T" }), "verify.signed has no {body}"},
		{"signed with an unknown name", "http", hmac(func(s *source.Scheme) { s.Signed = "{url}{body}" }), "verify.signed: after { stands body}, timestamp} or id}"},
		{"signed not closed", "http", hmac(func(s *source.Scheme) { s.Signed = "{body" }), "verify.signed: after { stands"},
		{"timestamp without header", "http", hmac(func(s *source.Scheme) { s.Signed = "{timestamp}.{body}" }), "verify.timestamp_header is missing"},
		{"id without header", "http", hmac(func(s *source.Scheme) { s.Signed = "{id}.{body}" }), "verify.id_header is missing"},
		{"timestamp that is not signed", "http", hmac(func(s *source.Scheme) { s.TimestampHeader = "X-T" }), "a time that is not signed proves nothing"},
		{"id that is not signed", "http", hmac(func(s *source.Scheme) { s.IDHeader = "X-Id" }), "an id that is not signed can be changed"},
		{"unknown format", "http", source.Options{Verify: source.Scheme{Kind: source.SchemeNone}, Format: "xml"}, `format: "xml" is not known`},
		{"hasura cannot hmac", "hasura", kind(source.SchemeHMAC), "this provider does not sign"},
		{"bearer with a control character", "hasura", source.Options{Secrets: secrets("a\x00b")}, "secrets[0] holds a control character"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := source.PresetNamed(c.preset).New(c.o)
			if err == nil || s != nil {
				t.Fatalf("made %v, %v", s, err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q\nlacks %q", err, c.want)
			}
		})
	}
}
