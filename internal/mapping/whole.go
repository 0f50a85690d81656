package mapping

import (
	"crypto/sha256"

	"cel.dev/cel-go/common/types/ref"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/merge"
)

// ofDelivery are the names that mean the same for every event of a delivery, or
// for every one with the same envelope.
const ofDelivery = expr.Source | expr.Envelope | expr.Body | expr.Raw | expr.Headers | expr.Query | expr.Path

// kept is what is made of a delivery as a whole, and of one envelope, once for
// all of the events that have it.
type kept struct {
	// input is that of these expressions alone: their values are lists and
	// objects that read on, and count bad texts there.
	input   expr.Input
	results map[*expr.Program]*evaluated
	values  map[placed]made
	digests map[expr.Names][]byte
}

// placed is an expression in its place: the member of its object is "" unless
// the object gives several columns.
type placed struct {
	expr   *Expr
	member string
}

type made struct {
	value    merge.Value
	replaced int
	err      error
}

// keptFor is the key of a kept; envelope is Missing in that of what reads no
// envelope.
type keptFor struct{ envelope event.JSON }

// ofWhole tells of an expression that has one value for all events of the
// delivery.
func (v *evaluation) ofWhole(e *Expr) bool {
	return e.Reads != 0 && e.Reads&^ofDelivery == 0 && v.event.Delivery.Memo != nil
}

// kept returns what is kept for expressions that read names of the delivery.
func (v *evaluation) kept(reads expr.Names) *kept {
	e := v.event
	var key keptFor
	if reads&expr.Envelope != 0 {
		key.envelope = e.Envelope
	}
	return e.Delivery.Memo.Remember(key, func() any {
		w := &kept{results: map[*expr.Program]*evaluated{}, values: map[placed]made{}, digests: map[expr.Names][]byte{}}
		w.input.Reset(e, v.source.Config.Zone)
		w.input.ReadBody = v.source.readBody
		return w
	}).(*kept)
}

func (w *kept) eval(e *Expr) *evaluated {
	r := w.results[e.Program]
	if r == nil {
		before := w.input.BadText()
		r = &evaluated{done: true}
		r.val, r.err = e.Eval(&w.input)
		r.bad = w.input.BadText() - before
		w.results[e.Program] = r
	}
	return r
}

func (w *kept) digest(name expr.Names, text func() []byte) []byte {
	d := w.digests[name]
	if d == nil {
		sum := sha256.Sum256(text())
		d = sum[:]
		w.digests[name] = d
	}
	return d
}

// value makes the value of a column of an expression's, or of a member of its.
func (v *evaluation) value(e *Expr, member string, t merge.Type, val ref.Val, bad int) (merge.Value, int, error) {
	if !v.ofWhole(e) {
		return v.valuer.value(t, val, bad)
	}
	w := v.kept(e.Reads)
	m, ok := w.values[placed{e, member}]
	if !ok {
		m.value, m.replaced, m.err = v.valuer.value(t, val, bad)
		w.values[placed{e, member}] = m
	}
	return m.value, m.replaced, m.err
}
