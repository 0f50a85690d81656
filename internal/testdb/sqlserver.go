package testdb

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/microsoft/go-mssqldb" // the driver
)

// SQLServerVar names the environment variable with the URL of a server that
// speaks TDS and T-SQL: sqlserver://user:password@host:1433?database=name. The
// user must be allowed to create databases; where the server has but one, an
// empty database of that URL serves.
const SQLServerVar = "HOOKFOLD_TEST_SQLSERVER"

// leftAfter is how old a test's database is that nobody uses any more.
const leftAfter = 2 * time.Hour

// SQLServer returns the URL of a new, empty database of the server that
// SQLServerVar names, which is dropped when the test ends. Databases that killed
// tests have left are dropped too. Without the variable the test is skipped: no
// such server can be had on every machine.
func SQLServer(t testing.TB) string {
	t.Helper()
	base := os.Getenv(SQLServerVar)
	if base == "" {
		t.Skip("HOOKFOLD_TEST_SQLSERVER is not set: what needs SQL Server is not run; its wire, grammar and statements are tested without")
	}
	base = asItCan(t, base)
	sweepSQLServer(t, base)
	name := fmt.Sprintf("hookfold_test_%d_%s", time.Now().Unix(), strings.TrimPrefix(unique(), "hookfold_test_"))
	u := parse(t, base)
	if err := tryTSQL(base, "create database "+name); err != nil {
		if n := tablesOf(t, base); n != 0 || u.Query().Get("database") == "" {
			t.Fatalf("this test needs a database of its own: %s's user may not create one (%v), and the database of its url is not empty (%d tables)", SQLServerVar, err, n)
		}
		t.Cleanup(func() { EmptySQLServer(t, base) })
		return base
	}
	t.Cleanup(func() { dropSQLServer(t, base, name) })
	q := u.Query()
	q.Set("database", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// asItCan lets a URL that says nothing of TLS go with what the server speaks.
func asItCan(t testing.TB, base string) string {
	u := parse(t, base)
	q := u.Query()
	for name := range q {
		if strings.EqualFold(name, "encrypt") {
			return base
		}
	}
	q.Set("encrypt", "false")
	q.Set("TrustServerCertificate", "true")
	u.RawQuery = q.Encode()
	return u.String()
}

// EmptySQLServer drops all tables and procedures of a database.
func EmptySQLServer(t testing.TB, at string) {
	t.Helper()
	for _, query := range []string{
		"select 'alter table ' + quotename(s.name) + '.' + quotename(o.name) + ' drop constraint ' + quotename(f.name) from sys.foreign_keys as f join sys.objects as o on o.object_id = f.parent_object_id join sys.schemas as s on s.schema_id = o.schema_id",
		"select 'drop table ' + quotename(s.name) + '.' + quotename(o.name) from sys.tables as o join sys.schemas as s on s.schema_id = o.schema_id",
		"select 'drop procedure ' + quotename(s.name) + '.' + quotename(o.name) from sys.objects as o join sys.schemas as s on s.schema_id = o.schema_id where o.type = 'P'",
	} {
		for _, statement := range queryTSQL(t, at, query) {
			ExecTSQL(t, at, statement)
		}
	}
}

// ExecTSQL runs statements on a database, each in a batch of its own, and fails
// the test if one fails.
func ExecTSQL(t testing.TB, at string, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if err := tryTSQL(at, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func tryTSQL(at, statement string) error {
	db, err := sql.Open("sqlserver", at)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err = db.ExecContext(ctx, statement)
	return err
}

// queryTSQL reads one column of texts.
func queryTSQL(t testing.TB, at, query string) []string {
	t.Helper()
	db, err := sql.Open("sqlserver", at)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		t.Fatalf("this test needs the server that %s names: %v", SQLServerVar, err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func tablesOf(t testing.TB, at string) int {
	return len(queryTSQL(t, at, "select name from sys.tables"))
}

// dropSQLServer drops a database, whoever is connected to it.
func dropSQLServer(t testing.TB, base, name string) {
	t.Helper()
	if tryTSQL(onMaster(t, base), "alter database "+name+" set single_user with rollback immediate") != nil {
		time.Sleep(200 * time.Millisecond) // not every server has it: let sessions that have been closed end
	}
	if err := tryTSQL(onMaster(t, base), "drop database "+name); err != nil {
		t.Errorf("drop database %s: %v", name, err)
	}
}

// sweepSQLServer drops databases of tests that were killed.
func sweepSQLServer(t testing.TB, base string) {
	t.Helper()
	for _, name := range queryTSQL(t, onMaster(t, base), "select name from sys.databases where name like 'hookfold$_test$_%' escape '$'") {
		parts := strings.Split(name, "_")
		made, err := strconv.ParseInt(parts[min(2, len(parts)-1)], 10, 64)
		if err == nil && time.Since(time.Unix(made, 0)) > leftAfter {
			dropSQLServer(t, base, name)
		}
	}
}

func onMaster(t testing.TB, base string) string {
	u := parse(t, base)
	q := url.Values{}
	for k, v := range u.Query() {
		q[k] = v
	}
	q.Set("database", "master")
	u.RawQuery = q.Encode()
	return u.String()
}
