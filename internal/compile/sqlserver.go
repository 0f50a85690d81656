package compile

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// sqlserver writes T-SQL for SQL Server 2016 and later, Azure SQL, and Babelfish.
// A statement is for a batch: @rows is a JSON list with an object per row, which
// OPENJSON turns into the rows v, columns p1, p2, … of text. The objects hold all
// of their members, null where a value is NULL: Babelfish reads column by column.
//
// T-SQL decides what it can decide exactly: latest, first, ladder, and max and min
// of what is no text. It orders text by UTF-16 and takes no notice of blanks at
// the end, it has no sets, and no statement that writes one row of several; so
// every other table is held, as if it were not Local.
type sqlserver struct {
	form string // of upserts: formInsert, formMerge or formLocks
	// call says that the parameters are those of a procedure, one row.
	call bool
}

// The forms of an upsert.
const (
	formInsert = ""
	formMerge  = "merge"
	formLocks  = "updlock"
)

const (
	binary = " collate Latin1_General_BIN2"
	// reading rows for a change: nobody else may change them until the end.
	lockHint = " with (updlock, rowlock)"
	// keeping rows, and the places of rows that are not there, until the end.
	rangeHint = " with (updlock, holdlock)"
)

// bracketed writes a name in brackets, whatever it is: what is reserved differs
// between the engines that speak T-SQL.
func bracketed(name string) string { return "[" + strings.ReplaceAll(name, "]", "]]") + "]" }

func (sqlserver) quote(name string) string { return bracketed(name) }

