package config

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// presetHTTP is the preset that knows no provider: the config says how its
// requests are verified.
const presetHTTP = "http"

func sourceKeys() section[Source] {
	expr := func(get func(*Source) **Expr) func(value, *Source) {
		return func(v value, s *Source) { v.exprTo(get(s)) }
	}
	return section[Source]{
		path: "sources.<source>", doc: "The name is part of the address: `/in/<source>`.",
		keys: []key[Source]{
			{name: "preset", form: "a preset", needed: "preset: http", doc: "The provider: [presets.md](presets.md) tells what each signs and sends. `http` is any other.", read: readPreset},
			{name: "secrets", form: "a list of secrets", def: "none", doc: "What requests are signed with. Several, while one takes the place of another. Needed unless `verify: none`. With `standard-webhooks` a `whsec_…` for HMAC, or the sender's public key `whpk_…` for ed25519.", read: readSecrets},
			{name: "verify_token", form: "text", def: "none", doc: "The token of the handshake by which Meta (whatsapp) registers an endpoint.",
				read: func(v value, s *Source) { s.VerifyToken, _ = v.text("the token you have given to the provider") }},
			{name: "verify", form: "a map, `bearer` or `none`", def: "the preset's", doc: "How requests are verified. Needed with `preset: http`.", read: readVerify},
			{name: "url", form: "a URL", def: "none", doc: "The public URL of the source, for providers that sign it.",
				read: func(v value, s *Source) { v.webURL(&s.URL) }},
			{name: "format", form: "`json`, `form`", def: "`json`", doc: "How a body is read. In a form, brackets nest: `a[b]=1`, `a[]=1`, `a[0][b]=1`; JSON in a field is text, which `json(event.payload)` reads.",
				read: func(v value, s *Source) {
					if f, ok := v.one("json", "form"); ok {
						s.Format = f
					}
				}},
			{name: "split", form: "an expression", def: "the preset's; with `http` the body is one event", doc: "A list, whose elements are the events of a delivery: `body` where the body is a list.", read: expr(func(s *Source) **Expr { return &s.Split })},
			{name: "id", form: "an expression, or a list of them", def: "the preset's; with `http` none", doc: "The event's identity. Of a list, all parts together; a part that is absent or null means none. Where it has none, its delivery can stand for it, so that at least a delivery that is mapped twice counts once: `coalesce(headers[\"x-delivery-id\"], position)`.",
				read: func(v value, s *Source) { v.exprs(&s.ID) }},
			{name: "type", form: "an expression", def: "the preset's; with `http` none", doc: "The event's type.", read: expr(func(s *Source) **Expr { return &s.Type })},
			{name: "time", form: "an expression", def: "the preset's; with `http` none", doc: "When it happened.", read: expr(func(s *Source) **Expr { return &s.Time })},
			{name: "when", form: "an expression", def: "every event", doc: "Which events count: one for which this is false is skipped.", read: expr(func(s *Source) **Expr { return &s.When })},
			{name: "handshake", form: "an expression", def: "none", doc: "For `preset: http`: the answer to a request that is no delivery, as a provider sends one to make sure of the address: `body.type == \"url_verification\" ? body.challenge : unset`. What is unset, absent or null is no handshake. A GET is answered as it is, a POST only if it is verified as deliveries are.", read: expr(func(s *Source) **Expr { return &s.Handshake })},
			{name: "zone", form: "a time zone", def: "none: a time without an offset is dead", doc: "Where times that carry no offset are read.",
				read: func(v value, s *Source) { v.zone(&s.Zone) }},
			{name: "max_ahead", form: "a length of time, or `off`", def: "`24h`", doc: "An event whose time is further ahead of its receipt is dead: it would shut out every later one.",
				read: func(v value, s *Source) { v.duration("off", &s.MaxAhead) }},
			{name: "tolerance", form: "a length of time, or `off`", def: "the preset's", doc: "How far the signed time may lie from the clock, either way.", read: readTolerance},
			{name: "max_body", form: "a size", def: "`5MiB`", doc: "The most bytes of a request, at most `64MiB`; more is answered 413.",
				read: func(v value, s *Source) { v.size(1, maxMaxBody, &s.MaxBody) }},
			{name: "bad_text", form: "`replace`, `dead`", def: "`replace`", doc: "What becomes of NUL and invalid UTF-8 in a text: each is replaced by U+FFFD, or the event is dead.",
				read: func(v value, s *Source) {
					if b, ok := v.one("replace", "dead"); ok {
						s.BadText = b
					}
				}},
			{name: "public_key", later: later("")},
		},
	}
}

