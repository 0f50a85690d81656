package mapping

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/common/types"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/source"
)

// Fetch is a fetch of the config, with what its preset gives. Its expressions
// are compiled with each mapping that uses it.
type Fetch struct {
	Name   string
	Config *config.Fetch
	// Ready is its preset, or nil.
	Ready *source.Fetch
	// Hosts are those that may be asked, and Private those whose address need not
	// be one of the internet; see config.Fetch. They are in lower case.
	Hosts, Private []string
	// Header is sent with every request; it holds the secrets.
	Header http.Header

	url, until, orElse *config.Expr
	version            []config.Expr
	headers            []config.Assignment // by expression
	broken, used       bool
}

// Read is something that has to be read before it is known what an event means.
type Read struct {
	Fetch *Fetch
	// Table is the table of the mapping that needs it.
	Table string
	// URL is what is read, with the headers that the event gives.
	URL    string
	Header http.Header

	mapping *Mapping
	event   *event.Event
}

// Enough tells whether an answer will do: it is as new as the event, where the
// fetch says how to tell. The error is of the expression.
func (r *Read) Enough(f *event.Fetched) (bool, error) {
	until := r.mapping.until
	if until == nil || len(f.Body) == 0 {
		return true, nil
	}
	in := eventInput(r.event, r.mapping.Source.Config)
	in.Fetched = f
	ok, err := truth(until.Eval(in))
	if err != nil {
		return false, fmt.Errorf("until: %w", err)
	}
	return ok, nil
}

// Instead gives what takes the place of an answer that does not come; ok is
// false if nothing does.
func (r *Read) Instead() (f *event.Fetched, ok bool, err error) {
	orElse := r.mapping.orElse
	if orElse == nil {
		return nil, false, nil
	}
	v, err := orElse.Eval(eventInput(r.event, r.mapping.Source.Config))
	if err != nil {
		return nil, true, fmt.Errorf("or_else: %w", err)
	}
	f = &event.Fetched{Index: r.event.Index, Name: r.Fetch.Name, At: r.event.Delivery.Received}
	if isNothing(v) {
		return f, true, nil
	}
	text, err := encodeJSON(v)
	if err != nil {
		return nil, true, fmt.Errorf("or_else: %w", err)
	}
	f.Body = []byte(text)
	return f, true, nil
}

