package expr

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"github.com/hookfold/hookfold/event"
)

// Input is what expressions are evaluated over: one event, or while its source
// is still splitting, one delivery. It is used by one goroutine at a time.
type Input struct {
	// Event is nil while a delivery is being split.
	Event    *event.Event
	Delivery *event.Delivery
	// Body is the delivery's body as its source reads it; if Missing it is read
	// when it is needed, by ReadBody, which is nil for plain JSON.
	Body     event.JSON
	ReadBody func(*event.Delivery) (event.JSON, error)
	// Zone is where times without an offset are read; nil refuses them.
	Zone *time.Location
	// Item and Index are the element of a list that is being mapped, and its
	// place.
	Item  event.JSON
	Index int
	// Fetched is what was fetched for the event; nil is nothing.
	Fetched *event.Fetched
	// Apart makes position tell apart the events of one delivery: 7, 7.000001,
	// 7.000002.
	Apart bool

	badText int
	// Of one evaluation: whether it is under way, what it has spent, and the
	// bytes that it has made.
	evaluating   bool
	worked, made int
	spent        int                    // by the evaluations before, over the same event
	lists        map[event.JSON]entered // the lists of the event that were entered
	query        event.JSON
	// answers are the bodies of what was fetched.
	answers map[*event.Fetched]event.JSON
}

// Reset makes an input ready for another event.
func (in *Input) Reset(e *event.Event, zone *time.Location) {
	*in = Input{Event: e, Delivery: e.Delivery, Zone: zone}
}

// BadText counts the texts read so far that hold NUL or are not UTF-8.
func (in *Input) BadText() int { return in.badText }

const inputName = "@in"

// ResolveName implements interpreter.Activation.
func (in *Input) ResolveName(name string) (any, bool) {
	if name == inputName {
		return in, true
	}
	return nil, false
}

// Parent implements interpreter.Activation.
func (in *Input) Parent() interpreter.Activation { return nil }

func inputOf(frame *interpreter.ExecutionFrame) *Input {
	if in, ok := frame.Scope().(*Input); ok {
		return in
	}
	v, _ := frame.ResolveName(inputName)
	return v.(*Input)
}

// scalar gives the value of a name that has no members.
func (in *Input) scalar(name Names) ref.Val {
	d, e := in.Delivery, in.Event
	switch name {
	case Source:
		return types.String(d.Source)
	case Path:
		return types.String(d.Path)
	case Raw:
		return types.Bytes(d.Body)
	case Position:
		if in.Apart && e != nil && e.Index > 0 {
			return parseNumber(fmt.Sprintf("%d.%06d", d.Position, e.Index))
		}
		return types.Int(d.Position)
	case Index:
		return types.Int(in.Index)
	case UnsetName:
		return Unset
	case Received:
		at := d.Received
		if e != nil && !e.FirstReceived.IsZero() {
			at = e.FirstReceived
		}
		return types.Timestamp{Time: at}
	case FetchedStatus, FetchedAt:
		switch f := in.Fetched; {
		case f == nil:
			return types.WrapErr(&MissingError{Text: "nothing was fetched"})
		case name == FetchedStatus:
			return types.Int(f.Status)
		default:
			return types.Timestamp{Time: f.At}
		}
	case Type:
		return textOrNull(e.Type)
	case ID:
		return textOrNull(e.ID)
	}
	switch { // Time
	case e.TimeError != "":
		return types.NewErr("the event's time cannot be read: %s", e.TimeError)
	case e.Time.IsZero():
		return types.WrapErr(&MissingError{Text: "the event has no time"})
	}
	return types.Timestamp{Time: e.Time}
}

func textOrNull(s string) ref.Val {
	if s == "" {
		return types.NullValue
	}
	return types.String(s)
}

// tree gives the root of a name that has members; headers are apart.
func (in *Input) tree(name Names) event.JSON {
	switch name {
	case Event:
		return in.Event.Body
	case Envelope:
		return in.Event.Envelope
	case Item:
		return in.Item
	case Fetched:
		return in.answer()
	case Query:
		if in.query.Kind() == event.Missing {
			in.query = in.once(Query, func() event.JSON { return queryTree(in.Delivery.Query) })
		}
		return in.query
	}
	if in.Body.Kind() == event.Missing {
		in.Body = in.once(Body, in.readBody)
	}
	return in.Body
}

// answer gives the body of what was fetched: null if the thing is not there,
// nothing if it was not fetched.
func (in *Input) answer() event.JSON {
	f := in.Fetched
	if f == nil {
		return event.JSON{}
	}
	j, ok := in.answers[f]
	if !ok {
		body := f.Body
		if len(body) == 0 {
			body = []byte("null")
		}
		j, _ = event.ParseJSON(body) // whoever fetched it has read it before
		if in.answers == nil {
			in.answers = map[*event.Fetched]event.JSON{}
		}
		in.answers[f] = j
	}
	return j
}

// status gives the status of the answer.
func (in *Input) status() event.JSON {
	j, err := event.ParseJSON(strconv.AppendInt(nil, int64(in.Fetched.Status), 10))
	if err != nil {
		panic("expr: a number does not parse: " + err.Error())
	}
	return j
}

func (in *Input) readBody() (body event.JSON) {
	if in.ReadBody != nil {
		body, _ = in.ReadBody(in.Delivery) // its source has read it before
	} else {
		body, _ = event.ParseJSON(in.Delivery.Body)
	}
	return body
}

// once makes something of the delivery once for all of its events.
func (in *Input) once(name Names, make func() event.JSON) event.JSON {
	return in.Delivery.Memo.Remember(name, func() any { return make() }).(event.JSON)
}

// queryTree makes an object of a query: the first value of each name.
func queryTree(raw string) event.JSON {
	values, _ := url.ParseQuery(raw) // what can be read counts
	first := map[string]string{}
	for name, v := range values {
		first[name] = v[0]
	}
	return object(first)
}

// header returns a header by any spelling of its name; several of one name are
// joined by a comma.
func (in *Input) header(name string) (string, bool) {
	values := in.Delivery.Header.Values(name)
	return strings.Join(values, ", "), len(values) > 0
}

func (in *Input) headers() event.JSON {
	return in.once(Headers, func() event.JSON {
		all := map[string]string{}
		for name, v := range in.Delivery.Header {
			all[strings.ToLower(name)] = strings.Join(v, ", ")
		}
		return object(all)
	})
}

func object(members map[string]string) event.JSON {
	var b strings.Builder
	b.WriteByte('{')
	for name, v := range members {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(event.Quote(name).Raw())
		b.WriteByte(':')
		b.Write(event.Quote(v).Raw())
	}
	b.WriteByte('}')
	j, err := event.ParseJSON([]byte(b.String()))
	if err != nil {
		panic("expr: an object of quoted texts does not parse: " + err.Error())
	}
	return j
}
