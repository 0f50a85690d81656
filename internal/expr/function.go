package expr

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/hookfold/hookfold/event"
)

// functionDecls declares the functions that Hookfold adds or replaces. What they
// do is in unaries and calls, by name.
func functionDecls() []cel.EnvOption {
	fn := func(name string, result *cel.Type, args ...*cel.Type) cel.EnvOption {
		id := strings.TrimPrefix(name, "@") + strings.Repeat("_x", len(args))
		return cel.Function(name, cel.Overload("hookfold_"+id, args, result))
	}
	dyn, text, num := cel.DynType, cel.StringType, cel.IntType
	param := cel.TypeParamType("A")
	return []cel.EnvOption{
		fn(leafAny, dyn, num), fn(leafMaybe, cel.OptionalType(dyn), num), fn(leafBool, cel.BoolType, num),
		fn(leafNumber, num, num), fn(leafText, text, num), fn(leafTime, cel.TimestampType, num), fn(leafBytes, cel.BytesType, num),
		fn(fnAny, dyn, param), fn(fnPresent, cel.BoolType, param), fn(fnOr, dyn, dyn, dyn),
		fn("timestamp", cel.TimestampType, dyn), fn("timestamp", cel.TimestampType, dyn, text),
		fn("string", text, dyn), fn("int", num, dyn), fn("double", num, dyn),
		fn("round", num, dyn), fn("round", num, dyn, num),
		fn("json", dyn, dyn), fn("lower", text, dyn), fn("upper", text, dyn), fn("sha256", text, dyn),
		fn("rank", num, dyn, cel.ListType(dyn)),
	}
}

// replaced are functions of CEL's own that Hookfold has its own form of, or that
// make no sense with one kind of number.
var replaced = []string{"timestamp", "string", "int", "uint", "double", "type"}

type callFunc func(in *Input, args []func() ref.Val) ref.Val

var calls = map[string]callFunc{
	fnAny: func(_ *Input, a []func() ref.Val) ref.Val { return a[0]() },
	fnPresent: func(_ *Input, a []func() ref.Val) ref.Val {
		v := a[0]()
		if types.IsError(v) && !isMissing(v) {
			return v
		}
		_, there := there(v)
		return types.Bool(there)
	},
	fnOr: func(_ *Input, a []func() ref.Val) ref.Val {
		v := a[0]()
		if types.IsError(v) && !isMissing(v) {
			return v
		}
		if v, ok := there(v); ok {
			return v
		}
		return a[1]()
	},
	"timestamp": nullSafe(timestamp),
	"string":    nullSafe(toText),
	"int":       nullSafe(toInt),
	"double":    nullSafe(toNumber),
	"round":     nullSafe(roundCall),
	"json":      nullSafe(parseText),
	"lower":     nullSafe(textual("lower", strings.ToLower)),
	"upper":     nullSafe(textual("upper", strings.ToUpper)),
	"sha256":    nullSafe(hash),
	"rank": func(in *Input, a []func() ref.Val) ref.Val {
		x := a[0]()
		if types.IsError(x) {
			return x
		}
		list := a[1]()
		if types.IsError(list) {
			return list
		}
		return rank(in, x, list)
	},
}

// there unwraps a value that is there and not null.
func there(v ref.Val) (ref.Val, bool) {
	switch x := v.(type) {
	case *types.Err, types.Null, *Nothing:
		return nil, false
	case *types.Optional:
		if !x.HasValue() {
			return nil, false
		}
		return there(x.GetValue())
	}
	return v, true
}

// nullSafe makes a function of one value pass on null, and what is absent:
// lower(null) is null.
func nullSafe(do func(in *Input, v ref.Val, rest []func() ref.Val) ref.Val) callFunc {
	return func(in *Input, args []func() ref.Val) ref.Val {
		v := args[0]()
		switch x := v.(type) {
		case *types.Err, types.Null:
			return v
		case *types.Optional:
			if !x.HasValue() {
				return v
			}
			if v = x.GetValue(); v == types.NullValue {
				return v
			}
			r := do(in, v, args[1:])
			if types.IsError(r) {
				return r
			}
			return types.OptionalOf(r)
		}
		return do(in, v, args[1:])
	}
}

func timestamp(in *Input, v ref.Val, rest []func() ref.Val) ref.Val {
	zone := in.Zone
	if len(rest) > 0 {
		name, ok := rest[0]().(types.String)
		if !ok {
			return types.NewErr("timestamp takes the name of a zone, like \"Europe/Berlin\"")
		}
		var err error
		if zone, err = location(string(name)); err != nil {
			return types.WrapErr(err)
		}
	}
	in.work(40 * perCall)
	at, err := TimeOf(v, zone)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.Timestamp{Time: at}
}

// TimeOf reads a value as a time: a time, a text, or a number of units since
// 1970.
func TimeOf(v ref.Val, zone *time.Location) (time.Time, error) {
	switch x := v.(type) {
	case types.Timestamp:
		return x.Time, nil
	case types.String:
		if len(x) > maxTimeText {
			return time.Time{}, &kindError{want: "a time", got: v}
		}
		return event.ParseTime(string(x), zone)
	case types.Int, *Number:
		s, err := Text(x)
		if err != nil {
			return time.Time{}, err
		}
		return event.ParseTime(s, zone)
	}
	return time.Time{}, &kindError{want: "a time", got: v}
}

const maxTimeText = 200 // bytes of a text that may be a time

type kindError struct {
	want string
	got  ref.Val
}

func (e *kindError) Error() string { return describe(e.got) + " is not " + e.want }

