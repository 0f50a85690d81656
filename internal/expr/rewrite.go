package expr

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// Functions that only a rewritten expression can call. A leaf's function has the
// type that the checker shall see; its argument is the leaf's place.
const (
	leafAny    = "@any_leaf"
	leafMaybe  = "@optional_leaf"
	leafBool   = "@bool_leaf"
	leafNumber = "@number_leaf"
	leafText   = "@text_leaf"
	leafTime   = "@time_leaf"
	leafBytes  = "@bytes_leaf"

	fnAny     = "@any"     // hides the type of its argument
	fnOr      = "@or"      // coalesce of two
	fnPresent = "@present" // present of what is not a path
)

// namespaces are the first words of functions' names.
var namespaces = []string{"lists", "regex", "strings", "optional", "cel"}

type rewriter struct {
	env     *cel.Env
	fac     ast.ExprFactory
	info    *ast.SourceInfo
	text    []rune
	allowed Names

	next     int64
	leaves   []*leaf
	reads    Names
	paths    []*PathRef
	types    []TypeText
	loops    bool
	problems []Problem
}

func rewrite(env *cel.Env, parsed *ast.AST, text string, allowed Names) *rewriter {
	r := &rewriter{
		env: env, fac: ast.NewExprFactory(), info: parsed.SourceInfo(), text: []rune(text), allowed: allowed,
		next: ast.MaxID(parsed) + 1,
	}
	r.expr(parsed.Expr(), nil, true)
	return r
}

func (r *rewriter) fail(e ast.Expr, format string, args ...any) {
	line, column := r.at(e)
	r.problems = append(r.problems, Problem{Line: line, Column: column, Text: fmt.Sprintf(format, args...)})
}

func (r *rewriter) at(e ast.Expr) (line, column int) {
	loc := r.info.GetStartLocation(e.ID())
	return max(loc.Line(), 1), max(loc.Column(), 0) + 1
}

func (r *rewriter) id() int64 {
	r.next++
	return r.next
}

// expr rewrites an expression in place. local holds the names that macros have
// bound; tail says that its value is the value of the whole.
func (r *rewriter) expr(e ast.Expr, local []string, tail bool) {
	if root, steps, ok := r.chain(e, local); ok {
		r.path(e, root, steps, tail)
		return
	}
	switch e.Kind() {
	case ast.CallKind:
		r.call(e, local, tail)
	case ast.SelectKind:
		sel := e.AsSelect()
		if sel.IsTestOnly() {
			if root, steps, ok := r.chain(sel.Operand(), local); ok {
				r.pathUse(e, root, append(steps, chainStep{Step: Step{Name: sel.FieldName()}}), Has, "has")
				return
			}
		}
		r.expr(sel.Operand(), local, false)
	case ast.LiteralKind:
		r.literal(e)
	case ast.ListKind:
		for _, x := range e.AsList().Elements() {
			r.expr(x, local, false)
		}
	case ast.MapKind:
		for _, x := range e.AsMap().Entries() {
			r.expr(x.AsMapEntry().Key(), local, false)
			r.expr(x.AsMapEntry().Value(), local, false)
		}
	case ast.StructKind:
		r.fail(e, "%s{…} makes a message, which there are none of. An object is {\"name\": value}.", e.AsStruct().TypeName())
	case ast.ComprehensionKind:
		r.loops = true
		c := e.AsComprehension()
		r.expr(c.IterRange(), local, false)
		r.expr(c.AccuInit(), local, false)
		inner := slices.Concat(local, []string{c.IterVar(), c.IterVar2(), c.AccuVar()})
		r.expr(c.LoopCondition(), inner, false)
		r.expr(c.LoopStep(), inner, false)
		r.expr(c.Result(), inner, false)
	}
}

type chainStep struct {
	Step
	optional bool
}

// chain reads a path from a name: event.a["b"].?c[0]. ok is false for
// everything else, and for a path from a name that a macro has bound.
func (r *rewriter) chain(e ast.Expr, local []string) (root ast.Expr, steps []chainStep, ok bool) {
	switch e.Kind() {
	case ast.IdentKind:
		name := e.AsIdent()
		return e, nil, !slices.Contains(local, name) && !strings.HasPrefix(name, "@")
	case ast.SelectKind:
		sel := e.AsSelect()
		if sel.IsTestOnly() {
			return nil, nil, false
		}
		root, steps, ok = r.chain(sel.Operand(), local)
		return root, append(steps, chainStep{Step: Step{Name: sel.FieldName()}}), ok
	case ast.CallKind:
		call := e.AsCall()
		var optional bool
		switch call.FunctionName() {
		case operators.Index:
		case operators.OptIndex, operators.OptSelect:
			optional = true
		default:
			return nil, nil, false
		}
		arg := call.Args()[1]
		if arg.Kind() != ast.LiteralKind {
			return nil, nil, false
		}
		step := chainStep{optional: optional}
		switch v := arg.AsLiteral().(type) {
		case types.String:
			step.Name = string(v)
		case types.Int:
			step.Index, step.IsIndex = int(v), true
		default:
			return nil, nil, false
		}
		root, steps, ok = r.chain(call.Args()[0], local)
		return root, append(steps, step), ok
	}
	return nil, nil, false
}

