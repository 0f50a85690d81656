package compile

import (
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/sink"
)

// sideFrom are the entries that come, as v.
func (sqlserver) sideFrom(fields []field) string {
	var columns []string
	for _, f := range fields {
		columns = append(columns, fmt.Sprintf("p%d nvarchar(max) '$.p%[1]d'", f.n))
	}
	return openJSON(columns)
}

func (d sqlserver) sideOn(fields []field) string {
	on := "t.[table_name] = @table"
	for _, f := range fields {
		switch f.Name {
		case "old", "new", "identity", "root": // any text
			on += " and " + d.same(at(d, f), d.param(f), f)
		default:
			on += " and " + at(d, f) + " = " + d.param(f)
		}
	}
	return on
}

func (d sqlserver) sideGet(s *side, by []field) string {
	if len(by) == 0 {
		return fmt.Sprintf("select %s from %s as t where %s", s.shown(d), quoteTable(d, s.name), d.sideOn(nil))
	}
	return fmt.Sprintf("select %s from %s join %s as t on %s", s.shown(d), d.sideFrom(by), quoteTable(d, s.name), d.sideOn(by))
}

// sidePut is run under a lock.
func (d sqlserver) sidePut(s *side) string {
	table := quoteTable(d, s.name)
	exprs, from := []string{"@table"}, ""
	for _, f := range s.fields() {
		exprs = append(exprs, d.param(f))
	}
	if len(s.fields()) > 0 {
		from = " from " + d.sideFrom(s.fields())
	}
	var set []assignment
	for _, f := range s.values {
		set = append(set, assignment{f.Name, d.param(f)})
	}
	if s.stamp != "" {
		exprs = append(exprs, "sysutcdatetime()")
		set = append(set, assignment{s.stamp, "sysutcdatetime()"})
	}
	sql := ""
	if set != nil {
		sql = fmt.Sprintf("update t set %s\nfrom %s as t join %s on %s;\n", listed(d, set), table, d.sideFrom(s.fields()), d.sideOn(s.key))
	}
	return sql + fmt.Sprintf("insert into %s (%s)\nselect %s%s\nwhere not exists (select 1 from %[1]s as t where %[5]s)", table, quoted(d, s.columns()), strings.Join(exprs, ", "), from, d.sideOn(s.key))
}

func (d sqlserver) sideDrop(s *side, by []field) string {
	if len(by) == 0 {
		return fmt.Sprintf("delete t from %s as t where %s", quoteTable(d, s.name), d.sideOn(nil))
	}
	return fmt.Sprintf("delete t from %s as t join %s on %s", quoteTable(d, s.name), d.sideFrom(by), d.sideOn(by))
}

func (d sqlserver) oldest(s *side) string {
	return fmt.Sprintf("select top (@p3) t.%s, t.%s from %s as t%s\nwhere t.[table_name] = @p1 and t.%s < @p2\norder by t.%[1]s",
		d.quote("key"), d.quote(DeleteColumn), quoteTable(d, s.name), lockHint, d.quote(s.stamp))
}

// besideKey is the key of the table of versions, as a parameter.
var besideKey = field{Param: Param{Kind: KeyParam, Name: "key", Live: &sink.LiveColumn{Type: "nvarchar(450)", Base: "nvarchar", Length: 450, Collate: "Latin1_General_BIN2"}}, n: 2}

func (d sqlserver) versions(table string) (claim, hold, save string) {
	from, on := d.sideFrom([]field{besideKey}), d.sideOn([]field{besideKey})
	claim = fmt.Sprintf("insert into %s ([table_name], [key])\nselect @table, %s from %s\nwhere not exists (select 1 from %[1]s as t where %[4]s)", table, d.param(besideKey), from, on)
	hold = fmt.Sprintf("select t.[key], t.[versions] from %s join %s as t%s on %s", from, table, lockHint, on)
	versions := field{Param: Param{Kind: CellParam, Name: "versions"}, n: 3}
	save = fmt.Sprintf("update t set [versions] = %s\nfrom %s as t join %s on %s", d.raw(versions), table, d.sideFrom([]field{besideKey, versions}), on)
	return claim, hold, save
}

func (d sqlserver) readVersions(table string) (all, byKey string) {
	return fmt.Sprintf("select t.[key], t.[versions] from %s as t where t.[table_name] = @table", table),
		fmt.Sprintf("select t.[key], t.[versions] from %s join %s as t on %s", d.sideFrom([]field{besideKey}), table, d.sideOn([]field{besideKey}))
}
