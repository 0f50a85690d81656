package sqlsink_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/internal/testdb"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/sqlsink"
)

// onMySQL makes a table of a test's own on MySQL, and opens a sink that writes it.
func onMySQL(t *testing.T, table *sink.Table, statements ...string) (s sink.Sink, url string) {
	t.Helper()
	url = testdb.MySQL(t)
	s = open(t, url, []*sink.Table{table}, sqlsink.Options{Connections: 8, LockTimeout: 20 * time.Second})
	if len(statements) > 0 {
		testdb.ExecMySQL(t, url, statements...)
	}
	bring(t, s, table)
	return s, url
}

// MySQL assigns from left to right, and an assignment sees those before it, but
// for MariaDB in the mode SIMULTANEOUS_ASSIGNMENT. The statement that is printed is
// right in both, as the own code of a user runs it.
func TestMySQLAssignments(t *testing.T) {
	modes := []string{"STRICT_TRANS_TABLES"}
	if isMariaDB(t) {
		modes = append(modes, "SIMULTANEOUS_ASSIGNMENT")
	}
	for _, mode := range modes {
		for _, columns := range [][]string{
			{"a text", "b text", "f text first", "g int first", "m int max", "l text ladder sent,read"},
			{"a text", "f text first", "tags text[] union", "n text scope n"}, // by two statements
		} {
			t.Run(fmt.Sprintf("%s %d", mode, len(columns)), func(t *testing.T) {
				table := tableOf(t, "item", "id text", append(columns, "at timestamp touch")...)
				s, url := onMySQL(t, table)
				live, err := s.Inspect(t.Context(), table)
				if err != nil {
					t.Fatal(err)
				}
				statements, err := compile.Compile(compile.MySQL, table, live, nil)
				if err != nil {
					t.Fatal(err)
				}
				db := testdb.ConnectMySQL(t, url)
				defer db.Close()
				if _, err := db.Exec("set session sql_mode = concat(@@sql_mode, '," + mode + "')"); err != nil {
					t.Fatal(err)
				}
				value := func(i int, v string) string {
					switch {
					case table.Columns[i].Type.Kind == merge.TextArray:
						return `["` + v + `","z"]`
					case table.Columns[i].Rule == merge.Ladder:
						return map[string]string{"1": "read", "2": "sent", "3": "sent"}[v]
					}
					return v
				}
				key, all := 0, map[string]*merge.Row{}
				for _, order := range permutations(3) {
					for _, there := range []bool{false, true} { // before Hookfold: a value without a version
						key++
						id := fmt.Sprint(key)
						if there {
							testdb.ExecMySQL(t, url, "insert into item (id, f) values ('"+id+"', '3')")
						}
						var changes []*merge.Change
						for _, n := range order {
							set := map[string]any{}
							for i, c := range table.Columns {
								if c.Rule != merge.Touch {
									set[c.Name] = value(i, fmt.Sprint(n+1))
								}
							}
							c := say(t, table, id, int64(n), set)
							changes = append(changes, c)
							list, err := json.Marshal([][]*string{textsOf(statements.Upsert.Params, merge.Fold(table.Table, []*merge.Change{c})[0])})
							if err != nil {
								t.Fatal(err)
							}
							for _, sql := range statements.Upsert.All() {
								if _, err := db.Exec(sql, string(list)); err != nil {
									t.Fatalf("%v\n%s", err, sql)
								}
							}
						}
						row := merge.Fold(table.Table, changes)[0]
						if there {
							f := table.Column("f")
							row.Cells[f] = merge.Cell{Set: true, Value: mustValue(t, table.Columns[f].Type, "3")}
						}
						all[id] = row
					}
				}
				for id, want := range all {
					rows, err := s.Read(t.Context(), table, []merge.Key{merge.NewKey(id)})
					if err != nil || rows[0] == nil {
						t.Fatalf("%s: %v, %v", id, rows, err)
					}
					for i, c := range table.Columns {
						if got := rows[0].Cells[i]; c.Rule != merge.Touch && (got.Value != want.Cells[i].Value || got.Version != want.Cells[i].Version) {
							t.Errorf("%s.%s: %v at %q, want %v at %q", id, c.Name, got.Value, got.Version, want.Cells[i].Value, want.Cells[i].Version)
						}
					}
					for i := range want.Scopes {
						if rows[0].Scopes[i] != want.Scopes[i] {
							t.Errorf("%s: version %q, want %q", id, rows[0].Scopes[i], want.Scopes[i])
						}
					}
				}
			})
		}
	}
}

