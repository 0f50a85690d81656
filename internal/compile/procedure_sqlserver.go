package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// mostVariables is what a procedure of SQL Server takes.
const mostVariables = 2100

// The errors that a procedure raises for what it is called with.
const (
	badKey     = 51001
	badRung    = 51002
	badVersion = 51003
)

// sqlserverProcedure writes a procedure, which own code calls as any of its own.
func sqlserverProcedure(t *sink.Table, live *sink.Live) (string, error) {
	d := sqlserver{call: true}
	if !d.decides(t, live) {
		return "", fmt.Errorf("table %s: occupants, unions, and max and min of text are joined outside of the database, under locks, since T-SQL cannot decide them exactly", t.Name)
	}
	if err := SQLServer.needsUnique(t, live, nil); err != nil {
		return "", err
	}
	r := own(t)
	if err := r.bind(live); err != nil {
		return "", err
	}
	if err := r.judges(d); err != nil {
		return "", err
	}
	u := r.upsertion(d, false)
	args := arguments(t, Statement{Params: u.params})
	if len(args) >= mostVariables {
		return "", fmt.Errorf("table %s: a procedure of SQL Server takes %d parameters, and this one would take %d. Run the statements that hookfold sql prints", t.Name, mostVariables, len(args)+1)
	}
	names := map[string]string{}
	for _, a := range args {
		v := strings.ToLower(variable(a.Name))
		if other, ok := names[v]; ok {
			return "", fmt.Errorf("table %s: columns %s and %s would be one parameter, %s", t.Name, other, a.Name, v)
		}
		names[v] = a.Name
	}
	var b strings.Builder
	name := quoteTable(d, besideTable(t.Name, func(table string) string { return ProcedurePrefix + table }))
	fmt.Fprintf(&b, "-- Procedure that joins a row into table %s for sqlserver. It may be called by any number of sessions, in any order, as\n"+
		"-- often as one likes, inside a transaction or not; @hookfold_changed tells whether anything has changed. Versions are\n"+
		"-- text and compared as bytes; NULL is older than all. What is left out, or NULL, says nothing, but for the columns of a\n"+
		"-- version that is given:\n--   exec %s %s;\n", t.Name, name, strings.Join(passed(args), ", "))
	for _, a := range args {
		fmt.Fprintf(&b, "--   %s: %s\n", variable(a.Name), a.describe(t))
	}
	if slices.ContainsFunc(args, func(a argument) bool { return a.isVersion() }) {
		b.WriteString(versionComment)
	}
	fmt.Fprintf(&b, "-- To remove it: drop procedure %s;\n\n", name)
	var list []string
	for _, a := range args {
		item := variable(a.Name) + " " + declaredTSQL(a)
		if !a.key {
			item += " = null"
		}
		list = append(list, item)
	}
	list = append(list, "@hookfold_changed bit = null output")
	fmt.Fprintf(&b, "create or alter procedure %s\n    %s\nas\nbegin\nset nocount on;\nset xact_abort off; -- an insert that comes too late must not end the caller's transaction\n", name, strings.Join(list, ",\n    "))
	for _, c := range d.checks(t, r, args) {
		b.WriteString(c)
	}
	b.WriteString(d.called(u))
	b.WriteString("\nend;\n")
	return b.String(), nil
}

func (a argument) isVersion() bool { return a.Kind == ScopeParam || a.Kind == FirstParam }

// versionComment says how own code makes a version.
const versionComment = `-- A version is made from what the event says, in one form and width for all that write the table. Hookfold's own are the
-- elements of version:, each with / behind it (a time in UTC with nine digits of a second, a whole number n as
-- n + 9223372036854775808 with twenty digits), then 0/ and sixteen hexadecimal digits that tell apart two events of one
-- version. Of a time @at (datetimeoffset) and the event's text @body that is:
--   replace(convert(varchar(27), cast(switchoffset(@at, '+00:00') as datetime2(7)), 121), ' ', 'T') + '00Z/0/'
--     + lower(left(convert(varchar(64), hashbytes('SHA2_256', @body), 2), 16))
`

