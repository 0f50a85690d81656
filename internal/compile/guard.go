package compile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Guard is the guard trigger of one table: with it, whoever writes the table by
// plain statements that carry the version columns writes the join of what is
// stored and what comes, as package merge has it.
type Guard struct {
	// Parts are what it puts on tables: on that of the config, and on that of its
	// occupants' records.
	Parts []GuardPart
	// Install makes the trigger anew, Remove takes it away. Both may be run
	// again, and are each meant as one transaction.
	Install, Remove []string
	// Mark tells of the guard where its source cannot be read: it is the comment of
	// Marked.
	Mark string
}

// GuardPart are the triggers of one table.
type GuardPart struct {
	// Records says that the table is that of the occupants' records.
	Records bool
	// Triggers are as they are when the guard is installed, the first the one that
	// joins.
	Triggers []sink.Trigger
	// Marked is a version column, "" if the table has none.
	Marked string
}

// The names of what makes up a guard. A trigger runs in the order of its name
// among those of one kind: the guard joins what the others have made of a row.
const (
	guardTrigger  = "zz_hookfold_guard"
	guardFunction = "hookfold_guard_"
	guardDone     = "zz_hookfold_guard_done"
	guardMark     = "Joined by Hookfold's guard trigger "
)

// IsGuard tells whether a trigger of this name is part of a guard.
func IsGuard(trigger string) bool { return trigger == guardTrigger || trigger == guardDone }

// GuardRefuses tells why a table cannot have a guard trigger, and what to do
// instead; nil if it can.
func GuardRefuses(d Dialect, t *sink.Table) []sink.Refusal {
	const instead = "Leave guard out, and let Hookfold alone write these columns"
	var out []sink.Refusal
	say := func(format string, args ...any) {
		out = append(out, sink.Refusal{Part: sink.Guarding, Text: fmt.Sprintf(format, args...)})
	}
	if d == SQLite {
		say("SQLite has no guard trigger, since a trigger there cannot change the row that is being written. Whoever else writes the file can run the statement that hookfold sql prints")
		return out
	}
	if d.base() == SQLServer {
		say("SQL Server has no trigger that runs before a row is written. One that runs after it comes too late for an insert of a row that is there, and one that runs instead of it has to write the row by itself, which cascading foreign keys forbid and which takes identities and OUTPUT from the writer. Whoever else writes the table can call the procedure that hookfold sql --procedure prints")
		return out
	}
	switch {
	case t.Versions == sink.Beside:
		say("a guard trigger joins by versions in the row, and keep_versions: beside keeps them elsewhere. Let the versions live in the table, or: %s", instead)
	case t.Occupied && !t.Local():
		say("what becomes of a row with occupants that are deleted or follow each other is not told by its newest occupant alone. %s", instead)
	case t.OnDelete == merge.DeleteRemove:
		say("on_delete: remove takes the row away, which a trigger that runs before an update cannot. Say on_delete: mark, or: %s", instead)
	case t.Group != nil:
		say("replaces (complete lists) removes rows that are not part of the statement. %s", instead)
	}
	for i := range t.Columns {
		switch c := &t.Columns[i]; {
		case counter(c.Rule):
			say("column %s: %s adds up amounts by event, and a row that comes does not tell its event. Keep a row per event and add up when you read, or: %s", c.Name, c.Rule, instead)
		case c.Rule == merge.Chain:
			say("column %s: chain depends on links that are stored beside the rows. %s", c.Name, instead)
		case c.OnDelete != nil && (c.Type.Kind == merge.TextArray || c.Type.Kind == merge.Bytes):
			say("column %s: on_delete sets a %s, which a guard trigger does not write. %s", c.Name, c.Type, instead)
		}
	}
	if d == MySQL {
		return append(out, mysqlGuardRefuses(t, instead)...)
	}
	if t.OnDelete == merge.DeleteNone {
		return out
	}
	for _, k := range t.Key {
		switch k.Type.Kind {
		case merge.Text, merge.Int, merge.UUID:
		default:
			say("key column %s: deletes of rows that are not there are remembered by the text of the key, and that of a %s depends on the session. Use a key of text, int or uuid, or: %s", k.Name, k.Type, instead)
		}
	}
	return out
}

// NewGuard writes the guard trigger of a table as it lives; records is the live
// schema of the occupants' table. A table or column that is missing is a
// *MissingError.
func NewGuard(d Dialect, t *sink.Table, live, records *sink.Live) (*Guard, error) {
	if err := sink.Refused(t, GuardRefuses(d, t)); err != nil {
		return nil, err
	}
	r := guarded(t)
	x := d.impl()
	if err := r.bound(x, live); err != nil {
		return nil, err
	}
	if d == MySQL {
		return mysqlGuard(t, r, live), nil
	}
	if t.Occupied {
		return postgresOccupied(t, r, live, records)
	}
	return postgresGuard(t, r, live), nil
}

