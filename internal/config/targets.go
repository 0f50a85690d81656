package config

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Kind is a kind of database, by the scheme of its URL.
type Kind string

// The kinds of databases.
const (
	PostgreSQL Kind = "PostgreSQL"
	SQLite     Kind = "SQLite"
	// MySQL is MySQL 8 or MariaDB.
	MySQL Kind = "MySQL"
	// SQLServer is SQL Server 2016 or later, or Azure SQL.
	SQLServer Kind = "SQL Server"
	// Hasura is a GraphQL endpoint of Hasura 2.
	Hasura Kind = "Hasura"
	// Supabase is its REST API, or that of any other PostgREST.
	Supabase Kind = "Supabase"
)

// kinds are the kinds, each with what its URLs begin with.
var kinds = []struct {
	kind   Kind
	begins []string
}{
	{PostgreSQL, []string{"postgres://", "postgresql://"}},
	{SQLite, []string{"sqlite:"}},
	{MySQL, []string{"mysql://", "mariadb://"}},
	{SQLServer, []string{"sqlserver://"}},
	{Hasura, []string{"hasura+https://", "hasura+http://"}},
	{Supabase, []string{"supabase+https://", "supabase+http://", "postgrest+https://", "postgrest+http://"}},
}

// targetNow are the beginnings of URLs, the most usual one of each kind first.
func targetNow() []string {
	var first, more []string
	for _, k := range kinds {
		first, more = append(first, k.begins[0]), append(more, k.begins[1:]...)
	}
	return append(first, more...)
}

// KindOfURL returns the kind of a URL, "" if none has its scheme.
func KindOfURL(s string) Kind {
	scheme, _, _ := strings.Cut(s, ":")
	for _, k := range kinds {
		if slices.Contains(schemes(k.begins), strings.ToLower(scheme)) {
			return k.kind
		}
	}
	return ""
}

// Target is one database.
type Target struct {
	Name
	URL  Name
	Kind Kind
	// Pooler is "transaction" for a pooler that gives a connection for one
	// transaction at a time, else "". PostgreSQL.
	Pooler string
	// Connections is the most connections, or requests at a time; default 4.
	Connections int
	// Upsert is insert, merge or updlock, "" for the default. SQL Server.
	Upsert string

	// The rest is of targets behind an HTTP API: Hasura and Supabase.

	// AdminSecret, JWT and JWTFile are Hasura's credentials, at most one of them:
	// JWTFile is read before each request. Key is Supabase's.
	AdminSecret, JWT, JWTFile, Key string
	// Role is the role that Hasura is asked to act as; of Supabase the one that
	// the migration grants what it needs. "" is the credentials' own.
	Role string
	// Source is the name of the database in Hasura, "" for default.
	Source string
	// Schema is the schema of functions, and of tables named without one; "" is
	// public. Supabase.
	Schema string
	// Mode is rpc or rest, "" for the default. Supabase.
	Mode string
	// DirectURL is the URL of the PostgreSQL behind the API, "" if not known.
	// Supabase.
	DirectURL string
	// Headers are sent with every request.
	Headers http.Header
	// RootNames and Constraints give what Hasura calls tables and the unique
	// constraints of their keys, where it cannot be found out.
	RootNames, Constraints []Called
	// MaxRequest is the most bytes of a request, Timeout the longest that one may
	// take; 0 is the default.
	MaxRequest int64
	Timeout    time.Duration
}

// Called says what a table, or a thing of it, is called. Table is the table's
// name in the database.
type Called struct {
	Table Name
	As    string
}

// The kinds of targets that keys belong to.
var (
	ofPostgreSQL = []Kind{PostgreSQL}
	ofHasura     = []Kind{Hasura}
	ofSupabase   = []Kind{Supabase}
	ofAPIs       = []Kind{Hasura, Supabase}
	ofSQLServer  = []Kind{SQLServer}
	ofParallel   = []Kind{PostgreSQL, SQLite, MySQL, SQLServer, Supabase} // Hasura gets one request at a time
)

