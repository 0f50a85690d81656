package e2e

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hookfold/hookfold/internal/testdb"
)

var sqlBlock = regexp.MustCompile("(?s)```sql\n(.*?)```")

// sectionSQL returns the SQL of a section of docs/databases.md, with a role of a
// test in the place of hookfold.
func sectionSQL(t *testing.T, section, role string) []string {
	t.Helper()
	page, err := os.ReadFile("../docs/databases.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(page), "\n## "+section+"\n")
	if !ok {
		t.Fatalf("docs/databases.md has no section %s", section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var out []string
	for _, m := range sqlBlock.FindAllStringSubmatch(text, -1) {
		out = append(out, regexp.MustCompile(`\b(to|role) hookfold\b`).ReplaceAllString(m[1], "$1 "+role))
	}
	return out
}

// A user with the rights that docs/databases.md lists, and no other, can run the
// server.
func TestGrantsOfTheDocs(t *testing.T) {
	url := testdb.Postgres(t)
	var b [6]byte
	rand.Read(b[:])
	role := "hookfold_test_" + hex.EncodeToString(b[:])
	blocks := sectionSQL(t, "PostgreSQL", role)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of SQL", len(blocks))
	}
	t.Cleanup(func() { testdb.Exec(t, url, "drop owned by "+role, "drop role "+role) })
	for i, example := range []string{"calendly", "orders"} {
		dir := t.TempDir()
		config, err := filepath.Abs(filepath.Join("../examples", example, "hookfold.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		owner, server := exampleEnv(url), exampleEnv(url+"?role="+role)
		if out, err := command(dir, owner, "migrate", "--apply", "-c", config); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		more := []string{blocks[i]}
		if example == "orders" {
			more = append(more, fmt.Sprintf("grant select, insert, update on customer, orders, order_line, parcel, parcel_occupants to %s", role))
		}
		testdb.Exec(t, url, more...)
		if out, err := command(dir, server, "check", "--connect", "-c", config); err != nil {
			t.Errorf("check --connect: %v\n%s", err, out)
		}
		out, err := command(dir, server, "replay", "--json", filepath.Join(filepath.Dir(config), "deliveries.ndjson"), "-c", config)
		var summary struct{ Dead, Waiting, Settled int }
		if jsonErr := json.Unmarshal([]byte(out), &summary); err != nil || jsonErr != nil || summary.Settled == 0 || summary.Dead+summary.Waiting > 0 {
			t.Errorf("%s: %v\n%s", example, err, out)
		}
	}
}
