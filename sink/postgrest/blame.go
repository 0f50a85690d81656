package postgrest

import (
	"regexp"
	"strings"

	"github.com/hookfold/hookfold/internal/compile"
	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// missingParent reads what PostgreSQL says of a foreign key: Key (user_id)=(u1) is
// not present in table "user".
var missingParent = regexp.MustCompile(`^Key \((.+)\)=\((.*)\) is not present in table "(.+)"\.$`)

// name says of a fault what its rows wait for, as well as the API's answer tells.
func (s *rest) name(f *fault, b *sink.Batch) {
	switch f.Why {
	case sink.NeedsParent:
		m := missingParent.FindStringSubmatch(f.details)
		if m == nil {
			return
		}
		for _, t := range s.all(b) {
			_, name := s.address(t)
			if name != m[3] {
				continue
			}
			f.On = t.Table.Name // any of its rows, where the key has parts that a text could mix up
			if len(t.Key) == 1 && !strings.Contains(m[1], ", ") {
				if v, err := merge.ParseValue(t.Key[0].Type, m[2]); err == nil {
					f.On = t.Table.Name + " " + t.Show(merge.NewKey(v.Text()))
				}
			}
			return
		}
	case sink.UniqueValue:
		for _, t := range s.all(b) {
			s.mu.Lock()
			st := s.tables[tableKey{t.Table, t.Name}]
			s.mu.Unlock()
			if st == nil {
				continue
			}
			for _, u := range st.live.Uniques {
				parts := compile.SplitTable(u.Name)
				if parts[len(parts)-1] == f.On {
					f.On = t.Table.Name
					return
				}
			}
		}
		if len(b.Groups) == 1 {
			f.On = b.Groups[0].Table.Table.Name
		}
	}
}

// all are the tables that are known.
func (s *rest) all(b *sink.Batch) []*sink.Table {
	out := append([]*sink.Table{}, s.given...)
	for _, g := range b.Groups {
		out = append(out, g.Table)
	}
	return out
}