// isMariaDB tells MariaDB from MySQL.
func isMariaDB(t *testing.T) (is bool) {
	t.Helper()
	db := testdb.ConnectMySQL(t, testdb.MySQL(t))
	defer db.Close()
	if err := db.QueryRow("select version() like '%MariaDB%'").Scan(&is); err != nil {
		t.Fatal(err)
	}
	return is
}

func textsOf(params []compile.Param, r *merge.Row) []*string {
	out := make([]*string, len(params))
	for i, p := range params {
		if s, ok := p.Of(r); ok {
			out[i] = &s
		}
	}
	return out
}

func mustValue(t *testing.T, typ merge.Type, s string) merge.Value {
	t.Helper()
	v, err := merge.ParseValue(typ, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A session of another zone sees the same instants.
func TestMySQLZone(t *testing.T) {
	table := tableOf(t, "item", "id text", "a timestamp", "b timestamp", "at timestamp touch")
	s, url := onMySQL(t, table, "create table item (id varchar(20) collate utf8mb4_bin primary key, a datetime(6), b timestamp(6) null, at timestamp(6) null)")
	write(t, s, table, say(t, table, "k", 1, map[string]any{"a": "2026-05-06T09:00:00.123456Z", "b": "2026-05-06T09:00:00.123456Z"}))
	mustShow(t, s, table, "k", "a=2026-05-06T09:00:00.123456Z b=2026-05-06T09:00:00.123456Z")
	db := testdb.ConnectMySQL(t, url)
	defer db.Close()
	var a, b string
	var near bool
	if _, err := db.Exec("set time_zone = '+09:00'"); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRow("select cast(a as char), cast(b as char), abs(timestampdiff(minute, at, now())) < 60 from item").Scan(&a, &b, &near); err != nil {
		t.Fatal(err)
	}
	if a != "2026-05-06 09:00:00.123456" || b != "2026-05-06 18:00:00.123456" || !near {
		t.Errorf("datetime %s, timestamp %s, touched now: %v", a, b, near)
	}
}

// Two keys that a collation takes for one are refused, until the column compares
// bytes.
func TestMySQLKeysOfOneCollation(t *testing.T) {
	table := tableOf(t, "item", "id text", "a text")
	s, url := onMySQL(t, table, "create table item (id varchar(20) primary key, a longtext)")
	both := []*merge.Change{say(t, table, "aB", 1, map[string]any{"a": "x"}), say(t, table, "ab", 1, map[string]any{"a": "y"})}
	e := refused(t, s, table, both...)
	const want = "alter table `item` modify column `id` varchar(20) character set utf8mb4 collate utf8mb4_bin not null"
	if e.Action != sink.Retry || !strings.Contains(e.Message, "aB and ab") || !strings.Contains(e.Message, want) {
		t.Errorf("%v, action %d", e, e.Action)
	}
	if got := problems(t, compile.MySQL, s, table, compile.Usage{Inserts: true}); len(got) != 1 || !strings.HasPrefix(got[0], "error: key column id has the collation utf8mb4_general_ci") {
		t.Errorf("problems: %q", got)
	}
	testdb.ExecMySQL(t, url, want)
	write(t, s, table, both...)
	mustShow(t, s, table, "aB", "a=x")
	mustShow(t, s, table, "ab", "a=y")
	if e := refused(t, s, table, say(t, table, "ab ", 1, map[string]any{"a": "z"})); e.Action != sink.Reject || !strings.Contains(e.Message, "ends in a blank") {
		t.Errorf("a key that ends in a space: %v", e)
	}
}

// A table with another unique index is refused unless the config accepts it; then
// a clash waits, and the other row stays as it is, whoever writes at the time.
func TestMySQLOtherUniqueIndex(t *testing.T) {
	table := tableOf(t, "app_user", "id text", "email text", "n int max")
	s, url := onMySQL(t, table, "create table app_user (id varchar(20) collate utf8mb4_bin primary key, email varchar(50), n bigint, unique key email (email))")
	a := say(t, table, "a", 1, map[string]any{"email": "x@x", "n": "1"})
	if e := refused(t, s, table, a); e.Action != sink.Retry || !strings.Contains(e.Message, "unsafe_unique: [email]") {
		t.Errorf("%v, action %d", e, e.Action)
	}
	if got := problems(t, compile.MySQL, s, table, compile.Usage{Inserts: true}); len(got) != 1 || !strings.HasPrefix(got[0], "error: unique index email on (email) besides the key (id)") {
		t.Errorf("problems: %q", got)
	}
	table.UnsafeUnique = []string{"email"}
	s = open(t, url, []*sink.Table{table}, sqlsink.Options{Connections: 8, LockTimeout: 20 * time.Second})
	write(t, s, table, a)
	for _, key := range []string{"b", "c"} {
		e := refused(t, s, table, say(t, table, key, 9, map[string]any{"email": "X@X", "n": "9"})) // its collation takes no notice of case
		if e.Action != sink.Wait || e.Why != sink.UniqueValue || e.On != "app_user id=a" {
			t.Errorf("a clash: %v, %+v", e, e)
		}
		write(t, s, table, say(t, table, "c", 2, map[string]any{"email": "c@x", "n": "2"}))
	}
	mustShow(t, s, table, "a", "email=x@x n=1")
	if got := shown(t, s, table, "b"); got != "no row" {
		t.Errorf("b: %s", got)
	}

	var wait sync.WaitGroup
	for w := range 8 { // each wants the one value for rows of its own, and says the same of one row
		wait.Go(func() {
			for i := range 10 {
				_, err := s.Apply(context.Background(), &sink.Batch{Groups: []sink.Group{group(table, say(t, table, fmt.Sprintf("w%d", w), int64(i), map[string]any{"email": "x@x", "n": "5"}))}})
				if sink.ActionOf(err) != sink.Wait {
					t.Errorf("writer %d: %v", w, err)
				}
				if _, err := s.Apply(context.Background(), &sink.Batch{Groups: []sink.Group{group(table, say(t, table, "new"+fmt.Sprint(i), int64(w), map[string]any{"email": nil, "n": fmt.Sprint(w)}))}}); err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
			}
		})
	}
	wait.Wait()
	mustShow(t, s, table, "a", "email=x@x n=1")
	for i := range 10 {
		mustShow(t, s, table, "new"+fmt.Sprint(i), "email=NULL n=7")
	}
}

// Another session inserts the row while the batch is on its way: its insert finds
// it, and the batch is joined with it.
func TestMySQLInsertedMeanwhile(t *testing.T) {
	table := tableOf(t, "app_user", "id text", "email text", "n int max", "tags text[] union")
	s, url := onMySQL(t, table)
	write(t, s, table, say(t, table, "x", 1, map[string]any{"email": "e", "n": "0", "tags": `["q"]`}))
	db := testdb.ConnectMySQL(t, url)
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec(`insert into app_user (id, n, tags) values ('k', 7, '["z"]')`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := s.Apply(context.Background(), &sink.Batch{Groups: []sink.Group{group(table, say(t, table, "k", 1, map[string]any{"email": "e", "n": "3", "tags": `["a"]`}))}})
		done <- err
	}()
	watch := testdb.ConnectMySQL(t, url)
	defer watch.Close()
	for waits, begin := 0, time.Now(); waits == 0; time.Sleep(150 * time.Millisecond) { // who looks more often than each 0.1 s is shown the same again
		if time.Since(begin) > time.Minute {
			t.Fatal("it does not wait for the row that somebody else inserts")
		}
		if err := watch.QueryRow("select count(*) from information_schema.innodb_trx where trx_state = 'LOCK WAIT' and trx_query like '%app_user%'").Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	mustShow(t, s, table, "k", `email=e n=7 tags=["a","z"]`)
}

// Inserts of different new keys at the same moment block each other's gaps. No
// deadlock of them comes to light.
func TestMySQLGapLocks(t *testing.T) {
	table := tableOf(t, "item", "id text", "a int max")
	s, _ := onMySQL(t, table)
	var wait sync.WaitGroup
	for w := range 8 {
		wait.Go(func() {
			for round := range 12 {
				var changes []*merge.Change
				for i := range 20 {
					changes = append(changes, say(t, table, fmt.Sprintf("%d-%03d", (i*7+w*3+round)%10, (i*31+w*round)%200), int64(w), map[string]any{"a": fmt.Sprint(w)}))
				}
				if _, err := s.Apply(context.Background(), &sink.Batch{Groups: []sink.Group{group(table, changes...)}}); err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
			}
		})
	}
	wait.Wait()
}

// What the types of MySQL would cut, round or read as something else is refused
// before it is written, whatever the server's sql_mode is.
func TestMySQLFit(t *testing.T) {
	table := tableOf(t, "item", "id text", "v text", "t text", "e text", "u int", "m int", "d numeric", "w timestamp", "z timestamp", "y int", "b bytes", "plain text", "yes bool", "doc json", "g uuid",
		"c text", "bin bytes", "label text", "top numeric max")
	s, _ := onMySQL(t, table, `create table item (id varchar(5) collate utf8mb4_bin primary key, v varchar(3), t tinytext, e enum('a', 'B'), u int unsigned, m mediumint, d decimal(6,2),
		w datetime(3), z timestamp(6) null, y year, b varbinary(2), plain varchar(9) character set ascii, yes tinyint(1), doc json, g binary(16),
		c char(5), bin binary(16), label enum('x\\y', 'it''s', 'a\nb'), top longtext)`)
	for i, x := range []struct{ column, fits, not, says string }{
		{"v", "éé😀", "abcd", "4 characters"},
		{"t", strings.Repeat("x", 255), strings.Repeat("é", 128), "256 bytes into tinytext"},
		{"e", "B", "b", "is not one of the values of enum"},
		{"u", "4294967295", "-1", "does not fit"},
		{"m", "-8388608", "8388608", "does not fit"},
		{"d", "-9999.99", "0.001", "does not fit"},
		{"w", "2026-01-01T00:00:00.123000Z", "2026-01-01T00:00:00.123400Z", "digits of a second"},
		{"z", "2038-01-19T03:14:07.999999Z", "2038-01-19T03:14:08.000000Z", "1970 and 2038"},
		{"y", "2155", "2156", "year"},
		{"b", `\x0102`, `\x010203`, "3 bytes into varbinary(2)"},
		{"plain", "abc", "é", "the character set ascii has no"},
		{"yes", "true", "", ""},
		{"doc", `{"a":9007199254740993}`, "", ""},
		{"g", "0f7d2c1e-5b3a-4c9d-8e6f-2a1b3c4d5e6f", "", ""},
		{"c", " a", "a ", "ends in a blank"},
		{"bin", `\x000102030405060708090a0b0c0d0e0f`, `\x00`, "1 bytes into binary(16)"},
		{"label", `x\y`, `x\\y`, "is not one of the values of enum"},
		{"label", "a\nb", "anb", "is not one of the values of enum"},
		{"label", "it's", "its", "is not one of the values of enum"},
		{"top", strings.Repeat("9", 35), "1" + strings.Repeat("0", 35), "more digits than MySQL compares"},
		{"top", strings.Repeat("9", 35), "0." + strings.Repeat("0", 30) + "1", "more digits than MySQL compares"},
	} {
		all := map[string]any{}
		for _, c := range table.Columns {
			all[c.Name] = nil
		}
		all[x.column] = x.fits
		write(t, s, table, say(t, table, x.column, int64(2*i), all))
		if got := shown(t, s, table, x.column); !strings.Contains(got+" ", x.column+"="+x.fits+" ") {
			t.Errorf("%s: %s came as %s", x.column, x.fits, got)
		}
		if x.not == "" {
			continue
		}
		all[x.column] = x.not
		if e := refused(t, s, table, say(t, table, x.column, int64(2*i+1), all)); e.Action != sink.Reject || !strings.Contains(e.Message, x.says) {
			t.Errorf("%s: %s: %v, want it to say %q", x.column, x.not, e, x.says)
		}
	}
}

// MariaDB orders its uuid by the last part first, which is not the order of max.
func TestMySQLOrderOfUUID(t *testing.T) {
	if !isMariaDB(t) {
		return // MySQL has no such type
	}
	table := tableOf(t, "item", "id text", "a uuid max", "b uuid min")
	s, _ := onMySQL(t, table, "create table item (id varchar(5) collate utf8mb4_bin primary key, a uuid, b uuid)")
	const low, high = "0f7d2c1e-5b3a-4c9d-8e6f-2a1b3c4d5e6f", "1f7d2c1e-5b3a-4c9d-8e6f-0a1b3c4d5e6f"
	for i, order := range [][]string{{low, high}, {high, low}} {
		key := fmt.Sprint(i)
		for _, v := range order {
			write(t, s, table, say(t, table, key, 1, map[string]any{"a": v, "b": v}))
		}
		mustShow(t, s, table, key, "a="+high+" b="+low)
	}
}

// Values of every type pass through the derived table of a join by two statements,
// where MariaDB reckons how long each of them can be.
func TestMySQLTypesByTwoStatements(t *testing.T) {
	table := tableOf(t, "item", "id bytes", "u text[] union", "b bytes", "low bytes min", "g uuid", "raw uuid")
	s, _ := onMySQL(t, table, "create table item (id varbinary(9) primary key, u json, b longblob, low varbinary(9), g char(36), raw binary(16))")
	const g = "0f7d2c1e-5b3a-4c9d-8e6f-2a1b3c4d5e6f"
	for i, u := range []string{`["a"]`, `["b"]`} {
		write(t, s, table, say(t, table, `\x00ff`, int64(i), map[string]any{"u": u, "b": `\x0001ff`, "low": `\xff`, "g": g, "raw": g}))
		mustShow(t, s, table, `\x00ff`, []string{`u=["a"]`, `u=["a","b"]`}[i]+` b=\x0001ff low=\xff g=`+g+" raw="+g)
	}
}

// A row that is too wide for a page is dead: it would never land.
func TestMySQLRowsTooWide(t *testing.T) {
	var columns, ddl []string
	wide := map[string]any{}
	for i := range 250 {
		name := fmt.Sprint("c", i)
		columns, ddl = append(columns, name+" text"), append(ddl, name+" varchar(40)")
		wide[name] = strings.Repeat("x", 40)
	}
	table := tableOf(t, "item", "id text", columns...)
	s, _ := onMySQL(t, table, "set session innodb_strict_mode = 0", "create table item (id varchar(20) collate utf8mb4_bin primary key, row_version varchar(255), "+strings.Join(ddl, ", ")+")")
	if e := refused(t, s, table, say(t, table, "k", 1, wide)); e.Action != sink.Reject || !strings.Contains(e.Message, "Row size too large") {
		t.Errorf("%v, action %d", e, e.Action)
	}
}

// An index takes 3,072 bytes: the more parts a key has, the shorter they are.
func TestMySQLLongKeys(t *testing.T) {
	for _, key := range []string{"a text", "a text, b text, c text", "a text, b text, c text, d text, e text"} {
		m := shape(t, "item", key, "v text")
		m.Occupied = true
		table := &sink.Table{Name: "item", Table: merge.NewTable(m)}
		s, _ := onMySQL(t, table)
		c := say(t, table, strings.Repeat("k|", len(m.Key)-1)+"k", 1, map[string]any{"v": "x"})
		c.Occupant = &merge.Occupant{ID: "o"}
		write(t, s, table, c)
	}
}
