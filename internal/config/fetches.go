package config

import (
	"math"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The defaults of a fetch.
const (
	defaultFetchesAtOnce = 4
	defaultFetchTimeout  = 10 * time.Second
	defaultFetchBody     = 1 << 20
	maxFetchBody         = 16 << 20
	defaultFetchFor      = 24 * time.Hour
)

// Fetch is one entry of fetches: how the current state of a thing is read from
// somebody's API before an event is mapped.
type Fetch struct {
	Name
	// Preset names a ready fetch (calendly/invitee), which says what is not said
	// here; no text is none.
	Preset Name
	// URL is nil where Preset gives it.
	URL *Expr
	// Bearer, Basic and Headers are already expanded, and secret.
	Bearer  string
	Basic   *Basic
	Headers []Header
	// EventHeaders are headers whose value is an expression over the event.
	EventHeaders []Assignment
	// Hosts are the hosts that may be asked, beside those that Preset and the
	// beginning of URL name: a name, *.name or an address, with a port or any.
	// Private are those whose address may be one that is not of the internet.
	Hosts, Private []Name
	// Rate is the most requests a second to one host; 0 is no limit.
	Rate float64
	// Concurrency is the most requests at a time to one host; default 4.
	Concurrency int
	// Timeout is for one request and its answer; default 10 s.
	Timeout time.Duration
	// MaxBody is the most bytes of an answer; default 1 MiB.
	MaxBody int64
	// Version is that of what was read, for mappings that give none; none is when
	// the read began.
	Version []Expr
	// Until has to hold of an answer, else it is asked again; nil is any answer.
	Until *Expr
	// NotFound is retry (default), value, delete or dead.
	NotFound string
	// OrElse gives what takes the place of an answer that does not come; nil makes
	// the event dead.
	OrElse *Expr
	// For is how long it is tried; default 24h.
	For time.Duration
}

// Basic is a name and a password, already expanded.
type Basic struct{ Username, Password string }

// The policies for an object that is not there.
const (
	NotFoundRetry  = "retry"
	NotFoundValue  = "value"
	NotFoundDelete = "delete"
	NotFoundDead   = "dead"
)

func (f *Fetch) named() *Name { return &f.Name }

// FetchNamed returns the fetch of a name, or nil.
func (c *Config) FetchNamed(name string) *Fetch {
	for _, f := range c.Fetches {
		if f.Text == name {
			return f
		}
	}
	return nil
}

func fetchKeys() section[Fetch] {
	return section[Fetch]{
		path: "fetches.<fetch>",
		doc: "How the current state of a thing is read from its provider's API before an event is mapped: [fetch.md](fetch.md). A mapping uses it by `fetch: <fetch>`; its expressions then read " +
			"`fetched` (the body of the answer, null if the thing is not there), `fetched_status` (the HTTP status, also as `fetched.status` unless the body has a `status` of its own) and `fetched_at` (when the read began).",
		keys: []key[Fetch]{
			{name: "preset", form: "a ready fetch", def: "none", doc: "One of those that [presets.md](presets.md#ready-fetches) lists, as in `calendly/invitee`: it gives `url`, `hosts`, `version` and headers, as far as they are not given here.",
				read: func(v value, f *Fetch) { f.Preset, _ = v.name("the name of a ready fetch, as in calendly/invitee") }},
			{name: "url", form: "an expression", def: "the preset's", doc: "What is read, by GET. null and absent is an error of the event: it belongs in the mapping's `when`.",
				read: func(v value, f *Fetch) { v.exprTo(&f.URL) }},
			{name: "bearer", form: "text", def: "none", doc: "The token of `Authorization: Bearer`.",
				read: func(v value, f *Fetch) { f.Bearer, _ = v.headerText(`a token, as in "${API_TOKEN}"`) }},
			{name: "basic", form: "a map", def: "none", doc: "A user name and a password for `Authorization: Basic`.",
				read: func(v value, f *Fetch) { f.Basic = &Basic{}; basicKeys().read(v, f.Basic) }},
			{name: "headers", form: "names and texts", def: "none", doc: "Headers of every request, secrets among them: `{X-Shopify-Access-Token: \"${TOKEN}\"}`. They are sent to no other host than the URL's, whatever a redirect says.", read: readFetchHeaders},
			{name: "event_headers", form: "names and expressions", def: "none", doc: "Headers whose value is read from the event: `{Stripe-Account: \"event.?account\"}`. One that is null or absent is not sent.",
				read: readEventHeaders},
			{name: "hosts", form: "a list of hosts", def: "those of the preset, and the one that the text at the beginning of `url` names", doc: "The hosts that may be asked: a name, `*.name` for those below it, or an address, each with a port or for any port. No other host is asked, also after a redirect.",
				read: func(v value, f *Fetch) { v.hosts(&f.Hosts) }},
			{name: "private", form: "a list of hosts", def: "none", doc: "Those of the hosts whose address may be private, loopback or link-local. An address, or `localhost`, that `hosts` itself names need not be said here. Nobody else is asked at such an address, whatever DNS says. Only these may be asked by plain `http://`.",
				read: func(v value, f *Fetch) { v.hosts(&f.Private) }},
			{name: "rate", form: "a number and `/s`, `/m` or `/h`", def: "unlimited", doc: "The most requests to one host: `10/s`. Of several fetches from one host the slowest counts.",
				read: func(v value, f *Fetch) { v.rate(&f.Rate) }},
			{name: "concurrency", form: "1 to 64", def: "4", doc: "The most requests at a time to one host.",
				read: func(v value, f *Fetch) { v.number(1, 64, &f.Concurrency) }},
			{name: "timeout", form: "a length of time", def: "`10s`", doc: "For one request with its answer and redirects, at most `2m`.", read: readFetchTimeout},
			{name: "max_body", form: "a size", def: "`1MiB`", doc: "The most bytes of an answer, at most `16MiB`.",
				read: func(v value, f *Fetch) { v.size(1, maxFetchBody, &f.MaxBody) }},
			{name: "version", form: "an expression, or a list of them", def: "the preset's, else `fetched_at`", doc: "The version of what was read, for mappings that use the fetch and give none: a time or number in the answer, as in `fetched.updated_at`. `fetched_at` is read from the clock of this machine; `check` refuses to compare it with versions from a provider's.",
				read: func(v value, f *Fetch) { v.exprs(&f.Version) }},
			{name: "until", form: "an expression", def: "any answer will do", doc: "For an API that answers older states than the event knows: the read is tried again until it holds, as in `fetched.ver >= event.ver`.",
				read: func(v value, f *Fetch) { v.exprTo(&f.Until) }},
			{name: "not_found", form: "`retry`, `value`, `delete`, `dead`", def: "`retry`", doc: "What an answer 404 or 410 means: the thing is not there yet; `fetched` is null and `fetched_status` says so; the row is deleted; or the event is dead.",
				read: func(v value, f *Fetch) {
					if s, ok := v.one(NotFoundRetry, NotFoundValue, NotFoundDelete, NotFoundDead); ok {
						f.NotFound = s
					}
				}},
			{name: "or_else", form: "an expression", def: "none: the event is dead", doc: "What `fetched` is if the read is given up, as in `event`. `fetched_status` is 0 then, and `fetched_at` when the delivery was received.",
				read: func(v value, f *Fetch) { v.exprTo(&f.OrElse) }},
			{name: "for", form: "a length of time", def: "`24h`", doc: "How long a read that fails is tried again. An answer 429, and 401 and 403, which pause the fetch, do not end it.",
				read: func(v value, f *Fetch) { v.duration("", &f.For) }},
		},
	}
}

func basicKeys() section[Basic] {
	return section[Basic]{
		path: "fetches.<fetch>.basic",
		keys: []key[Basic]{
			{name: "username", form: "text", needed: "username: \"${API_USER}\"", doc: "The user name; no colon.",
				read: func(v value, b *Basic) {
					s, ok := v.headerText("the user name")
					if ok && strings.Contains(s, ":") {
						v.fail("a user name of basic authentication cannot hold a colon.")
						return
					}
					b.Username = s
				}},
			{name: "password", form: "text", def: "none", doc: "The password.",
				read: func(v value, b *Basic) { b.Password, _ = v.headerText(`a password, as in "${API_PASSWORD}"`) }},
		},
	}
}

func readFetch(v value, f *Fetch) {
	f.Concurrency, f.Timeout, f.MaxBody, f.NotFound, f.For = defaultFetchesAtOnce, defaultFetchTimeout, defaultFetchBody, NotFoundRetry, defaultFetchFor
	got := fetchKeys().read(v, f)
	if got == nil || v.broken() {
		return
	}
	_, preset := got["preset"]
	if _, ok := got["url"]; !ok && !preset && !v.l.unread[join(v.path, "url")] && !v.l.unread[join(v.path, "preset")] {
		v.failWhole(`needs url:, for example url: '"https://api.example.com/orders/" + event.id', or preset:, a ready fetch.`)
	}
	ways := []string{}
	if f.Bearer != "" {
		ways = append(ways, "bearer")
	}
	if f.Basic != nil {
		ways = append(ways, "basic")
	}
	for _, h := range f.Headers {
		if h.Name == "Authorization" {
			ways = append(ways, "headers.Authorization")
		}
	}
	if len(ways) > 1 {
		v.failWhole("says who asks in more than one way: %s. Keep one.", list(ways))
	}
}

func readFetchTimeout(v value, f *Fetch) {
	const most = 2 * time.Minute
	before := f.Timeout
	if v.duration("", &f.Timeout); f.Timeout == before || v.l.bad[v.node] {
		return
	}
	if f.Timeout <= 0 || f.Timeout > most {
		v.fail("`%s` is not a length of time from 1ms to 2m.", show(v.node.Value))
	}
}

// headerText reads a secret that goes into a header.
func (v value) headerText(want string) (string, bool) {
	s, ok := v.text(want)
	if ok && strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		v.fail("holds a line break or another control character, which no header may have. Is there a line break at the end of the file or variable?")
		return "", false
	}
	return s, ok
}

