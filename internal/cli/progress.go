package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/hookfold/hookfold/internal/verify"
)

// progress is a bar on a terminal, and nothing elsewhere.
type progress struct{ bar *progressbar.ProgressBar }

// progress starts a bar; total < 0 is not known.
func (a *app) progress(what string, total int64) *progress { return a.counting(what, "it", total) }

// counting starts a bar that tells how many of something are done a second.
func (a *app) counting(what, of string, total int64) *progress {
	if !a.TerminalErr {
		return &progress{}
	}
	return &progress{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(a.Err), progressbar.OptionSetDescription(what), progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString(of),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth(),
	)}
}

// total says how much there is, once it is known.
func (p *progress) total(n int64) {
	if p.bar != nil && p.bar.GetMax64() != n {
		p.bar.ChangeMax64(n)
	}
}

func (p *progress) set(n int64) {
	if p.bar != nil {
		_ = p.bar.Set64(n) // a bar that cannot be drawn is no reason to stop
	}
}

func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}

// steps are bars of several steps, one after the other.
type steps struct {
	a    *app
	step verify.Progress
	bar  *progress
	told bool
}

func (a *app) steps() *steps { return &steps{a: a} }

// tell moves the bar of a step, and tells once that the database cannot be
// reached.
func (s *steps) tell(p verify.Progress) {
	if s.bar == nil || p.Step != s.step.Step || p.Table != s.step.Table {
		s.done()
		s.step, s.bar = p, s.a.progress(strings.TrimSpace(p.Step+" "+p.Table), p.Total)
	}
	s.bar.set(p.Done)
	if p.Down != "" && !s.told {
		s.told = true
		fmt.Fprintf(s.a.Err, "the database cannot be written: %s\nWaiting for it; Ctrl-C ends, and nothing is lost.\n", p.Down)
	}
}

func (s *steps) done() {
	if s.bar != nil {
		s.bar.done()
		s.bar = nil
	}
}
