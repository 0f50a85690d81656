package config

import (
	"fmt"
	"strings"
	"testing"
)

// A password that is not escaped makes a URL whose host, path or query is a part
// of the password, which messages of a database would then name.
func TestUnescapedPasswordsAreRefused(t *testing.T) {
	const config = "version: 1\nsources: {shop: {preset: http, verify: none}}\ntargets:\n  db: {url: %q}\n"
	for _, url := range []string{
		"postgres://postgres:p@ssHALF/wSECRET:rd@127.0.0.1:5432/x",
		"postgres://user:1/SECRET@127.0.0.1:5432/x",
		"postgres://user/1:SECRET@127.0.0.1:5432/x",
		"postgres://user:1?SECRET@127.0.0.1:5432/x",
		"postgres://user:1?SEC=RET@127.0.0.1:5432/x",
		"postgres://user:1?a=b&SECRET@127.0.0.1:5432/x",
		"postgres://user:p@1?SECRET@127.0.0.1/x",
		"postgres://user:1#SECRET@127.0.0.1:5432/x",
		"postgres://user:p@1#SECRET@127.0.0.1:5432/x",
		"postgres://user:1/SEC%40RET@127.0.0.1:5432/x",
		"postgres://user:%SECRET@127.0.0.1:5432/x",
		"postgres://user:SEC RET@127.0.0.1:5432/x",
	} {
		_, problems := Parse("f", fmt.Appendf(nil, config, url), testOptions())
		if text := problems.Error(); !strings.Contains(text, "In a password, write @ as %40") || strings.Contains(text, "SEC") || strings.Contains(text, "HALF") {
			t.Errorf("%s: %q", url, text)
		}
	}
	for _, url := range []string{
		"postgres://user:p%40ss%2Fw%3Ard@127.0.0.1:5432/x", "postgres://user:p@ss@127.0.0.1/x", "postgres://127.0.0.1/x%40y", "postgres://user@[::1]:5432/x",
		"postgres://a:b@one:5432,two:5433/x?target_session_attrs=read-write&sslmode=verify-full&sslrootcert=/etc/ssl/root.pem",
		"postgresql:///x?host=/var/run/postgresql", "postgres://user.ref:pw@pooler.example:5432/postgres?options=-c%20search_path%3Dapp",
	} {
		parseGood(t, fmt.Sprintf(config, url))
	}
}
