package expr

import (
	"math/bits"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

type guard func(in *Input, args []ref.Val) ref.Val

// guards spend what CEL's own functions take before they are called. They may
// change the arguments, or give an error in the place of the result.
var guards = map[string]guard{
	"replace":       guardReplace,
	"join":          guardJoin,
	"format":        forFormat,
	"split":         guardSplit,
	"matches":       guardRegex,
	"regex.extract": guardRegex, "regex.extractAll": guardRegexAll, "regex.replace": guardReplaceAll,
	"distinct": guardPairs, "hasOnly": guardPairs, "hasAny": guardPairs, "hasAll": guardPairs, "hasExactly": guardPairs,
	"lists.range": func(in *Input, args []ref.Val) ref.Val {
		if n, ok := args[0].(types.Int); ok {
			if n > maxList {
				return types.NewErr("lists.range: at most %d elements", maxList)
			}
			in.growList(int(n))
		}
		return nil
	},
	"slice": guardSlice,
	"sort":  guardSort, "@sortByAssociatedKeys": guardSort,
	"flatten": nil, // its own form counts as it goes

	"size": perByte(1), "bytes": perByte(1), "bool": perByte(1),
	"contains": perByte(2), "startsWith": perByte(1), "endsWith": perByte(1),
	"lowerAscii": copies(4), "upperAscii": copies(4), "trim": perByte(6), "duration": perByte(10),
	"charAt": perByte(10), "substring": copies(10), "strings.quote": copies(80),
	"reverse": guardReverse,
	"indexOf": guardIndexOf, "lastIndexOf": guardIndexOf,
	"getDate": zoned, "getDayOfMonth": zoned, "getDayOfWeek": zoned, "getDayOfYear": zoned, "getFullYear": zoned,
	"getHours": zoned, "getMilliseconds": zoned, "getMinutes": zoned, "getMonth": zoned, "getSeconds": zoned,
}

// perByte is for what goes through its texts, once or a few times.
func perByte(steps int) guard {
	return func(in *Input, args []ref.Val) ref.Val {
		n := perCall
		for _, a := range args {
			switch x := a.(type) {
			case types.String:
				n += times(len(x), steps)
			case types.Bytes:
				n += times(len(x), steps)
			}
		}
		in.work(n)
		return nil
	}
}

// copies is for what makes a text as long as its first argument.
func copies(steps int) guard {
	spend := perByte(steps)
	return func(in *Input, args []ref.Val) ref.Val {
		in.grow(bulk(args[0]))
		return spend(in, args)
	}
}

// zoned is for what may look up a time zone.
func zoned(in *Input, args []ref.Val) ref.Val {
	if in.work(perCall); len(args) > 1 {
		in.work(100_000)
	}
	return nil
}

// guardTexts is for searches.
func guardTexts(in *Input, args []ref.Val) {
	n := perCall
	for _, a := range args {
		s, ok := a.(types.String)
		if !ok {
			continue
		}
		if n += times(len(s), 5); len(s) > maxText {
			in.refuse("searches a text of %d bytes, which is too long to be searched (at most %d)", len(s), maxText)
		}
	}
	in.work(n)
}

func guardIndexOf(in *Input, args []ref.Val) ref.Val {
	guardTexts(in, args)
	// CEL compares at every place.
	in.work(times(bulk(args[0]), 10+2*min(bulk(args[1]), bulk(args[0]))))
	return nil
}

func guardSplit(in *Input, args []ref.Val) ref.Val {
	guardTexts(in, args)
	if s, ok := args[0].(types.String); ok {
		by, _ := args[1].(types.String)
		n := strings.Count(string(s), string(by)) + 1
		in.growList(n)
	}
	return nil
}

func guardReverse(in *Input, args []ref.Val) ref.Val {
	if s, ok := args[0].(types.String); ok {
		in.work(times(len(s), 25))
		in.grow(len(s))
	} else {
		in.growList(bulk(args[0]))
	}
	return nil
}

func guardSlice(in *Input, args []ref.Val) ref.Val {
	from, _ := args[1].(types.Int)
	to, _ := args[2].(types.Int)
	in.work(perCall)
	in.growList(max(0, min(int(to), bulk(args[0]))-max(0, int(from))))
	return nil
}

func guardSort(in *Input, args []ref.Val) ref.Val {
	n := bulk(args[0])
	in.growList(4 * n) // its keys and places too
	in.work(times(n, 4*perMember*bits.Len(uint(n))))
	return nil
}

func guardPairs(in *Input, args []ref.Val) ref.Val {
	all := perMember
	for _, a := range args {
		if _, ok := a.(traits.Lister); !ok {
			continue
		}
		n := bulk(a)
		if n > maxPairs {
			in.refuse("compares each with each in a list of %d elements, which is too long to compare (at most %d)", n, maxPairs)
		}
		in.growList(n)
		if all = times(all, n); len(args) == 1 {
			all = times(all, n) / 2
		}
	}
	if len(args) > 1 {
		in.work(all) // in distinct, each comparison counts by itself
	}
	return nil
}

func guardReplace(in *Input, args []ref.Val) ref.Val {
	guardTexts(in, args)
	texts := [3]string{}
	for i := range texts {
		if s, ok := args[i].(types.String); ok {
			texts[i] = string(s)
		}
	}
	n := times(strings.Count(texts[0], texts[1]), len(texts[2]))
	in.work(n)
	in.grow(len(texts[0]) + n)
	return nil
}

func guardJoin(in *Input, args []ref.Val) ref.Val {
	list, ok := args[0].(traits.Lister)
	if !ok {
		return nil
	}
	between := 0
	if len(args) > 1 {
		between = bulk(args[1])
	}
	for i := list.Iterator(); i.HasNext() == types.True; {
		n := bulk(i.Next()) + between
		in.work(perMember + n)
		in.grow(n)
	}
	return nil
}