// passed shows the first few arguments of a call.
func passed(args []argument) []string {
	var out []string
	for _, a := range args {
		if a.key || len(out) < 3 {
			out = append(out, variable(a.Name)+" = …")
		}
	}
	if len(out) < len(args) {
		out = append(out, "…")
	}
	return out
}

// declaredTSQL is the type of a parameter. A text is declared so long that none
// is cut on the way; the column refuses what is too long.
func declaredTSQL(a argument) string {
	l := a.Live
	if l == nil || !isTextTSQL(l) {
		if l != nil && classTSQL(l) == "bytes" {
			return "varbinary(max)"
		}
		if l != nil {
			return l.Type
		}
		return "nvarchar(max)"
	}
	most := "max"
	if a.key {
		most = "4000"
		if l.CodePage != 0 {
			most = "8000"
		}
	}
	if l.CodePage != 0 {
		return "varchar(" + most + ")"
	}
	return "nvarchar(" + most + ")"
}

// checks refuse what Hookfold itself would not write.
func (d sqlserver) checks(t *sink.Table, r *relation, args []argument) []string {
	var out []string
	refuse := func(when string, number int, format string, of ...any) {
		out = append(out, fmt.Sprintf("if %s\nbegin\n    throw %d, %s, 1;\nend;\n", when, number, d.literal(fmt.Sprintf(format, of...))))
	}
	for _, f := range r.key {
		v := variable(f.Name)
		if isTextTSQL(f.Live) {
			refuse(fmt.Sprintf("%s is null or %[1]s like N'%% '", v), badKey, "%s is NULL or ends in a blank, and names no row", v)
		} else {
			refuse(v+" is null", badKey, "%s is NULL, and names no row", v)
		}
	}
	for _, f := range r.values {
		if f.rule != merge.Ladder {
			continue
		}
		var rungs []string
		for _, s := range f.rungs {
			rungs = append(rungs, d.literal(s+"."))
		}
		v := variable(f.Name)
		refuse(fmt.Sprintf("%s is not null and (%[1]s + N'.')%s not in (%s)", v, binary, strings.Join(rungs, ", ")), badRung, "%s is not a step of the ladder %s", v, strings.Join(f.rungs, ", "))
	}
	for _, a := range args {
		if !a.isVersion() {
			continue
		}
		v := variable(a.Name)
		var given []string
		for _, f := range r.values {
			if a.Kind == ScopeParam && f.rule == merge.Latest && f.scope == a.Index || a.Kind == FirstParam && f.Kind == CellParam && f.Index == a.Index {
				given = append(given, variable(f.Name)+" is not null")
			}
		}
		if given != nil {
			refuse(fmt.Sprintf("%s is null and (%s)", v, strings.Join(given, " or ")), badVersion, "%s is NULL, so it cannot be told whether the row is newer", v)
		}
	}
	return out
}

// called is the upsert of one row by variables.
func (d sqlserver) called(u *upsert) string {
	insert := fmt.Sprintf("insert into %s (%s)\nselect %s\nwhere not exists (select 1 from %[1]s as t where %[4]s);", u.table, strings.Join(u.columns, ", "), strings.Join(u.exprs, ",\n    "), d.keyOf(u, d.param))
	join := ""
	if len(u.set) > 0 {
		join = fmt.Sprintf("update t\nset %s\nfrom %s as t\nwhere %s\n  and (%s);", listed(d, u.set), u.table, d.keyOf(u, d.param), u.differs)
	}
	const count = "set @hookfold_written = @hookfold_written + @@rowcount;"
	statements := []string{insert, count}
	if join != "" {
		statements = append(statements, join, count)
	}
	// Outside of a transaction a deadlock has undone one statement, which is run again.
	sql := retriedIf("error_number() in (2601, 2627) or error_number() = 1205 and @@trancount = 0", statements...)
	return "declare @hookfold_written int = 0;\n" + sql + ";\nset @hookfold_changed = case when @hookfold_written > 0 then 1 else 0 end;"
}
