package expr

import (
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Bounds on what one evaluation may do.
const (
	maxText  = 1 << 20  // bytes of a text that is searched, split or matched
	maxMade  = 32 << 20 // bytes of text made
	maxList  = 100_000  // elements of a list that is made
	maxPairs = 5_000    // elements of lists that are compared each with each
	maxCost  = 1_000_000
)

// grow counts text that is made.
func (in *Input) grow(n int) ref.Val {
	if in.made += n; in.made > maxMade {
		return types.NewErr("the expression makes more than %d bytes of text", maxMade)
	}
	return nil
}

// guards bound the arguments of CEL's own functions.
var guards = map[string]func(in *Input, args []ref.Val) ref.Val{
	"replace":       guardReplace,
	"join":          guardJoin,
	"format":        forFormat,
	"split":         guardTexts,
	"matches":       guardTexts,
	"regex.extract": guardTexts, "regex.extractAll": guardTexts, "regex.replace": guardReplaceAll,
	"distinct": guardPairs, "hasOnly": guardPairs, "hasAny": guardPairs, "hasAll": guardPairs, "hasExactly": guardPairs,
	"lists.range": func(_ *Input, args []ref.Val) ref.Val {
		if n, ok := args[0].(types.Int); ok && n > maxList {
			return types.NewErr("lists.range: at most %d elements", maxList)
		}
		return nil
	},
}

func guardTexts(in *Input, args []ref.Val) ref.Val {
	for _, a := range args {
		if s, ok := a.(types.String); ok && len(s) > maxText {
			return types.NewErr("a text of %d bytes is too long to be searched (at most %d)", len(s), maxText)
		}
	}
	return nil
}

func guardPairs(_ *Input, args []ref.Val) ref.Val {
	for _, a := range args {
		if l, ok := a.(traits.Sizer); ok {
			if n, _ := l.Size().(types.Int); n > maxPairs {
				return types.NewErr("a list of %d elements is too long to compare each with each (at most %d)", n, maxPairs)
			}
		}
	}
	return nil
}

func guardReplace(in *Input, args []ref.Val) ref.Val {
	if err := guardTexts(in, args); err != nil {
		return err
	}
	texts := [3]string{}
	for i := range texts {
		if s, ok := args[i].(types.String); ok {
			texts[i] = string(s)
		}
	}
	return in.grow(len(texts[0]) + strings.Count(texts[0], texts[1])*len(texts[2]))
}

func guardReplaceAll(in *Input, args []ref.Val) ref.Val {
	if err := guardTexts(in, args); err != nil {
		return err
	}
	text, _ := args[0].(types.String)
	with, _ := args[2].(types.String)
	return in.grow(len(text) + (len(text)+1)*len(with))
}

func guardJoin(in *Input, args []ref.Val) ref.Val {
	n := 0
	list, ok := args[0].(traits.Lister)
	if !ok {
		return nil
	}
	between := types.String("")
	if len(args) > 1 {
		between, _ = args[1].(types.String)
	}
	for i := list.Iterator(); i.HasNext() == types.True; {
		if s, ok := i.Next().(types.String); ok {
			n += len(s)
		}
		if n += len(between); n > maxMade {
			break
		}
	}
	return in.grow(n)
}