func verifyKeys() section[Verify] {
	return section[Verify]{
		path: "sources.<source>.verify",
		doc: "One of:\n\n" +
			"- `{hmac: sha256, header: X-Signature}`: an HMAC of the body under a secret, in a header. The other keys below belong to it.\n" +
			"- `{basic: NAME}`: a user name and a secret as its password, in `Authorization`.\n" +
			"- `bearer`: `Authorization: Bearer` and a secret.\n" +
			"- `{header: X-Name}`: a header that holds a secret, after the `prefix` if there is one.\n" +
			"- `none`: everybody is believed who can reach the address, and whoever knows a key can write its row. Only where something in front of Hookfold lets nobody else in.",
		keys: []key[Verify]{
			{name: "hmac", form: "`sha256`, `sha1`, `sha512`", def: "none", doc: "The hash of the signature.",
				read: func(v value, o *Verify) {
					if h, ok := v.one("sha256", "sha1", "sha512"); ok {
						o.Kind, o.Hash = "hmac", h
					}
				}},
			{name: "basic", form: "text", def: "none", doc: "The user name.",
				read: func(v value, o *Verify) {
					s, ok := v.text("the user name")
					if ok && strings.Contains(s, ":") {
						v.fail("a user name of basic authentication cannot hold a colon.")
						return
					}
					o.Kind, o.Username = "basic", s
				}},
			{name: "header", form: "the name of a header", def: "none", doc: "The header with the signature, or with the secret.",
				read: func(v value, o *Verify) { v.header(&o.Header) }},
			{name: "encoding", form: "`hex`, `base64`", def: "`hex`", doc: "How the signature is written.",
				read: func(v value, o *Verify) {
					if e, ok := v.one("hex", "base64"); ok {
						o.Encoding = e
					}
				}},
			{name: "prefix", form: "text", def: "none", doc: "What stands before the signature or the secret in the header, as in `sha256=`.",
				read: func(v value, o *Verify) { o.Prefix, _ = v.text("text, as in \"sha256=\"") }},
			{name: "signed", form: "text", def: "`{body}`", doc: "What is signed: a text with `{body}`, and `{timestamp}` and `{id}` where they are signed too.", read: readSigned},
			{name: "timestamp_header", form: "the name of a header", def: "none", doc: "The header of `{timestamp}`, in Unix seconds.",
				read: func(v value, o *Verify) { v.header(&o.TimestampHeader) }},
			{name: "id_header", form: "the name of a header", def: "none", doc: "The header of `{id}`.",
				read: func(v value, o *Verify) { v.header(&o.IDHeader) }},
		},
	}
}

func secretKeys() section[Secret] {
	return section[Secret]{
		path: "sources.<source>.secrets[]", doc: "A text in its place is the `value`.",
		keys: []key[Secret]{
			{name: "value", form: "text", needed: `value: "${SHOP_SECRET}"`, doc: "The secret.", read: readSecretValue},
			{name: "until", form: "a date or a time", def: "for ever", doc: "When the secret stops being accepted: the end of a day in UTC (`2026-12-31`), or a moment (`2026-12-31T18:00:00Z`).", read: readUntil},
		},
	}
}

func readPreset(v value, s *Source) {
	n, ok := v.name("the name of a preset")
	if !ok {
		return
	}
	s.Preset = n
	if known := v.l.o.Presets; known != nil && !slices.Contains(known, n.Text) {
		v.fail("`%s` is not a preset.%s For another provider use preset: http and say how it signs.", show(v.node.Value), didYouMean(n.Text, known))
	}
}

func readSource(v value, s *Source) {
	s.Format, s.MaxAhead, s.MaxBody, s.BadText = "json", defaultMaxAhead, defaultMaxBody, "replace"
	got := sourceKeys().read(v, s)
	if got == nil || v.broken() {
		return
	}
	_, verify := got["verify"]
	secrets, has := got["secrets"]
	none := s.Verify != nil && s.Verify.Kind == "none"
	if h, ok := got["handshake"]; ok && s.Preset.Text != "" && s.Preset.Text != presetHTTP {
		h.fail("belongs to preset: http; %s answers the handshakes of its provider itself.", s.Preset.Text)
	}
	switch {
	case s.Preset.Text == presetHTTP && !verify:
		v.failWhole("needs verify:, for example verify: {hmac: sha256, header: X-Signature}, or basic, bearer, header or none.")
	case !none && !has:
		v.failWhole("needs secrets:, for example secrets: [\"${%s_SECRET}\"]. To believe everybody say verify: none.", strings.ToUpper(strings.ReplaceAll(s.Text, "-", "_")))
	case none && has:
		secrets.fail("is never looked at, because of verify: none. Leave one of the two out.")
	}
}

