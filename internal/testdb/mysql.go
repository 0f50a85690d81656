package testdb

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// MySQLVar names the environment variable that points at another MySQL or
// MariaDB than the local one: mysql://user:password@host:port/. The user must be
// allowed to create databases.
const MySQLVar = "HOOKFOLD_TEST_MYSQL"

const localMySQL = "mysql://root@127.0.0.1:3306/"

// MySQL returns the URL of a new, empty database of MySQL or MariaDB that is
// dropped when the test ends. Its default collation is one for which aB and ab
// are equal, as on most servers.
func MySQL(t testing.TB) string {
	t.Helper()
	name := unique()
	ExecMySQL(t, mysqlServer(), "create database "+name+" character set utf8mb4 collate utf8mb4_general_ci")
	t.Cleanup(func() { ExecMySQL(t, mysqlServer(), "drop database if exists "+name) })
	u := parseMySQL(t, mysqlServer())
	u.Path = "/" + name
	return u.String()
}

// ExecMySQL runs statements on a database of MySQL or MariaDB, in a session that
// has the server's defaults, and fails the test if one fails.
func ExecMySQL(t testing.TB, url string, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	db := ConnectMySQL(t, url)
	defer db.Close()
	for _, s := range statements {
		if _, err := db.ExecContext(ctx, s); err != nil {
			t.Fatalf("%s: %v (this test needs a MySQL or MariaDB server; set %s to use another one than the local)", s, err, MySQLVar)
		}
	}
}

// ConnectMySQL returns a pool of one connection, which the caller closes.
func ConnectMySQL(t testing.TB, raw string) *sql.DB {
	t.Helper()
	u := parseMySQL(t, raw)
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	c.Passwd, _ = u.User.Password()
	inner, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(inner)
	db.SetMaxOpenConns(1)
	return db
}

func mysqlServer() string {
	if u := os.Getenv(MySQLVar); u != "" {
		return u
	}
	return localMySQL
}

func parseMySQL(t testing.TB, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		t.Fatalf("%s is not a URL", MySQLVar) // without its text: it may hold a password
	}
	return u
}
