// Package witness reads tables by plain SQL of its own, so that what a sink
// wrote can be checked by something that is not the sink.
package witness

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	_ "github.com/go-sql-driver/mysql" // the drivers of the engines
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/microsoft/go-mssqldb"
	_ "modernc.org/sqlite"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// DB is a database to be read.
type DB struct {
	*sql.DB
	postgres, tsql, mysql bool
}

// Open opens a database by the URL that a config gives a target.
func Open(url string) (*DB, error) {
	driver, source := "pgx", url
	file, lite := strings.CutPrefix(url, "sqlite:")
	if lite {
		driver, source = "sqlite", "file:"+file+"?_pragma=busy_timeout(20000)"
	}
	mysql, tail, _ := strings.Cut(url, "://")
	if mysql == "mysql" || mysql == "mariadb" {
		user, rest, _ := strings.Cut(tail, "@")
		host, name, _ := strings.Cut(rest, "/")
		name, _, _ = strings.Cut(name, "?")
		driver, source = "mysql", user+"@tcp("+host+")/"+name+"?sql_mode=%27STRICT_ALL_TABLES,ANSI_QUOTES%27&time_zone=%27%2B00%3A00%27"
	}
	tsql := strings.HasPrefix(url, "sqlserver://")
	if tsql {
		driver = "sqlserver"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, fmt.Errorf("open a database to be read: %w", err)
	}
	return &DB{db, driver == "pgx", tsql, driver == "mysql"}, nil
}

// MySQL tells whether it is MySQL or MariaDB.
func (db *DB) MySQL() bool { return db.mysql }

// Text is an expression that gives a column's value as text.
func (db *DB) Text(name string, typ merge.Type) string {
	switch {
	case db.postgres && typ.Kind == merge.TextArray:
		return `to_json("` + name + `")::text`
	case db.mysql && typ.Kind == merge.Timestamp:
		return `date_format("` + name + `", '%Y-%m-%dT%H:%i:%s.%fZ')`
	case db.mysql && typ.Kind == merge.Bytes:
		return `concat(_utf8mb4 x'5c78', lower(hex("` + name + `")))` // \x
	case db.mysql:
		return `cast("` + name + `" as char)`
	case db.tsql && typ.Kind == merge.Timestamp:
		return `replace(cast("` + name + `" as nvarchar(40)), N' +', N'+')`
	case db.tsql && typ.Kind == merge.Float:
		return `convert(nvarchar(40), "` + name + `", 3)`
	case db.tsql:
		return `cast("` + name + `" as nvarchar(max))`
	}
	return `cast("` + name + `" as text)`
}

// Row is the values of a table's mapped columns, in their order, and of
// deleted_at behind them where deletes mark the row.
type Row []merge.Value

// deletedAt is the column that says since when a row is deleted.
const deletedAt = "deleted_at"

func marks(t *sink.Table) bool { return t.OnDelete == merge.DeleteMark }

// Rows are the rows of a table by key: more than one where a table has no
// unique key and somebody wrote twice.
type Rows map[merge.Key][]Row

// Keys returns the keys in order.
func (r Rows) Keys() []merge.Key { return slices.Sorted(maps.Keys(r)) }

// Read reads a whole table.
func (db *DB) Read(ctx context.Context, t *sink.Table) (Rows, error) {
	var columns []string
	var types []merge.Type
	column := func(name string, typ merge.Type) {
		types = append(types, typ)
		columns = append(columns, db.Text(name, typ))
	}
	for _, k := range t.Key {
		column(k.Name, k.Type)
	}
	for _, c := range t.Columns {
		column(c.Name, c.Type)
	}
	if marks(t) {
		column(deletedAt, merge.Type{Kind: merge.Timestamp})
	}
	name := `"` + strings.ReplaceAll(t.Name, ".", `"."`) + `"`
	rows, err := db.QueryContext(ctx, fmt.Sprintf("select %s from %s", strings.Join(columns, ", "), name))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", t.Name, err)
	}
	defer rows.Close()
	out := Rows{}
	for rows.Next() {
		cells := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, fmt.Errorf("read %s: %w", t.Name, err)
		}
		values := make(Row, len(cells))
		for i, c := range cells {
			if values[i], err = value(types[i], c); err != nil {
				return nil, fmt.Errorf("read %s.%s: %w", t.Name, columns[i], err)
			}
		}
		key := make([]string, len(t.Key))
		for i := range key {
			key[i] = values[i].Text()
		}
		k := merge.NewKey(key...)
		out[k] = append(out[k], values[len(key):])
	}
	return out, rows.Err()
}

