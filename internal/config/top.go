package config

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// The defaults of a config.
const (
	defaultListen      = "127.0.0.1:8080"
	defaultAdmin       = "127.0.0.1:8081"
	defaultJournal     = "sqlite:hookfold.db"
	defaultKeep        = 30 * 24 * time.Hour
	defaultMaxAhead    = 24 * time.Hour
	defaultMaxBody     = 5 << 20
	defaultWait        = 24 * time.Hour
	maxMaxBody         = 64 << 20
	defaultConnections = 4
	// nameLength is the most bytes of a name, as in PostgreSQL.
	nameLength = 63
)

var (
	journalNow   = []string{"sqlite:"}
	journalLater = []string{"postgres://", "postgresql://", "nats://"}
)

func configKeys() section[Config] {
	return section[Config]{
		doc: "The whole file. Keys that begin with `x-` are free: a place for anchors.",
		keys: []key[Config]{
			{name: "version", form: "`1`", needed: "version: 1", doc: "The version of this file's form.",
				read: func(v value, _ *Config) {
					if s, ok := v.text("1"); ok && s != "1" {
						v.fail("is `%s`, but this version of Hookfold reads version 1.", show(v.node.Value))
					}
				}},
			{name: "listen", form: "host:port", def: "`" + defaultListen + "`", doc: "The address for webhooks, at `/in/{source}`.",
				read: func(v value, c *Config) { v.address(&c.Listen) }},
			{name: "admin", form: "host:port", def: "`" + defaultAdmin + "`", doc: "The address for health and metrics. Keep it from the outside: nobody is asked who they are.",
				read: func(v value, c *Config) { v.address(&c.Admin) }},
			{name: "journal", form: "a URL, or a map", def: "`" + defaultJournal + "`", doc: "Where deliveries are kept, from before they are answered.",
				read: readJournal},
			{name: "sources", form: "names and sources", needed: `sources: {shop: {preset: http, verify: bearer, secrets: ["${SHOP_SECRET}"]}}`, doc: "Who sends webhooks.",
				read: func(v value, c *Config) {
					readNamed(v, "source", "sources by name", &c.Sources, readSource)
					if v.isMap() && len(v.node.Content) == 0 {
						v.fail("is empty: nothing could come in. Name a source.")
					}
				}},
			{name: "targets", form: "names and targets", def: "none", doc: "The databases that rows go to.",
				read: func(v value, c *Config) { readNamed(v, "target", "targets by name", &c.Targets, readTarget) }},
			{name: "tables", form: "names and tables", def: "none", doc: "What becomes of the events. Without any, deliveries are only kept.",
				read: func(v value, c *Config) { readNamed(v, "table", "tables by name", &c.Tables, readTable) }},
			{name: "tests", form: "a list of tests", def: "none", doc: "What `hookfold check --test` runs, in every order and with each event twice.",
				read: readTests},
			{name: "fetches", form: "names and fetches", def: "none", doc: "What is read from providers' APIs before events are mapped.",
				read: func(v value, c *Config) { readNamed(v, "fetch", "fetches by name", &c.Fetches, readFetch) }},
			{name: "lanes", form: "names and lanes", def: "none", doc: "Events for a service or a statement of your own, in order.",
				read: func(v value, c *Config) { readNamed(v, "lane", "lanes by name", &c.Lanes, readLane) }},
		},
	}
}

func journalKeys() section[Journal] {
	return section[Journal]{
		path: "journal", doc: "A text in its place is the `url`.",
		keys: []key[Journal]{
			{name: "url", form: "`sqlite:` and a file", needed: "url: sqlite:hookfold.db", doc: "The file of the journal; a relative path is taken from the working directory. `postgres://` and `nats://` come in a later version.",
				read: readJournalURL},
			{name: "keep", form: "a length of time, or `forever`", def: "`30d`", doc: "The age from which settled deliveries are removed. Waiting and dead ones stay.",
				read: func(v value, j *Journal) {
					if v.duration("forever", &j.Keep); j.Keep < 0 {
						j.Keep = 0
					}
				}},
			{name: "max_size", form: "a size", def: "unlimited", doc: "The size of the journal from which the oldest settled deliveries are removed before their time.",
				read: func(v value, j *Journal) { v.size(1<<20, 1<<50, &j.MaxSize) }},
			{name: "index", form: "`true` or `false`", def: "`true`", doc: "Whether the journal remembers which deliveries are about which row, some five bytes for each. Without it `hookfold explain` has to read the whole journal.",
				read: func(v value, j *Journal) {
					if s, ok := v.one("true", "false"); ok {
						j.Index = s == "true"
					}
				}},
		},
	}
}

// config reads the whole.
func (l *loader) config(root *yaml.Node) *Config {
	c := &Config{
		Listen: defaultListen, Admin: defaultAdmin,
		Journal: Journal{URL: Name{Text: defaultJournal, Path: "journal"}, Keep: defaultKeep, Index: true},
	}
	v := value{l: l, node: root}
	got := configKeys().read(v, c)
	_, listen := got["listen"]
	admin, ok := got["admin"]
	if !ok {
		admin = got["listen"]
	}
	if (ok || listen) && c.Listen == c.Admin && !strings.HasSuffix(c.Listen, ":0") {
		admin.fail("is the address of both listen and admin. Give each a port of its own.")
	}
	return c
}

func readJournal(v value, c *Config) {
	if v.isMap() {
		journalKeys().read(v, &c.Journal)
		return
	}
	readJournalURL(v, &c.Journal)
}

func readJournalURL(v value, j *Journal) {
	var n Name
	v.storeURL(journalNow, journalLater, &n)
	switch {
	case n.Text == "":
	case strings.Contains(n.Text, ":memory:") || strings.Contains(n.Text, "mode=memory"):
		v.fail("a journal has to be a file: what is in memory is lost when the process ends.")
	default:
		j.URL = n
	}
}

// named is a thing that a map of the config has by name.
type named interface{ named() *Name }

func (s *Source) named() *Name { return &s.Name }
func (t *Target) named() *Name { return &t.Name }
func (t *Table) named() *Name  { return &t.Name }

// readNamed reads a map from names to things of one kind.
func readNamed[T any, P interface {
	*T
	named
}](v value, what, want string, to *[]P, read func(value, P)) {
	entries, ok := v.entries(want)
	if !ok {
		return
	}
	for _, e := range entries {
		if !goodName(e.name) {
			e.key.fail("is not the name of a %s: letters, digits, _ and -, at most %d bytes.", what, nameLength)
			continue
		}
		x := P(new(T))
		*x.named() = Name{Text: e.name, Pos: e.key.pos(), Path: e.key.path}
		read(e.val, x)
		*to = append(*to, x)
	}
}

// goodName tells whether a name may stand in a path of the config, a URL and a
// command line.
func goodName(s string) bool {
	bad := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}
	return s != "" && len(s) <= nameLength && s[0] != '-' && !strings.ContainsFunc(s, bad)
}

// namesOf returns the names of things, as they stand in the file.
func namesOf[T any, P interface {
	*T
	named
}](things []P) []string {
	out := make([]string, len(things))
	for i, x := range things {
		out[i] = x.named().Text
	}
	return out
}

// columnNames returns the names of columns.
func columnNames(columns ...[]Column) []string {
	var out []string
	for _, c := range slices.Concat(columns...) {
		out = append(out, c.Text)
	}
	return out
}
