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
// by their kind.
var own = map[string]func(args []ref.Val) ref.Val{
	"sort": func(args []ref.Val) ref.Val { return sortBy(args[0], args[0]) },
	"@sortByAssociatedKeys": func(args []ref.Val) ref.Val {
		return sortBy(args[0], args[1])
	},
	"distinct": distinct,
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
func sortBy(list, keys ref.Val) ref.Val {
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
		c, err := order(by[i], by[j])
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
func distinct(args []ref.Val) ref.Val {
	vals, ok := elements(args[0])
	if !ok {
		return types.NewErr("distinct takes a list, not %s", describe(args[0]))
	}
	var out []ref.Val
	for _, v := range vals {
		if !slices.ContainsFunc(out, func(o ref.Val) bool { return equal(o, v) == types.True }) {
			out = append(out, v)
		}
	}
	return listOf(out)
}

const exactDigits = 15 // of a number that a float keeps

// forFormat gives the numbers of a format call the kind that their verb takes:
// with %s they keep their digits.
func forFormat(in *Input, args []ref.Val) ref.Val {
	if err := guardTexts(in, args); err != nil {
		return err
	}
	text, _ := args[0].(types.String)
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