func targetKeys() section[Target] {
	secret := func(to func(*Target) *string) func(value, *Target) {
		return func(v value, t *Target) { *to(t), _ = v.text(`a secret, as in "${SECRET}"`) }
	}
	return section[Target]{
		path: "targets.<target>", doc: "A text in its place is the `url`. [databases.md](databases.md) tells how each database is connected, what it is granted, and what it cannot do.",
		keys: []key[Target]{
			{name: "url", form: "a URL", needed: `url: "${DATABASE_URL}"`,
				doc:  "The database: `postgres://user:password@host:5432/name`; `mysql://user:password@host:3306/name`, or `mariadb://…`; `sqlserver://user:password@host:1433?database=name`; `sqlite:` and a file, whose relative path is taken from the working directory; `hasura+https://host/v1/graphql`; `supabase+https://project.supabase.co`, or `postgrest+https://…` of any PostgREST; `…+http://` for one on the same machine.",
				read: readTargetURL},
			{name: "pooler", of: ofPostgreSQL, form: "`transaction`, `none`", def: "`transaction` for port 6543, else `none`", doc: "Say `transaction` where the URL is that of a pooler which lends a connection for one transaction (PgBouncer, Supavisor): no prepared statement then outlives its transaction.",
				read: func(v value, t *Target) { t.Pooler, _ = v.one("transaction", "none") }},
			{name: "upsert", of: ofSQLServer, form: "`insert`, `merge`, `updlock`", def: "`insert`", doc: "How a batch is written. `insert`: an insert of the rows that are not there, then the guarded update of all, tried again where somebody else was faster. `merge`: `MERGE … WITH (HOLDLOCK)`. `updlock`: like `insert`, with `UPDLOCK, HOLDLOCK`. All three give the same rows; the last two lock more.",
				read: func(v value, t *Target) { t.Upsert, _ = v.one("insert", "merge", "updlock") }},
			{name: "connections", of: ofParallel, form: "1 to 100", def: "4", doc: "The most connections, or requests, at a time.",
				read: func(v value, t *Target) { v.number(1, 100, &t.Connections) }},
			{name: "admin_secret", of: ofHasura, form: "text", def: "none", doc: "The admin secret. With it `migrate --apply` can make and track tables.",
				read: secret(func(t *Target) *string { return &t.AdminSecret })},
			{name: "jwt", of: ofHasura, form: "text", def: "none", doc: "A token, in place of the admin secret.",
				read: secret(func(t *Target) *string { return &t.JWT })},
			{name: "jwt_file", of: ofHasura, form: "a path", def: "none", doc: "A file with a token that something else renews; it is read before each request.",
				read: func(v value, t *Target) { t.JWTFile, _ = v.text("the path of a file") }},
			{name: "key", of: ofSupabase, form: "text", def: "none", doc: "The secret key (`sb_secret_…`) or the `service_role` key; of another PostgREST a token of the role that writes.",
				read: secret(func(t *Target) *string { return &t.Key })},
			{name: "role", of: ofAPIs, form: "text", def: "that of the secret, token or key", doc: "Hasura: the role to act as. Supabase: the database role to which the migration grants what it needs.",
				read: func(v value, t *Target) { t.Role, _ = v.text("the name of a role") }},
			{name: "mode", of: ofSupabase, form: "`rpc`, `rest`", def: "`rpc`", doc: "`rpc` writes a batch by one call of a generated function, which a migration has to make first. `rest` needs no function: inserts and guarded updates, each request a transaction of its own; it refuses more.",
				read: func(v value, t *Target) { t.Mode, _ = v.one("rpc", "rest") }},
			{name: "schema", of: ofSupabase, form: "text", def: "`public`", doc: "Where the functions live, and tables named without a schema. The API has to expose it.",
				read: func(v value, t *Target) { t.Schema, _ = v.text("the name of a schema") }},
			{name: "direct_url", of: ofSupabase, form: "`postgres://…`", def: "none", doc: "The URL of the database itself, for `migrate --apply` alone. Without it, `migrate` prints what to run in the SQL editor.",
				read: readDirectURL},
			{name: "source", of: ofHasura, form: "text", def: "`default`", doc: "The name of the database in Hasura.",
				read: func(v value, t *Target) { t.Source, _ = v.text("the name of a database in Hasura") }},
			{name: "names", of: ofHasura, form: "tables and names", def: "found out", doc: "What GraphQL calls a table that was renamed there, by its name in the database: `names: {public.app_user: Users}`. Root fields of other names are found by introspection.",
				read: func(v value, t *Target) { readCalled(v, &t.RootNames) }},
			{name: "constraints", of: ofHasura, form: "tables and names", def: "found out", doc: "The unique constraint of a table's key, by the table's name in the database, for a Hasura so old that introspection does not tell it.",
				read: func(v value, t *Target) { readCalled(v, &t.Constraints) }},
			{name: "headers", of: ofAPIs, form: "names and texts", def: "none", doc: "Headers to send with every request, for example those that a proxy asks for.",
				read: readAPIHeaders},
			{name: "max_request", of: ofAPIs, form: "a size", def: "`1MiB` for Hasura, `16MiB` for Supabase", doc: "The largest request. A larger batch is sent as several.",
				read: func(v value, t *Target) { v.size(4<<10, 256<<20, &t.MaxRequest) }},
			{name: "timeout", of: ofAPIs, form: "a length of time", def: "`60s`", doc: "The longest that a request may take.",
				read: func(v value, t *Target) {
					if v.duration("", &t.Timeout); t.Timeout == 0 && !v.l.bad[v.node] {
						v.fail("is nothing. Give a length of time such as 60s.")
					}
				}},
			{name: "insecure", of: ofAPIs, form: "`true`, `false`", def: "`false`", doc: "`true` allows `…+http://` to another machine: secrets and rows then go unencrypted.",
				read: func(v value, _ *Target) { v.one("true", "false") }},
		},
	}
}

