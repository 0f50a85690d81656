package expr

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// typeName names a type of the checker as a user knows it.
func typeName(t *cel.Type) string { return readable(t.String()) }

var typeWords = regexp.MustCompile(`\b(int|uint|double|string|bool|timestamp|google\.protobuf\.Timestamp|google\.protobuf\.Duration|dyn|null_type|null|bytes|list|map|optional_type)\b`)

// readable puts the types in a message into words.
func readable(text string) string {
	return typeWords.ReplaceAllStringFunc(text, func(w string) string {
		switch w {
		case "int", "uint", "double":
			return "number"
		case "string":
			return "text"
		case "bool":
			return "true-or-false"
		case "timestamp", "google.protobuf.Timestamp":
			return "time"
		case "google.protobuf.Duration":
			return "duration"
		case "dyn":
			return "any"
		case "null_type":
			return "null"
		case "map":
			return "object"
		case "optional_type":
			return "optional"
		}
		return w
	})
}

func problemAt(e *cel.Error, format string, args ...any) Problem {
	return Problem{Line: max(e.Location.Line(), 1), Column: max(e.Location.Column(), 0) + 1, Text: fmt.Sprintf(format, args...)}
}

var memberWord = regexp.MustCompile(`^mismatched input '(in|true|false|null)' expecting .*IDENTIFIER`)

func syntax(issues *cel.Issues, text string) []Problem {
	e := issues.Errors()[0] // what follows is of the same cause
	message := strings.TrimPrefix(e.Message, "Syntax error: ")
	hint := ""
	switch {
	case strings.Contains(message, "'= '") || strings.Contains(message, "'='"):
		hint = " To compare write ==."
	case strings.Contains(message, "<EOF>"):
		hint = " It ends too early."
	case memberWord.MatchString(message):
		hint = fmt.Sprintf(" Write [%q] for a member of that name.", memberWord.FindStringSubmatch(message)[1])
	case strings.Contains(message, "'and'") || strings.Contains(message, "'or'") || strings.Contains(message, "'not'"):
		hint = " Write && for and, || for or, ! for not."
	}
	return []Problem{problemAt(e, "`%s` is not an expression: %s.%s", clip(text), message, hint)}
}

var overload = regexp.MustCompile(`^found no matching overload for '(.+?)' applied to '(.*)'$`)

// mismatches puts the checker's complaints into words.
func mismatches(issues *cel.Issues) []Problem {
	var out []Problem
	for _, e := range issues.Errors() {
		m := overload.FindStringSubmatch(e.Message)
		if m == nil {
			out = append(out, problemAt(e, "%s", readable(strings.TrimPrefix(e.Message, "ERROR: "))))
			continue
		}
		name, types := m[1], readable(m[2])
		symbol, isOperator := operators.FindReverse(name)
		switch {
		case strings.Contains(types, "optional(") && comparing(name):
			out = append(out, problemAt(e, "%s", optionalText))
		case comparing(name):
			a, b := pair(types)
			out = append(out, problemAt(e, "`%s` compares %s with %s, which are never equal.%s", symbol, a, b, hintFor(a, b)))
		case name == operators.Conditional:
			out = append(out, problemAt(e, "the arms of ?: are of different kinds here: %s", strings.Trim(types, "()")))
		case isOperator && symbol != "":
			out = append(out, problemAt(e, "`%s` cannot be used with %s", symbol, strings.Join(list(types), " and ")))
		default:
			out = append(out, problemAt(e, "%s cannot be used with %s", strings.Trim(name, "@"), types))
		}
	}
	return out
}

func comparing(name string) bool {
	return slices.Contains([]string{
		operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.In,
	}, name)
}

func list(types string) []string {
	return strings.Split(strings.TrimSuffix(strings.TrimPrefix(types, "("), ")"), ", ")
}

func pair(types string) (a, b string) {
	l := list(types)
	return l[0], l[len(l)-1]
}

func hintFor(a, b string) string {
	both := a + "/" + b
	switch both {
	case "number/text", "text/number":
		return " Write string(…) around the number, or double(…) around the text."
	case "time/text", "text/time", "time/number", "number/time":
		return " Write timestamp(…) around what is not yet a time."
	}
	return ""
}

const optionalText = "compares an optional with a plain value, which is never equal. Write .orValue(…) after the optional, or leave out the ?."

// optionals finds comparisons of an optional with something that is none.
func optionals(a *ast.AST) []Problem {
	var out []Problem
	ast.PostOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || !comparing(e.AsCall().FunctionName()) {
			return
		}
		args := e.AsCall().Args()
		if len(args) == 2 && isOptional(a.GetType(args[0].ID())) != isOptional(a.GetType(args[1].ID())) {
			loc := a.SourceInfo().GetStartLocation(e.ID())
			out = append(out, Problem{Line: max(loc.Line(), 1), Column: max(loc.Column(), 0) + 1, Text: optionalText})
		}
	}))
	return out
}
