package expr

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
	"cel.dev/cel-go/interpreter"
)

// Compiler compiles expressions. It is safe for concurrent use.
type Compiler struct {
	env *cel.Env
	own map[string]ownFunc // CEL's own functions that are guarded, or done anew
}

// NewCompiler makes a compiler.
func NewCompiler() (*Compiler, error) {
	without := &env.LibrarySubset{}
	for _, name := range replaced {
		without.AddExcludedFunctions(&env.Function{Name: name})
	}
	options := []cel.EnvOption{
		cel.StdLib(cel.StdLibSubset(without)),
		cel.OptionalTypes(),
		ext.Strings(), ext.Lists(), ext.Regex(),
		cel.EnableIdentifierEscapeSyntax(),
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ParserRecursionLimit(100),
	}
	e, err := cel.NewCustomEnv(append(options, functionDecls()...)...)
	if err != nil {
		return nil, fmt.Errorf("make the expression language: %w", err)
	}
	c := &Compiler{env: e, own: map[string]ownFunc{}}
	for name, do := range own {
		c.own[name] = do
	}
	for name := range guards {
		if own[name] != nil {
			continue
		}
		if c.own[name], err = implementation(e.Functions()[name]); err != nil {
			return nil, fmt.Errorf("make the expression language: %w", err)
		}
	}
	return c, nil
}

const maxExpression = 20_000 // characters

// Problem is something that is wrong with an expression, and where in it, from
// line 1 and column 1.
type Problem struct {
	Line, Column int
	Text         string
}

// Kind is what is known about an expression's value before it is evaluated.
type Kind string

// The kinds of a value. Any is not known.
const (
	KindAny    Kind = ""
	KindNumber Kind = "a number"
	KindText   Kind = "text"
	KindBool   Kind = "true or false"
	KindTime   Kind = "a time"
	KindNull   Kind = "null"
	KindList   Kind = "a list"
	KindObject Kind = "an object"
	KindOther  Kind = "something else"
)

// TypeText is a text, or a pattern of rank, that an expression compares type
// with, and where it stands.
type TypeText struct {
	Text         string
	Line, Column int
}

// Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	// Text is the expression.
	Text string
	// Reads are the names it reads, Paths the paths it follows from them.
	Reads Names
	Paths []*PathRef
	// Types are the texts that it compares type with.
	Types []TypeText
	// Kind is the kind of its value, where all of its arms have the same.
	Kind Kind
	// MaybeUnset and MaybeAbsent tell that an arm is unset, or an optional.
	MaybeUnset, MaybeAbsent bool
	// Constant tells that it reads nothing of an event.
	Constant bool

	leaf *leaf // where the whole is one leaf
	prog cel.Program
}

// Compile compiles an expression that may read the names allowed.
func (c *Compiler) Compile(text string, allowed Names) (*Program, []Problem) {
	if strings.TrimSpace(text) == "" {
		return nil, []Problem{{1, 1, "an empty expression. For the empty text write '\"\"'."}}
	}
	parsed, issues := c.env.Parse(text)
	if issues.Err() != nil {
		return nil, syntax(issues, text)
	}
	r := rewrite(c.env, parsed.NativeRep(), text, allowed)
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	p := &Program{Text: text, Reads: r.reads, Paths: r.paths, Types: r.types}
	if root := parsed.NativeRep().Expr(); isLeaf(root) {
		p.leaf = r.leaves[root.AsCall().Args()[0].AsLiteral().(types.Int)]
		p.describe(root, func(e ast.Expr) *types.Type { return leafTypes[e.AsCall().FunctionName()] }, r.leaves)
		return p, nil
	}
	checked, issues := c.env.Check(parsed)
	if issues.Err() != nil {
		return nil, mismatches(issues)
	}
	native := checked.NativeRep()
	if problems := optionals(native); len(problems) > 0 {
		return nil, problems
	}
	p.describe(native.Expr(), func(e ast.Expr) *types.Type { return native.GetType(e.ID()) }, r.leaves)
	options := []cel.ProgramOption{cel.CustomDecoratorV2(c.decorator(r.leaves))}
	if r.loops {
		options = append(options, cel.CostLimit(maxCost))
	}
	prog, err := c.env.Program(checked, options...)
	if err != nil {
		return nil, []Problem{{1, 1, err.Error()}}
	}
	p.prog = prog
	return p, nil
}