// variable names the parameter of a procedure that is for a column.
func variable(name string) string {
	return "@" + strings.Map(func(r rune) rune {
		if r == '_' || r == '#' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, name)
}

func (sqlserver) literal(s string) string { return "N" + Literal(s) }

func (d sqlserver) incoming(f field) string {
	if d.call {
		return d.raw(f)
	}
	return placed(f)
}

func (d sqlserver) resident(_ string, f field) string { return at(d, f) }
func (sqlserver) sequential() bool                    { return false }

func (d sqlserver) raw(f field) string {
	if d.call {
		return variable(f.Name)
	}
	return "v." + place(f)
}

func (d sqlserver) param(f field) string {
	if d.call && !(f.Live != nil && isTextTSQL(f.Live)) {
		return d.raw(f) // declared with the column's type
	}
	return castTSQL(d.raw(f), f)
}

// castTSQL gives a text the type of a live column. A part of a key gets a type
// of its column's kind, so that its index can be used, but long enough that no
// text is cut: the column refuses what is too long. Every other text stays as it
// is, and is converted when it is stored. With the column's collation there is
// one collation only, and one code page.
func castTSQL(expr string, f field) string {
	c := f.Live
	if c == nil {
		return expr
	}
	switch name := baseTSQL(c); classTSQL(c) {
	case "text":
		collate := ""
		if c.Collate != "" {
			collate = " collate " + c.Collate
		}
		switch {
		case !isPartOfKey(f):
			return expr + collate
		case c.CodePage != 0:
			return "cast(" + expr + collate + " as varchar(8000))"
		}
		return "cast(" + expr + collate + " as nvarchar(4000))"
	case "bytes":
		return `convert(varbinary(max), replace(` + expr + `, N'\x', N''), 2)`
	case "timestamp":
		switch name {
		case "datetimeoffset":
			return "cast(replace(" + expr + ", N'Z', N'+00:00') as " + c.Type + ")"
		case "datetime2":
			return "cast(replace(" + expr + ", N'Z', N'') as " + c.Type + ")"
		}
		return "cast(cast(replace(" + expr + ", N'Z', N'') as datetime2(6)) as " + c.Type + ")"
	}
	return "cast(" + expr + " as " + c.Type + ")"
}

// isPartOfKey tells whether rows are looked up by a field.
func isPartOfKey(f field) bool {
	return f.Kind == KeyParam || f.Kind == IDParam || f.Kind == PartParam
}

// same says that a column is what comes in. Texts of keys are compared as they
// are too: to T-SQL 'a' and 'a ' are one, and to most collations aB and ab. Both
// sides say their collation, since what comes in may say another one already.
func (sqlserver) same(a, b string, f field) string {
	if f.Live != nil && isTextTSQL(f.Live) && isPartOfKey(f) && !fixedTSQL(f.Live) {
		return fmt.Sprintf("%[1]s = %[2]s and (%[1]s + N'.')%[3]s = (%[2]s + N'.')%[3]s", a, b, binary)
	}
	return a + " = " + b
}

func (sqlserver) version(expr string) string        { return expr + binary }
func (sqlserver) bytes(expr string, _ field) string { return expr + binary }

// distinct compares texts with a point behind them, so that blanks at their end
// count; versions have none.
func (d sqlserver) distinct(a, b string, f field) string {
	differ := a + " <> " + b
	switch {
	case f.Kind != CellParam && !isPartOfKey(f):
	case f.Live != nil && classTSQL(f.Live) == "bytes": // 0x01 = 0x0100
		differ = fmt.Sprintf("%s or datalength(%s) <> datalength(%s)", differ, a, b)
	case f.Live != nil && isTextTSQL(f.Live) && !fixedTSQL(f.Live): // 'a' = 'a '
		differ = fmt.Sprintf("(cast(%s as nvarchar(max)) + N'.')%s <> cast(%s as nvarchar(max)) + N'.'", a, binary, b)
	case f.Live != nil && isTextTSQL(f.Live):
		differ = fmt.Sprintf("%s%s <> %s", a, binary, b)
	}
	return fmt.Sprintf("(%s or (%s is null and %s is not null) or (%[2]s is not null and %[3]s is null))", differ, a, b)
}

func (sqlserver) greater(a, b string, _ field) string { return a + " > " + b }

func (sqlserver) now(f field) string {
	if isTextTSQL(f.Live) {
		return "replace(convert(varchar(26), cast(sysutcdatetime() as datetime2(6)), 121), ' ', 'T') + 'Z'"
	}
	return "sysutcdatetime()"
}

func (sqlserver) dflt(f field) string {
	if isTextTSQL(f.Live) {
		return f.Live.Default
	}
	return "cast(" + f.Live.Default + " as " + f.Live.Type + ")"
}

// read leaves to the driver what it reads exactly.
func (sqlserver) read(expr string, f field) string {
	switch classTSQL(f.Live) {
	case "numeric":
		style := ""
		if strings.HasSuffix(baseTSQL(f.Live), "money") {
			style = ", 2" // four digits
		}
		return "convert(varchar(50), " + expr + style + ")"
	case "uuid":
		return "convert(char(36), " + expr + ")"
	case "text":
		if fixedTSQL(f.Live) {
			return "rtrim(" + expr + ")"
		}
	}
	return expr
}

// Tables with occupants, sets, or versions beside them are held, so that what
// follows is not reached.

func (sqlserver) newer(a, b []string) string             { return newerRow(a, b) }
func (sqlserver) union(a, b string, _ field) string      { return a + " + " + b }
func (sqlserver) convert(expr string, _, _ field) string { return expr }
func (sqlserver) records(*projection) string             { return "" }
func (sqlserver) inOrder(*projection) string             { return "" }

// source is the rows that come, as v.
func (sqlserver) source(params []Param) string {
	columns := []string{"n int '$.n'"}
	for i := range params {
		columns = append(columns, fmt.Sprintf("p%d nvarchar(max) '$.p%[1]d'", i+1))
	}
	return openJSON(columns)
}

func openJSON(columns []string) string {
	return "openjson(@rows) with (" + strings.Join(columns, ", ") + ") as v"
}

func (d sqlserver) excluded(exprs []string, params []Param) string {
	return fmt.Sprintf("(select %s\n    from %s) as excluded", strings.Join(exprs, ", "), d.source(params))
}

// params are the parameters in the types of their columns, each named by its
// place.
func (d sqlserver) params(params []Param) []string {
	out := make([]string, len(params))
	for i, p := range params {
		f := field{Param: p, n: i + 1}
		out[i] = d.param(f) + " as " + place(f)
	}
	return out
}

// upsert inserts the rows that are not there, and then joins all: what somebody
// else has inserted in between is there by then. An insert that fails for such a
// row is tried again. So it is right whatever is locked.
func (d sqlserver) upsert(u *upsert) []string {
	if d.form == formMerge {
		return []string{d.merge(u)}
	}
	hint := ""
	if d.form == formLocks {
		hint = rangeHint
	}
	insert := fmt.Sprintf("insert into %s (%s)\nselect %s\nfrom %s\nwhere not exists (select 1 from %[1]s as t%[5]s where %[6]s);",
		u.table, strings.Join(u.columns, ", "), strings.Join(u.exprs, ",\n    "), d.source(u.params), hint, d.keyOf(u, d.exprOf(u)))
	join := ""
	if len(u.set) > 0 {
		join = d.update(&update{table: u.table + " as t" + hint, set: u.set, from: d.excluded(d.params(u.params), u.params), on: d.keyOf(u, placed), differs: differsOf(u)}) + ";"
	}
	return []string{retried(insert, join)}
}

// differsOf says that an upsert's update would change something.
func differsOf(u *upsert) string {
	if u.differs == "" {
		return ""
	}
	return "(" + u.differs + ")"
}

// retried runs statements again as long as a row that somebody else has inserted
// is in the way, a few times.
func retried(statements ...string) string {
	return retriedIf("error_number() in (2601, 2627)", slices.DeleteFunc(statements, func(s string) bool { return s == "" })...)
}

func retriedIf(again string, statements ...string) string {
	return `declare @hookfold_tries int = 5;
while @hookfold_tries > 0
begin
begin try
` + strings.Join(statements, "\n") + `
set @hookfold_tries = 0;
end try
begin catch
set @hookfold_tries = @hookfold_tries - 1;
if @hookfold_tries = 0 or xact_state() = -1 or not (` + again + `)
begin
    throw;
end;
end catch;
end`
}

// keyOf says that a row has the key that in gives.
func (d sqlserver) keyOf(u *upsert, in func(field) string) string {
	var on []string
	for i, p := range u.params {
		f := field{Param: p, n: i + 1}
		if slices.Contains(u.key, d.quote(p.Name)) && isPartOfKey(f) {
			on = append(on, d.same(at(d, f), in(f), f))
		}
	}
	return strings.Join(on, " and ")
}

// exprOf gives what an upsert inserts into a field.
func (d sqlserver) exprOf(u *upsert) func(field) string {
	return func(f field) string { return u.exprs[slices.Index(u.columns, d.quote(f.Name))] }
}

// merge is the upsert as MERGE, whose guard stands where it decides about a row
// that is there, and not in the comparison of keys.
func (d sqlserver) merge(u *upsert) string {
	source := d.params(u.params)
	values := make([]string, len(u.exprs))
	for i, e := range u.exprs {
		at := slices.Index(source, e+fmt.Sprintf(" as p%d", i+1))
		if at < 0 {
			source = append(source, fmt.Sprintf("%s as f%d", e, i+1))
			values[i] = fmt.Sprintf("excluded.f%d", i+1)
			continue
		}
		values[i] = fmt.Sprintf("excluded.p%d", i+1)
	}
	matched := ""
	if len(u.set) > 0 {
		when := ""
		if u.differs != "" {
			when = " and (" + u.differs + ")"
		}
		matched = "\nwhen matched" + when + " then update set\n    " + listed(d, u.set)
	}
	return fmt.Sprintf("merge into %s with (holdlock) as t\nusing %s\non %s%s\nwhen not matched by target then insert (%s)\n    values (%s);",
		u.table, d.excluded(source, u.params), d.keyOf(u, placed), matched, strings.Join(u.columns, ", "), strings.Join(values, ", "))
}

func (d sqlserver) update(u *update) string {
	table := u.table
	if !strings.Contains(table, " as t") {
		table += " as t"
	}
	sql := fmt.Sprintf("update t\nset %s\nfrom %s\njoin %s on %s", listed(d, u.set), table, u.from, u.on)
	if where := slices.DeleteFunc([]string{u.guard, u.differs}, func(s string) bool { return s == "" }); len(where) > 0 {
		sql += "\nwhere " + strings.Join(where, "\n  and ")
	}
	return sql
}

func (d sqlserver) remove(table, on string, params []Param) string {
	return fmt.Sprintf("delete t\nfrom %s as t\njoin %s on %s", table, d.source(params), on)
}

func (d sqlserver) lock(table, on string, firsts []string, params []Param) string {
	columns := []string{"v.n"}
	for _, f := range firsts {
		columns = append(columns, "case when "+f+" then 1 else 0 end")
	}
	return d.byKey(strings.Join(columns[1:], ", "), table, on, params, true)
}

func (d sqlserver) byKey(columns, table, on string, params []Param, lock bool) string {
	hint, order := "", ""
	if lock {
		hint, order = lockHint, "\norder by v.n"
	}
	if columns != "" {
		columns = ", " + columns
	}
	return fmt.Sprintf("select v.n%s\nfrom %s\njoin %s as t%s on %s%s", columns, d.source(params), table, hint, on, order)
}

func (sqlserver) skipLocked(sql string) string {
	return strings.Replace(sql, lockHint, strings.TrimSuffix(lockHint, ")")+", readpast)", 1)
}

// page compares keys part by part, since there are no rows to be compared.
func (d sqlserver) page(all string, key []field, after bool) string {
	n := 1
	if after {
		var any, same []string
		for i, f := range key {
			p := castTSQL(fmt.Sprintf("@p%d", i+1), f)
			any = append(any, strings.Join(append(slices.Clone(same), at(d, f)+" > "+p), " and "))
			same = append(same, at(d, f)+" = "+p)
		}
		all += "\nwhere (" + strings.Join(any, ")\n   or (") + ")"
		n += len(key)
	}
	return all + order(d, key) + fmt.Sprintf("\noffset 0 rows fetch next cast(@p%d as int) rows only", n)
}

// decides tells whether T-SQL can decide exactly what a change does to a row.
func (sqlserver) decides(t *sink.Table, live *sink.Live) bool {
	if t.Occupied || Beside(t) {
		return false
	}
	for i := range t.Columns {
		c, l := &t.Columns[i], live.Column(t.Columns[i].Name)
		if l == nil {
			continue // which is said elsewhere
		}
		switch c.Rule {
		case merge.Max, merge.Min:
			if !slices.Contains([]string{"bool", "int", "numeric", "float", "timestamp", "date"}, classTSQL(l)) {
				return false
			}
		case merge.Union:
			return false
		}
	}
	return true
}

func (d sqlserver) matched(f field) string { return d.param(f) }

func (d sqlserver) over(*sink.Table, *sink.Live, []string) dialect { return d }