func readTarget(v value, t *Target) {
	t.Connections = defaultConnections
	if !v.isMap() {
		readTargetURL(v, t)
		checkTarget(v, map[string]value{"url": v}, t)
		return
	}
	if got := targetKeys().read(v, t); got != nil {
		checkTarget(v, got, t)
	}
}

func readTargetURL(v value, t *Target) {
	v.storeURL(targetNow(), nil, &t.URL)
	t.Kind = KindOfURL(t.URL.Text)
}

func readDirectURL(v value, t *Target) {
	var n Name
	v.storeURL(kinds[0].begins, nil, &n)
	t.DirectURL = n.Text
}

// checkTarget checks that the keys of a target belong together.
func checkTarget(v value, got map[string]value, t *Target) {
	if t.Kind == "" {
		return
	}
	for _, k := range targetKeys().keys {
		if at, ok := got[k.name]; ok && k.of != nil && !slices.Contains(k.of, t.Kind) {
			at.failKey("belongs to %s, and this target is %s by its url. Leave it out.", k.kinds(), t.Kind)
		}
	}
	u, err := url.Parse(t.URL.Text)
	if err != nil {
		return // a file
	}
	switch t.Kind {
	case PostgreSQL:
		checkPooler(v, got, t, u)
	case Hasura, Supabase:
		checkAPI(v, got, t, u)
	}
}

// poolerPort is where Supavisor, and many a PgBouncer, lends connections for a
// transaction.
const poolerPort = "6543"

func checkPooler(v value, got map[string]value, t *Target, u *url.URL) {
	_, said := got["pooler"]
	if !said && !v.meant("pooler") && (u.Port() == poolerPort || u.Query().Get("port") == poolerPort) {
		t.Pooler = "transaction"
		v.l.Add(Note, got["url"].pos(), got["url"].path, "port %s is that of a pooler in transaction mode (Supabase, PgBouncer), so this counts as pooler: transaction. If it is none, say pooler: none.", poolerPort)
	}
	if t.Pooler == "none" {
		t.Pooler = ""
	}
}

