package expr

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// Number is a number that is not a plain 64-bit integer, which is a types.Int: a
// decimal with the digits it was written with, or the exact result of a
// computation.
type Number struct {
	text string   // as written, "" for a result
	rat  *big.Rat // nil until it is needed
}

var numberType = types.NewOpaqueType("number")

const (
	maxNumberText = 1100 // characters of a number
	maxExponent   = 1000
	maxNumberBits = 8192 // of a result
)

var (
	errTooLong = fmt.Errorf("a number with more than %d digits", maxExponent)
	errEndless = errors.New("a number without an end as a decimal: round it, as in round(x / 3, 2)")
	errNoZero  = errors.New("a division by zero")
)

// parseNumber makes a number of a JSON number's digits.
func parseNumber(digits string) ref.Val {
	if len(digits) <= 19 {
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
			return types.Int(n)
		}
	}
	return &Number{text: digits}
}

// literalNumber makes a number of text, with its value computed, so that it can
// be shared.
func literalNumber(text string) (ref.Val, error) {
	r, err := parseRat(strings.TrimPrefix(text, "+"))
	if err != nil {
		return nil, err
	}
	return result(r), nil
}

func parseRat(text string) (*big.Rat, error) {
	if len(text) > maxNumberText {
		return nil, errTooLong
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		exp, err := strconv.Atoi(text[i+1:])
		if err != nil || exp > maxExponent || exp < -maxExponent {
			return nil, errTooLong
		}
	}
	if strings.Trim(text, "+-0123456789.eE") != "" || text == "" {
		return nil, fmt.Errorf("%q is not a number", clip(text))
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, fmt.Errorf("%q is not a number", clip(text))
	}
	return r, nil
}

func (n *Number) value() (*big.Rat, error) {
	if n.rat == nil {
		r, err := parseRat(n.text)
		if err != nil {
			return nil, err
		}
		n.rat = r
	}
	return n.rat, nil
}

// Digits returns the number as text: the digits it was written with, or those of
// the result.
func (n *Number) Digits() (string, error) {
	if n.text != "" {
		return n.text, nil
	}
	places, exact := n.rat.FloatPrec()
	if !exact {
		return "", errEndless
	}
	return n.rat.FloatString(places), nil
}

// show is Digits for a message.
func (n *Number) show() string {
	if s, err := n.Digits(); err == nil {
		return clip(s)
	}
	return clip(n.rat.RatString())
}

// result makes the value of an exact result: an Int where it is one.
func result(r *big.Rat) ref.Val {
	if r.IsInt() && r.Num().IsInt64() {
		return types.Int(r.Num().Int64())
	}
	if r.Num().BitLen()+r.Denom().BitLen() > maxNumberBits {
		return types.WrapErr(errTooLong)
	}
	return &Number{rat: r}
}

// ratOf returns the value of a number; ok is false if v is none.
func ratOf(v ref.Val) (r *big.Rat, ok bool, err error) {
	switch n := v.(type) {
	case types.Int:
		return new(big.Rat).SetInt64(int64(n)), true, nil
	case *Number:
		r, err := n.value()
		return r, true, err
	}
	return nil, false, nil
}

func isNumber(v ref.Val) bool {
	switch v.(type) {
	case types.Int, *Number:
		return true
	}
	return false
}

// compareNumbers compares two numbers.
func compareNumbers(a, b ref.Val) (int, error) {
	if x, ok := a.(types.Int); ok {
		if y, ok := b.(types.Int); ok {
			switch {
			case x < y:
				return -1, nil
			case x > y:
				return 1, nil
			}
			return 0, nil
		}
	}
	x, _, err := ratOf(a)
	if err != nil {
		return 0, err
	}
	y, _, err := ratOf(b)
	if err != nil {
		return 0, err
	}
	return x.Cmp(y), nil
}

