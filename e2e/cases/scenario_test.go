package cases

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/txtar"
)

// plan is case.yaml.
type plan struct {
	// Title and Source (a public URL) tell what it is about.
	Title  string
	Source string
	// Note is said in docs/cases.md: what is scaled down, and why.
	Note string
	// Engines are those that it is about; none is all.
	Engines []string
	// Journal, if given, is another journal than a file of SQLite.
	Journal string
	// Orders is all (default), given, or a number of random ones.
	Orders string
	// Doubled says what arrives twice: one (default: each order once more with
	// one arrival again anywhere after its first), each (once more per arrival),
	// or none.
	Doubled string
	// Parallel, if not 0, sends all arrivals at the same moment, for so many
	// copies of the case: Vary is the text that is another one in each.
	Parallel int
	Vary     string
	// Restart stops and starts the server between arrivals.
	Restart bool
	// Window is how long the rows may take after the last arrival; default 60 s.
	Window time.Duration
}

// arrival is one line of arrivals.ndjson: a request, or something else that
// happens between requests.
type arrival struct {
	Source    string
	Body      json.RawMessage
	Raw       *string
	RawBase64 []byte `json:"raw_base64"`
	Gzip      bool
	Chunked   bool
	Headers   map[string]string
	Method    string
	Path      string
	Query     string
	// Sign signs as the provider does, so far from now: "0s", "-3600s". SignAs
	// names the source whose first secret is used, SignBody another body.
	Sign     string
	SignAs   string `json:"sign_as"`
	SignBody string `json:"sign_body"`
	// Answer is the status, or several (200|405), with a body after it where that
	// matters; default any of 200 to 299.
	Answer string
	// SQL is run by somebody else, by engine, "" for all.
	SQL map[string]string
	// Retry makes dead events due again, as `hookfold dead retry --all` does.
	Retry bool
	// Replay takes all deliveries of the journal in once more, as `hookfold
	// replay` of an export does.
	Replay bool
}

// request tells whether it is one.
func (a *arrival) request() bool { return a.SQL == nil && !a.Retry && !a.Replay }

// outcome is expect.yaml.
type outcome struct {
	// Rows are the rows of tables: exactly these, with the columns that matter.
	Rows map[string][]map[string]yaml.Node
	// Live are rows of tables with a column deleted, where that is not true.
	Live map[string][]map[string]yaml.Node
	// Same are tables, with columns, that must have the same rows in every order.
	Same map[string][]string
	// Waiting and Dead are parts of the reasons of the events that are so; there
	// is an entry per event, in any order, and none that is not listed.
	Waiting, Dead []string
	// Ties, Replaced and Log are what has to be counted or said, if given.
	Ties, Replaced *int64
	Log            []string
	// Kept is how many deliveries the journal holds; default all that were
	// answered with 2xx.
	Kept *int
}

// scenario is a case, or a variant of one.
type scenario struct {
	plan
	id, variant string
	config      string
	schema      map[string]string // by engine, "" for all
	arrivals    []arrival
	outcome
	per map[string]*outcome // by engine, where it has an expect.yaml of its own
}

// name is C01 or C01/true-cancel.
func (s *scenario) name() string {
	if s.variant == "" {
		return s.id
	}
	return s.id + "/" + s.variant
}

// about tells whether the scenario is about an engine.
func (s *scenario) about(engine string) bool {
	return slices.Contains(s.Engines, engine) || len(s.Engines) == 0 && !onlyNamed[engine]
}

var now = regexp.MustCompile(`\{\{now([+-]\d+[smhd])?\}\}`)

// at puts times into a text.
func at(text string, start time.Time) string {
	return now.ReplaceAllStringFunc(text, func(m string) string {
		shift := now.FindStringSubmatch(m)[1]
		unit := time.Duration(1)
		if n, days := strings.CutSuffix(shift, "d"); days {
			shift, unit = n+"h", 24
		}
		by, _ := time.ParseDuration(shift) // "" is none
		return start.Add(by * unit).UTC().Format(time.RFC3339)
	})
}

