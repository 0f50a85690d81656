package config

import (
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestTargetsAreRead(t *testing.T) {
	data, err := os.ReadFile("testdata/apis.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, problems := Parse("apis.yaml", data, testOptions())
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	called := func(as string) []Called { return []Called{{Table: name("public.app_user"), As: as}} }
	want := []*Target{
		{
			Name: name("graphql"), URL: name("hasura+https://api.example/v1/graphql"), Kind: Hasura, Connections: 4,
			AdminSecret: "s", Role: "hookfold", Source: "main", RootNames: called("Users"), Constraints: called("users_pk"),
			Headers: http.Header{"X-Tenant": {"a"}, "X-Proxy-Token": {"s"}}, MaxRequest: 2 << 20, Timeout: 90 * time.Second,
		},
		{Name: name("token"), URL: name("hasura+https://api.example"), Kind: Hasura, Connections: 4, JWTFile: "/run/secrets/token"},
		{Name: name("local"), URL: name("hasura+http://localhost:8080/v1/graphql"), Kind: Hasura, Connections: 4},
		{
			Name: name("rest"), URL: name("supabase+https://project.supabase.co"), Kind: Supabase, Connections: 8,
			Key: "s", Mode: "rest", Schema: "api", Role: "service_role", DirectURL: "postgres://postgres:pw@db.project.supabase.co:5432/postgres",
		},
		{Name: name("plain"), URL: name("postgrest+http://rest.internal:3000"), Kind: Supabase, Connections: 4},
		{Name: name("session"), URL: name("postgres://u:p@db.example:6543/postgres"), Kind: PostgreSQL, Connections: 4},
	}
	if d := cmp.Diff(want, c.Targets, cmpopts.IgnoreTypes(Pos{}), cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Path" }, cmp.Ignore())); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// The port of a pooler in transaction mode tells it; and check says so.
func TestPoolerByItsPort(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://u:p@aws-0-eu-west-1.pooler.supabase.com:6543/postgres": "transaction",
		"postgres://u:p@db.example/postgres?port=6543":                     "transaction",
		"postgres://u:p@aws-0-eu-west-1.pooler.supabase.com:5432/postgres": "",
	} {
		c, problems := Parse("f", []byte("version: 1\nsources: {shop: {preset: http, verify: none}}\ntargets: {db: \""+url+"\"}\n"), testOptions())
		told := len(problems.List) == 1 && problems.List[0].Severity == Note
		if c.Targets[0].Pooler != want || told != (want != "") || problems.Err() != nil {
			t.Errorf("%s: pooler %q, %v", url, c.Targets[0].Pooler, problems)
		}
	}
}

// A key of another kind of target is one problem, at the key.
func TestKeysOfOtherTargets(t *testing.T) {
	oneFault(t, "testdata/apis.yaml", testOptions(), 60)
}
