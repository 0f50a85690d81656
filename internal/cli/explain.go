package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/explain"
	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/journal"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// shownChapters is how many events of a row are printed, if nobody says more.
const shownChapters = 50

func (a *app) explain() *cobra.Command {
	limit, offline := shownChapters, false
	cmd := &cobra.Command{
		Use: "explain TABLE KEY=VALUE…", Short: "Tell how a row came to be: each event, what it wanted, what became of it",
		Long: "Tells which events of the journal are about a row, in the order in which they came, what\n" +
			"each wanted and what became of that, and compares what they make with the row in the\n" +
			"database. Ends 1 if the two differ, or if nothing is known of such a row.",
		Args:    count(2, -1, "a table and the columns of its key, like booking ref=lead_1"),
		Example: "hookfold explain booking ref=lead_1",
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return usage(cmd, "--limit is %d; it is at least 1", limit)
			}
			plan, err := a.plan()
			if err != nil {
				return err
			}
			table := plan.Table(args[0])
			if table == nil {
				return usage(cmd, "the config has no table %s. Its tables are: %s", args[0], strings.Join(tableNames(plan), ", "))
			}
			key, err := keyOf(table, args[1:])
			if err != nil {
				return usage(cmd, "%v", err)
			}
			story, err := a.story(cmd, plan, table, key, offline)
			if err != nil {
				return err
			}
			if a.json {
				err = a.printJSON(storyOf(story, limit))
			} else {
				a.printStory(story, limit)
			}
			if err == nil && (story.Drift() || len(story.Chapters) == 0 && story.Live == nil) {
				err = errSaid
			}
			return err
		},
	}
	cmd.Flags().IntVar(&limit, "limit", limit, "print at most `n` events, the last ones")
	cmd.Flags().BoolVar(&offline, "offline", false, "do not ask the database for the row")
	return cmd
}

func tableNames(plan *mapping.Plan) []string {
	var names []string
	for _, t := range plan.Config.Tables {
		names = append(names, t.Text)
	}
	return names
}

// keyOf reads the key of a row: column=value for each of its columns, or the
// value alone where there is one column and no = in the value: with one it would
// be a column's name that was mistyped as often as a value.
func keyOf(t *mapping.Table, args []string) (merge.Key, error) {
	form := make([]string, len(t.Key))
	for i, k := range t.Key {
		form[i] = k.Name + "=…"
	}
	parts, given := make([]string, len(t.Key)), make([]bool, len(t.Key))
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		i := slices.IndexFunc(t.Key, func(k merge.KeyColumn) bool { return ok && k.Name == name })
		if i < 0 && !ok && len(t.Key) == 1 && len(args) == 1 {
			i, text = 0, arg
		}
		if i < 0 {
			return "", fmt.Errorf("%s is no part of the key of %s: write %s", arg, t.Config.Text, strings.Join(form, " "))
		}
		if given[i] {
			return "", fmt.Errorf("%s is given twice", t.Key[i].Name)
		}
		v, err := merge.ParseValue(t.Key[i].Type, text)
		if err != nil {
			return "", fmt.Errorf("%s: %w", t.Key[i].Name, err)
		}
		parts[i], given[i] = v.Text(), true
	}
	if i := slices.Index(given, false); i >= 0 {
		return "", fmt.Errorf("%s is missing: the key of %s is %s", t.Key[i].Name, t.Config.Text, strings.Join(form, " "))
	}
	return merge.NewKey(parts...), nil
}

func (a *app) story(cmd *cobra.Command, plan *mapping.Plan, table *mapping.Table, key merge.Key, offline bool) (_ *explain.Story, err error) {
	j, _, err := a.openJournal(reader)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	o := explain.Options{Journal: j, Plan: plan, Map: func(e *event.Event) mapping.Outcome { return plan.Map(e, table.Target) }}
	var from *target
	if !offline {
		list, err := targets(cmd.Context(), plan)
		if err != nil {
			return nil, err
		}
		defer closeTargets(list)
		for _, t := range list {
			if t.config.Text == table.Target {
				from, o.Sink = t, t.sink
			}
		}
	}
	var bar *progress
	o.Progress = func(done, all int64) {
		if bar == nil {
			bar = a.progress("reading the journal", all)
		}
		bar.set(done)
	}
	s, err := explain.Explain(cmd.Context(), o, table, key)
	if bar != nil {
		bar.done()
	}
	var down *sink.Error
	if from != nil && errors.As(err, &down) {
		return nil, fmt.Errorf("%w. --offline tells the story without the row in the database", from.failed(plan.Config, err))
	}
	return s, err
}