var leafTypes = map[string]*types.Type{
	leafAny: types.DynType, leafMaybe: types.NewOptionalType(types.DynType), leafBool: types.BoolType, leafNumber: types.IntType,
	leafText: types.StringType, leafTime: types.TimestampType, leafBytes: types.BytesType,
}

func isLeaf(e ast.Expr) bool {
	return e.Kind() == ast.CallKind && leafTypes[e.AsCall().FunctionName()] != nil
}

// decorator puts leaves, operators and functions in their places.
func (c *Compiler) decorator(leaves []*leaf) interpreter.InterpretableDecoratorV2 {
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		if made, ok := i.(interpreter.InterpretableConstructor); ok {
			return foldConstants(made), nil
		}
		planned, ok := i.(interpreter.InterpretableCall)
		if !ok {
			return i, nil
		}
		name, args := planned.Function(), planned.Args()
		if leafTypes[name] != nil {
			at := args[0].(interpreter.InterpretableConst).Value().(types.Int)
			l := leaves[at]
			if l.value != nil {
				return interpreter.NewConstValue(planned.ID(), l.value), nil
			}
			return l, nil
		}
		if do, ok := binaries[name]; ok && len(args) == 2 {
			return &binary{InterpretableCall: planned, left: args[0], right: args[1], do: do}, nil
		}
		if name == operators.Negate {
			zero := interpreter.NewConstValue(planned.ID(), types.Int(0))
			return &binary{InterpretableCall: planned, left: zero, right: args[0], do: negate}, nil
		}
		if do, ok := calls[name]; ok {
			return &call{InterpretableCall: planned, args: args, do: do}, nil
		}
		if isRegex(name) {
			if pattern, ok := args[1].(interpreter.InterpretableConst); ok {
				return c.constantRegex(planned, pattern.Value())
			}
		}
		if do, ok := c.own[name]; ok {
			return &guarded{InterpretableCall: planned, args: args, check: guards[name], call: do}, nil
		}
		return i, nil
	}
}

// foldConstants makes a list or an object of constants once.
func foldConstants(c interpreter.InterpretableConstructor) interpreter.InterpretableV2 {
	for _, v := range c.InitVals() {
		if _, ok := v.(interpreter.InterpretableConst); !ok {
			return c
		}
	}
	if v := c.Eval(interpreter.EmptyActivation()); !types.IsError(v) {
		return interpreter.NewConstValue(c.ID(), v)
	}
	return c
}

func negate(in *Input, zero, v ref.Val) ref.Val {
	if !isNumber(v) {
		return types.NewErr("the minus of %s", describe(v))
	}
	return arithmetic('-', zero, v)
}

// Eval evaluates the expression. The value is never an optional: it is what is
// in it, or Absent. It is Unset where the expression says so. The error is the
// reason for a person; a *MissingError is in its chain where something is not
// there.
func (p *Program) Eval(in *Input) (ref.Val, error) {
	var v ref.Val
	if p.leaf != nil {
		v = p.leaf.eval(in)
	} else {
		if in.spent += in.worked; in.spent > maxEvent {
			return nil, fmt.Errorf("`%s`: what the event's expressions do takes too long in all: an expression goes through a list for each element of another. Have the sender send fewer at a time", clip(p.Text))
		}
		in.evaluating, in.worked, in.made = true, 0, 0
		var err error
		v, _, err = p.prog.Eval(in)
		if in.evaluating = false; err != nil {
			return nil, p.explain(err)
		}
	}
	for {
		switch x := v.(type) {
		case *types.Err:
			return nil, x.Unwrap()
		case *types.Optional:
			if !x.HasValue() {
				return Absent, nil
			}
			v = x.GetValue()
		default:
			return v, nil
		}
	}
}