// connectionHeaders are what the HTTP client itself says.
var connectionHeaders = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "Accept-Encoding", "Expect", "Range"}

func (e entry) headerName() bool {
	switch {
	case !headerForm.MatchString(e.name):
		e.key.fail("is not the name of a header: letters, digits and hyphens, as in X-Account.")
	case slices.Contains(connectionHeaders, http.CanonicalHeaderKey(e.name)):
		e.key.fail("is a header that belongs to the connection, and cannot be said. Leave it out.")
	default:
		return true
	}
	return false
}

func readFetchHeaders(v value, f *Fetch) {
	entries, ok := v.entries(`headers and their values, as in {X-Api-Key: "${API_KEY}"}`)
	if !ok {
		return
	}
	for _, e := range entries {
		s, ok := e.val.headerText("the text of a header")
		if e.headerName() && ok {
			f.Headers = append(f.Headers, Header{Name: http.CanonicalHeaderKey(e.name), Value: s})
		}
	}
}

func readEventHeaders(v value, f *Fetch) {
	entries, ok := v.entries(`headers and expressions, as in {Stripe-Account: "event.?account"}`)
	if !ok {
		return
	}
	for _, e := range entries {
		x, ok := e.val.expr()
		if e.headerName() && ok {
			f.EventHeaders = append(f.EventHeaders, Assignment{Column: Name{Text: e.name, Pos: e.key.pos(), Path: e.key.path}, Expr: x})
		}
	}
}

