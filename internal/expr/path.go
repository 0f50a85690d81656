package expr

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"github.com/hookfold/hookfold/event"
)

// Use is what an expression does with a path.
type Use uint8

// The uses of a path.
const (
	Get     Use = iota // the value; a missing step is an error
	Maybe              // an optional value: event.?a
	Has                // has(event.a): there, be it null
	Present            // present(event.a): there and not null
)

// PathRef is a path that an expression reads, from a name with members.
type PathRef struct {
	Root  Names
	Steps []Step
	Use   Use
	// Line and Column tell where it stands in the expression, from 1.
	Line, Column int

	optional int // the first step that may be missing; len(Steps) for none
}

// Step is one step of a path: a member's name, or the place of an element.
type Step struct {
	Name    string
	Index   int
	IsIndex bool
}

// String returns the path as a user writes it, without question marks.
func (p *PathRef) String() string { return p.upTo(len(p.Steps)) }

func (p *PathRef) upTo(n int) string {
	var b strings.Builder
	b.WriteString(p.Root.String())
	for _, s := range p.Steps[:n] {
		b.WriteString(s.suffix())
	}
	return b.String()
}

func (s Step) suffix() string {
	switch {
	case s.IsIndex:
		return fmt.Sprintf("[%d]", s.Index)
	case isIdentifier(s.Name):
		return "." + s.Name
	}
	return fmt.Sprintf("[%q]", s.Name)
}

func isIdentifier(s string) bool {
	for i, c := range s {
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// MissingError says that an event lacks a step of a path.
type MissingError struct {
	// Path is nil where it is not a path that lacks something.
	Path *PathRef
	Text string
}

func (e *MissingError) Error() string { return e.Text }

// missing makes the error of a path whose step i is not in at.
func (p *PathRef) missing(i int, at event.JSON) *MissingError {
	prefix, step := p.upTo(i), p.Steps[i]
	var text string
	switch k := at.Kind(); {
	case k == event.Missing:
		text = fmt.Sprintf("no such field: there is no %s", prefix)
	case k == event.Array && step.IsIndex:
		text = fmt.Sprintf("no such field: %s has %d elements, and no [%d]", prefix, at.Len(), step.Index)
	case k == event.Array:
		text = fmt.Sprintf("no such field: %s is a list, which has no %s: say which element, %s[0]%s", prefix, step.Name, prefix, step.suffix())
	case step.IsIndex:
		text = fmt.Sprintf("no such field: %s is %s, and has no [%d]", prefix, k, step.Index)
	case k != event.Object:
		text = fmt.Sprintf("no such field: %s is %s, and has no %s", prefix, k, step.Name)
	default:
		text = fmt.Sprintf("no such field: %s has no %s", prefix, step.Name)
	}
	return &MissingError{Path: p, Text: text}
}

// Lookup walks the path. It returns the value; or what the walk came to, and the
// place of the step that is missing there.
func (p *PathRef) Lookup(in *Input) (v event.JSON, missing int) {
	steps := p.Steps
	var at event.JSON
	if p.Root == Headers {
		if len(steps) == 0 {
			return in.headers(), -1
		}
		text, ok := in.header(steps[0].Name)
		if !ok || steps[0].IsIndex {
			return in.headers(), 0
		}
		at, steps = event.Quote(text), steps[1:]
	} else {
		at = in.tree(p.Root)
	}
	if in.Fetched != nil && p.IsStatus() && at.Get("status").Kind() == event.Missing {
		return in.status(), -1
	}
	for i, s := range steps {
		var next event.JSON
		if s.IsIndex {
			next = at.At(s.Index)
		} else {
			next = at.Get(s.Name)
		}
		if next.Kind() == event.Missing {
			return at, i + len(p.Steps) - len(steps)
		}
		at = next
	}
	if at.Kind() == event.Missing {
		return at, 0
	}
	return at, -1
}

// IsStatus tells of fetched.status, which is the status of the answer if its body
// has none of its own.
func (p *PathRef) IsStatus() bool {
	return p.Root == Fetched && p.Use == Get && len(p.Steps) == 1 && p.Steps[0].Name == "status"
}

// leaf is a path, a name or a literal in a planned expression.
type leaf struct {
	id    int64
	path  *PathRef // nil for a name without members and for a literal
	name  Names
	value ref.Val // of a literal
}

func (l *leaf) eval(in *Input) ref.Val {
	switch {
	case l.value != nil:
		return l.value
	case l.path == nil:
		return in.scalar(l.name)
	}
	p := l.path
	v, missing := p.Lookup(in)
	switch p.Use {
	case Has:
		return types.Bool(missing < 0)
	case Present:
		return types.Bool(missing < 0 && v.Kind() != event.Null)
	}
	if missing >= 0 {
		if p.Use == Maybe && missing >= p.optional {
			return types.OptionalNone
		}
		if len(p.Steps) == 0 {
			return types.WrapErr(&MissingError{Path: p, Text: "no such field: there is no " + p.String()})
		}
		return types.WrapErr(p.missing(missing, v))
	}
	if p.Use == Maybe {
		return types.OptionalOf(wrap(v, in))
	}
	return wrap(v, in)
}

// ID implements interpreter.Interpretable.
func (l *leaf) ID() int64 { return l.id }

// Eval implements interpreter.Interpretable.
func (l *leaf) Eval(a interpreter.Activation) ref.Val { return interpreter.EvalActivation(a, l.Exec) }

// Exec implements interpreter.InterpretableV2.
func (l *leaf) Exec(f *interpreter.ExecutionFrame) ref.Val {
	if costs := f.CostTracker(); costs != nil {
		costs.EvalAttribute(l.id, false, types.True)
	}
	if l.value != nil {
		return l.value
	}
	return l.eval(inputOf(f))
}