// bound binds a relation, and tells whether the database can join it.
func (r *relation) bound(d dialect, live *sink.Live) error {
	if err := r.bind(live); err != nil {
		return err
	}
	return r.judges(d)
}

// guardState is what is known of the guard trigger of a live table.
type guardState struct {
	// wrong says what is wrong with it, "" if it is as it must be.
	wrong string
	// installed tells whether there is any, and known whether that can be told.
	installed, known bool
}

// state compares a guard with what lives.
func (g *Guard) state(live, records *sink.Live) guardState {
	out := guardState{known: true}
	for _, p := range g.Parts {
		on := live
		if p.Records {
			on = records
		}
		if on == nil {
			on = &sink.Live{}
		}
		s := p.state(on, g.Mark)
		if s.wrong != "" && (out.wrong == "" || s.installed) {
			out.wrong = s.wrong
		}
		out.installed, out.known = out.installed || s.installed, out.known && s.known
	}
	return out
}

// state compares with the source of the triggers, or where that cannot be read
// with the comment that stands for it.
func (p *GuardPart) state(live *sink.Live, mark string) guardState {
	const missing, other = "is not there", "is not that of this config and table"
	if live.Triggers == nil {
		c := live.Column(p.Marked)
		switch {
		case c == nil: // there is no such column, or not yet
			return guardState{wrong: missing, known: !live.Exists || p.Marked != ""}
		case c.Comment == mark:
			return guardState{installed: true, known: true}
		case strings.HasPrefix(c.Comment, guardMark):
			return guardState{wrong: other, installed: true, known: true}
		}
		return guardState{wrong: missing, known: true}
	}
	out := guardState{known: true}
	for _, want := range p.Triggers {
		i := slices.IndexFunc(live.Triggers, func(x sink.Trigger) bool { return x.Name == want.Name })
		switch {
		case i < 0:
			if out.wrong == "" {
				out.wrong = missing
			}
			continue
		case !live.Triggers[i].Enabled:
			out.wrong = "is switched off"
		case live.Triggers[i].Body != want.Body:
			out.wrong = other
		}
		out.installed = true
	}
	return out
}

const installGuard = "Install it: hookfold migrate --apply, or what hookfold sql --guard-trigger --connect prints"

// Unguarded says why rows of a table that is to be guarded by a trigger must not
// be left to it, and what to do; "" if they may, or if it cannot be told.
func Unguarded(d Dialect, t *sink.Table, live, records *sink.Live) string {
	g, err := NewGuard(d, t, live, records)
	if err != nil {
		return err.Error()
	}
	if s := g.state(live, records); s.known && s.wrong != "" {
		return fmt.Sprintf("guard: trigger, and the guard trigger %s: a writer that sends plain rows would overwrite newer ones. %s", s.wrong, installGuard)
	}
	return ""
}

// guard finds what is wrong with a table's guard trigger, or with one that the
// config does not speak of.
func (p *problems) guard() {
	g, err := NewGuard(p.d, p.t, p.live, p.records)
	if err != nil { // which is said elsewhere
		if p.t.Guard == sink.ByTrigger {
			p.error("", "guard: trigger: %v", err)
		}
		return
	}
	s := g.state(p.live, p.records)
	switch {
	case p.t.Guard == sink.ByTrigger && !s.known:
		p.warn("", "guard: trigger, and this target does not tell whether the guard trigger is there: the table has no column of a version, whose comment would say so")
	case p.t.Guard == sink.ByTrigger && s.wrong != "":
		p.error("", "%s", Unguarded(p.d, p.t, p.live, p.records))
	case s.installed && s.wrong != "":
		p.error("", "it has a guard trigger that %s, and joins rows by other rules. %s; or remove it, as that script says", s.wrong, installGuard)
	}
	if !s.installed {
		return
	}
	joins := slices.IndexFunc(p.live.Triggers, func(x sink.Trigger) bool { return x.Name == g.Parts[0].Triggers[0].Name })
	how := "in the order of their names, so what it changes in a row is not joined. Give it a name before " + guardTrigger
	if p.d == MySQL {
		how = "so what it changes in a row is not joined. Install the guard trigger again, which makes it the last"
	}
	for _, x := range p.live.Triggers[joins+1:] {
		if x.Before && x.Enabled && joins >= 0 && !slices.ContainsFunc(g.Parts[0].Triggers, func(ours sink.Trigger) bool { return ours.Name == x.Name }) {
			p.warn("", "trigger %s runs after the guard trigger, %s", x.Name, how)
		}
	}
}