var (
	hostForm = regexp.MustCompile(`^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)
	rateForm = regexp.MustCompile(`^(\d{1,9}(?:\.\d{1,6})?) ?/ ?(s|m|h)$`)
)

// hosts reads hosts, in lower case.
func (v value) hosts(to *[]Name) {
	items, ok := v.oneOrMore()
	if !ok {
		return
	}
	if len(items) == 0 {
		v.fail("is an empty list: nobody could be asked. Name a host, as in [api.example.com].")
	}
	for _, item := range items {
		n, ok := item.name("a host, as in api.example.com, *.example.com or 127.0.0.1:8080")
		if !ok {
			continue
		}
		if n.Text = strings.ToLower(n.Text); !goodHost(n.Text) {
			item.fail("`%s` is not a host, as in api.example.com, *.example.com or 127.0.0.1:8080, without https:// and without a path.", show(item.node.Value))
			continue
		}
		*to = append(*to, n)
	}
}

func goodHost(s string) bool {
	host, port := SplitHost(s)
	if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return len(host) < 254 && hostForm.MatchString(host) && !strings.HasSuffix(s, ":")
}

// SplitHost takes a host apart from its port, "" if it has none. An address of
// IPv6 may stand in brackets.
func SplitHost(s string) (host, port string) {
	if _, err := netip.ParseAddr(s); err == nil {
		return s, ""
	}
	if i := strings.LastIndexByte(s, ':'); i >= 0 && !strings.HasSuffix(s, "]") {
		s, port = s[:i], s[i+1:]
	}
	return strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"), port
}

// rate reads 10/s.
func (v value) rate(to *float64) {
	const want = "a number and a unit of time, as in 10/s, 500/m or 5000/h"
	s, ok := v.text(want)
	if !ok {
		return
	}
	m := rateForm.FindStringSubmatch(s)
	if m == nil {
		v.fail("`%s` is not a rate: write %s.", show(v.node.Value), want)
		return
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil || n <= 0 || math.IsInf(n, 0) {
		v.fail("`%s` is no rate at all: nothing would ever be read.", show(v.node.Value))
		return
	}
	*to = n / map[string]float64{"s": 1, "m": 60, "h": 3600}[m[2]]
}

// goneExpr is true of the answer of a fetch whose object is not there.
const goneExpr = "fetched_status == 404 || fetched_status == 410"

// crossFetches checks the fetches that mappings name, and has those whose object
// is not there delete the row where the fetch says so.
func (l *loader) crossFetches(c *Config) {
	used := map[string]bool{}
	for _, t := range c.Tables {
		for _, m := range t.Events {
			n := m.Fetch
			if n.Text == "" {
				continue
			}
			f := c.FetchNamed(n.Text)
			used[n.Text] = true
			switch {
			case f == nil && (l.reportedAt("fetches") || l.Touches("fetches."+n.Text)):
			case f == nil:
				hint := didYouMean(n.Text, namesOf(c.Fetches))
				if len(c.Fetches) == 0 {
					hint = ` Add it: fetches: {` + n.Text + `: {url: '"https://api.example.com/orders/" + event.id'}}.`
				}
				l.report(n.Pos, n.Path, "`%s` is not a fetch.%s", l.shown(n), hint)
			case f.NotFound == NotFoundDelete && m.Delete != nil:
				l.report(m.Delete.Pos, m.Delete.Path, "is given beside fetch: %s, which deletes the row itself when the object is not there (not_found: delete). Say not_found: value there, and here '%s || …'.", n.Text, goneExpr)
			case f.NotFound == NotFoundDelete:
				m.Delete = &Expr{Text: goneExpr, Pos: n.Pos, Path: n.Path}
			}
		}
	}
	for _, f := range c.Fetches {
		if !used[f.Text] && !l.unsure("tables") {
			l.Add(Warning, f.Pos, f.Path, "no mapping uses it: say fetch: %s in one.", f.Text)
		}
	}
}
