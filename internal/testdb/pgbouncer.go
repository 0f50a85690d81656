package testdb

import (
	"os"
	"os/exec"
	"testing"
)

// PgBouncerVar names the environment variable with the path of a PgBouncer, where
// it is not in the usual place.
const PgBouncerVar = "HOOKFOLD_TEST_PGBOUNCER"

// PgBouncer returns the path of the PgBouncer on this machine. Where there is
// none, a test fails in CI, and is skipped on a developer's machine.
func PgBouncer(t testing.TB) string {
	t.Helper()
	if program := os.Getenv(PgBouncerVar); program != "" {
		return program
	}
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if program, err := exec.LookPath(name); err == nil {
			return program
		}
	}
	const text = "this test needs PgBouncer: install it, or name it in " + PgBouncerVar
	if os.Getenv("CI") != "" {
		t.Fatal(text)
	}
	t.Skip(text)
	return ""
}
