package expr

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/hookfold/hookfold/event"
)

// Nothing is the value of an expression that has none.
type Nothing struct{ text string }

// The two kinds of nothing besides null. Absent is an optional that is not
// there, Unset says nothing about its column.
var (
	Absent = &Nothing{"nothing (an optional that is not there)"}
	Unset  = &Nothing{"unset"}
)

var nothingType = types.NewOpaqueType("nothing")

// ConvertToNative implements ref.Val.
func (n *Nothing) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("%s is not a value", n.text)
}

// ConvertToType implements ref.Val.
func (n *Nothing) ConvertToType(ref.Type) ref.Val { return types.NewErr("%s is not a value", n.text) }

// Equal implements ref.Val.
func (n *Nothing) Equal(ref.Val) ref.Val { return types.NewErr("%s cannot be compared", n.text) }

// Type implements ref.Val.
func (n *Nothing) Type() ref.Type { return nothingType }

// Value implements ref.Val.
func (n *Nothing) Value() any { return nil }

// Wrap makes the value of a piece of JSON.
func Wrap(j event.JSON) ref.Val { return wrap(j, &Input{}) }

// wrap makes the value of a piece of JSON; lists and objects stay lazy.
func wrap(j event.JSON, in *Input) ref.Val {
	switch j.Kind() {
	case event.String:
		in.work(2 * len(j.Raw()))
		if !j.WellFormed() {
			in.badText++
		}
		return types.String(j.Text())
	case event.Number:
		in.work(2 * len(j.Raw()))
		return parseNumber(j.Digits())
	case event.Bool:
		return types.Bool(j.Bool())
	case event.Array:
		return &List{JSON: j, in: in}
	case event.Object:
		return &Object{JSON: j, in: in}
	}
	return types.NullValue
}

// Object is an object of the event.
type Object struct {
	event.JSON
	in *Input
}

// List is a list of the event.
type List struct {
	event.JSON
	in   *Input
	list traits.Lister
}

// Find implements traits.Mapper.
func (o *Object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	o.in.work(perMember)
	v := o.JSON.Get(string(name))
	if v.Kind() == event.Missing {
		return nil, false
	}
	return wrap(v, o.in), true
}

// Get implements traits.Mapper.
func (o *Object) Get(key ref.Val) ref.Val {
	if v, ok := o.Find(key); ok {
		return v
	}
	return types.NewErr("no such key: %v", key.Value())
}

// Contains implements traits.Mapper.
func (o *Object) Contains(key ref.Val) ref.Val {
	_, ok := o.Find(key)
	return types.Bool(ok)
}

// Size implements traits.Mapper.
func (o *Object) Size() ref.Val { return types.Int(o.Len()) }

// Iterator implements traits.Mapper.
func (o *Object) Iterator() traits.Iterator {
	o.in.work(times(o.Len(), 5*perMember))
	keys := make([]ref.Val, 0, o.Len())
	for _, n := range o.Names() {
		keys = append(keys, types.String(n))
	}
	return types.NewRefValList(types.DefaultTypeAdapter, keys).Iterator()
}

// ConvertToNative implements ref.Val.
func (o *Object) ConvertToNative(reflect.Type) (any, error) {
	return nil, fmt.Errorf("an object cannot be used here")
}

// ConvertToType implements ref.Val.
func (o *Object) ConvertToType(t ref.Type) ref.Val {
	if t == types.MapType {
		return o
	}
	return types.NewErr("an object is not a %s", t.TypeName())
}

// Equal implements ref.Val.
func (o *Object) Equal(other ref.Val) ref.Val { return o.in.equal(o, other) }

// Type implements ref.Val.
func (o *Object) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (o *Object) Value() any { return o.JSON }

// entered is a list whose elements are values already, and how many bad texts
// are among them.
type entered struct {
	list traits.Lister
	bad  int
}