func (p *Program) explain(err error) error {
	var missing *MissingError
	if errors.As(err, &missing) {
		return missing
	}
	var cancelled interpreter.EvalCancelledError
	if errors.As(err, &cancelled) {
		if why, ok := strings.CutPrefix(cancelled.Message, refused); ok {
			return fmt.Errorf("`%s` %s", clip(p.Text), why)
		}
		return fmt.Errorf("`%s` costs too much over this event: it goes through too long a list", clip(p.Text))
	}
	text := err.Error()
	if e, ok := err.(*types.Err); ok {
		text = e.Unwrap().Error()
	}
	switch {
	case strings.HasPrefix(text, "no such key: "):
		return &MissingError{Text: fmt.Sprintf("no such field: %s, in `%s`", strings.TrimPrefix(text, "no such key: "), clip(p.Text))}
	case strings.HasPrefix(text, "index out of bounds: "):
		return &MissingError{Text: fmt.Sprintf("no such field: [%s], in `%s`", strings.TrimPrefix(text, "index out of bounds: "), clip(p.Text))}
	case strings.HasPrefix(text, "no such overload"):
		return fmt.Errorf("`%s`: a value is of a kind that cannot be used there (%s)", clip(p.Text), readable(text))
	}
	return errors.New(text)
}

// describe finds out what is known about the value.
func (p *Program) describe(root ast.Expr, typeOf func(ast.Expr) *types.Type, leaves []*leaf) {
	var kinds []Kind
	var arm func(e ast.Expr)
	arm = func(e ast.Expr) {
		if e.Kind() == ast.CallKind {
			switch call := e.AsCall(); call.FunctionName() {
			case operators.Conditional:
				arm(call.Args()[1])
				arm(call.Args()[2])
				return
			case fnAny:
				arm(call.Args()[0])
				return
			case fnOr:
				before := p.MaybeAbsent
				arm(call.Args()[0])
				p.MaybeAbsent = before // an absent one gives way
				arm(call.Args()[1])
				return
			}
		}
		if isLeaf(e) {
			l := leaves[e.AsCall().Args()[0].AsLiteral().(types.Int)]
			if l.name == UnsetName || l.value == Unset {
				p.MaybeUnset = true
				return
			}
		}
		t := typeOf(e)
		if isOptional(t) {
			p.MaybeAbsent = true
			t = t.Parameters()[0]
		}
		kinds = append(kinds, kindOfType(t))
	}
	arm(root)
	p.Constant = p.Reads == 0
	p.Kind = common(kinds)
}

// common gives the kind that all have; null goes with every kind.
func common(kinds []Kind) Kind {
	all := KindNull
	for _, k := range kinds {
		switch {
		case k == KindNull || k == all:
		case all == KindNull && k != KindAny:
			all = k
		default:
			return KindAny
		}
	}
	if len(kinds) == 0 {
		return KindAny
	}
	return all
}

func isOptional(t *types.Type) bool {
	return t != nil && t.Kind() == types.OpaqueKind && t.TypeName() == types.OptionalType.TypeName()
}

func kindOfType(t *types.Type) Kind {
	if t == nil {
		return KindAny
	}
	switch t.Kind() {
	case types.DynKind, types.AnyKind, types.TypeParamKind:
		return KindAny
	case types.IntKind:
		return KindNumber
	case types.StringKind:
		return KindText
	case types.BoolKind:
		return KindBool
	case types.TimestampKind:
		return KindTime
	case types.NullTypeKind:
		return KindNull
	case types.ListKind:
		return KindList
	case types.MapKind:
		return KindObject
	}
	return KindOther
}

func intText(n int64) string { return strconv.FormatInt(n, 10) }