func (r *rewriter) path(e, root ast.Expr, steps []chainStep, tail bool) {
	info, ok := r.name(root)
	switch {
	case !ok:
		r.leaf(e, leafAny, &leaf{value: types.NullValue})
	case info.bit == UnsetName && (!tail || len(steps) > 0):
		r.fail(root, "unset can only be a whole value, or an arm of ?: that gives the whole value")
		r.leaf(e, leafAny, &leaf{value: Unset})
	case info.tree:
		r.pathUse(e, root, steps, Get, "")
	case len(steps) > 0:
		r.fail(root, "%s is %s and has no %s", info.text, typeName(info.typ), strings.TrimPrefix(steps[0].suffix(), "."))
		r.leaf(e, leafAny, &leaf{value: types.NullValue})
	default:
		r.reads |= info.bit
		fn := map[*cel.Type]string{cel.StringType: leafText, cel.TimestampType: leafTime, cel.IntType: leafNumber, cel.BytesType: leafBytes}[info.typ]
		if fn == "" {
			fn = leafAny
		}
		r.leaf(e, fn, &leaf{name: info.bit})
	}
}

// name looks a name up, and says what is wrong with it.
func (r *rewriter) name(root ast.Expr) (nameInfo, bool) {
	text := root.AsIdent()
	info, ok := nameNamed(text)
	switch {
	case ok && r.allowed&info.bit != 0:
		return info, true
	case ok && info.bit&OfFetch != 0:
		r.fail(root, "%s is not known here: it is of a mapping's fetch:, and there is none", text)
	case ok && info.bit&(Item|Index) != 0:
		r.fail(root, "%s is not known here: it is of one element of a mapping's each:, and this expression is of none", text)
	case ok:
		r.fail(root, "%s is not known here: this expression can read %s", text, r.allowed)
	default:
		hint := fmt.Sprintf("For the text %s write '\"%s\"'.", text, text)
		if near := Nearest(text, r.allowed.Texts()); near != "" {
			hint = fmt.Sprintf("Did you mean %s? %s", near, hint)
		}
		r.fail(root, "`%s` is not a name Hookfold knows. %s", text, hint)
	}
	return nameInfo{}, false
}

// pathUse makes the leaf of a path.
func (r *rewriter) pathUse(e, root ast.Expr, steps []chainStep, use Use, fn string) {
	info, ok := r.name(root)
	if !ok {
		r.leaf(e, leafAny, &leaf{value: types.NullValue})
		return
	}
	if !info.tree {
		// has and present of a name without members: is there one?
		if len(steps) > 0 {
			r.fail(root, "%s is %s and has no members", info.text, typeName(info.typ))
		}
		r.reads |= info.bit
		inner := r.fac.NewIdent(r.id(), info.text)
		r.leaf(inner, leafAny, &leaf{name: info.bit})
		e.SetKindCase(r.fac.NewCall(e.ID(), fnPresent, inner))
		return
	}
	r.reads |= info.bit
	line, column := r.at(root)
	p := &PathRef{Root: info.bit, Use: use, Line: line, Column: column, optional: len(steps)}
	for i, s := range steps {
		if s.optional && p.optional == len(steps) {
			p.optional = i
			if use == Get {
				p.Use = Maybe
			}
		}
		p.Steps = append(p.Steps, s.Step)
	}
	r.paths = append(r.paths, p)
	kind := leafAny
	switch p.Use {
	case Maybe:
		kind = leafMaybe
	case Has, Present:
		kind = leafBool
	}
	r.leaf(e, kind, &leaf{path: p, name: info.bit})
}

func (r *rewriter) leaf(e ast.Expr, fn string, l *leaf) {
	l.id = e.ID()
	r.leaves = append(r.leaves, l)
	e.SetKindCase(r.fac.NewCall(e.ID(), fn, r.fac.NewLiteral(r.id(), types.Int(len(r.leaves)-1))))
}

