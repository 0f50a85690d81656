package compile_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

func TestQuote(t *testing.T) {
	for name, want := range map[string]string{
		"ref": "ref", "no_show": "no_show", "user": `"user"`, "order": `"order"`, "key": `"key"`, "Ref": `"Ref"`, "a b": `"a b"`, `a"b`: `"a""b"`, "1st": `"1st"`, "größe": `"größe"`,
	} {
		if got := compile.Quote(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"booking": "booking", "public.booking": "public.booking", "public.user": `public."user"`, `"my.schema".t`: `"my.schema".t`, `s."a""b"`: `s."a""b"`,
	} {
		if got := compile.QuoteTable(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]string{"public.booking": "public.booking_occupants", `"my.schema".t`: `"my.schema".t_occupants`, `s."a.b"`: `s."a.b_occupants"`} {
		if got := compile.OccupantsTable(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	if got := compile.VersionsTable(`crm.deal`); got != "crm.hookfold_versions" {
		t.Error(got)
	}
}

func TestAffinity(t *testing.T) {
	for declared, want := range map[string]string{
		"INTEGER": "integer", "bigint": "integer", "VARCHAR(9)": "text", "clob": "text", "": "blob", "BLOB": "blob", "double precision": "real", "FLOAT": "real",
		"DECIMAL(10,2)": "numeric", "DATETIME": "numeric", "STRING": "numeric", "FLOATING POINT": "integer", "CHARINT": "integer",
	} {
		if got := compile.Affinity(declared); got != want {
			t.Errorf("%q: got %s, want %s", declared, got, want)
		}
	}
}

// Migrate adds what lacks and nothing else.
func TestMigrateIsAdditive(t *testing.T) {
	table := examples(t)["occupant"]
	none := &sink.Live{}
	live, records := compile.Ideal(compile.Postgres, table)
	without := func(l *sink.Live, names ...string) *sink.Live {
		out := *l
		out.Columns = slices.DeleteFunc(slices.Clone(l.Columns), func(c sink.LiveColumn) bool { return slices.Contains(names, c.Name) })
		return &out
	}
	noUnique := *live
	noUnique.Uniques = nil
	for name, x := range map[string]struct {
		have compile.Schemas
		want []string
	}{
		"nothing to do": {compile.Schemas{Table: live, Records: records, Versions: none}, nil},
		"columns": {compile.Schemas{Table: without(live, "no_show", "row_version", "occupant_id"), Records: without(records, "no_show"), Versions: none}, []string{
			"alter table booking add column no_show boolean",
			`alter table booking add column row_version text collate "C"`,
			`alter table booking add column occupant_id text collate "C"`,
			"alter table booking_occupants add column no_show boolean"}},
		"unique index": {compile.Schemas{Table: &noUnique, Records: records, Versions: none}, []string{"create unique index on booking (ref)"}},
	} {
		if diff := cmp.Diff(x.want, compile.Migrate(compile.Postgres, table, x.have)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	// The records of a table that is there have its types, domains apart.
	domain := *live
	domain.Columns = slices.Clone(live.Columns)
	domain.Columns[1].Type, domain.Columns[1].Base = "crm.state", "character varying(9)"
	got := strings.Join(compile.Migrate(compile.Postgres, table, compile.Schemas{Table: &domain, Records: none, Versions: none}), "\n")
	if !strings.Contains(got, "status character varying(9),") || strings.Contains(got, "crm.state") {
		t.Error(got)
	}
}

func TestCompileNamesWhatIsMissing(t *testing.T) {
	table := examples(t)["snapshot"]
	live, _ := compile.Ideal(compile.Postgres, table)
	live.Columns = slices.DeleteFunc(live.Columns, func(c sink.LiveColumn) bool { return c.Name == "amount" })
	var missing *compile.MissingError
	if _, err := compile.Compile(compile.Postgres, table, live, nil); !errors.As(err, &missing) || missing.Column != "amount" {
		t.Errorf("got %v", err)
	}
	if _, err := compile.Compile(compile.Postgres, table, &sink.Live{}, nil); !errors.As(err, &missing) || missing.Column != "" {
		t.Errorf("got %v", err)
	}
}

// A length in a cast would cut a text silently.
func TestCastsDoNotCut(t *testing.T) {
	key := []merge.KeyColumn{{Name: "id", Type: typ(t, "text")}}
	table := &sink.Table{Name: "t", Table: merge.NewTable(merge.Table{Key: key, Columns: []merge.Column{{Name: "a", Type: typ(t, "text"), Rule: merge.Max}}})}
	for base, want := range map[string]string{
		"character varying(9)": "v.p2::character varying,", "character(9)": "v.p2::bpchar,", "text": "v.p2,", "numeric(4,2)": "v.p2::numeric(4,2),", "character varying(9)[]": "v.p2::character varying[],", "character(9)[]": "v.p2::bpchar[],",
	} {
		live := &sink.Live{Exists: true, Columns: []sink.LiveColumn{{Name: "id", Type: "text", Base: "text"}, {Name: "a", Type: base, Base: base}}}
		s, err := compile.Compile(compile.Postgres, table, live, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(s.Upsert.SQL+",", want) && !strings.Contains(s.Upsert.SQL, strings.TrimSuffix(want, ",")+"\n") {
			t.Errorf("%s: %s", base, s.Upsert.SQL)
		}
	}
}
