package compile

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// fitMySQL tells what MySQL would cut, round or read as something else. Columns
// of other databases pass: none has what it looks at.
func fitMySQL(l *sink.LiveColumn, s string) error {
	switch {
	case l.Base == "datetime" && l.CollatedBy == "" && len(s) == len(mysqlFirst):
		return fitTime(l, s)
	case l.Base == "timestamp" && len(s) == len(mysqlFirst):
		if s < mysqlFirst || s > mysqlLast {
			return fmt.Errorf("%s is not between 1970 and 2038, as %s needs it", s, l.Type)
		}
		return fitTime(l, s)
	case l.Base == "year":
		if n, err := strconv.Atoi(s); err != nil || n != 0 && (n < 1901 || n > 2155) {
			return fmt.Errorf("%s is not a year from 1901 to 2155", show(s))
		}
	case l.Base == "json" && l.MaxBytes > 0:
		if number := inexact(s); number != "" {
			return fmt.Errorf("it holds the number %s, which MySQL's json does not keep", show(number))
		}
	case l.MaxBytes > 0 && strings.HasPrefix(s, `\x`) && strings.HasSuffix(l.Base, "blob"), l.MaxBytes > 0 && l.Base == "varbinary":
		if n := len(s)/2 - 1; n > l.MaxBytes {
			return fmt.Errorf("%d bytes into %s", n, l.Type)
		}
	case l.MaxBytes > 0 && strings.HasPrefix(s, `\x`) && l.Base == "binary":
		if n := len(s)/2 - 1; n != l.MaxBytes {
			return fmt.Errorf("%d bytes into %s, which fills what is shorter with zeros", n, l.Type)
		}
	case l.Charset != "":
		return fitCharset(l, s)
	}
	return nil
}

// The first and the last time that timestamp has.
const (
	mysqlFirst = "1970-01-01T00:00:01.000000Z"
	mysqlLast  = "2038-01-19T03:14:07.999999Z"
)

// fitTime finds digits of a second that a column does not keep.
func fitTime(l *sink.LiveColumn, s string) error {
	digits := strings.TrimSuffix(s[strings.IndexByte(s, '.')+1:], "Z")
	if l.Scale < len(digits) && strings.Trim(digits[l.Scale:], "0") != "" {
		return fmt.Errorf("%s has more digits of a second than %s keeps. Make it datetime(6)", s, l.Type)
	}
	return nil
}

// fitCompared finds a number that is to be compared with others, and that MySQL
// can keep as text only: it compares numbers of 65 digits.
func fitCompared(l *sink.LiveColumn, s string) error {
	if l.Charset == "" {
		return nil
	}
	if _, err := merge.ParseValue(merge.Type{Kind: merge.Numeric, Precision: mysqlDigits, Scale: mysqlScale}, s); err != nil {
		return fmt.Errorf("%s has more digits than MySQL compares: %d, %d of them behind the point", show(s), mysqlDigits, mysqlScale)
	}
	return nil
}

func fitCharset(l *sink.LiveColumn, s string) error {
	most := rune(utf8.MaxRune)
	switch l.Charset {
	case "ascii":
		most = 0x7f
	case "utf8", "utf8mb3":
		most = 0xffff
	}
	for _, r := range s {
		if r > most {
			return fmt.Errorf("the character set %s has no %q", l.Charset, r)
		}
	}
	if l.MaxBytes > 0 && len(s) > l.MaxBytes {
		return fmt.Errorf("%d bytes into %s", len(s), l.Type)
	}
	return nil
}

// inexact finds a number in a JSON document that is neither an integer of 64 bits
// nor a double.
func inexact(doc string) string {
	if !strings.ContainsAny(doc, "0123456789") {
		return ""
	}
	dec := jsontext.NewDecoder(strings.NewReader(doc), jsontext.AllowDuplicateNames(true))
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return "" // the end: the document has been checked
		}
		if tok.Kind() != '0' {
			continue
		}
		s := tok.String()
		if _, err := strconv.ParseInt(s, 10, 64); err == nil {
			continue
		}
		if _, err := strconv.ParseUint(s, 10, 64); err == nil {
			continue
		}
		n, err := strconv.ParseFloat(s, 64)
		exact, _ := merge.ParseValue(merge.Type{Kind: merge.Numeric}, s)
		kept, _ := merge.ParseValue(merge.Type{Kind: merge.Numeric}, strconv.FormatFloat(n, 'f', -1, 64))
		if err != nil || exact != kept {
			return s
		}
	}
}
