package compile

import (
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/merge"
)

const markDeclarations = `hookfold_key text;
hookfold_bytes bytea;
hookfold_hash bigint := 2166136261;
hookfold_version text;
hookfold_at timestamp with time zone;`

// more gives a column that remembers deletes.
func (w *guardBody) more(kind ParamKind) field {
	for _, f := range w.r.more {
		if f.Kind == kind {
			return f
		}
	}
	return field{}
}

// insertMarked looks at what is remembered of a row that is proposed, and keeps
// a delete of one that is not there. It takes the lock of the key first, the one
// that Hookfold takes, so that what it sees stays.
func (w *guardBody) insertMarked() {
	d := postgres{}
	name := Literal(TableName(w.t.Name))
	var bytes, parts []string
	for _, k := range w.r.key {
		bytes = append(bytes, fmt.Sprintf("convert_to(%s::text, 'UTF8')", w.in(k)))
		parts = append(parts, jsonText(w.in(k)+"::text"))
	}
	w.when("current_setting('transaction_isolation') not like 'read %'", func() {
		w.line("raise exception 'the guard trigger needs a transaction that is READ COMMITTED: what another one has deleted would not be seen' using errcode = 'invalid_transaction_state';")
	})
	w.linef(`hookfold_bytes := convert_to(%s, 'UTF8') || decode('00', 'hex') || %s;`, Literal(strings.ToLower(TableName(w.t.Name))), strings.Join(bytes, ` || decode('00', 'hex') || `))
	w.line("for hookfold_n in 0 .. length(hookfold_bytes) - 1 loop\n    hookfold_hash := ((hookfold_hash # get_byte(hookfold_bytes, hookfold_n)) * 16777619) & 4294967295;\nend loop;")
	w.linef("perform pg_advisory_xact_lock(%d, (hookfold_hash %% %d)::int4);", LockClass, Buckets)
	w.linef("hookfold_key := '[' || %s || ']';", strings.Join(parts, " || ',' || "))

	seen, deleted := w.more(SeenParam), w.more(DeleteParam)
	buried, meta := tombstones(Postgres, w.t), metaOf(Postgres, w.t)
	entry := fmt.Sprintf("b.table_name = %s and b.key = hookfold_key", name)
	w.linef("select b.delete_version, b.deleted_at into hookfold_version, hookfold_at from %s as b where %s;", QuoteTable(buried.name), entry)
	w.when("not found", func() {
		w.linef("select b.purged_upto into hookfold_version from %s as b where b.table_name = %s;", QuoteTable(meta.name), name)
		w.when(fmt.Sprintf("found and %s <= %s and not exists (%s)",
			d.version("greatest("+d.version(w.in(seen))+", "+d.version(w.in(deleted))+")"), d.version("hookfold_version"), w.there()), func() {
			w.when(w.in(seen)+" is not null", func() {
				w.line("raise exception 'older than the purge horizon: deletes up to version % have been purged, so it cannot be told any more whether this row was deleted after it', hookfold_version using errcode = 'check_violation';")
			})
			w.line("return null;")
		})
		w.line("hookfold_version := null;")
	})
	w.when(fmt.Sprintf("%s is not null and %s is null", w.in(deleted), w.in(seen)), func() {
		w.line("-- A delete. It marks the row, or is remembered until there is one.")
		set := []string{always(deleted.Name) + " = " + w.in(deleted)}
		at := "null"
		if f := w.more(DeletedAtParam); f.Name != "" {
			set, at = append(set, always(f.Name)+" = "+w.in(f)), w.in(f)
		}
		w.linef("update %s as r set %s where %s;", QuoteTable(w.t.Name), strings.Join(set, ", "), w.rowKey())
		w.when(fmt.Sprintf("not exists (%s) and coalesce(%s, '') < %s", w.there(), d.version("hookfold_version"), d.version(w.in(deleted))), func() {
			w.linef("update %s as b set delete_version = %s, deleted_at = %s, stored_at = clock_timestamp() where %s;", QuoteTable(buried.name), w.in(deleted), at, entry)
			w.when("not found", func() {
				w.linef("insert into %s (table_name, key, delete_version, deleted_at, stored_at) values (%s, hookfold_key, %s, %s, clock_timestamp());", QuoteTable(buried.name), name, w.in(deleted), at)
			})
		})
		w.line("return null;")
	})
	w.when("hookfold_version is not null", func() {
		w.linef("delete from %s as b where %s;", QuoteTable(buried.name), entry)
		w.when(fmt.Sprintf("coalesce(%s, '') < %s", d.version(w.in(deleted)), d.version("hookfold_version")), func() {
			w.linef("%s := hookfold_version;", w.comes(deleted.Name))
			if f := w.more(DeletedAtParam); f.Name != "" {
				w.linef("%s := hookfold_at;", w.comes(f.Name))
			}
		})
	})
	w.shown()
}

// there selects the row that is stored under the key of the one that comes.
func (w *guardBody) there() string {
	return fmt.Sprintf("select from %s as r where %s", QuoteTable(w.t.Name), w.rowKey())
}

func (w *guardBody) rowKey() string {
	var on []string
	for _, k := range w.r.key {
		on = append(on, "r."+Quote(k.Name)+" = "+w.in(k))
	}
	return strings.Join(on, " and ")
}

// updateMarked joins what a row remembers of writes and deletes.
func (w *guardBody) updateMarked() {
	d := postgres{}
	older := func(f field) string {
		return fmt.Sprintf("coalesce(%s, '') < coalesce(%s, '')", d.version(w.in(f)), d.version(w.at(f)))
	}
	seen, deleted := w.more(SeenParam), w.more(DeleteParam)
	w.when(older(seen), func() { w.keep(seen.Name) })
	w.when(older(deleted), func() {
		w.keep(deleted.Name)
		if f := w.more(DeletedAtParam); f.Name != "" {
			w.keep(f.Name)
		}
	})
	w.shown()
}

// shown writes what a row shows while it is deleted, and while it is not.
func (w *guardBody) shown() {
	d := postgres{}
	seen, deleted := w.more(SeenParam), w.more(DeleteParam)
	gone := fmt.Sprintf("coalesce(%s > coalesce(%s, ''), false)", d.version(w.in(deleted)), d.version(w.in(seen)))
	if f := w.more(DeletedAtParam); f.Name != "" {
		w.when("not "+gone, func() { w.linef("%s := null;", w.comes(f.Name)) })
	}
	for _, f := range w.r.values {
		c := &w.t.Columns[f.Index]
		switch {
		case c.OnDelete == nil:
		case c.Rule == merge.Flag:
			w.linef("%s := case when %s then %s else %s end;", w.comes(f.Name), gone, literalOf(*c.OnDelete), literalOf(w.t.Flag(c, false)))
		default:
			w.when(fmt.Sprintf("%s > coalesce(%s, '')", d.version(w.in(deleted)), d.version(w.in(w.scopeOf(f)))), func() {
				w.linef("%s := %s;", w.comes(f.Name), literalOf(*c.OnDelete))
			})
		}
	}
}

func literalOf(v merge.Value) string {
	if v.IsNull() {
		return "null"
	}
	return Literal(v.Text())
}

// jsonText writes a text as KeyText does.
func jsonText(expr string) string {
	s := "to_json(" + expr + ")::text"
	for _, x := range []string{"<", ">", "&"} {
		s = fmt.Sprintf(`replace(%s, '%s', '\u%04x')`, s, x, x[0])
	}
	for _, n := range []int{0x2028, 0x2029} {
		s = fmt.Sprintf(`replace(%s, chr(%d), '\u%04x')`, s, n, n)
	}
	return s
}
