package expr

import (
	"fmt"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// Bounds on what one evaluation may do. Whatever costs more than a fixed time
// says so before it begins, in steps of roughly a nanosecond. One that goes past
// a bound ends the evaluation at once: an error value would not do, because
// exists, all, || and && pass over those and go on.
const (
	// maxWork is less than a second of work. Comparing 5,000 names of a list,
	// lowered, takes a hundredth of it.
	maxWork  = 500_000_000
	maxEvent = 20 * maxWork // of all evaluations over one event, its list's elements among them
	maxText  = 1 << 20      // bytes of a text that is searched, split or matched
	maxMade  = 32 << 20     // bytes of text and of lists made
	maxList  = 100_000      // elements of a list that is made
	maxPairs = 5_000        // elements of lists that are compared each with each
	maxCost  = 1_000_000    // steps of loops, as CEL counts them

	perCall   = 100 // a call, and a value that is compared
	perMember = 100 // an element or member that is gone through
	perSlot   = 16  // bytes of an element of a list that is made
)

// work spends steps of the evaluation's budget.
func (in *Input) work(steps int) {
	if in.worked += steps; in.evaluating && (in.worked > maxWork || in.worked < 0) {
		in.refuse("takes too long over this event: it goes through large texts or lists too often. Compare what is small first, look at fewer elements, or do without a list inside a list")
	}
}

// grow counts bytes that are made.
func (in *Input) grow(n int) {
	if in.made += n; in.evaluating && (in.made > maxMade || in.made < 0) {
		in.refuse("makes more than %d bytes of text and lists over this event: make less of it, or write the field itself", maxMade)
	}
}

// growList counts a list that is made.
func (in *Input) growList(n int) {
	in.work(times(n, perMember))
	in.grow(times(n, perSlot))
}

// refuse ends the evaluation, in the way in which CEL ends one.
func (in *Input) refuse(format string, args ...any) {
	panic(interpreter.EvalCancelledError{Message: refused + fmt.Sprintf(format, args...), Cause: interpreter.CostLimitExceeded})
}

const refused = "refused: "

// times multiplies; what would not fit is more than any bound.
func times(a, b int) int {
	const most = 1 << 40
	if b != 0 && a > most/b {
		return most
	}
	return a * b
}

// bulk gives the bytes of a text, or the elements of a list.
func bulk(v ref.Val) int {
	switch x := v.(type) {
	case types.String:
		return len(x)
	case types.Bytes:
		return len(x)
	case *types.Optional:
		if x.HasValue() {
			return bulk(x.GetValue())
		}
	case traits.Sizer:
		n, _ := x.Size().(types.Int)
		return int(n)
	}
	return 0
}

// through spends what it takes to go through a value as deep as it is.
func (in *Input) through(v ref.Val, perByte int) {
	const textByte = 5
	in.work(perMember)
	switch x := v.(type) {
	case types.String, types.Bytes:
		in.work(times(bulk(x), textByte))
	case *Object:
		in.work(times(len(x.Raw()), perByte))
	case *List:
		in.work(times(len(x.Raw()), perByte))
	case *Number:
		in.work(times(len(x.text), textByte))
	case *types.Optional:
		if x.HasValue() {
			in.through(x.GetValue(), perByte)
		}
	case traits.Lister:
		for i := x.Iterator(); i.HasNext() == types.True; {
			in.through(i.Next(), perByte)
		}
	case traits.Mapper:
		for i := x.Iterator(); i.HasNext() == types.True; {
			k := i.Next()
			in.through(k, perByte)
			in.through(x.Get(k), perByte)
		}
	}
}
