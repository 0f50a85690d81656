// Package expr compiles and evaluates the expressions of a config: CEL with one
// kind of number and three kinds of nothing.
//
// # Numbers
//
// A number is an exact decimal, however it is written: 1999 / 100 == 19.99, and
// a 64-bit id keeps its digits. A division without an end (1 / 3) is an error
// where it would have to be written, unless it is rounded: round(x / 3, 2).
// Comparing values of unlike kinds is an error that names both, not false.
//
// # Nothing
//
// A path that the event lacks is an error that names the step that is missing.
// event.?a is optional: absent, if it is not there. null is a value, and unset
// says nothing at all. present(path) tells whether something is there and not
// null; coalesce(a, b, …) gives the first that is.
//
// # How it is done
//
// The parsed expression is rewritten before it is type-checked. Each path from a
// name of Hookfold (event.payload.uri) becomes one leaf, which walks the event's
// JSON lazily and knows the text of its steps; literals with a fraction become
// exact numbers. For the type checker, every number is an int. Operators are
// replaced when the expression is planned. So CEL's parser, checker, evaluator
// and extensions are used as they are.
package expr