func checkAPI(v value, got map[string]value, t *Target, u *url.URL) {
	at := got["url"]
	secure := strings.HasSuffix(u.Scheme, "+https")
	here := loopback(u.Hostname())
	insecure, said := got["insecure"]
	allowed := said && insecure.node.Value == "true" || v.meant("insecure")
	switch {
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		at.fail("holds a user, a password, a query or a fragment. Give credentials as %s, and nothing behind the path.", credentials(t.Kind))
	case !secure && !here && !allowed:
		at.fail("is not encrypted, and names another machine: anybody between could read the credentials and the rows. Write %shttps://, or, on a network of your own, say insecure: true.", strings.TrimSuffix(u.Scheme, "http"))
	}
	given := 0
	for _, name := range []string{"admin_secret", "jwt", "jwt_file"} {
		if x, ok := got[name]; ok {
			if given++; given == 2 {
				x.failKey("is given besides %s. Keep one.", earlier(got, name, "admin_secret", "jwt", "jwt_file"))
			}
		}
	}
	_, key := got["key"]
	_, headers := got["headers"]
	postgrest := strings.HasPrefix(u.Scheme, "postgrest+")
	if given == 0 && !key && !headers && !here && !postgrest && !v.meant("admin_secret", "jwt", "jwt_file", "key", "headers") {
		v.failWhole("needs %s.", credentials(t.Kind))
	}
}

func credentials(k Kind) string {
	if k == Hasura {
		return `admin_secret: "${HASURA_ADMIN_SECRET}", jwt: or jwt_file:`
	}
	return `key: "${SUPABASE_SERVICE_KEY}"`
}

// earlier names the first of some keys that is given, other than one.
func earlier(got map[string]value, other string, names ...string) string {
	i := slices.IndexFunc(names, func(n string) bool { _, ok := got[n]; return ok && n != other })
	return names[i]
}

// loopback tells whether a host is this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// readCalled reads what tables are called.
func readCalled(v value, to *[]Called) {
	entries, _ := v.entries("tables, by their names in the database, and names")
	for _, e := range entries {
		if s, ok := e.val.text("a name"); ok {
			*to = append(*to, Called{Table: Name{Text: e.name, Pos: e.key.pos(), Path: e.key.path}, As: s})
		}
	}
}

// ownHeaders are those that a request has anyhow, by the beginnings of their names.
var ownHeaders = []string{"X-Hasura-Admin-Secret", "X-Hasura-Role", "Apikey", "Authorization", "Content-", "Accept", "Prefer", "Host", "Connection", "Transfer-Encoding"}

func readAPIHeaders(v value, t *Target) {
	entries, _ := v.entries("headers and what they hold")
	t.Headers = http.Header{}
	for _, e := range entries {
		name := http.CanonicalHeaderKey(e.name)
		switch {
		case !headerForm.MatchString(e.name):
			e.key.fail("is not the name of a header: letters, digits and hyphens, as in X-Tenant.")
			continue
		case slices.ContainsFunc(ownHeaders, func(own string) bool { return strings.HasPrefix(name, own) }):
			e.key.fail("is a header that Hookfold sends itself. Credentials are given as %s.", "admin_secret:, jwt:, jwt_file: or key:")
			continue
		}
		s, ok := e.val.text("text")
		if ok && strings.ContainsAny(s, "\r\n") {
			e.val.fail("holds a line break, which no header may.")
			continue
		}
		if ok {
			t.Headers.Set(name, s)
		}
	}
}

// crossCalled refuses names for tables that a target does not have, unless
// something else is wrong, which may be why.
func (l *loader) crossCalled(c *Config) {
	if l.Err() != nil {
		return
	}
	for _, t := range c.Targets {
		var names []string
		for _, x := range c.Tables {
			if x.Target.Text == t.Text {
				names = append(names, x.Physical.Text)
			}
		}
		for _, x := range slices.Concat(t.RootNames, t.Constraints) {
			if !slices.Contains(names, x.Table.Text) {
				l.report(x.Table.Pos, x.Table.Path, "no table of target %s is called %s in the database.%s", t.Text, l.shown(x.Table), didYouMean(x.Table.Text, names))
			}
		}
	}
}

// meant tells whether a key that nobody knows was most likely meant to be one of
// some.
func (v value) meant(keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return v.l.unread[join(v.path, k)] })
}

// failKey reports an error at the key that a value has.
func (v value) failKey(format string, args ...any) {
	if !v.l.bad[v.node] {
		v.l.bad[v.node] = true
		v.failWhole(format, args...)
	}
}
