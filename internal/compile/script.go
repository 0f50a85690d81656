package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/sink"
)

// Script shows a person the statements of a table: what makes it, and what
// writes it, with what each parameter is. Of live schemas that are not there it
// takes those that Hookfold would make.
func Script(d Dialect, t *sink.Table, have Schemas) (string, error) {
	ideal, records := Ideal(d, t)
	none := &sink.Live{}
	if have.Table == nil {
		have.Table = none
	}
	if have.Records == nil {
		have.Records = none
	}
	if have.Versions == nil {
		have.Versions = none
	}
	var b strings.Builder
	fmt.Fprintf(&b, "-- Table %s for %s. Versions are text and compared as bytes; NULL is older than all.\n", t.Name, d)
	x := d.impl()
	fmt.Fprintf(&b, "-- %s\n", x.manner())
	if ddl := Migrate(d, t, have); len(ddl) > 0 {
		b.WriteString("\n-- What has to be there:\n")
		for _, s := range ddl {
			b.WriteString(s + ";\n")
		}
	}
	live := have.Table
	if len(Migrate(d, t, have)) > 0 {
		live = merged(have.Table, ideal)
		records = merged(have.Records, records)
	} else {
		records = have.Records
	}
	s, err := Compile(d, t, live, records)
	if err != nil {
		return "", err
	}
	var last []Param
	show := func(what string, s Statement) {
		if s.SQL == "" {
			return
		}
		text := strings.TrimSuffix(strings.Join(s.All(), ";\n"), ";") + ";\n"
		fmt.Fprintf(&b, "\n-- %s\n", what)
		if slices.Equal(last, s.Params) {
			b.WriteString("-- The same parameters.\n" + text)
			return
		}
		last = s.Params
		for i, p := range s.Params {
			fmt.Fprintf(&b, "--   %s %s: %s\n", x.mark(i+1), p.Name, p.describe(t))
		}
		b.WriteString(text)
	}
	if s.Held != nil {
		showHeld(&b, d, t, s.Held, show)
		return b.String(), nil
	}
	if o := s.Occupants; o != nil {
		if x := s.Beside; x != nil {
			showVersions(&b, x)
		}
		show("Join rows into the records of their occupants:", o.Join)
		show("Read the joined records, to compare them with the versions that lie beside:", o.Records)
		show("Then, in the same transaction, show the records: the newest occupant of each key takes the row.", o.Project)
		show("The same for rows that are there:", o.Reproject)
	} else if x := s.Beside; x != nil {
		showVersions(&b, x)
	}
	if s.Beside != nil {
		show("Which rows are there, locked:", s.Lock)
		show("Insert those that are not:", s.Stub)
		show("Join those that are:", s.Beside.Join)
		return withDecimal(b.String()), nil
	}
	what := "Join rows into the table:"
	if t.Occupied {
		what = "Join what belongs to the rows themselves, whoever occupies them:"
	}
	show(what, s.Upsert)
	show("Join into rows that are there, and insert none:", s.Update)
	return withDecimal(b.String()), nil
}

