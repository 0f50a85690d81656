package config

import (
	"encoding/base64"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Lane is one entry of lanes: events that go, one at a time per key and in
// order, to a service or a statement of the user's own.
type Lane struct {
	Name
	From  Name
	Types []Name
	// When is nil for every event.
	When *Expr
	Key  Expr
	// ByVersion is order: version: of the events of a key that are received
	// within Hold of each other the older goes first. Version is its tuple; none
	// is the event's time.
	ByVersion bool
	Version   []Expr
	Hold      time.Duration
	// Settled is after: settled.
	Settled bool
	// Concurrency is how many keys are served at a time.
	Concurrency int
	// Timeout bounds one try. Retry is how long an event is tried, negative for
	// ever. Parks tells that the key goes on after that without it.
	Timeout, Retry time.Duration
	Parks          bool
	// History is begin: oldest: a new lane is given what the journal has already.
	History bool
	// One of Post and SQL is not nil.
	Post *Post
	SQL  *LaneSQL
}

// Post is where a lane's events are posted.
type Post struct {
	Pos  Pos
	Path string
	URL  string
	// Secrets are the keys that requests are signed with, none for secret: none.
	Secrets [][]byte
	// Headers are sent with each request.
	Headers []Header
}

// Header is a header of a request, which may hold a secret.
type Header struct{ Name, Value string }

// LaneSQL is a statement that is run for each event.
type LaneSQL struct {
	Pos       Pos
	Path      string
	Target    Name
	Statement Statement
	// With gives the parameters.
	With []Assignment
}

// The defaults of a lane.
const (
	defaultHold        = 2 * time.Second
	defaultTimeout     = 15 * time.Second
	defaultRetry       = 24 * time.Hour
	defaultConcurrency = 16
	maxHold            = time.Hour
	minTimeout         = 100 * time.Millisecond
	maxTimeout         = 10 * time.Minute
)

func laneKeys() section[Lane] {
	return section[Lane]{
		path: "lanes.<lane>",
		doc:  "For logic that is not a merge: each event goes to a service, or a statement, of your own, one at a time per key and in order. [lanes.md](lanes.md) tells what your service is sent. One of `post` and `sql` is needed.",
		keys: []key[Lane]{
			{name: "from", form: "a source", needed: "from: shop", doc: "Whose events. They need an identity.",
				read: func(v value, l *Lane) { l.From, _ = v.name("the name of a source") }},
			{name: "type", form: "a text, or a list of them", def: "every type", doc: "The events' types; `*` stands for any run of characters, as in `invoice.*`.",
				read: func(v value, l *Lane) { readTypes(v, &l.Types) }},
			{name: "when", form: "an expression", def: "always", doc: "Which of these events.",
				read: func(v value, l *Lane) { v.exprTo(&l.When) }},
			{name: "key", form: "an expression", needed: "key: event.customer", doc: "Events of one key go one after the other, those of different keys side by side. An event whose key is null or empty is dead.",
				read: func(v value, l *Lane) { l.Key, _ = v.expr() }},
			{name: "order", form: "`position`, `version`", def: "`position`", doc: "The order within a key: of acceptance, or of a declared version among events that come within `hold` of each other.",
				read: func(v value, l *Lane) {
					s, _ := v.one("position", "version")
					l.ByVersion = s == "version"
				}},
			{name: "version", form: "an expression, or a list of them", def: "the event's time", doc: "With `order: version`: what is older, as in a table's mapping.",
				read: func(v value, l *Lane) { v.exprs(&l.Version) }},
			{name: "hold", form: "a length of time", def: "`2s`", doc: "With `order: version`: how long an event is held back for older ones that may still come. What comes later than that goes late.",
				read: func(v value, l *Lane) { v.durationWithin(0, maxHold, &l.Hold) }},
			{name: "after", form: "`received`, `settled`", def: "`received`", doc: "`settled`: only when its rows are settled in every target, so that your code reads rows that know the event. An event that waits or is dead there holds its key.",
				read: func(v value, l *Lane) {
					s, _ := v.one("received", "settled")
					l.Settled = s == "settled"
				}},
			{name: "concurrency", form: "a number", def: "`16`", doc: "How many keys are served at a time, at most 1,000.",
				read: func(v value, l *Lane) { v.number(1, 1000, &l.Concurrency) }},
			{name: "timeout", form: "a length of time", def: "`15s`", doc: "How long a try may take, from `100ms` to `10m`. Your service has to be done with a request by then, or to notice that it is cut off: after that the next try may begin.",
				read: func(v value, l *Lane) { v.durationWithin(minTimeout, maxTimeout, &l.Timeout) }},
			{name: "retry", form: "a length of time, or `forever`", def: "`24h`", doc: "How long an event is tried again before it is dead.",
				read: func(v value, l *Lane) { v.duration("forever", &l.Retry) }},
			{name: "give_up", form: "`hold`, `park`", def: "`hold`", doc: "What a dead event does: it holds its key until a person decides (`hookfold lane`), or it is set aside and its key goes on.",
				read: func(v value, l *Lane) {
					s, _ := v.one("hold", "park")
					l.Parks = s == "park"
				}},
			{name: "begin", form: "`now`, `oldest`", def: "`now`", doc: "Where a lane begins that is new: with what is received from its first start on, or with the oldest delivery that the journal has. It is asked once.",
				read: func(v value, l *Lane) {
					s, _ := v.one("now", "oldest")
					l.History = s == "oldest"
				}},
			{name: "post", form: "a URL", def: "none", doc: "Where each event is posted. The host is allowed by being named here, also a loopback or private one; redirects are not followed.",
				read: readPost},
			{name: "secret", form: "a secret, a list of them, or `none`", def: "none: needed with `post`", doc: "What requests are signed with, as Standard Webhooks says: `whsec_` and 24 to 64 bytes in base64. With several, while one takes the place of another, a request has a signature by each. `none` does not sign.",
				read: readLaneSecrets},
			{name: "headers", form: "headers and texts", def: "none", doc: "Sent with each request, as in `{Authorization: \"Bearer ${TOKEN}\"}`.", read: readLaneHeaders},
			{name: "sql", form: "a map", def: "none", doc: "A statement that is run for each event, in one transaction with the memory that it has been, so that its effect is there exactly once.",
				read: func(v value, l *Lane) {
					l.SQL = &LaneSQL{Pos: v.where(), Path: v.path}
					laneSQLKeys().read(v, l.SQL)
				}},
		},
	}
}

func laneSQLKeys() section[LaneSQL] {
	return section[LaneSQL]{
		path: "lanes.<lane>.sql",
		keys: []key[LaneSQL]{
			{name: "target", form: "a target", def: "the only one", doc: "The database: PostgreSQL, MySQL, MariaDB or SQLite. `hookfold migrate` makes the table `hookfold_lanes` in it, which remembers what has been run.",
				read: func(v value, s *LaneSQL) { s.Target, _ = v.name("the name of a target") }},
			{name: "statement", form: "SQL", needed: "statement: insert into audit (id) values (:id)", doc: "One statement. A parameter is written `:name`, and is bound, never put into the text.",
				read: readStatement},
			{name: "with", form: "parameters and expressions", def: "none", doc: "The value of each parameter. A time, number or other value is bound as its text on PostgreSQL, which reads it as the type it has there.",
				read: func(v value, s *LaneSQL) { v.assignments(nil, &s.With) }},
		},
	}
}

func (l *Lane) named() *Name { return &l.Name }

func readLane(v value, l *Lane) {
	l.Hold, l.Timeout, l.Retry, l.Concurrency = defaultHold, defaultTimeout, defaultRetry, defaultConcurrency
	got := laneKeys().read(v, l)
	if got == nil {
		return
	}
	has := func(k string) bool { _, ok := got[k]; return ok }
	switch {
	case has("post") && has("sql"):
		got["sql"].failWhole("is given beside post:. A lane has one of the two; make it two lanes.")
	case !has("post") && !has("sql") && !v.l.unread[join(v.path, "post")] && !v.l.unread[join(v.path, "sql")]:
		v.failWhole("needs post:, the URL of your service, or sql:, a statement. For example post: http://127.0.0.1:9000/%s", l.Text)
	case has("post") && !has("secret") && !v.l.unread[join(v.path, "secret")]:
		v.failWhole("needs secret:, what requests are signed with, for example secret: \"${LANE_SECRET}\" (whsec_ and what `openssl rand -base64 32` prints). Without a signature your service cannot tell who calls; to send none all the same say secret: none.")
	}
	for _, k := range []string{"secret", "headers"} {
		if has(k) && !has("post") && has("sql") {
			got[k].failWhole("belongs to post:. Leave it out.")
		}
	}
	for _, k := range []string{"version", "hold"} {
		if has(k) && !l.ByVersion && !v.l.Touches(join(v.path, "order")) {
			got[k].failWhole("belongs to order: version. Leave it out, or say order: version.")
		}
	}
}

// durationWithin reads a length of time within bounds.
func (v value) durationWithin(least, most time.Duration, to *time.Duration) {
	d := time.Duration(-1)
	if v.duration("", &d); d < 0 {
		return
	}
	if d < least || d > most {
		v.fail("`%s` is not within bounds: from %s to %s.", show(v.node.Value), least, most)
		return
	}
	*to = d
}

func readPost(v value, l *Lane) {
	p := l.post()
	p.Pos, p.Path = v.pos(), v.path
	var s string
	v.webURL(&s)
	if s == "" {
		return
	}
	if u, err := url.Parse(s); err != nil || u.User != nil || u.Fragment != "" {
		v.fail("holds a user name, a password or a fragment. Give a password in headers:, as in {Authorization: \"Basic …\"}.")
		return
	}
	p.URL = s
}

func (l *Lane) post() *Post {
	if l.Post == nil {
		l.Post = &Post{}
	}
	return l.Post
}

func readLaneSecrets(v value, l *Lane) {
	p := l.post()
	items, ok := v.oneOrMore()
	if ok && len(items) == 0 {
		v.fail("is an empty list. Say none to sign nothing.")
	}
	for _, item := range items {
		text, ok := item.text("a secret: whsec_ and 24 to 64 bytes in base64")
		if !ok || text == "none" && !v.isList() {
			continue
		}
		rest, prefixed := strings.CutPrefix(text, "whsec_")
		key, err := base64.StdEncoding.DecodeString(rest)
		if !prefixed || err != nil || len(key) < 24 || len(key) > 64 {
			item.fail("is not a secret of Standard Webhooks: whsec_ and 24 to 64 bytes in base64, as `openssl rand -base64 32` makes them.")
			continue
		}
		p.Secrets = append(p.Secrets, key)
	}
}

// notYours are the beginnings of headers that Hookfold sets itself.
var notYours = []string{"Webhook-", "Hookfold-", "Content-", "Host", "Connection", "Transfer-", "Trailer", "Te", "Upgrade", "Expect", "Keep-Alive", "Proxy-"}

func readLaneHeaders(v value, l *Lane) {
	entries, ok := v.entries("headers and texts")
	if !ok {
		return
	}
	p := l.post()
	for _, e := range entries {
		name := textproto.CanonicalMIMEHeaderKey(e.name)
		switch {
		case !headerForm.MatchString(e.name):
			e.key.fail("is not the name of a header: letters, digits and hyphens, as in X-Token.")
			continue
		case slices.ContainsFunc(notYours, func(begin string) bool {
			return name == begin || strings.HasSuffix(begin, "-") && strings.HasPrefix(name, begin)
		}):
			e.key.fail("is set by Hookfold itself. Leave it out.")
			continue
		}
		text, ok := e.val.text("the header's value")
		if ok && strings.ContainsAny(text, "\r\n") {
			e.val.fail("holds an end of line, which a header cannot.")
			ok = false
		}
		if ok {
			p.Headers = append(p.Headers, Header{Name: name, Value: text})
		}
	}
}

func readStatement(v value, s *LaneSQL) {
	text, ok := v.raw("a statement, as in insert into audit (id) values (:id)") // never expanded: no part of it comes from outside
	if !ok {
		return
	}
	cut, err := cutStatement(text)
	if err != nil {
		v.fail("%v.", err)
		return
	}
	cut.Pos, cut.Path = v.pos(), v.path
	s.Statement = cut
}

// crossLane checks what a lane says about the rest of the config.
func (l *loader) crossLane(c *Config, x *Lane) {
	if x.From.Text != "" && c.SourceNamed(x.From.Text) == nil && len(c.Sources) > 0 {
		l.report(x.From.Pos, x.From.Path, "`%s` is not a source.%s", l.shown(x.From), didYouMean(x.From.Text, namesOf(c.Sources)))
	}
	if x.SQL == nil || l.unsure(x.SQL.Path) {
		return
	}
	s := x.SQL
	l.crossLaneTarget(c, s)
	for _, name := range s.Statement.Places {
		if !slices.ContainsFunc(s.With, func(a Assignment) bool { return a.Column.Text == name }) {
			l.report(s.Statement.Pos, s.Statement.Path, "has the parameter :%s, and with: does not give it a value, as in with: {%s: event.%s}.", clip(name), clip(name), clip(name))
		}
	}
	for _, a := range s.With {
		if !slices.Contains(s.Statement.Places, a.Column.Text) {
			l.report(a.Column.Pos, a.Column.Path, "is not a parameter of the statement. Leave it out, or write :%s there.", clip(a.Column.Text))
		}
	}
}

func (l *loader) crossLaneTarget(c *Config, s *LaneSQL) {
	switch n := s.Target; {
	case n.Text != "" && c.TargetNamed(n.Text) == nil && !l.reportedAt("targets"):
		l.report(n.Pos, n.Path, "`%s` is not a target.%s", l.shown(n), didYouMean(n.Text, namesOf(c.Targets)))
	case n.Text != "" || l.unsure("targets"):
	case len(c.Targets) == 1:
		s.Target = c.Targets[0].Name
	case len(c.Targets) == 0:
		l.report(s.Pos, s.Path, "needs a target, and there is none. Add targets: {db: {url: \"${DATABASE_URL}\"}}.")
	default:
		l.report(s.Pos, s.Path, "needs target:, one of %s.", list(namesOf(c.Targets)))
	}
	t := c.TargetNamed(s.Target.Text)
	if t == nil || t.Kind == "" {
		return
	}
	if !slices.Contains(statementKinds, t.Kind) {
		l.report(s.Pos, s.Path, "target %s is %s, and a statement of a lane runs on PostgreSQL, MySQL, MariaDB and SQLite in this version of Hookfold. Post the events to a service of yours instead.", t.Text, t.Kind)
	}
}

// statementKinds are the databases in which a lane can run a statement.
var statementKinds = []Kind{PostgreSQL, SQLite, MySQL}