func value(t merge.Type, c sql.NullString) (merge.Value, error) {
	switch {
	case !c.Valid:
		return merge.NullValue, nil
	case t.Kind == merge.Bool && c.String == "0":
		c.String = "false"
	case t.Kind == merge.Bool && c.String == "1":
		c.String = "true"
	}
	return merge.ParseValue(t, c.String)
}

// Differ names the columns in which a row is not as it must be, "" if it is.
func Differ(t *sink.Table, have Row, want *merge.Row) string {
	var out []string
	for i, c := range t.Columns {
		if c.Rule != merge.Touch && have[i] != want.Cells[i].Value {
			out = append(out, fmt.Sprintf("%s is %s, not %s", c.Name, have[i], want.Cells[i].Value))
		}
	}
	if marks(t) {
		at := merge.NullValue
		if want.Gone() {
			at = want.DeletedAt
		}
		if is := have[len(t.Columns)]; is != at {
			out = append(out, fmt.Sprintf("%s is %s, not %s", deletedAt, is, at))
		}
	}
	return strings.Join(out, "; ")
}

// Verdict compares the rows of one table with those that package merge gives.
type Verdict struct {
	// Want counts the rows there must be. Right + Wrong + Missing = Want.
	Want, Right, Wrong, Missing int
	// Doubled counts keys with more than one row; they are among the wrong.
	Doubled int
	// Extra counts rows with a key that there must not be.
	Extra int
	// Rows are the rows as they live.
	Rows Rows
	// Diffs tells what is wrong, per key.
	Diffs map[merge.Key]string
}

// OK says that every row is right.
func (v *Verdict) OK() bool { return v.Right == v.Want && v.Extra == 0 }

// Judge reads a table and compares it with the rows that there must be.
func (db *DB) Judge(ctx context.Context, t *sink.Table, want []*merge.Row) (*Verdict, error) {
	have, err := db.Read(ctx, t)
	if err != nil {
		return nil, err
	}
	v := &Verdict{Want: len(want), Rows: have, Diffs: map[merge.Key]string{}}
	known := map[merge.Key]bool{}
	for _, w := range want {
		known[w.Key] = true
		rows := have[w.Key]
		switch {
		case len(rows) == 0:
			v.Missing++
			v.Diffs[w.Key] = "no row"
		case len(rows) > 1:
			v.Wrong++
			v.Doubled++
			v.Diffs[w.Key] = fmt.Sprintf("%d rows of one key", len(rows))
		case Differ(t, rows[0], w) != "":
			v.Wrong++
			v.Diffs[w.Key] = Differ(t, rows[0], w)
		default:
			v.Right++
		}
	}
	for k := range have {
		if !known[k] {
			v.Extra++
			v.Diffs[k] = "a row that no event made"
		}
	}
	return v, nil
}

// Text prints rows as aligned columns under the table's name, sorted by key,
// NULL as "-".
func Text(t *sink.Table, rows Rows) string {
	var lines [][]string
	var head []string
	for _, k := range t.Key {
		head = append(head, k.Name)
	}
	for _, c := range t.Columns {
		if c.Rule != merge.Touch {
			head = append(head, c.Name)
		}
	}
	if marks(t) {
		head = append(head, deletedAt)
	}
	lines = append(lines, head)
	for _, k := range rows.Keys() {
		for _, r := range rows[k] {
			line := slices.Clone(k.Parts())
			for i, v := range r {
				switch {
				case i < len(t.Columns) && t.Columns[i].Rule == merge.Touch:
				case v.IsNull():
					line = append(line, "-")
				default:
					line = append(line, v.Text())
				}
			}
			lines = append(lines, line)
		}
	}
	width := make([]int, len(head))
	for _, l := range lines {
		for i, c := range l {
			width[i] = max(width[i], len([]rune(c)))
		}
	}
	var b strings.Builder
	b.WriteString(t.Table.Name + "\n")
	for _, l := range lines {
		text := ""
		for i, c := range l {
			text += "  " + c + strings.Repeat(" ", width[i]-len([]rune(c)))
		}
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	return b.String()
}