// FetchNamed returns a fetch by name, or nil.
func (p *Plan) FetchNamed(name string) *Fetch {
	for _, f := range p.Fetches {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// fetches makes the fetches of the config, without what mappings add to them.
func (c *compiler) fetches(all []*config.Fetch) {
	for _, cfg := range all {
		f := &Fetch{Name: cfg.Text, Config: cfg, Header: http.Header{}, url: cfg.URL, until: cfg.Until, orElse: cfg.OrElse, version: cfg.Version, headers: slices.Clone(cfg.EventHeaders)}
		before := len(c.problems.List)
		c.ready(f)
		f.Header.Set("Accept", "application/json")
		if f.Ready != nil {
			for name, v := range f.Ready.Headers {
				f.Header.Set(name, v)
			}
		}
		for _, h := range cfg.Headers {
			f.Header.Set(h.Name, h.Value)
		}
		switch {
		case cfg.Bearer != "":
			f.Header.Set("Authorization", "Bearer "+cfg.Bearer)
		case cfg.Basic != nil:
			r := http.Request{Header: f.Header}
			r.SetBasicAuth(cfg.Basic.Username, cfg.Basic.Password)
		}
		for _, n := range cfg.Private {
			f.Private = append(f.Private, n.Text)
		}
		for _, n := range cfg.Hosts {
			f.Hosts = append(f.Hosts, n.Text)
			if host, _ := config.SplitHost(n.Text); isAddress(host) {
				f.Private = append(f.Private, n.Text)
			}
		}
		c.privates(f)
		c.tryFetch(f)
		f.broken = f.url == nil || len(c.problems.List) > before
		c.plan.Fetches = append(c.plan.Fetches, f)
	}
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost"
}

// ready gives a fetch what its preset says and the config does not.
func (c *compiler) ready(f *Fetch) {
	n := f.Config.Preset
	if n.Text == "" {
		return
	}
	if f.Ready = source.FetchNamed(n.Text); f.Ready == nil {
		var names []string
		for _, r := range source.Fetches() {
			names = append(names, r.Name)
		}
		hint := "There are " + strings.Join(names, ", ") + "."
		if near := expr.Nearest(n.Text, names); near != "" {
			hint = "Did you mean " + near + "?"
		}
		c.problems.Add(config.Error, n.Pos, n.Path, "%s is not a ready fetch. %s", n.Text, hint)
		return
	}
	at := func(text string) config.Expr { return config.Expr{Text: text, Pos: n.Pos, Path: n.Path} }
	if f.url == nil {
		x := at(f.Ready.URL)
		f.url = &x
	}
	if f.version == nil {
		for _, text := range f.Ready.Version {
			f.version = append(f.version, at(text))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Ready.EventHeaders)) {
		if !slices.ContainsFunc(f.headers, func(a config.Assignment) bool { return strings.EqualFold(a.Column.Text, name) }) {
			f.headers = append(f.headers, config.Assignment{Column: config.Name{Text: name, Pos: n.Pos, Path: n.Path}, Expr: at(f.Ready.EventHeaders[name])})
		}
	}
	given := func(header string) bool {
		return slices.ContainsFunc(f.Config.Headers, func(h config.Header) bool { return strings.EqualFold(h.Name, header) })
	}
	switch auth := f.Ready.Auth; {
	case auth == source.AuthBearer && f.Config.Bearer == "" && f.Config.Basic == nil && !given("Authorization"):
		c.problems.Add(config.Error, f.Config.Pos, f.Config.Path, `needs bearer:, the token that the API knows who asks by, for example bearer: "${%s_TOKEN}".`, provider(f.Ready.Name))
	case auth != source.AuthBearer && !given(auth):
		c.problems.Add(config.Error, f.Config.Pos, f.Config.Path, `needs headers: with the token that the API knows who asks by, for example headers: {%s: "${%s_TOKEN}"}.`, auth, provider(f.Ready.Name))
	}
}

func provider(name string) string {
	name, _, _ = strings.Cut(name, "/")
	return strings.ToUpper(name)
}

// privates refuses private hosts that are not among the hosts.
func (c *compiler) privates(f *Fetch) {
	for _, n := range f.Config.Private {
		if len(f.Hosts) > 0 && !slices.ContainsFunc(f.Config.Hosts, func(h config.Name) bool { return h.Text == n.Text }) {
			c.problems.Add(config.Error, n.Pos, n.Path, "%s is not among hosts:, so that it is never asked. Name it there too.", n.Text)
		}
	}
}

// tryFetch compiles the expressions of a fetch once, so that what is wrong with
// them is told once, whoever uses it.
func (c *compiler) tryFetch(f *Fetch) {
	known := expr.ForMapping &^ expr.UnsetName
	if f.url != nil {
		if e := c.compile(nil, *f.url, known); e != nil && e.Kind != expr.KindText && e.Kind != expr.KindAny {
			c.fail(e, "gives %s, and has to be the text of a URL", kindWord(e))
		}
	}
	for _, h := range f.headers {
		c.compile(nil, h.Expr, known)
	}
	c.wantBool(c.compileRef(nil, f.until, known|expr.OfFetch))
	c.compileRef(nil, f.orElse, known)
	for _, v := range f.version {
		c.compile(nil, v, known|expr.OfFetch)
	}
	if f.url != nil && len(f.Config.Hosts) > 0 {
		c.literalHost(f)
	}
}

// literalForm is a URL whose host is said by the text at its beginning.
var literalForm = regexp.MustCompile(`^\s*["'](https?)://([^/"'?#\\@]+)(?:/[^"'\\]*["']|["']\s*$)`)

// literal returns the scheme and the host that a URL begins with, "" if that
// depends on the event.
func (f *Fetch) literal() (scheme, host string) {
	m := literalForm.FindStringSubmatch(f.url.Text)
	if m == nil {
		return "", ""
	}
	return m[1], strings.ToLower(m[2])
}

// literalHost refuses a URL whose host is said, and may not be asked.
func (c *compiler) literalHost(f *Fetch) {
	scheme, host := f.literal()
	if host == "" {
		return
	}
	if u, err := url.Parse(scheme + "://" + host); err == nil {
		if err := f.Allows(u); err != nil {
			c.problems.Add(config.Error, f.url.Pos, f.url.Path, "%v", err)
		}
	}
}

// fetch compiles what a mapping's fetch says, for its source.
func (c *compiler) fetch(out *Mapping, m *config.Mapping) {
	if m.Fetch.Text == "" {
		return
	}
	f := c.plan.FetchNamed(m.Fetch.Text)
	if f == nil || f.broken {
		out.lost = true // reported
		return
	}
	out.Fetch = f
	c.hosts(f, out.Source)
	known := expr.ForMapping &^ expr.UnsetName
	out.url = c.compile(out.Source, *f.url, expr.ForMapping)
	for _, h := range f.headers {
		out.headers = append(out.headers, eventHeader{http.CanonicalHeaderKey(h.Column.Text), c.compile(out.Source, h.Expr, expr.ForMapping)})
	}
	out.until, out.orElse = c.compileRef(nil, f.until, known|expr.OfFetch), c.compileRef(nil, f.orElse, known)
}

// hosts finds out whom a fetch may ask that does not say it: the hosts of its
// preset, the API of the provider whose events it is made for, and the host that
// its URL begins with.
func (c *compiler) hosts(f *Fetch, s *Source) {
	if len(f.Config.Hosts) > 0 {
		return
	}
	add := func(host string) {
		if host != "" && !slices.Contains(f.Hosts, host) {
			f.Hosts = append(f.Hosts, host)
		}
	}
	if f.Ready != nil {
		for _, h := range f.Ready.Hosts {
			add(h)
		}
	}
	if s.Preset != nil {
		add(s.Preset.Host)
	}
	_, host := f.literal()
	add(host)
	if len(f.Hosts) == 0 {
		c.problems.Add(config.Error, f.Config.Pos, f.Config.Path, "needs hosts:, those that it may ask, for example hosts: [api.example.com]: its url: does not begin with one.")
		f.broken = true
		return
	}
	if !f.used {
		c.literalHost(f)
	}
	f.used = true
}

// Allows tells why a URL may not be read, nil if it may. Whether the address of
// its host may be asked turns out when it is looked up.
func (f *Fetch) Allows(u *url.URL) error {
	host, port := strings.ToLower(u.Hostname()), u.Port()
	shown := u.Scheme + "://" + u.Host
	switch {
	case u.Scheme != "https" && u.Scheme != "http" || host == "" || u.Opaque != "":
		return fmt.Errorf("%q is no http or https URL with a host", clip(u.Redacted()))
	case u.User != nil:
		return fmt.Errorf("%s: a URL with a user name or password in it is not read. Say bearer:, basic: or headers:", shown)
	case !within(f.Hosts, host, port):
		return fmt.Errorf("%s is none of the hosts that fetch %s may ask (%s). If it is right name it in hosts:", shown, f.Name, strings.Join(f.Hosts, ", "))
	case u.Scheme == "http" && !f.AllowsPrivate(u):
		key := "private"
		if isAddress(host) || host == "localhost" {
			key = "hosts"
		}
		return fmt.Errorf("%s: plain http is only for this machine and private networks. Write https, or if the host is in one say %s: [%q]", shown, key, u.Host)
	case isAddress(host) && !f.AllowsPrivate(u) && !public(host):
		return fmt.Errorf("%s is not an address of the internet, and fetch %s may only ask those. If it is right name it in hosts:", shown, f.Name)
	}
	return nil
}

// AllowsPrivate tells whether the host of a URL may have an address that is not
// one of the internet.
func (f *Fetch) AllowsPrivate(u *url.URL) bool {
	return within(f.Private, strings.ToLower(u.Hostname()), u.Port())
}

// public tells whether a host is an address at which anybody may be asked; what
// is not quite one is left to whoever asks.
func public(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsGlobalUnicast() && !a.IsPrivate()
}

// within tells whether a host and port are among hosts of a config.
func within(hosts []string, host, port string) bool {
	return slices.ContainsFunc(hosts, func(h string) bool {
		name, p := config.SplitHost(h)
		if p != "" && p != port {
			return false
		}
		if below, ok := strings.CutPrefix(name, "*"); ok {
			return len(host) > len(below) && strings.HasSuffix(host, below)
		}
		return name == host
	})
}

// eventHeader is a header whose value is read from the event.
type eventHeader struct {
	name string
	expr *Expr
}

// fetched gives what was fetched for the event and a mapping, nil if it is not
// there.
func (v *evaluation) fetched(m *Mapping) *event.Fetched {
	if m.Fetch == nil {
		return nil
	}
	return v.event.Delivery.FetchedFor(v.event.Index, m.Fetch.Name)
}

// read says that something has to be read before the mapping can speak.
func (v *evaluation) read(m *Mapping) {
	if slices.ContainsFunc(v.out.Reads, func(r *Read) bool { return r.Fetch == m.Fetch }) {
		return
	}
	r := &Read{Fetch: m.Fetch, Table: m.Table.Config.Text, Header: http.Header{}, mapping: m, event: v.event}
	at := v.eval(m.url)
	switch text, ok := at.val.(types.String); {
	case at.err != nil:
		v.failed(m, "", fmt.Errorf("fetch %s: %w", m.Fetch.Name, at.err))
		return
	case isNothing(at.val):
		v.fault(m, "", "fetch %s: its url is null (%s). Events that nothing is fetched for belong in a when:.", m.Fetch.Name, m.url.Text)
		return
	case !ok:
		v.fault(m, "", "fetch %s: its url is %s, not a text", m.Fetch.Name, expr.Describe(at.val))
		return
	default:
		u, err := url.Parse(string(text))
		if err != nil {
			v.fault(m, "", "fetch %s: %q is no URL", m.Fetch.Name, clip(string(text)))
			return
		}
		if err := m.Fetch.Allows(u); err != nil {
			v.fault(m, "", "%v", err)
			return
		}
		u.Fragment = ""
		r.URL = u.String()
	}
	for _, h := range m.headers {
		val := v.eval(h.expr)
		if val.err == nil && isNothing(val.val) {
			continue
		}
		text, err := "", val.err
		if err == nil {
			text, err = expr.Text(val.val)
		}
		if err == nil && strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			err = fmt.Errorf("it holds a control character")
		}
		if err != nil {
			v.failed(m, "", fmt.Errorf("fetch %s: header %s: %w", m.Fetch.Name, h.name, err))
			return
		}
		r.Header.Set(h.name, text)
	}
	v.out.Reads = append(v.out.Reads, r)
}

// hold leaves out what is said of tables that count events, while a mapping of
// theirs waits for a read: which of them counts the event first is not known yet.
func (out *Outcome) hold(waiting []*Mapping) {
	for _, m := range waiting {
		if m.counts {
			out.Changes = slices.DeleteFunc(out.Changes, func(c *merge.Change) bool { return c.Table == m.Table.Table.Table })
		}
	}
}

func clip(s string) string {
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
