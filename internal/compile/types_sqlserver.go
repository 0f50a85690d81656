package compile

import (
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// baseTSQL is the name of a live type: decimal for decimal(10,2).
func baseTSQL(c *sink.LiveColumn) string {
	name, _, _ := strings.Cut(c.Type, "(")
	if c.Base != "" {
		name = c.Base
	}
	return name
}

// classTSQL names what a live type of SQL Server is to Hookfold: a type of the
// config, or "" for one it does not know. JSON and lists are text.
func classTSQL(c *sink.LiveColumn) string {
	return map[string]string{"nvarchar": "text", "varchar": "text", "nchar": "text", "char": "text",
		"bit": "bool", "tinyint": "int", "smallint": "int", "int": "int", "bigint": "int", "decimal": "numeric", "numeric": "numeric", "money": "numeric", "smallmoney": "numeric",
		"float": "float", "real": "float", "date": "date", "datetimeoffset": "timestamp", "datetime2": "timestamp", "datetime": "timestamp", "smalldatetime": "timestamp",
		"uniqueidentifier": "uuid", "varbinary": "bytes"}[baseTSQL(c)]
}

func isTextTSQL(c *sink.LiveColumn) bool { return classTSQL(c) == "text" }

// fixedTSQL tells whether a text is padded with blanks to one length.
func fixedTSQL(c *sink.LiveColumn) bool {
	return baseTSQL(c) == "char" || baseTSQL(c) == "nchar"
}

func (sqlserver) unjudged(c *sink.LiveColumn) string {
	if classTSQL(c) != "" {
		return ""
	}
	return fmt.Sprintf("Hookfold cannot judge what %s takes, or cuts or rounds, before it is written, so what a row becomes would depend on how its events fall into batches. Make it nvarchar, with a CHECK if need be", c.Type)
}

func (sqlserver) keyDoubt(c *sink.LiveColumn) string {
	switch {
	case fixedTSQL(c):
		return "it pads keys with blanks"
	case isTextTSQL(c) && c.Collate != "" && !BinaryCollation(c.Collate):
		return fmt.Sprintf("by its collation %s different keys are one (aB and ab), so an event for one of them waits as long as there is a row of the other. Alter it to collate %s if its keys differ in that way", c.Collate, textBinary)
	}
	return ""
}

// needsUnique says that a table has no unique index on its key. Most databases
// say so themselves when an upsert names the key; T-SQL has nothing that would,
// and two writers would insert two rows.
func (d Dialect) needsUnique(t *sink.Table, live, records *sink.Live) error {
	if d.base() != SQLServer {
		return nil
	}
	lacks := func(name string, key []string, live *sink.Live) error {
		if live == nil || !live.Exists || live.HasUnique(key) {
			return nil // of one that is not there more is said elsewhere
		}
		return fmt.Errorf("table %s: no unique index on (%s). Two events at once could insert two rows. Create one: %s", name, strings.Join(key, ", "), UniqueIndex(d, name, key))
	}
	if err := lacks(t.Name, keyOf(t), live); err != nil || !t.Occupied {
		return err
	}
	return lacks(OccupantsTable(t.Name), append(keyOf(t), OccupantColumn), records)
}

// BinaryCollation tells whether a collation of SQL Server compares characters by
// their numbers.
func BinaryCollation(name string) bool {
	name = strings.TrimSuffix(strings.ToUpper(name), "_UTF8")
	return strings.HasSuffix(name, "_BIN2") || strings.HasSuffix(name, "_BIN")
}

func (d sqlserver) fits(t merge.Type, rule merge.Rule, c *sink.LiveColumn) verdict {
	is, want := classTSQL(c), merge.Type{Kind: t.Kind}.String()
	text := t.Kind == merge.Text || t.Kind == merge.JSON || t.Kind == merge.TextArray
	switch {
	case is == "":
		return bad("%s", d.unjudged(c))
	case is == "text" && t.Kind == merge.Bytes:
		return bad("bytes need varbinary")
	case is == "text" && !text && (rule == merge.Max || rule == merge.Min):
		return bad("text has another order. Say %s in the database", sqlserverTypes[t.Kind])
	case is == "text" && c.CodePage != 0 && c.CodePage != utf8Page && t.Kind != merge.UUID:
		return doubtful("it holds the characters of code page %d only; an event with another one, or longer than the column, is dead. Use nvarchar", c.CodePage)
	case is == "text" && t.Kind != merge.Text && c.Length > 0:
		return doubtful("what is longer than the column is dead")
	case is == "text":
		return fine
	case is == "numeric" && (t.Kind == merge.Int || t.Kind == merge.Float || t.Kind == merge.Numeric):
		return fitsDecimal(t, c)
	case is != want:
		return bad("say type: %s, or alter the column", is)
	}
	switch baseTSQL(c) {
	case "tinyint", "smallint", "int":
		return doubtful("numbers beyond its %d bits are dead; ids of providers often are. Use bigint", c.Bits)
	case "real":
		return doubtful("it keeps 6 digits. Use float or decimal")
	case "datetime":
		return doubtful("it rounds times to 1/300 s, keeps no zone, and begins in 1753; Hookfold writes UTC. Use datetimeoffset(6) or datetime2(6)")
	case "smalldatetime":
		return doubtful("it rounds times to minutes. Use datetimeoffset(6) or datetime2(6)")
	case "datetime2", "datetimeoffset":
		if c.Scale < 6 {
			return doubtful("it rounds times")
		}
		if baseTSQL(c) == "datetime2" {
			return doubtful("it keeps no zone; Hookfold writes UTC")
		}
	}
	return fine
}

func fitsDecimal(t merge.Type, c *sink.LiveColumn) verdict {
	if t.Kind == merge.Float {
		return bad("a float may have any number of digits. Use float")
	}
	return fitsNumeric(t, c)
}