var locations sync.Map // name -> *time.Location; names come from the config only

func location(name string) (*time.Location, error) {
	if l, ok := locations.Load(name); ok {
		return l.(*time.Location), nil
	}
	l, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, &zoneError{name}
	}
	locations.Store(name, l)
	return l, nil
}

type zoneError struct{ name string }

func (e *zoneError) Error() string {
	return "\"" + clip(e.name) + "\" is not a time zone: write a name like Europe/Berlin, or UTC"
}

// Text returns the text of a value that has one: a text, the digits of a number,
// true or false, or a time in ISO form.
func Text(v ref.Val) (string, error) {
	switch x := v.(type) {
	case types.String:
		return string(x), nil
	case types.Int:
		return intText(int64(x)), nil
	case *Number:
		return x.Digits()
	case types.Bool:
		if x {
			return "true", nil
		}
		return "false", nil
	case types.Timestamp:
		return x.Time.UTC().Format(time.RFC3339Nano), nil
	case types.Duration:
		return x.Duration.String(), nil
	case types.Bytes:
		if !utf8.Valid(x) {
			return "", &kindError{want: "UTF-8 text", got: v}
		}
		return string(x), nil
	}
	return "", &kindError{want: "text", got: v}
}

// spell spends what it takes to write a value out.
func (in *Input) spell(v ref.Val) {
	if _, ok := v.(*Number); ok {
		in.work(100 * perCall)
	}
	in.work(bulk(v))
}

func toText(in *Input, v ref.Val, _ []func() ref.Val) ref.Val {
	in.spell(v)
	s, err := Text(v)
	if err != nil {
		return types.WrapErr(err)
	}
	return types.String(s)
}

func toNumber(in *Input, v ref.Val, _ []func() ref.Val) ref.Val {
	in.work(1_000 + bulk(v))
	switch x := v.(type) {
	case types.Int, *Number:
		return v
	case types.String:
		n, err := literalNumber(strings.TrimSpace(string(x)))
		if err != nil {
			return types.WrapErr(err)
		}
		return n
	}
	return types.WrapErr(&kindError{want: "a number", got: v})
}

func toInt(in *Input, v ref.Val, rest []func() ref.Val) ref.Val {
	switch x := v.(type) {
	case types.Int:
		return v
	case types.Timestamp:
		return types.Int(x.Unix())
	}
	n := toNumber(in, v, rest)
	if types.IsError(n) {
		return n
	}
	return truncate(n)
}

func roundCall(in *Input, v ref.Val, rest []func() ref.Val) ref.Val {
	in.work(20 * perCall)
	places := int64(0)
	if len(rest) > 0 {
		switch p := rest[0]().(type) {
		case types.Int:
			places = int64(p)
		case *types.Err:
			return p
		default:
			return types.NewErr("round takes a whole number of places")
		}
	}
	return round(v, places)
}

func parseText(in *Input, v ref.Val, _ []func() ref.Val) ref.Val {
	s, ok := v.(types.String)
	if !ok {
		return types.WrapErr(&kindError{want: "text that holds JSON", got: v})
	}
	in.work(times(len(s), 20))
	in.grow(len(s))
	j, err := event.ParseJSON([]byte(s))
	if err != nil {
		return types.NewErr("json(…): %v", err)
	}
	return wrap(j, in)
}

func textual(name string, do func(string) string) func(*Input, ref.Val, []func() ref.Val) ref.Val {
	return func(in *Input, v ref.Val, _ []func() ref.Val) ref.Val {
		s, ok := v.(types.String)
		if !ok {
			return types.NewErr("%s takes text, not %s", name, describe(v))
		}
		in.work(times(len(s), 6))
		in.grow(len(s))
		return types.String(do(string(s)))
	}
}

func hash(in *Input, v ref.Val, _ []func() ref.Val) ref.Val {
	in.work(500 + times(bulk(v), 5))
	var sum [sha256.Size]byte
	switch x := v.(type) {
	case types.String:
		sum = sha256.Sum256([]byte(x))
	case types.Bytes:
		sum = sha256.Sum256(x)
	default:
		return types.WrapErr(&kindError{want: "text or bytes", got: v})
	}
	return types.String(hex.EncodeToString(sum[:]))
}

// rank gives the place of a value in a list, from 1. A text in the list may have
// * in it.
func rank(in *Input, x, of ref.Val) ref.Val {
	list, ok := of.(traits.Lister)
	if !ok {
		return types.NewErr("rank takes a list, not %s", describe(of))
	}
	if o, ok := x.(*types.Optional); ok && o.HasValue() {
		x = o.GetValue()
	}
	place := types.Int(0)
	for i := list.Iterator(); i.HasNext() == types.True; {
		place++
		v := i.Next()
		in.work(perMember + times(bulk(v)+bulk(x), 2))
		if glob, ok := v.(types.String); ok {
			if s, ok := x.(types.String); ok && Glob(string(glob), string(s)) {
				return place
			}
			continue
		}
		if in.equal(x, v) == types.True {
			return place
		}
	}
	return types.NewErr("rank: %s is not in the list", describe(x))
}

// Glob tells whether a pattern, in which * stands for any text, matches the
// whole of s.
func Glob(pattern, s string) bool {
	first, rest, starred := strings.Cut(pattern, "*")
	if !starred {
		return pattern == s
	}
	if !strings.HasPrefix(s, first) {
		return false
	}
	s = s[len(first):]
	for {
		part, more, starred := strings.Cut(rest, "*")
		if !starred {
			return strings.HasSuffix(s, part)
		}
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s, rest = s[i+len(part):], more
	}
}