// elements gives the list with its elements as values. They are made once, for a
// list that is gone through anew for each element of another.
func (l *List) elements() traits.Lister {
	if l.list != nil {
		return l.list
	}
	if known, ok := l.in.lists[l.JSON]; ok {
		l.in.badText += known.bad
		l.list = known.list
		return l.list
	}
	before := l.in.badText
	l.in.work(times(l.Len(), 2*perMember))
	vals := make([]ref.Val, l.Len())
	for i := range vals {
		vals[i] = wrap(l.At(i), l.in)
	}
	l.list = types.NewRefValList(types.DefaultTypeAdapter, vals)
	if l.in.lists == nil {
		l.in.lists = map[event.JSON]entered{}
	}
	l.in.lists[l.JSON] = entered{l.list, l.in.badText - before}
	return l.list
}

// Add implements traits.Lister.
func (l *List) Add(other ref.Val) ref.Val {
	if o, ok := other.(*List); ok {
		other = o.elements()
	}
	return l.elements().Add(other)
}

// Contains implements traits.Lister.
func (l *List) Contains(v ref.Val) ref.Val { return l.elements().Contains(v) }

// Get implements traits.Lister.
func (l *List) Get(i ref.Val) ref.Val { return l.elements().Get(i) }

// Iterator implements traits.Lister.
func (l *List) Iterator() traits.Iterator { return l.elements().Iterator() }

// Size implements traits.Lister.
func (l *List) Size() ref.Val { return types.Int(l.Len()) }

// ConvertToNative implements ref.Val.
func (l *List) ConvertToNative(t reflect.Type) (any, error) { return l.elements().ConvertToNative(t) }

// ConvertToType implements ref.Val.
func (l *List) ConvertToType(t ref.Type) ref.Val {
	if t == types.ListType {
		return l
	}
	return types.NewErr("a list is not a %s", t.TypeName())
}

// Equal implements ref.Val.
func (l *List) Equal(other ref.Val) ref.Val { return l.in.equal(l, other) }

// Type implements ref.Val.
func (l *List) Type() ref.Type { return types.ListType }

// Value implements ref.Val.
func (l *List) Value() any { return l.elements().Value() }

// kind is the kind of a value, as comparisons see it.
type kind string

func kindOf(v ref.Val) kind {
	switch v.(type) {
	case types.Int, *Number:
		return "number"
	case types.String:
		return "text"
	case types.Bool:
		return "bool"
	case types.Null:
		return "null"
	case types.Timestamp:
		return "time"
	case types.Duration:
		return "duration"
	case types.Bytes:
		return "bytes"
	case *types.Optional:
		return "optional"
	case *Nothing:
		return "nothing"
	}
	switch v.(type) {
	case traits.Lister:
		return "list"
	case traits.Mapper:
		return "object"
	}
	return "other"
}

// Describe tells a person what a value is: the number 1001, the text "a".
func Describe(v ref.Val) string { return describe(v) }

func describe(v ref.Val) string {
	switch x := v.(type) {
	case types.Int:
		return fmt.Sprintf("the number %d", int64(x))
	case *Number:
		return "the number " + x.show()
	case types.String:
		return fmt.Sprintf("the text %q", clip(string(x)))
	case types.Bool:
		return fmt.Sprint(bool(x))
	case types.Null:
		return "null"
	case types.Timestamp:
		return "the time " + x.Time.UTC().Format(time.RFC3339Nano)
	case types.Duration:
		return "the duration " + x.Duration.String()
	case *types.Optional:
		if !x.HasValue() {
			return Absent.text
		}
		return "an optional with " + describe(x.GetValue())
	case *Nothing:
		return x.text
	}
	switch k := kindOf(v); k {
	case "object":
		return "an object"
	case "list", "bytes":
		return "a list of " + map[kind]string{"list": "values", "bytes": "bytes"}[k]
	}
	return "a value of type " + v.Type().TypeName()
}

func clip(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}