func (r *rewriter) call(e ast.Expr, local []string, tail bool) {
	call := e.AsCall()
	name, args := call.FunctionName(), call.Args()
	if call.IsMemberFunction() {
		target := call.Target()
		if target.Kind() == ast.IdentKind && slices.Contains(namespaces, target.AsIdent()) && !slices.Contains(local, target.AsIdent()) {
			name = target.AsIdent() + "." + name
		} else {
			r.expr(target, local, false)
		}
	}
	if !r.known(e, name) {
		for _, a := range args {
			r.expr(a, local, false)
		}
		return
	}
	r.typeTexts(name, args, local)
	switch {
	case name == "present" && len(args) == 1 && !call.IsMemberFunction():
		if root, steps, ok := r.chain(args[0], local); ok {
			r.pathUse(e, root, steps, Present, "present")
			return
		}
		r.expr(args[0], local, false)
		e.SetKindCase(r.fac.NewCall(e.ID(), fnPresent, args[0]))
	case name == "coalesce" && len(args) > 0 && !call.IsMemberFunction():
		for i, a := range args {
			r.expr(a, local, tail && i == len(args)-1)
		}
		last := r.wrapAny(args[len(args)-1])
		for _, a := range slices.Backward(args[:len(args)-1]) {
			last = r.fac.NewCall(r.id(), fnOr, r.wrapAny(a), last)
		}
		e.SetKindCase(last)
	case name == operators.Conditional && tail:
		r.expr(args[0], local, false)
		r.expr(args[1], local, true)
		r.expr(args[2], local, true)
		e.SetKindCase(r.fac.NewCall(e.ID(), name, args[0], r.wrapAny(args[1]), r.wrapAny(args[2])))
	case name == "timestamp" && len(args) == 2 && args[1].Kind() == ast.LiteralKind:
		if zone, ok := args[1].AsLiteral().(types.String); ok {
			if _, err := location(string(zone)); err != nil {
				r.fail(args[1], "%v", err)
			}
		}
		r.expr(args[0], local, false)
	case name == "present" || name == "coalesce":
		r.fail(e, "%s is written %s", name, map[string]string{"present": "present(event.a)", "coalesce": "coalesce(event.a, event.b, \"else\")"}[name])
	default:
		for _, a := range args {
			r.expr(a, local, false)
		}
	}
}

// typeTexts collects the texts that type is compared with.
func (r *rewriter) typeTexts(name string, args []ast.Expr, local []string) {
	isType := func(e ast.Expr) bool {
		return e.Kind() == ast.IdentKind && e.AsIdent() == "type" && !slices.Contains(local, "type")
	}
	add := func(e ast.Expr) {
		if e.Kind() != ast.LiteralKind {
			return
		}
		if s, ok := e.AsLiteral().(types.String); ok {
			line, column := r.at(e)
			r.types = append(r.types, TypeText{Text: string(s), Line: line, Column: column})
		}
	}
	switch name {
	case operators.Equals, operators.NotEquals:
		if isType(args[0]) {
			add(args[1])
		} else if isType(args[1]) {
			add(args[0])
		}
	case operators.In, "rank":
		if len(args) == 2 && isType(args[0]) && args[1].Kind() == ast.ListKind {
			for _, e := range args[1].AsList().Elements() {
				add(e)
			}
		}
	}
}

func (r *rewriter) wrapAny(e ast.Expr) ast.Expr { return r.fac.NewCall(r.id(), fnAny, e) }

func (r *rewriter) known(e ast.Expr, name string) bool {
	if name == "present" || name == "coalesce" || r.env.HasFunction(name) {
		return true
	}
	var all []string
	for n := range r.env.Functions() {
		if !strings.ContainsAny(n, "@_!-[") {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	hint := ""
	if near := Nearest(name, append(all, "present", "coalesce")); near != "" {
		hint = fmt.Sprintf(" Did you mean %s()?", near)
	}
	r.fail(e, "%s() is not a function Hookfold knows.%s", name, hint)
	return false
}

var numberForm = regexp.MustCompile(`^-?\s*[0-9]*\.?[0-9]*(?:[eE][-+]?[0-9]+)?`)

// literal makes an exact number of a literal that CEL would make a float of.
func (r *rewriter) literal(e ast.Expr) {
	var v ref.Val
	var err error
	switch x := e.AsLiteral().(type) {
	case types.Double:
		text := fmt.Sprint(float64(x))
		if rng, ok := r.info.GetOffsetRange(e.ID()); ok && int(rng.Start) < len(r.text) {
			rest := r.text[rng.Start:min(len(r.text), int(rng.Start)+maxNumberText)]
			if m := numberForm.FindString(string(rest)); strings.ContainsAny(m, "0123456789") {
				text = strings.ReplaceAll(m, " ", "")
			}
		}
		v, err = literalNumber(text)
	case types.Uint:
		v, err = literalNumber(fmt.Sprint(uint64(x)))
	default:
		return
	}
	if err != nil {
		r.fail(e, "%v", err)
		v = types.Int(0)
	}
	r.leaf(e, leafNumber, &leaf{value: v})
}