// bringGuard installs the guard trigger of a table that has none, or another.
func bringGuard(d Dialect, t *sink.Table, have Schemas) []string {
	ideal, records := Ideal(d, t)
	g, err := NewGuard(d, t, merged(have.Table, ideal), merged(have.Records, records))
	if err != nil { // which is said where the table is refused
		return nil
	}
	if s := g.state(have.Table, have.Records); !s.known || s.wrong == "" {
		return nil
	}
	return g.Install
}

// rules tells what a guard joins by, in a few characters, for readers that do
// not see its source.
func rules(t *sink.Table) string {
	h := sha256.New()
	for _, k := range t.Key {
		fmt.Fprintf(h, "key %q\n", k.Name)
	}
	for _, c := range t.Columns {
		fmt.Fprintf(h, "%q %s %s %q %q", c.Name, c.Type, c.Rule, c.Scope, c.Rungs)
		if c.OnDelete != nil {
			fmt.Fprintf(h, " %q", c.OnDelete)
		}
		fmt.Fprintln(h)
	}
	fmt.Fprintln(h, t.OnDelete)
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// guarded is the relation that a guard trigger joins.
func guarded(t *sink.Table) *relation {
	if t.Local() {
		return own(t)
	}
	return heldRow(t)
}

// GuardScript shows a person the guard trigger of a table: what makes it, how a
// writer uses it, and what removes it.
func GuardScript(d Dialect, t *sink.Table, have Schemas) (string, error) {
	live, records := Ideal(d, t)
	if have.Table != nil {
		live = merged(have.Table, live)
	}
	if have.Records != nil {
		records = merged(have.Records, records)
	}
	g, err := NewGuard(d, t, live, records)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "-- Guard trigger of table %s for %s.\n%s", t.Name, d, guardHelp[d.base()])
	b.WriteString("\n-- To remove it:\n")
	begin, end, commit := "begin;\n", ";\n", "commit;\n"
	if d == MySQL { // which commits with each of them
		begin, end, commit = "delimiter //\n", "//\n", "delimiter ;\n"
	} else {
		b.WriteString("--   begin;\n")
	}
	for _, s := range g.Remove {
		b.WriteString("--   " + s + ";\n")
	}
	if d != MySQL {
		b.WriteString("--   commit;\n")
	}
	b.WriteString("\n" + begin)
	for _, s := range g.Install {
		b.WriteString(s + end)
	}
	b.WriteString(commit)
	return b.String(), nil
}

// guardHelp is what a writer has to know.
var guardHelp = map[Dialect]string{
	Postgres: `-- It may be run again, and has to be after the config or the table has changed (hookfold check --connect tells).
-- A writer sends plain rows with their versions, in any order, as often as it likes:
--   insert into ... values ... on conflict (key) do update set <every column> = excluded.<column>
-- A column without a version of its own says nothing if it is NULL, a scope if its version is NULL.
--   set local hookfold.set = 'a, b'     only these columns are meant; the others say nothing, whatever they hold
--   set local hookfold.guard = 'on'     join every UPDATE too; without it one that moves no version passes as it is
--   set local hookfold.guard = 'off'    let everything pass as it is
-- A row that would not change is not written, and not counted among those affected.
`,
	MySQL: `-- It may be run again, and has to be after the config or the table has changed (hookfold check --connect tells), and
-- after another trigger is added to the table: it has to run last. In this form it is for the mysql or mariadb client.
-- A writer sends plain rows with their versions, in any order, as often as it likes:
--   insert into ... values ... on duplicate key update <every column> = values(<column>)
-- (REPLACE INTO removes the row first, which no trigger can mend.)
-- A column without a version of its own says nothing if it is NULL, a scope if its version is NULL.
-- Until the session ends, or they are set to NULL:
--   set @hookfold_set = 'a,b'       only these columns are meant; the others say nothing, whatever they hold; ',' is none
--   set @hookfold_guard = 'on'      join every UPDATE too; without it one that moves no version passes as it is
--   set @hookfold_guard = 'off'     let everything pass as it is
`,
}

// fitName shortens a name to what a database takes, so that it stays unique.
func fitName(name string) string {
	const most = 63
	if len(name) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.ToValidUTF8(name[:most-9], "") + "_" + hex.EncodeToString(sum[:4])
}
