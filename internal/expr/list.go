package expr

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// own are functions of CEL's extensions done anew, because CEL's compare numbers
// by their kind, or know no bound.
var own = map[string]ownFunc{
	"sort": func(in *Input, args []ref.Val) ref.Val { return sortBy(in, args[0], args[0]) },
	"@sortByAssociatedKeys": func(in *Input, args []ref.Val) ref.Val {
		return sortBy(in, args[0], args[1])
	},
	"distinct": distinct,
	"flatten":  flatten,
}

type ownFunc func(in *Input, args []ref.Val) ref.Val

// flatten puts the elements of the lists in a list in their place, as deep as is
// said.
func flatten(in *Input, args []ref.Val) ref.Val {
	depth := types.Int(1)
	if len(args) > 1 {
		depth, _ = args[1].(types.Int)
	}
	if depth < 0 {
		return types.NewErr("flatten takes a depth of 0 or more")
	}
	list, ok := args[0].(traits.Lister)
	if !ok {
		return types.NewErr("flatten takes a list, not %s", describe(args[0]))
	}
	return listOf(in.flat(nil, list, depth))
}

func (in *Input) flat(out []ref.Val, list traits.Lister, depth types.Int) []ref.Val {
	in.work(perCall)
	for i := list.Iterator(); i.HasNext() == types.True; {
		v := i.Next()
		if inner, ok := v.(traits.Lister); ok && depth > 0 {
			out = in.flat(out, inner, depth-1)
			continue
		}
		in.growList(1)
		out = append(out, v)
	}
	return out
}

func elements(v ref.Val) ([]ref.Val, bool) {
	list, ok := v.(traits.Lister)
	if !ok {
		return nil, false
	}
	var out []ref.Val
	for i := list.Iterator(); i.HasNext() == types.True; {
		out = append(out, i.Next())
	}
	return out, true
}

func listOf(vals []ref.Val) ref.Val { return types.NewRefValList(types.DefaultTypeAdapter, vals) }

// sortBy sorts a list by a list of keys of the same length.
func sortBy(in *Input, list, keys ref.Val) ref.Val {
	vals, ok := elements(list)
	by, ok2 := elements(keys)
	if !ok || !ok2 || len(vals) != len(by) {
		return types.NewErr("sort takes a list, not %s", describe(list))
	}
	places := make([]int, len(vals))
	for i := range places {
		places[i] = i
	}
	var bad ref.Val
	slices.SortStableFunc(places, func(i, j int) int {
		c, err := in.order(by[i], by[j])
		if err != nil && bad == nil {
			bad = err
		}
		return c
	})
	if bad != nil {
		return bad
	}
	out := make([]ref.Val, len(vals))
	for i, p := range places {
		out[i] = vals[p]
	}
	return listOf(out)
}

// distinct keeps the first of equal elements. Elements of unlike kinds differ.
func distinct(in *Input, args []ref.Val) ref.Val {
	vals, ok := elements(args[0])
	if !ok {
		return types.NewErr("distinct takes a list, not %s", describe(args[0]))
	}
	var out []ref.Val
	for _, v := range vals {
		if !slices.ContainsFunc(out, func(o ref.Val) bool { return in.equal(o, v) == types.True }) {
			out = append(out, v)
		}
	}
	return listOf(out)
}

const exactDigits = 15 // of a number that a float keeps

// forFormat gives the numbers of a format call the kind that their verb takes:
// with %s they keep their digits.
func forFormat(in *Input, args []ref.Val) ref.Val {
	guardTexts(in, args[:1])
	in.through(args[1], 500)
	text, _ := args[0].(types.String)
	in.grow(len(text))
	vals, ok := elements(args[1])
	if !ok {
		return nil
	}
	for i, verb := range verbs(string(text)) {
		if i >= len(vals) {
			break
		}
		n, ok := vals[i].(*Number)
		if !ok {
			continue
		}
		digits, err := n.Digits()
		if err != nil {
			return types.WrapErr(err)
		}
		if verb == 's' {
			vals[i] = types.String(digits)
			continue
		}
		if len(strings.Trim(digits, "-0.")) > exactDigits+1 {
			return types.NewErr("format would round %s: use %%s, or round(…) before", describe(n))
		}
		var f float64
		if _, err := fmt.Sscan(digits, &f); err != nil {
			return types.WrapErr(err)
		}
		vals[i] = types.Double(f)
	}
	args[1] = listOf(vals)
	return nil
}

// verbs returns the verb of each clause of a format: %s, %.2f.
func verbs(format string) []byte {
	var out []byte
	for {
		i := strings.IndexByte(format, '%')
		if i < 0 {
			return out
		}
		rest := strings.TrimLeft(format[i+1:], ".0123456789")
		if rest == "" {
			return out
		}
		if rest[0] != '%' {
			out = append(out, rest[0])
		}
		format = rest[1:]
	}
}