func readTolerance(v value, s *Source) {
	if v.duration("off", &s.Tolerance); s.Tolerance == 0 && !v.l.bad[v.node] {
		v.fail("is nothing: no clock is that exact. Give a length of time such as 300s, or off.")
	}
}

func readSecrets(v value, s *Source) {
	items, ok := v.items()
	if !ok {
		return
	}
	if len(items) == 0 {
		v.fail("is an empty list; it has to hold a secret, as in [\"${SHOP_SECRET}\"].")
	}
	for _, item := range items {
		x := Secret{Pos: item.pos()}
		if item.isMap() {
			secretKeys().read(item, &x)
		} else {
			readSecretValue(item, &x)
		}
		if x.Value != "" {
			s.Secrets = append(s.Secrets, x)
		}
	}
}

func readSecretValue(v value, s *Secret) {
	s.Value, _ = v.text(`a secret, as in "${SHOP_SECRET}"`)
}

func readUntil(v value, s *Secret) {
	const want = "a date or a time, as in 2026-12-31 or 2026-12-31T18:00:00Z"
	t, ok := v.text(want)
	if !ok {
		return
	}
	if day, err := time.Parse(time.DateOnly, t); err == nil {
		s.Until = day.AddDate(0, 0, 1)
		return
	}
	at, err := time.Parse(time.RFC3339, t)
	if err != nil {
		v.fail("`%s` is not %s.", show(v.node.Value), want)
		return
	}
	s.Until = at.UTC()
}

func readVerify(v value, s *Source) {
	o := &Verify{Pos: v.pos()}
	if v.isScalar() && !v.isNull() {
		kind, ok := v.text("")
		switch {
		case !ok:
			return
		case kind == "bearer" || kind == "none":
			o.Kind = kind
		case kind == "hmac" || kind == "basic" || kind == "header":
			example := map[string]string{"hmac": "{hmac: sha256, header: X-Signature}", "basic": "{basic: NAME}", "header": "{header: X-Name}"}
			v.fail("%s needs more: write verify: %s.", kind, example[kind])
			return
		default:
			v.fail("`%s` is not a way to verify: write {hmac: sha256, header: X-Signature}, {basic: NAME}, bearer, {header: X-Name} or none.", show(v.node.Value))
			return
		}
		s.Verify = o
		return
	}
	got := verifyKeys().read(v, o)
	if got == nil || v.broken() {
		return
	}
	checkVerify(v, o, got)
	s.Verify = o
}

// checkVerify checks that the keys of a scheme belong together.
func checkVerify(v value, o *Verify, got map[string]value) {
	has := func(k string) bool { _, ok := got[k]; return ok }
	switch {
	case has("hmac") && has("basic"):
		got["basic"].fail("is a way to verify beside hmac. Keep one.")
		return
	case has("hmac") && !has("header"):
		v.failWhole("needs header:, the name of the header with the signature.")
		return
	case has("basic") && has("header"):
		got["header"].fail("does not belong to basic, which is always in Authorization. Leave it out.")
		return
	case !has("hmac") && !has("basic") && !has("header"):
		v.failWhole("says no way to verify: write {hmac: sha256, header: X-Signature}, {basic: NAME}, bearer, {header: X-Name} or none.")
		return
	case !has("hmac"):
		for _, k := range []string{"encoding", "prefix", "signed", "timestamp_header", "id_header"} {
			if has(k) && !(k == "prefix" && has("header")) {
				got[k].fail("belongs to hmac. Leave it out, or give hmac: sha256.")
			}
		}
		if has("header") {
			o.Kind = "header"
		}
		return
	}
	if o.Encoding == "" {
		o.Encoding = "hex"
	}
	for _, part := range []struct{ name, key, header string }{
		{"{timestamp}", "timestamp_header", o.TimestampHeader}, {"{id}", "id_header", o.IDHeader},
	} {
		signed := strings.Contains(o.Signed, part.name)
		if signed && !has(part.key) {
			got["signed"].fail("holds %s, so %s: has to name the header it is in.", part.name, part.key)
		}
		if !signed && has(part.key) {
			got[part.key].fail("is not signed, so anybody could change it. Put %s into signed:, as the sender does.", part.name)
		}
	}
}

var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

func readSigned(v value, o *Verify) {
	s, ok := v.text(`what is signed, as in "{timestamp}.{body}"`)
	if !ok {
		return
	}
	for _, p := range placeholder.FindAllString(s, -1) {
		if names := []string{"{body}", "{timestamp}", "{id}"}; !slices.Contains(names, p) {
			v.fail("%s is not a part of a request: there is %s.%s", show(p), list(names), meant(p, names))
			return
		}
	}
	if !strings.Contains(s, "{body}") {
		v.fail("does not hold {body}: a signature that leaves out the body proves nothing.")
		return
	}
	o.Signed = s
}
