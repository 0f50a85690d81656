package merge

import (
	"maps"

	"github.com/cockroachdb/apd/v3"
)

// one is what each event adds to a Count.
var one = Value{text: "1", ok: true}

// counted makes the ledger of one change. A sum of NULL, or a count of false
// and NULL, adds nothing.
func counted(c *Change, col *Column, cell Cell) Cell {
	v := cell.Value
	if v.IsNull() {
		return Cell{}
	}
	if col.Rule == Count {
		v = one
	}
	return Cell{Set: true, Value: v, Ledger: map[string]Amount{c.Identity: {Version: c.Version, Value: v}}}
}

// joinLedgers joins two ledgers by event. What a total has beside its ledger (it
// was there before Hookfold came) is kept. x need only hold the entries of the
// events that y has, as long as y holds all of its own.
func joinLedgers(x, y Cell) Cell {
	p := Post(x.Ledger, y.Ledger)
	all := maps.Clone(x.Ledger)
	if all == nil {
		all = map[string]Amount{}
	}
	maps.Copy(all, p.Changed)
	total := plus(number(x.Value), number(p.Delta))
	total = plus(total, number(y.Value))
	total = plus(total, new(apd.Decimal).Neg(number(Total(y.Ledger))))
	return Cell{Set: true, Ledger: all, Value: numeric(total)}
}

// number reads a total; NULL is zero.
func number(v Value) *apd.Decimal {
	if v.IsNull() {
		return new(apd.Decimal)
	}
	return decimal(v.text)
}

func newerAmount(a, b Amount) bool {
	return a.Version > b.Version || a.Version == b.Version && a.Value.text > b.Value.text
}

// Total adds up a ledger, exactly.
func Total(ledger map[string]Amount) Value {
	sum := new(apd.Decimal)
	for _, a := range ledger {
		sum = plus(sum, decimal(a.Value.text))
	}
	return numeric(sum)
}

// Posting is what entering amounts into a ledger does to it.
type Posting struct {
	// Changed holds the amounts that are new, or newer than what the ledger
	// has.
	Changed map[string]Amount
	// Delta is what they add to the total.
	Delta Value
}

// Post tells what entering amounts into a ledger does, given what the ledger
// has for their events.
func Post(has, amounts map[string]Amount) Posting {
	p := Posting{Changed: map[string]Amount{}}
	delta := new(apd.Decimal)
	for id, b := range amounts {
		a, ok := has[id]
		if ok && !newerAmount(b, a) {
			continue
		}
		p.Changed[id] = b
		delta = plus(delta, decimal(b.Value.text))
		if ok {
			delta = plus(delta, new(apd.Decimal).Neg(decimal(a.Value.text)))
		}
	}
	p.Delta = numeric(delta)
	return p
}

func plus(a, b *apd.Decimal) *apd.Decimal {
	sum := new(apd.Decimal)
	// Without a precision the context adds exactly.
	if _, err := apd.BaseContext.Add(sum, a, b); err != nil {
		panic("merge: adding two numbers: " + err.Error())
	}
	return sum
}

func numeric(d *apd.Decimal) Value {
	text, err := parseNumeric(Type{Kind: Numeric}, d.Text('f'))
	if err != nil {
		panic("merge: a total is no number: " + err.Error())
	}
	return Value{text: text, ok: true}
}

// Recounted gives a counter anew: stored as it is, with all of its ledger, and
// said as the events that are known now make it. What the events that are not
// known any more have added stays, and so does what was there before any event.
func Recounted(stored, said Cell) Cell {
	all := maps.Clone(stored.Ledger)
	if all == nil {
		all = map[string]Amount{}
	}
	maps.Copy(all, said.Ledger)
	if len(all) == 0 && stored.Value.IsNull() {
		return said
	}
	base := plus(number(stored.Value), new(apd.Decimal).Neg(number(Total(stored.Ledger))))
	return Cell{Set: true, Ledger: all, Value: numeric(plus(base, number(Total(all))))}
}
