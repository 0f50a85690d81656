package compile

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// Fit tells why a change does not fit the live columns of its table, or nil: a
// text that is too long, a number that is too great, a value that an enum does
// not have, NULL where the column refuses it. It is to be asked of every change
// by itself, before changes are folded: whether a change is in order must not
// depend on what it was folded with. What only the database can judge (CHECK,
// triggers) it does not see.
func Fit(live *sink.Live, c *merge.Change) error {
	parts := c.Key.Parts()
	key := c.Table.Key
	if c.Replaces { // the key is a group's
		key = nil
		for _, at := range c.Table.Group {
			key = append(key, c.Table.Key[at])
		}
	}
	if err := fitKey(live, key, parts); err != nil {
		return err
	}
	for i := range c.Cells {
		if err := fitCell(live, c.Table, i, c.Cells[i]); err != nil {
			return err
		}
	}
	return nil
}

// FitRow is Fit for a folded row.
func FitRow(live *sink.Live, t *merge.Table, r *merge.Row) error {
	if err := fitKey(live, t.Key, r.Key.Parts()); err != nil {
		return err
	}
	for i := range r.Cells {
		if err := fitCell(live, t, i, r.Cells[i]); err != nil {
			return err
		}
	}
	return nil
}

func fitKey(live *sink.Live, key []merge.KeyColumn, parts []string) error {
	for i, k := range key {
		v, err := merge.ParseValue(k.Type, parts[i])
		if err == nil {
			err = fitColumn(live.Column(k.Name), v)
		}
		if l := live.Column(k.Name); err == nil && l != nil && l.Pads && strings.HasSuffix(parts[i], " ") {
			err = errors.New("it ends in a blank, which the database takes no notice of: the row of another key would be this one's")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", k.Name, err)
		}
	}
	return nil
}

func fitCell(live *sink.Live, t *merge.Table, i int, cell merge.Cell) error {
	if !cell.Set {
		return nil
	}
	c := &t.Columns[i]
	l := live.Column(c.Name)
	if l == nil {
		return nil
	}
	if cell.Value.IsNull() {
		if l.NotNull && (c.Rule == merge.Latest || c.Rule == merge.First) {
			return fmt.Errorf("%s: NULL into a column that is NOT NULL", c.Name)
		}
		return nil
	}
	err := fitColumn(l, cell.Value)
	if err == nil && c.Type.Kind == merge.Numeric && (c.Rule == merge.Max || c.Rule == merge.Min) {
		err = fitCompared(l, cell.Value.Text())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	return nil
}

func fitColumn(l *sink.LiveColumn, v merge.Value) error {
	if l == nil {
		return nil
	}
	if strings.HasSuffix(l.Base, "[]") {
		of := sink.LiveColumn{Type: strings.Replace(l.Type, "[]", "", 1), Base: strings.TrimSuffix(l.Base, "[]"), Length: l.Length, Labels: l.Labels}
		for _, s := range v.List() {
			if err := fitText(&of, s); err != nil {
				return err
			}
		}
		return nil
	}
	return fitText(l, v.Text())
}

// The most digits that numbers of PostgreSQL have before and behind the point:
// https://www.postgresql.org/docs/current/datatype-numeric.html
const (
	mostBefore = 131072
	mostBehind = 16383
)

func fitText(l *sink.LiveColumn, s string) error {
	if err := fitMySQL(l, s); err != nil {
		return err
	}
	if cutsBlanks(l) && strings.HasSuffix(s, " ") {
		return fmt.Errorf("%s ends in a blank, which %s does not keep. Make it varchar", show(s), short(l.Type))
	}
	if l.CodePage != 0 {
		if err := fitPage(l, s); err != nil {
			return err
		}
	}
	switch {
	case l.Base == "real" && l.Bits > 0:
		if n, err := strconv.ParseFloat(s, 32); err != nil || n == 0 && strings.ContainsAny(s, "123456789") {
			return fmt.Errorf("%s does not fit real", show(s))
		}
	case l.Base == "jsonb":
		if long := longNumber(s); long != "" {
			return fmt.Errorf("it holds the number %s, which has more digits than jsonb keeps", show(long))
		}
	case l.Length > 0:
		if n, of := lengthOf(l, s); n > l.Length {
			return fmt.Errorf("%d %s into %s", n, of, short(l.Type))
		}
	case len(l.Labels) > 0:
		if !slices.Contains(l.Labels, s) {
			return fmt.Errorf("%s is not one of the values of enum %s: %s", show(s), l.Type, strings.Join(l.Labels, ", "))
		}
	case l.Bits > 0:
		_, err := strconv.ParseInt(s, 10, l.Bits)
		if l.Unsigned {
			_, err = strconv.ParseUint(s, 10, l.Bits)
		}
		if err != nil && s != "true" && s != "false" {
			return fmt.Errorf("%s does not fit %s", show(s), l.Type)
		}
	case l.Precision > 0:
		if _, err := merge.ParseValue(merge.Type{Kind: merge.Numeric, Precision: l.Precision, Scale: l.Scale}, s); err != nil {
			return fmt.Errorf("%s does not fit %s", show(s), l.Type)
		}
	}
	return nil
}

// cutsBlanks tells whether a column is of a type that fills a text with blanks, and
// takes those at its end away again.
func cutsBlanks(l *sink.LiveColumn) bool {
	switch l.Base {
	case "char", "nchar", "character", "bpchar":
		return true
	}
	return strings.HasPrefix(l.Base, "character(") // of PostgreSQL
}

// lengthOf counts a text as a column does, and says what was counted.
func lengthOf(l *sink.LiveColumn, s string) (int, string) {
	switch l.Units {
	case sink.UTF16:
		n := 0
		for _, r := range s {
			n += utf16.RuneLen(r)
		}
		return n, "UTF-16 units"
	case sink.Bytes:
		return len(inPage(l.CodePage, s)), "bytes"
	}
	return utf8.RuneCountInString(s), "characters"
}

func show(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}

// short writes a type as people do: varchar(9).
func short(t string) string {
	t = strings.Replace(t, "character varying", "varchar", 1)
	return strings.Replace(t, "character(", "char(", 1)
}

var digits = regexp.MustCompile(`[0-9]+`)

// longNumber finds a number in a JSON document that has more digits than
// PostgreSQL keeps. One with an exponent never has, by its type.
func longNumber(doc string) string {
	if len(doc) <= mostBehind {
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
		before, behind, _ := strings.Cut(tok.String(), ".")
		if len(digits.FindString(before)) > mostBefore || len(digits.FindString(behind)) > mostBehind {
			return tok.String()
		}
	}
}
