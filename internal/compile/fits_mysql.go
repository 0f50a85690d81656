package compile

import (
	"fmt"
	"strings"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

func isMySQLText(c *sink.LiveColumn) bool {
	switch c.Base {
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum":
		return true
	}
	return false
}

// classMySQL names what a live type of MySQL is to Hookfold: types of the config,
// "enum", or nothing for one it does not know.
func classMySQL(c *sink.LiveColumn) []string {
	switch c.Base {
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext":
		return []string{"text"}
	case "tinyint":
		return []string{"bool", "int"}
	case "smallint", "mediumint", "int", "bigint", "year":
		return []string{"int"}
	case "decimal":
		return []string{"numeric"}
	case "double":
		return []string{"float"}
	case "datetime", "timestamp":
		return []string{"timestamp"}
	case "binary":
		if c.MaxBytes == 16 {
			return []string{"uuid"} // shorter bytes would be filled with zeros
		}
		return nil
	case "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		return []string{"bytes"}
	case "enum", "date", "uuid", "json":
		return []string{c.Base}
	}
	return nil
}

func (mysql) unjudged(c *sink.LiveColumn) string {
	switch {
	case c.Base == "float":
		return "float keeps 6 digits, and no comparison with it is exact. Make it double, or decimal"
	case c.Base == "binary" && c.MaxBytes != 16:
		return "binary fills what is shorter with zeros. Make it varbinary"
	case isMySQLText(c) && !knownCharset(c.Charset):
		return fmt.Sprintf("Hookfold cannot judge which characters %s has. Make it utf8mb4", c.Charset)
	case classMySQL(c) == nil:
		return fmt.Sprintf("Hookfold cannot judge what %s takes, or cuts or rounds, before it is written, so what a row becomes would depend on how its events fall into batches. Make it varchar or text, with a CHECK if need be", c.Type)
	}
	return ""
}

// knownCharset tells whether Hookfold knows the characters of a character set; ""
// is a column that Hookfold has not made yet.
func knownCharset(charset string) bool {
	switch charset {
	case "", "utf8mb4", "utf8mb3", "utf8", "ascii":
		return true
	}
	return false
}

func (d mysql) fits(t merge.Type, rule merge.Rule, c *sink.LiveColumn) verdict {
	if text := d.unjudged(c); text != "" {
		return bad("%s", text)
	}
	is, want := classMySQL(c), merge.Type{Kind: t.Kind}.String()
	has := func(name string) bool { return strings.Contains(" "+strings.Join(is, " ")+" ", " "+name+" ") }
	switch {
	case rule == merge.Union && !has("text") && !has("json"):
		return bad("a union is kept as a JSON list. Make it json")
	case has("text") && t.Kind == merge.Bytes:
		return bad("bytes need varbinary or a blob")
	case has("text") && c.Charset != "utf8mb4" && c.Charset != "" && t.Kind == merge.Text:
		return doubtful("its character set is %s: other characters are dead. Make it utf8mb4", c.Charset)
	case has("text") && t.Kind == merge.Text && c.Length == 0 && c.MaxBytes > 0 && c.MaxBytes < 1<<24-1:
		return doubtful("texts of more than %d bytes are dead. Make it longtext", c.MaxBytes)
	case has("text") && t.Kind != merge.Text && c.Length > 0 && !(t.Kind == merge.UUID && c.Length >= 36):
		return doubtful("what is longer than the column is dead")
	case has("text"), has("enum") && t.Kind == merge.Text, has("json") && t.Kind == merge.TextArray:
		return fine
	case has("numeric") && t.Kind == merge.Numeric && c.Precision == mysqlDigits && c.Scale == mysqlScale:
		return fine // there is none that holds more
	case has("numeric") && (t.Kind == merge.Int || t.Kind == merge.Float || t.Kind == merge.Numeric):
		return fitsNumeric(t, c)
	case !has(want):
		return bad("%s", advice(is[0], c))
	}
	switch {
	case t.Kind == merge.Int && (c.Bits < 64 || c.Base == "year"):
		return doubtful("numbers that it does not hold are dead; ids of providers often are. Use bigint")
	case t.Kind == merge.Timestamp && c.Base == "timestamp":
		return doubtful("it ends in 2038. Use datetime(6)")
	case t.Kind == merge.Timestamp && c.Scale < 6:
		return doubtful("times with more than %d digits behind the second are dead. Use datetime(6)", c.Scale)
	case t.Kind == merge.JSON:
		return doubtful("numbers in it that are no 64-bit integer or double are dead")
	}
	return fine
}
