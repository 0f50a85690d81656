package cases

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// pending lists the scenarios that need a feature which is not there yet: the
// config says so, and the test holds it to that: one that the config accepts has
// to be taken off the list. C02/* is the case and all its variants.
var pending = map[string]string{}

// knownFaults lists scenarios that fail because something is wrong with
// Hookfold. It has to be empty in the end.
var knownFaults = map[string]string{}

// alone are the cases that load the machine, or say how fast something was: no
// other one is at work meanwhile.
var alone = map[string]bool{"C20": true, "C41": true, "C42": true, "C58": true, "C68": true, "C69": true, "C73": true}

// TestCases runs every scenario on every engine that it is about.
// HOOKFOLD_SEED repeats a run.
func TestCases(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("HOOKFOLD_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("HOOKFOLD_SEED=%d", seed)
	known := map[string]bool{}
	for _, variants := range all(t) {
		for _, s := range variants {
			known[s.name()] = true
		}
		t.Run(variants[0].id, func(t *testing.T) {
			if !alone[variants[0].id] {
				t.Parallel()
			}
			for _, s := range variants {
				name := s.variant
				if name == "" {
					name = "case"
				}
				t.Run(name, func(t *testing.T) { runOn(t, s, seed) })
			}
		})
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(pending)), slices.Collect(maps.Keys(knownFaults)), slices.Collect(maps.Keys(coded))) {
		if !known[strings.TrimSuffix(name, "/*")] {
			t.Errorf("%s is listed, but there is no such scenario", name)
		}
	}
}

func runOn(t *testing.T, s *scenario, seed uint64) {
	if need := s.needs(); need != "" {
		if err := s.refused(); err != nil {
			t.Errorf("%s is said to need %s: %v", s.name(), need, err)
		}
		return
	}
	if n, ok := s.named(); ok && os.Getenv(n.variable) == "" {
		t.Logf("runs where %s names a server; elsewhere %s", n.variable, n.elsewhere)
		if err := s.readTSQL(); err != nil {
			t.Error(err)
		}
		return
	}
	for _, on := range chosen(s, seed) {
		t.Run(on.name, func(t *testing.T) {
			fault, known := knownFaults[s.name()]
			if run := coded[s.name()]; run != nil {
				if known {
					t.Logf("known fault: %s", fault)
					return
				}
				if !alone[s.id] {
					t.Parallel()
				}
				run(t, s, on)
				return
			}
			t.Parallel()
			of := *s
			if known && of.Window == 0 {
				of.Window = 3 * time.Second
			}
			err := of.run(t, on, seed)
			switch {
			case err != nil && known:
				t.Logf("known fault: %s", fault)
			case err != nil:
				t.Error(err)
			case known:
				t.Errorf("%s passes: take it off knownFaults", s.name())
			}
		})
	}
}

// named tells of a scenario that is about an engine that runs where it is named.
func (s *scenario) named() (n struct{ variable, elsewhere string }, ok bool) {
	if len(s.Engines) > 0 {
		n, ok = named[s.Engines[0]]
	}
	return n, ok
}

// needs tells which feature a scenario waits for, "" if none.
func (s *scenario) needs() string {
	if need, ok := pending[s.name()]; ok {
		return need
	}
	if need, ok := pending[s.id+"/*"]; ok {
		return need
	}
	if s.plan.Journal != "" {
		return "a journal that several processes have in common"
	}
	if _, ok := s.named(); ok {
		return ""
	}
	if len(s.Engines) > 0 && !slices.ContainsFunc(engines, func(e engine) bool { return s.about(e.name) }) {
		return later[s.Engines[0]].name
	}
	return ""
}

// refused makes sure that a config of a later version is refused with these
// words, and with nothing else.
func (s *scenario) refused() error {
	target := "sqlite:rows.db"
	if len(s.Engines) > 0 && later[s.Engines[0]].scheme != "" {
		target = later[s.Engines[0]].scheme + "user@127.0.0.1/hookfold"
	}
	_, err := compile(fmt.Sprintf(head, cmp.Or(s.plan.Journal, "sqlite:journal.db"), `{url: "`+target+`"}`) + s.config)
	if err == nil {
		return fmt.Errorf("its config is accepted: take it off the list")
	}
	for _, says := range []string{"in this version of Hookfold", "by this version of Hookfold", "replaces: is empty"} {
		if strings.Contains(err.Error(), says) {
			return nil
		}
	}
	return fmt.Errorf("its config is refused for another reason:\n%w", err)
}