// arithmetic computes with two numbers.
func arithmetic(op byte, a, b ref.Val) ref.Val {
	if x, ok := a.(types.Int); ok {
		if y, ok := b.(types.Int); ok {
			if v, ok := intArithmetic(op, int64(x), int64(y)); ok {
				return types.Int(v)
			}
		}
	}
	x, _, err := ratOf(a)
	if err != nil {
		return types.WrapErr(err)
	}
	y, _, err := ratOf(b)
	if err != nil {
		return types.WrapErr(err)
	}
	switch z := new(big.Rat); op {
	case '+':
		return result(z.Add(x, y))
	case '-':
		return result(z.Sub(x, y))
	case '*':
		return result(z.Mul(x, y))
	case '/':
		if y.Sign() == 0 {
			return types.WrapErr(errNoZero)
		}
		return result(z.Quo(x, y))
	default: // %: what is left of a whole division, with the sign of x
		if y.Sign() == 0 {
			return types.WrapErr(errNoZero)
		}
		z.Quo(x, y)
		whole := new(big.Int).Quo(z.Num(), z.Denom())
		return result(z.Sub(x, z.Mul(y, new(big.Rat).SetInt(whole))))
	}
}

// intArithmetic computes in 64 bits; ok is false where that is not exact.
func intArithmetic(op byte, x, y int64) (z int64, ok bool) {
	switch op {
	case '+':
		z = x + y
		return z, (z > x) == (y > 0)
	case '-':
		z = x - y
		return z, (z < x) == (y > 0)
	case '*':
		if x > math.MinInt32 && x < math.MaxInt32 && y > math.MinInt32 && y < math.MaxInt32 {
			return x * y, true
		}
	case '/':
		if y != 0 && y != -1 && x%y == 0 {
			return x / y, true
		}
	case '%':
		if y != 0 && y != -1 {
			return x % y, true
		}
	}
	return 0, false
}

// round rounds a number to places behind the point, half away from zero.
func round(v ref.Val, places int64) ref.Val {
	if places < -maxExponent || places > maxExponent {
		return types.NewErr("round to %d places: at most %d", places, maxExponent)
	}
	if _, ok := v.(types.Int); ok && places >= 0 {
		return v
	}
	r, ok, err := ratOf(v)
	if err != nil {
		return types.WrapErr(err)
	}
	if !ok {
		return types.NewErr("round takes a number, not %s", describe(v))
	}
	scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(abs(places)), nil))
	if places < 0 {
		scale.Inv(scale)
	}
	scaled := new(big.Rat).Mul(r, scale)
	half := big.NewRat(int64(scaled.Sign()), 2)
	scaled.Add(scaled, half)
	whole := new(big.Rat).SetInt(new(big.Int).Quo(scaled.Num(), scaled.Denom()))
	return result(whole.Quo(whole, scale))
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

// truncate cuts off what is behind the point.
func truncate(v ref.Val) ref.Val {
	r, _, err := ratOf(v)
	if err != nil {
		return types.WrapErr(err)
	}
	return result(new(big.Rat).SetInt(new(big.Int).Quo(r.Num(), r.Denom())))
}

// ConvertToNative implements ref.Val.
func (n *Number) ConvertToNative(t reflect.Type) (any, error) {
	if t.Kind() == reflect.String {
		return n.Digits()
	}
	return nil, fmt.Errorf("the number %s is not an integer of 64 bits", n.show())
}

// ConvertToType implements ref.Val.
func (n *Number) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.StringType:
		s, err := n.Digits()
		if err != nil {
			return types.WrapErr(err)
		}
		return types.String(s)
	case types.TypeType:
		return numberType
	}
	return types.NewErr("the number %s is not a %s", n.show(), t.TypeName())
}

// Equal implements ref.Val.
func (n *Number) Equal(o ref.Val) ref.Val {
	if !isNumber(o) {
		return types.False
	}
	c, err := compareNumbers(n, o)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Bool(c == 0)
}

// Type implements ref.Val.
func (n *Number) Type() ref.Type { return numberType }

// Value implements ref.Val.
func (n *Number) Value() any { return n.show() }
