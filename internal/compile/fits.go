package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// class names what a live type of PostgreSQL is to Hookfold: a type of the
// config, "enum", or "" for one it does not know.
func class(c *sink.LiveColumn) string {
	base := castType(c)
	switch {
	case isTextList(c):
		return "text[]"
	case len(c.Labels) > 0:
		return "enum"
	case isText(c):
		return "text"
	case strings.HasPrefix(base, "timestamp"):
		return "timestamp"
	case strings.HasPrefix(base, "numeric"):
		return "numeric"
	}
	return map[string]string{"boolean": "bool", "smallint": "int", "integer": "int", "bigint": "int", "real": "float",
		"double precision": "float", "date": "date", "uuid": "uuid", "json": "json", "jsonb": "json", "bytea": "bytes"}[base]
}

func isTextList(c *sink.LiveColumn) bool {
	of, ok := strings.CutSuffix(castType(c), "[]")
	return ok && (len(c.Labels) > 0 || isText(&sink.LiveColumn{Type: of, Base: of}))
}

// unjudged says that Hookfold cannot tell what a type of PostgreSQL takes, and
// what to do.
func (postgres) unjudged(c *sink.LiveColumn) string {
	if class(c) != "" {
		return ""
	}
	return fmt.Sprintf("Hookfold cannot judge what %s takes, or cuts or rounds, before it is written, so what a row becomes would depend on how its events fall into batches. Make it text or varchar, with a CHECK if need be", short(c.Type))
}

// judges finds a column of a relation that lives as a type that Hookfold cannot
// judge.
func (r *relation) judges(d dialect) error {
	for _, f := range slices.Concat(r.key, r.values) {
		if f.Live == nil {
			continue
		}
		if m, ok := d.(mysql); ok && f.Kind == KeyParam && f.Live.Collation != "" {
			return fmt.Errorf("table %s: %s", r.name, m.foldedKey(r.name, f.Live))
		}
		if text := d.unjudged(f.Live); text != "" {
			return fmt.Errorf("table %s: column %s: %s", r.name, f.Name, text)
		}
	}
	return nil
}

func (d postgres) fits(t merge.Type, rule merge.Rule, c *sink.LiveColumn) verdict {
	is, want := class(c), merge.Type{Kind: t.Kind}.String()
	if is == "" {
		return bad("%s", d.unjudged(c))
	}
	switch {
	case rule == merge.Union && is != "text[]":
		return bad("a union needs a list of text")
	case is == "text" && t.Kind == merge.Bytes:
		return bad("bytes need bytea")
	case is == "text" && t.Kind != merge.Text && c.Length > 0:
		return doubtful("what is longer than the column is dead")
	case is == "text": // holds any canonical text
		return fine
	case is == "enum" && t.Kind == merge.Text:
		return fine
	case is == "json" && t.Kind == merge.TextArray:
		return fine
	case is == "numeric" && (t.Kind == merge.Int || t.Kind == merge.Float || t.Kind == merge.Numeric):
		return fitsNumeric(t, c)
	case is != want:
		return bad("%s", advice(is, c))
	}
	switch castType(c) {
	case "smallint", "integer":
		return doubtful("numbers beyond its %d bits are dead; ids of providers often are. Use bigint", c.Bits)
	case "real":
		return doubtful("it keeps 6 digits. Use double precision or numeric")
	}
	if is == "timestamp" {
		if strings.HasSuffix(castType(c), "without time zone") {
			return doubtful("it keeps no zone; Hookfold writes UTC")
		}
		if strings.Contains(c.Type, "(") && !strings.Contains(c.Type, "(6)") {
			return doubtful("it rounds times")
		}
	}
	return fine
}

func advice(is string, c *sink.LiveColumn) string {
	if is == "enum" {
		return "an enum holds text. Say type: text"
	}
	return "say type: " + is + ", or alter the column"
}

func fitsNumeric(t merge.Type, c *sink.LiveColumn) verdict {
	switch {
	case c.Precision == 0:
		return fine
	case t.Kind == merge.Float:
		return bad("a float may have any number of digits. Use double precision")
	case t.Kind == merge.Int:
		if c.Precision-c.Scale < 19 {
			return doubtful("numbers with more digits are dead")
		}
	case t.Precision == 0 || t.Scale > c.Scale || t.Precision-t.Scale > c.Precision-c.Scale:
		return doubtful("numbers with more digits are dead")
	}
	return fine
}

func (sqlite) fits(t merge.Type, rule merge.Rule, c *sink.LiveColumn) verdict {
	affinity := Affinity(c.Type)
	switch t.Kind {
	case merge.Text:
		if affinity != affinityText && affinity != affinityBlob {
			return bad("SQLite turns text that looks like a number into one there (01001 into 1001). Declare it TEXT")
		}
	case merge.Int:
		if affinity == affinityReal {
			return bad("it cannot hold 64 bits exactly. Declare it INTEGER")
		}
	case merge.Numeric:
		if affinity == affinityText || affinity == affinityBlob {
			break
		}
		if t.Precision == 0 || t.Precision > 15 {
			return bad("SQLite keeps decimals there as floating point, 15 digits at most. Declare it TEXT")
		}
		return doubtful("SQLite keeps decimals there as floating point. Declare it TEXT")
	case merge.Float:
		if affinity == affinityText || affinity == affinityInteger {
			return bad("SQLite does not keep every float there. Declare it REAL")
		}
	case merge.JSON, merge.TextArray:
		if affinity != affinityText && affinity != affinityBlob {
			return bad("SQLite turns text that looks like a number into one there. Declare it TEXT")
		}
	case merge.Timestamp, merge.Date, merge.UUID:
		if affinity == affinityInteger || affinity == affinityReal {
			return bad("Hookfold writes it as text. Declare it TEXT")
		}
	}
	if rule == merge.Union && affinity != affinityText && affinity != affinityBlob {
		return bad("a union is kept as a JSON list. Declare it TEXT")
	}
	return fine
}

// missingRungs are steps of a ladder that an enum does not have.
func missingRungs(c *merge.Column, live *sink.LiveColumn) []string {
	if c.Rule != merge.Ladder || len(live.Labels) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.Rungs), func(r string) bool { return slices.Contains(live.Labels, r) })
}
