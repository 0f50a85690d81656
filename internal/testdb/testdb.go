// Package testdb gives tests a database of their own. A test that needs a
// server fails when there is none: it never passes by being skipped.
package testdb

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// PostgresVar names the environment variable that points at another server than
// the local one: postgres://user:password@host:port/database. The user must be
// allowed to create databases.
const PostgresVar = "HOOKFOLD_TEST_POSTGRES"

const localPostgres = "postgres://postgres@127.0.0.1:5432/postgres"

// Postgres returns the URL of a new, empty PostgreSQL database that is dropped
// when the test ends.
func Postgres(t testing.TB) string {
	t.Helper()
	name := unique()
	Exec(t, server(), "create database "+name)
	t.Cleanup(func() { Exec(t, server(), "drop database if exists "+name+" with (force)") })
	u := parse(t, server())
	u.Path = "/" + name
	return u.String()
}

// Schema returns the URL of the server's own database with a new, empty schema
// as the only one of the search path; the schema is dropped when the test ends.
// It costs less than a database of its own, and serves where a test names no
// schema.
func Schema(t testing.TB) string {
	t.Helper()
	name := unique()
	Exec(t, server(), "create schema "+name)
	t.Cleanup(func() { Exec(t, server(), "drop schema if exists "+name+" cascade") })
	u := parse(t, server())
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// SQLite returns the URL of a SQLite database that does not exist yet, in a
// folder that is removed when the test ends.
func SQLite(t testing.TB) string {
	t.Helper()
	return "sqlite:" + filepath.Join(t.TempDir(), "rows.db")
}

// Exec runs statements on a PostgreSQL database, each in a transaction of its
// own, and fails the test if one fails.
func Exec(t testing.TB, url string, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c := Connect(t, ctx, url)
	defer c.Close(ctx)
	for _, s := range statements {
		if _, err := c.Exec(ctx, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// Try runs statements on a PostgreSQL database and returns the first error.
func Try(url string, statements ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	for _, s := range statements {
		if _, err := c.Exec(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// Databases returns the URLs of the databases of the server that were not made
// by tests.
func Databases(t testing.TB) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c := Connect(t, ctx, server())
	defer c.Close(ctx)
	rows, err := c.Query(ctx, "select datname from pg_database where datallowconn and not datistemplate and not starts_with(datname, 'hookfold_test_') order by datname")
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		u := parse(t, server())
		u.Path = "/" + name
		names[i] = u.String()
	}
	return names
}

// Connect returns a connection to a PostgreSQL database, which the caller
// closes.
func Connect(t testing.TB, ctx context.Context, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatalf("this test needs a PostgreSQL server (set %s to use another one): %v", PostgresVar, err)
	}
	return c
}

func server() string {
	if u := os.Getenv(PostgresVar); u != "" {
		return u
	}
	return localPostgres
}

func parse(t testing.TB, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatalf("%s is not a URL", PostgresVar) // without its text: it may hold a password
	}
	return u
}

func unique() string {
	var b [8]byte
	rand.Read(b[:])
	return "hookfold_test_" + hex.EncodeToString(b[:])
}
