package compile

import (
	"fmt"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"

	"github.com/hookfold/hookfold/sink"
)

// utf8Page is the code page that holds every character.
const utf8Page = 65001

// codePages are those that collations of SQL Server have.
var codePages = map[int]encoding.Encoding{
	437: charmap.CodePage437, 850: charmap.CodePage850, 874: charmap.Windows874,
	932: japanese.ShiftJIS, 936: simplifiedchinese.GBK, 949: korean.EUCKR, 950: traditionalchinese.Big5,
	1250: charmap.Windows1250, 1251: charmap.Windows1251, 1252: charmap.Windows1252, 1253: charmap.Windows1253, 1254: charmap.Windows1254,
	1255: charmap.Windows1255, 1256: charmap.Windows1256, 1257: charmap.Windows1257, 1258: charmap.Windows1258,
}

// inPage is a text in a code page, as far as it holds its characters.
func inPage(page int, s string) string {
	e := codePages[page]
	if e == nil {
		return s
	}
	out, err := e.NewEncoder().String(s)
	if err != nil {
		return s
	}
	return out
}

// fitPage finds the first character of a text that a column's code page does not
// hold: SQL Server would put another one, or '?', in its place. Of an unknown
// code page only ASCII is certain.
func fitPage(l *sink.LiveColumn, s string) error {
	if l.CodePage == utf8Page {
		return nil
	}
	var to *encoding.Encoder
	if e := codePages[l.CodePage]; e != nil {
		to = e.NewEncoder()
	}
	for _, r := range s {
		if r < utf8.RuneSelf {
			continue
		}
		if to != nil {
			if _, err := to.String(string(r)); err == nil {
				continue
			}
		}
		return fmt.Errorf("%q is not a character of code page %d, which is all that %s holds. Make the column nvarchar", r, l.CodePage, short(l.Type))
	}
	return nil
}