// storyJSON is what explain prints under --json.
type storyJSON struct {
	Table  string `json:"table"`
	Target string `json:"target"`
	// Key is the key of the row, Asked what was asked for where it is another
	// identity of its chain.
	Key        map[string]string `json:"key"`
	Asked      map[string]string `json:"asked,omitempty"`
	Identities []string          `json:"identities,omitempty"`
	Events     []chapterJSON     `json:"events"`
	// Earlier counts the events that --limit leaves out.
	Earlier int `json:"earlier"`
	// Makes and Lives tell whether the events make a row, and whether one lives in
	// the database; Lives is null if that was not asked.
	Makes bool           `json:"events_make_a_row"`
	Lives *bool          `json:"row_lives"`
	Row   []comparedJSON `json:"row"`
	Drift bool           `json:"drift"`
	// JournalFrom is when the oldest delivery in the journal was received.
	JournalFrom *time.Time `json:"journal_from"`
}

type chapterJSON struct {
	Ref      string        `json:"ref"`
	Source   string        `json:"source"`
	ID       string        `json:"id,omitempty"`
	Type     string        `json:"type,omitempty"`
	Received time.Time     `json:"received"`
	Mapping  string        `json:"mapping"`
	State    journal.State `json:"state"`
	Reason   string        `json:"reason,omitempty"`
	// Does is write, delete, list or parent.
	Does    string         `json:"does"`
	Fate    *fateJSON      `json:"fate,omitempty"`
	Columns []cellFateJSON `json:"columns"`
}

type fateJSON struct {
	Fate    merge.Fate `json:"fate"`
	Reason  string     `json:"reason,omitempty"`
	Against string     `json:"against,omitempty"`
}

type cellFateJSON struct {
	Column string  `json:"column"`
	Value  *string `json:"value"`
	fateJSON
}

type comparedJSON struct {
	Column   string  `json:"column"`
	Set      bool    `json:"set"`
	Events   *string `json:"events"`
	Database *string `json:"database"`
	Differs  bool    `json:"differs"`
	From     string  `json:"from,omitempty"`
}

func textOf(v merge.Value) *string {
	if v.IsNull() {
		return nil
	}
	s := v.Text()
	return &s
}

func keyJSON(t *mapping.Table, k merge.Key) map[string]string {
	out := map[string]string{}
	for i, p := range k.Parts() {
		out[t.Key[i].Name] = p
	}
	return out
}

func fateOf(o merge.Outcome) fateJSON {
	f := fateJSON{Fate: o.Fate, Reason: o.Reason}
	if o.Against != nil {
		f.Against = o.Against.From.String()
	}
	return f
}

// does tells what kind of thing an event says about the row.
func does(c explain.Chapter) string {
	switch {
	case c.Made:
		return "parent"
	case c.Step.Change.Replaces:
		return "list"
	case c.Step.Change.Delete:
		return "delete"
	}
	return "write"
}

func storyOf(s *explain.Story, limit int) storyJSON {
	t := s.Table
	out := storyJSON{
		Table: t.Config.Text, Target: t.Target, Key: keyJSON(t, s.Key), Identities: s.Identities, Events: []chapterJSON{}, Row: []comparedJSON{},
		Earlier: max(0, len(s.Chapters)-limit), Makes: s.Folded != nil, Drift: s.Drift(),
	}
	if s.Asked != s.Key {
		out.Asked = keyJSON(t, s.Asked)
	}
	if s.Looked {
		lives := s.Live != nil
		out.Lives = &lives
	}
	if s.First > 0 {
		at := s.Oldest.UTC()
		out.JournalFrom = &at
	}
	for _, c := range s.Chapters[out.Earlier:] {
		x := chapterJSON{
			Ref: c.Ref.String(), Source: c.Source, ID: c.ID, Type: c.Type, Received: c.Received.UTC(), Mapping: c.Mapping,
			State: c.State, Reason: c.Reason, Does: does(c), Columns: []cellFateJSON{},
		}
		if w := c.Step.Whole; w != nil {
			f := fateOf(*w)
			x.Fate = &f
		}
		for _, f := range c.Step.Columns {
			x.Columns = append(x.Columns, cellFateJSON{f.Column, textOf(f.Value), fateOf(f.Outcome)})
		}
		out.Events = append(out.Events, x)
	}
	for _, c := range s.Columns {
		x := comparedJSON{Column: c.Name, Set: c.Set, Events: textOf(c.Folded), Database: textOf(c.Live), Differs: c.Differs}
		if c.From != nil {
			x.From = c.From.String()
		}
		out.Row = append(out.Row, x)
	}
	return out
}