// showHeld shows what is run for a table that is not decided by one row.
func showHeld(b *strings.Builder, d Dialect, t *sink.Table, h *HeldStatements, show func(string, Statement)) {
	b.WriteString("\n-- What becomes of a row is not told by the row alone. So in one transaction: lock, then read all that the batch\n" +
		"-- concerns, join it outside of the database, and store what has changed.\n")
	fmt.Fprintf(b, "\n-- Lock, in a statement of its own:%s;\n", d.impl().locks(t))
	beside := func(what, sql string) {
		if sql != "" {
			fmt.Fprintf(b, "\n-- %s\n%s;\n", what, sql)
		}
	}
	sides := func(what string, s *SideStatements, sql func(*SideStatements) string) {
		if s != nil {
			beside(what, sql(s))
		}
	}
	get := func(s *SideStatements) string { return s.Get }
	put := func(s *SideStatements) string { return s.Put }
	drop := func(s *SideStatements) string { return s.Drop }
	sides("Read which chains identities belong to (the first parameter of such statements is the table's name),", h.Aliases, get)
	beside("their other identities,", h.Members)
	beside("and what follows what:", h.After)
	sides("Read when groups were complete; a key is a JSON list of its parts:", h.Sets, get)
	show("Read and lock the rows of groups that are now complete anew:", h.Group)
	beside("Read the keys of all rows, when the table is complete anew:", h.Keys)
	show("Read and lock rows:", h.Rows)
	show("Read all records of the keys:", h.Records)
	sides("Read deletes of rows that are not there:", h.Tombstones, get)
	sides("Read up to which version deletes were forgotten:", h.Meta, get)
	sides("Read which events were counted:", h.Ledger, get)
	beside("or all of them, where chains join:", h.LedgerOf)
	show("Remove rows:", h.Delete)
	show("Give a row the key of its chain:", h.Rekey)
	show("Change rows:", h.Update)
	show("Insert rows:", h.Insert)
	show("Store records:", h.PutRecord)
	show("Remove the records of a key that is no chain's any more:", h.DropRecords)
	sides("Remember deletes of rows that are not there,", h.Tombstones, put)
	sides("and forget those that a row remembers:", h.Tombstones, drop)
	sides("Remember complete lists:", h.Sets, put)
	sides("Remember links:", h.Links, put)
	sides("Point identities to their chain:", h.Aliases, put)
	sides("Remember what was counted:", h.Ledger, put)
	beside("Forget it of a key that is no chain's any more:", h.DropLedger)
}

// withDecimal explains the function that compares decimals, where it is used.
func withDecimal(script string) string {
	if !strings.Contains(script, DecimalFunction+"(") {
		return script
	}
	return strings.Replace(script, "\n", "\n-- "+DecimalFunction+"(a, b) compares decimals: it is below, at or above 0 as a is less than, equal to or\n-- greater than b. Hookfold registers it; your own code has to register one too.\n", 1)
}

func showVersions(b *strings.Builder, x *BesideStatements) {
	fmt.Fprintf(b, "\n-- First lock the versions of all keys (a key is a JSON list of its parts), in order, and read them:\n%s;\n%s;\n", x.Claim, x.Hold)
	fmt.Fprintf(b, "\n-- Last, store the versions (a JSON object by the name of the version):\n%s;\n", x.Save)
}

// merged is a live schema after Migrate.
func merged(have, ideal *sink.Live) *sink.Live {
	if ideal == nil || !have.Exists {
		return ideal
	}
	out := *have
	out.Columns = append([]sink.LiveColumn{}, have.Columns...)
	for _, c := range ideal.Columns {
		if out.Column(c.Name) == nil {
			out.Columns = append(out.Columns, c)
		}
	}
	return &out
}

// describe says what a parameter takes.
func (p Param) describe(t *sink.Table) string {
	switch p.Kind {
	case KeyParam:
		return "key, " + p.Type.String()
	case CellParam:
		c := t.Columns[p.Index]
		text := c.Type.String() + ", " + c.Rule.String()
		if s := t.ScopeOf(p.Index); s >= 0 {
			text += ", set if " + ScopeColumn(t.Scopes()[s]) + " is not NULL"
		}
		return text
	case ScopeParam:
		return "version of scope " + t.Scopes()[p.Index] + ", NULL if it is not set"
	case FirstParam:
		return "version of " + t.Columns[p.Index].Name + ", NULL if it is not set"
	case PartParam:
		return "the occupant, or an empty text for what belongs to the row itself"
	case SeenParam:
		return "the greatest version of the row's writes"
	case DeleteParam:
		return "the version of its delete, NULL if there is none"
	case DeletedAtParam:
		return "the time of its delete, NULL unless it is deleted"
	case DeleteTimeParam:
		return "the time of its delete, timestamp"
	case SinceParam:
		return "since when the occupant holds the row, NULL if unknown"
	case IDParam:
		return "the occupant"
	}
	return "the version that is stored, NULL if none"
}