// load reads a case and its variants.
func load(path string, start time.Time) ([]*scenario, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	id := strings.TrimSuffix(filepath.Base(path), ".txtar")
	files := map[string]map[string]string{"": {}}
	var variants []string
	for _, f := range txtar.Parse(text).Files {
		dir, name := filepath.Split(f.Name)
		dir = strings.TrimSuffix(dir, "/")
		if files[dir] == nil {
			files[dir] = map[string]string{}
		}
		if dir != "" && !slices.Contains(variants, dir) {
			variants = append(variants, dir)
		}
		files[dir][name] = at(string(f.Data), start)
	}
	var out []*scenario
	for _, variant := range append([]string{""}, variants...) {
		s, err := parse(files[""], files[variant])
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", id, variant, err)
		}
		s.id, s.variant = id, variant
		out = append(out, s)
	}
	return out, nil
}

func parse(base, own map[string]string) (*scenario, error) {
	s := &scenario{schema: map[string]string{}, per: map[string]*outcome{}}
	for _, files := range []map[string]string{base, own} {
		if own["expect.yaml"] != "" {
			clear(s.per)
		}
		for name := range files {
			part := strings.Split(name, ".")
			switch {
			case part[0] == "schema":
				s.schema[strings.Join(part[1:len(part)-1], "")] = files[name]
			case part[0] == "expect" && len(part) == 3:
				s.per[part[1]] = new(outcome)
				if err := strict(files[name], s.per[part[1]]); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
			case !slices.Contains([]string{"case.yaml", "hookfold.yaml", "arrivals.ndjson", "expect.yaml"}, name):
				return nil, fmt.Errorf("%s is not a file of a case", name)
			}
		}
		if err := strict(files["case.yaml"], &s.plan); err != nil {
			return nil, fmt.Errorf("case.yaml: %w", err)
		}
	}
	file := func(name string) string { return cmp.Or(own[name], base[name]) }
	if err := strict(file("expect.yaml"), &s.outcome); err != nil {
		return nil, fmt.Errorf("expect.yaml: %w", err)
	}
	s.config = file("hookfold.yaml")
	for i, line := range strings.Split(file("arrivals.ndjson"), "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var a arrival
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&a); err != nil {
			return nil, fmt.Errorf("arrivals.ndjson:%d: %w", i+1, err)
		}
		s.arrivals = append(s.arrivals, a)
	}
	if s.Title == "" || s.Source == "" {
		return nil, errors.New("case.yaml: title and source are needed")
	}
	return s, nil
}

func strict(text string, to any) error {
	d := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	d.KnownFields(true)
	if err := d.Decode(to); err != nil && text != "" {
		return err
	}
	return nil
}

// varied is the scenario with copies of its arrivals and rows, each with
// another text in the place of Vary.
func (s *scenario) varied(n int) (*scenario, error) {
	out := *s
	out.arrivals, out.outcome.Rows = nil, map[string][]map[string]yaml.Node{}
	for i := range n {
		to := fmt.Sprintf("%s-%d", s.Vary, i)
		for _, a := range s.arrivals {
			a.Body = bytes.ReplaceAll(a.Body, []byte(s.Vary), []byte(to))
			out.arrivals = append(out.arrivals, a)
		}
		for table, rows := range s.Rows {
			for _, row := range rows {
				copied := map[string]yaml.Node{}
				for column, v := range row {
					v.Value = strings.ReplaceAll(v.Value, s.Vary, to)
					copied[column] = v
				}
				out.Rows[table] = append(out.Rows[table], copied)
			}
		}
	}
	if s.Vary == "" {
		return nil, errors.New("case.yaml: parallel needs vary")
	}
	return &out, nil
}

func all(t testing.TB) [][]*scenario {
	t.Helper()
	paths, err := filepath.Glob("testdata/C*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	var out [][]*scenario
	for _, p := range paths {
		s, err := load(p, start)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}
