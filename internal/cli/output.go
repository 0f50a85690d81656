package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// style colours text for a terminal. The zero style leaves text as it is.
type style struct{ on bool }

// newStyle colours on a terminal, unless the environment asks for none
// (https://no-color.org).
func newStyle(terminal bool, getenv func(string) (string, bool)) style {
	no, _ := getenv("NO_COLOR")
	kind, _ := getenv("TERM")
	return style{on: terminal && no == "" && kind != "dumb"}
}

func (s style) paint(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) good(text string) string { return s.paint("32", text) }
func (s style) bad(text string) string  { return s.paint("31", text) }
func (s style) warn(text string) string { return s.paint("33", text) }
func (s style) bold(text string) string { return s.paint("1", text) }
func (s style) dim(text string) string  { return s.paint("2", text) }

// printJSON prints the one JSON document of a command.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.Out, format, args...) }

// textWidth is how many characters a line of prose has at most.
const textWidth = 80

// wrap prints prose in lines that fit a narrow terminal, behind an indent, in a
// colour ("" for none). The lines after the first are indented further.
func (a *app) wrap(indent, colour, text string) {
	line := indent
	flush := func() {
		if colour == "" {
			a.printf("%s\n", line)
		} else {
			a.printf("%s\n", a.style.paint(colour, line))
		}
	}
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > textWidth:
			flush()
			line = indent + "  " + word
			if indent == "" {
				line = word
			}
		default:
			line += " " + word
		}
	}
	flush()
}

// grid prints cells in aligned columns. A heading that ends in ">" is of a
// column aligned to the right.
type grid struct {
	head []string
	rows [][]string
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

// print writes the grid with an indent and paints its heading.
func (g *grid) print(w io.Writer, indent string, s style) {
	right := make([]bool, len(g.head))
	head := make([]string, len(g.head))
	width := make([]int, len(g.head))
	for i, h := range g.head {
		head[i], right[i] = strings.CutSuffix(h, ">")
	}
	for _, row := range append([][]string{head}, g.rows...) {
		for i, c := range row {
			width[i] = max(width[i], cellWidth(c))
		}
	}
	line := func(row []string) string {
		var b strings.Builder
		for i, c := range row {
			pad := strings.Repeat(" ", width[i]-cellWidth(c))
			if i > 0 {
				b.WriteString("  ")
			}
			if right[i] {
				c, pad = pad, c
			}
			b.WriteString(c + pad)
		}
		return strings.TrimRight(b.String(), " ")
	}
	fmt.Fprintln(w, indent+s.dim(line(head)))
	for _, row := range g.rows {
		fmt.Fprintln(w, indent+line(row))
	}
}

// cellWidth is the number of characters that a cell shows, without what colours
// it.
func cellWidth(s string) int {
	n := utf8.RuneCountInString(s)
	for {
		start := strings.Index(s, "\x1b[")
		if start < 0 {
			return n
		}
		end := strings.IndexByte(s[start:], 'm') + 1
		n -= end
		s = s[start+end:]
	}
}

// plural is "1 row", "2 rows".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return thousands(n) + " " + what + "s"
}

// thousands prints a number with commas: 12,345.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
