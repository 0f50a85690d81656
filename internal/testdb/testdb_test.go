package testdb_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfold/hookfold/internal/testdb"
)

func TestDatabasesAreApartAndDropped(t *testing.T) {
	var urls []string
	t.Run("use", func(t *testing.T) {
		for _, open := range []func(testing.TB) string{testdb.Postgres, testdb.Postgres, testdb.Schema, testdb.Schema} {
			u := open(t)
			testdb.Exec(t, u, "create table a (id int)")
			urls = append(urls, u)
		}
	})
	for _, u := range urls {
		name := u[strings.Index(u, "hookfold_test_"):]
		base := os.Getenv(testdb.PostgresVar)
		if base == "" {
			base = "postgres://postgres@127.0.0.1:5432/postgres"
		}
		c := testdb.Connect(t, context.Background(), base)
		var n int
		err := c.QueryRow(context.Background(),
			"select (select count(*) from pg_database where datname = $1) + (select count(*) from pg_namespace where nspname = $1)", name).Scan(&n)
		c.Close(context.Background())
		if err != nil || n != 0 {
			t.Errorf("%s is still there: %d, %v", name, n, err)
		}
	}
}

func TestSQLiteIsNewEachTime(t *testing.T) {
	a, b := testdb.SQLite(t), testdb.SQLite(t)
	if a == b || !strings.HasPrefix(a, "sqlite:"+string(filepath.Separator)) {
		t.Errorf("got %s and %s", a, b)
	}
}
