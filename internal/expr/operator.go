package expr

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// equal tells whether two values are equal. Values of unlike kinds, null apart,
// are an error: they never could be.
func (in *Input) equal(a, b ref.Val) ref.Val {
	in.work(perCall)
	ka, kb := kindOf(a), kindOf(b)
	if ka == "null" || kb == "null" {
		return types.Bool(ka == kb)
	}
	if ka != kb {
		return unlike("compare", a, b)
	}
	switch ka {
	case "text":
		x, y := a.(types.String), b.(types.String)
		if len(x) == len(y) {
			in.work(len(x) / 8)
		}
		return types.Bool(x == y)
	case "number":
		in.compares(a, b)
		c, err := compareNumbers(a, b)
		if err != nil {
			return types.WrapErr(err)
		}
		return types.Bool(c == 0)
	case "list":
		return in.equalLists(a.(traits.Lister), b.(traits.Lister))
	case "object":
		return in.equalObjects(a.(traits.Mapper), b.(traits.Mapper))
	case "optional":
		x, y := a.(*types.Optional), b.(*types.Optional)
		if !x.HasValue() || !y.HasValue() {
			return types.Bool(x.HasValue() == y.HasValue())
		}
		return in.equal(x.GetValue(), y.GetValue())
	}
	return types.Equal(a, b)
}

func (in *Input) equalLists(a, b traits.Lister) ref.Val {
	if a.Size().Equal(b.Size()) != types.True {
		return types.False
	}
	i, j := a.Iterator(), b.Iterator()
	for i.HasNext() == types.True {
		if eq := in.equal(i.Next(), j.Next()); eq != types.True {
			return eq
		}
	}
	return types.True
}

func (in *Input) equalObjects(a, b traits.Mapper) ref.Val {
	in.work(10 * perCall)
	if a.Size().Equal(b.Size()) != types.True {
		return types.False
	}
	for i := a.Iterator(); i.HasNext() == types.True; {
		k := i.Next()
		x, _ := a.Find(k)
		y, ok := b.Find(k)
		if !ok {
			return types.False
		}
		if eq := in.equal(x, y); eq != types.True {
			return eq
		}
	}
	return types.True
}

// unlike is the error of an operator between values of unlike kinds.
func unlike(verb string, a, b ref.Val) ref.Val {
	hint := ""
	switch ka, kb := kindOf(a), kindOf(b); {
	case ka == "optional" || kb == "optional":
		hint = ". Write .orValue(…) after the optional"
	case ka == "time" && (kb == "text" || kb == "number"), kb == "time" && (ka == "text" || ka == "number"):
		hint = ". Write timestamp(…) around what is not yet a time"
	case ka == "number" && kb == "text", ka == "text" && kb == "number":
		hint = ". Write string(…) around the number, or double(…) around the text"
	}
	return types.NewErr("cannot %s %s with %s%s", verb, describe(a), describe(b), hint)
}

// order compares two values by size.
func (in *Input) order(a, b ref.Val) (int, ref.Val) {
	in.work(perCall + min(bulk(a), bulk(b))/8)
	ka, kb := kindOf(a), kindOf(b)
	if ka != kb {
		return 0, unlike("compare", a, b)
	}
	if ka == "number" {
		in.compares(a, b)
		c, err := compareNumbers(a, b)
		if err != nil {
			return 0, types.WrapErr(err)
		}
		return c, nil
	}
	x, ok := a.(traits.Comparer)
	if !ok {
		return 0, types.NewErr("%s has no order", describe(a))
	}
	c, ok := x.Compare(b).(types.Int)
	if !ok {
		return 0, unlike("compare", a, b)
	}
	return int(c), nil
}

// compares spends what it takes to compute with two numbers.
func (in *Input) compares(a, b ref.Val) {
	for _, v := range [2]ref.Val{a, b} {
		if n, ok := v.(*Number); ok {
			in.work(500 + times(min(len(n.text), maxNumberText), 20))
		}
	}
}

func compareBy(test func(int) bool) binaryFunc {
	return func(in *Input, a, b ref.Val) ref.Val {
		c, err := in.order(a, b)
		if err != nil {
			return err
		}
		return types.Bool(test(c))
	}
}

func calculate(op byte) binaryFunc {
	return func(in *Input, a, b ref.Val) ref.Val {
		if isNumber(a) && isNumber(b) {
			in.work(perCall)
			in.compares(a, b)
			return arithmetic(op, a, b)
		}
		ka, kb := kindOf(a), kindOf(b)
		if op == '+' && ka == "text" && kb == "text" {
			x, y := string(a.(types.String)), string(b.(types.String))
			in.work(len(x) + len(y))
			in.grow(len(x) + len(y))
			return types.String(x + y)
		}
		timely := (ka == "time" || ka == "duration") && (kb == "time" || kb == "duration")
		switch {
		case op == '+' && ka == kb && ka == "list":
			return in.join(a.(traits.Lister), b.(traits.Lister))
		case op == '+' && (ka == kb && ka == "bytes" || timely):
			in.work(bulk(a) + bulk(b))
			in.grow(bulk(a) + bulk(b))
			return a.(traits.Adder).Add(b)
		case op == '-' && timely:
			return a.(traits.Subtractor).Subtract(b)
		}
		return unlike(map[byte]string{'+': "add", '-': "subtract", '*': "multiply", '/': "divide", '%': "divide"}[op], a, b)
	}
}

// join makes a list of two. The list that a macro makes grows in place.
func (in *Input) join(a, b traits.Lister) ref.Val {
	in.growList(bulk(b))
	if grows, ok := a.(traits.MutableLister); ok {
		if x, ok := b.(*List); ok {
			b = x.elements()
		}
		return grows.Add(b)
	}
	in.growList(bulk(a))
	x, _ := elements(a)
	y, _ := elements(b)
	return listOf(append(x, y...))
}

