package expr

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
)

var (
	docEvent = regexp.MustCompile("(?s)```json\n(.*?)```")
	docRow   = regexp.MustCompile("(?m)^\\| `(.+)` \\| (.+) \\|$")
)

// TestDocs evaluates every example of the page about expressions.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/expressions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, examples, _ := strings.Cut(string(page), "## Nothing")
	body, err := event.ParseJSON([]byte(docEvent.FindStringSubmatch(string(page))[1]))
	if err != nil {
		t.Fatal(err)
	}
	rows := docRow.FindAllStringSubmatch(examples, -1)
	if len(rows) < 30 {
		t.Fatalf("only %d examples found", len(rows))
	}
	c := compiler(t)
	for _, row := range rows {
		text, want := row[1], row[2]
		t.Run(text, func(t *testing.T) {
			p, problems := c.Compile(text, ForMapping)
			if problems != nil {
				t.Fatal(problems)
			}
			in := &Input{}
			at := time.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC)
			in.Reset(&event.Event{Delivery: &event.Delivery{Received: at}, Type: "order.paid", Time: at, Body: body}, nil)
			v, err := p.Eval(in)
			switch message, isError := strings.CutPrefix(want, "error: "); {
			case isError && (err == nil || !strings.Contains(err.Error(), message)):
				t.Errorf("error %v, the page says %s", err, message)
			case !isError && err != nil:
				t.Errorf("error %v, the page says %s", err, want)
			case !isError && describe(v) != want:
				t.Errorf("gives %s, the page says %s", describe(v), want)
			}
		})
	}
}
