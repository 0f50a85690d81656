package expr

import (
	"fmt"
	"regexp"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

const (
	maxPattern = 2000 // instructions of a regular expression
	perMatch   = 1000 // what CEL takes for a match, of which there may be one at each byte
)

func isRegex(function string) bool {
	return function == "matches" || strings.HasPrefix(function, "regex.")
}

// constantRegex plans a call with a pattern that is written in the expression:
// it is judged now, and for matches it is compiled now too.
func (c *Compiler) constantRegex(planned interpreter.InterpretableCall, pattern any) (interpreter.InterpretableV2, error) {
	name := planned.Function()
	g := &guarded{InterpretableCall: planned, args: planned.Args(), check: guards[name], call: c.own[name]}
	text, ok := pattern.(types.String)
	if !ok {
		return g, nil
	}
	size, err := types.RegexProgramSize(string(text))
	if err != nil {
		return nil, fmt.Errorf("the pattern %q: %w", clip(string(text)), err)
	}
	if size > maxPattern {
		return nil, fmt.Errorf("the pattern %q is too large: it has %d instructions, and at most %d are allowed", clip(string(text)), size, maxPattern)
	}
	if name != "matches" {
		return g, nil
	}
	compiled, err := regexp.Compile(string(text))
	if err != nil {
		return nil, err
	}
	g.check = func(in *Input, args []ref.Val) ref.Val {
		guardTexts(in, args)
		in.matches(bulk(args[0]), size)
		return nil
	}
	g.call = func(_ *Input, args []ref.Val) ref.Val {
		s, ok := args[0].(types.String)
		if !ok {
			return types.NewErr("matches takes text, not %s", describe(args[0]))
		}
		return types.Bool(compiled.MatchString(string(s)))
	}
	return g, nil
}

// matches spends what a match takes at worst: at each byte, each instruction of
// the pattern.
func (in *Input) matches(bytes, size int) { in.work(times(bytes+1, 20+20*size)) }

// guardRegex is for patterns that the expression makes, and for functions that
// compile theirs each time.
func guardRegex(in *Input, args []ref.Val) ref.Val {
	guardTexts(in, args)
	pattern, _ := args[1].(types.String)
	in.work(10_000 + times(len(pattern), 1_000))
	size, err := types.RegexProgramSize(string(pattern))
	if err != nil {
		return types.NewErr("the pattern %q: %v", clip(string(pattern)), err)
	}
	if size > maxPattern {
		in.refuse("matches a pattern that is too large: it has %d instructions, and at most %d are allowed", size, maxPattern)
	}
	in.work(times(size, 200))
	in.matches(bulk(args[0]), size)
	return nil
}

func guardRegexAll(in *Input, args []ref.Val) ref.Val {
	if err := guardRegex(in, args); err != nil {
		return err
	}
	in.work(times(bulk(args[0]), perMatch))
	in.growList(bulk(args[0])/4 + 1)
	return nil
}

func guardReplaceAll(in *Input, args []ref.Val) ref.Val {
	if err := guardRegex(in, args); err != nil {
		return err
	}
	text, with := bulk(args[0]), bulk(args[2])
	in.work(times(text, perMatch))
	in.grow(text + times(text+1, with))
	return nil
}