func contains(in *Input, x, of ref.Val) ref.Val {
	switch c := of.(type) {
	case traits.Lister:
		var bad ref.Val
		for i := c.Iterator(); i.HasNext() == types.True; {
			switch eq := in.equal(x, i.Next()); eq {
			case types.True:
				return types.True
			case types.False:
			default:
				bad = eq
			}
		}
		if bad != nil {
			return bad
		}
		return types.False
	case traits.Mapper:
		if kindOf(x) != "text" {
			return types.NewErr("the names in an object are text, not %s", describe(x))
		}
		_, ok := c.Find(x)
		return types.Bool(ok)
	}
	return types.NewErr("`in` looks into a list or an object, not into %s", describe(of))
}

type binaryFunc func(in *Input, a, b ref.Val) ref.Val

var binaries = map[string]binaryFunc{
	operators.Equals: func(in *Input, a, b ref.Val) ref.Val { return in.equal(a, b) },
	operators.NotEquals: func(in *Input, a, b ref.Val) ref.Val {
		eq := in.equal(a, b)
		if is, ok := eq.(types.Bool); ok {
			return !is
		}
		return eq
	},
	operators.Less:          compareBy(func(c int) bool { return c < 0 }),
	operators.LessEquals:    compareBy(func(c int) bool { return c <= 0 }),
	operators.Greater:       compareBy(func(c int) bool { return c > 0 }),
	operators.GreaterEquals: compareBy(func(c int) bool { return c >= 0 }),
	operators.Add:           calculate('+'),
	operators.Subtract:      calculate('-'),
	operators.Multiply:      calculate('*'),
	operators.Divide:        calculate('/'),
	operators.Modulo:        calculate('%'),
	operators.In:            contains,
	operators.OldIn:         contains,
}

// binary is an operator that takes the place of CEL's.
type binary struct {
	interpreter.InterpretableCall
	left, right interpreter.InterpretableV2
	do          binaryFunc
}

// Eval implements interpreter.Interpretable.
func (b *binary) Eval(a interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(a, b.Exec)
}

// Exec implements interpreter.InterpretableV2.
func (b *binary) Exec(f *interpreter.ExecutionFrame) ref.Val {
	x := b.left.Exec(f)
	if types.IsError(x) {
		return x
	}
	y := b.right.Exec(f)
	if types.IsError(y) {
		return y
	}
	v := b.do(inputOf(f), x, y)
	if costs := f.CostTracker(); costs != nil {
		costs.EvalBinary(f, b.ID(), b.InterpretableCall, x, y, v)
	}
	return v
}

// call is a function that sees its arguments, errors among them, and the input.
type call struct {
	interpreter.InterpretableCall
	args []interpreter.InterpretableV2
	do   func(in *Input, args []func() ref.Val) ref.Val
}

// Eval implements interpreter.Interpretable.
func (c *call) Eval(a interpreter.Activation) ref.Val { return interpreter.EvalActivation(a, c.Exec) }

// Exec implements interpreter.InterpretableV2.
func (c *call) Exec(f *interpreter.ExecutionFrame) ref.Val {
	var room [2]func() ref.Val
	args := room[:0]
	for _, a := range c.args {
		args = append(args, func() ref.Val { return a.Exec(f) })
	}
	in := inputOf(f)
	in.work(perCall)
	v := c.do(in, args)
	if costs := f.CostTracker(); costs != nil {
		costs.EvalZeroArity(f, c.ID(), c.InterpretableCall, v)
	}
	return v
}

// guarded checks a function's arguments, and may change them, before it calls
// it.
type guarded struct {
	interpreter.InterpretableCall
	args  []interpreter.InterpretableV2
	check guard
	call  ownFunc
}

// Eval implements interpreter.Interpretable.
func (g *guarded) Eval(a interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(a, g.Exec)
}

// Exec implements interpreter.InterpretableV2.
func (g *guarded) Exec(f *interpreter.ExecutionFrame) ref.Val {
	in := inputOf(f)
	vals := make([]ref.Val, len(g.args))
	for i, a := range g.args {
		if vals[i] = a.Exec(f); types.IsError(vals[i]) {
			return vals[i]
		}
	}
	if g.check != nil {
		if err := g.check(in, vals); err != nil {
			return err
		}
	}
	return g.call(in, vals) // what it takes is counted by its guard, and not by CEL too
}

// implementation returns what a function of CEL's own does.
func implementation(f *decls.FunctionDecl) (ownFunc, error) {
	bindings, err := f.Bindings()
	if err != nil {
		return nil, err
	}
	for _, b := range bindings {
		if b.Operator != f.Name() {
			continue
		}
		return func(_ *Input, args []ref.Val) ref.Val {
			switch {
			case b.Function != nil:
				return b.Function(args...)
			case b.Unary != nil && len(args) == 1:
				return b.Unary(args[0])
			case b.Binary != nil && len(args) == 2:
				return b.Binary(args[0], args[1])
			}
			return decls.MaybeNoSuchOverload(f.Name(), args...)
		}, nil
	}
	return nil, fmt.Errorf("%s does nothing", f.Name())
}

// isMissing tells whether a value is the error of something that is not there.
func isMissing(v ref.Val) bool {
	err, ok := v.(*types.Err)
	if !ok {
		return false
	}
	if _, ok := err.Unwrap().(*MissingError); ok {
		return true
	}
	text := err.Error()
	return strings.HasPrefix(text, "no such key") || strings.HasPrefix(text, "index out of bounds")
}
