package merge

// Waits is a change that cannot land, and what it lacks.
type Waits struct {
	Change *Change
	// For is the parent that nobody brings; nil if it is the change's own row,
	// which the change may not insert.
	For *Parent
}

// Stubs are the changes that insert the parents of a change, those that it does
// not wait for.
func (c *Change) Stubs() []*Change {
	var out []*Change
	for _, p := range c.Parents {
		if !p.Wait {
			out = append(out, Stub(p, c))
		}
	}
	return out
}

// Ready tells which of all the changes there are land in the end, in whatever
// order they come, and which wait for ever: for a parent that no change that
// lands brings, or for their own row, which they may not insert. What only a
// database can judge, such as a unique value, is left to it.
func Ready(changes []*Change) (ready []*Change, waits []Waits) {
	lands := make(map[*Change]bool, len(changes))
	for more := true; more; {
		more = false
		known := knownRows(changes, lands)
		for _, c := range changes {
			if !lands[c] {
				if _, lacks := lacking(c, known); !lacks {
					lands[c], more = true, true
				}
			}
		}
	}
	known := knownRows(changes, lands)
	for _, c := range changes {
		if lands[c] {
			ready = append(ready, c)
			continue
		}
		parent, _ := lacking(c, known)
		waits = append(waits, Waits{Change: c, For: parent})
	}
	return ready, waits
}

// known are the rows that changes bring: there tells of a row, heard of also of
// one that is known by its delete alone.
type known struct {
	chains       map[*Table]*Chains
	heard, there map[rowOf]bool
}

type rowOf struct {
	table *Table
	key   Key
}

func knownRows(changes []*Change, lands map[*Change]bool) *known {
	k := &known{chains: map[*Table]*Chains{}, heard: map[rowOf]bool{}, there: map[rowOf]bool{}}
	links := map[*Table]Links{}
	for _, c := range changes {
		if lands[c] {
			for _, l := range c.Links {
				if links[c.Table] == nil {
					links[c.Table] = Links{}
				}
				links[c.Table][l] = true
			}
		}
	}
	for t, l := range links {
		k.chains[t] = NewChains(l)
	}
	for _, c := range changes {
		if !lands[c] {
			continue
		}
		for _, x := range append(c.Stubs(), c) {
			if x.Replaces || x.IfMissing != Insert {
				continue
			}
			row := k.row(x.Table, x.Key)
			k.heard[row] = true
			k.there[row] = k.there[row] || !x.Delete
		}
	}
	return k
}

func (k *known) row(t *Table, key Key) rowOf {
	if t.Chained && k.chains[t] != nil {
		key = NewKey(k.chains[t].Root(string(key)))
	}
	return rowOf{t, key}
}

// lacking returns what a change lacks: a parent, or nil for its own row.
func lacking(c *Change, k *known) (parent *Parent, lacks bool) {
	for i := range c.Parents {
		p := &c.Parents[i]
		if p.Wait && (p.Table != c.Table || p.Key != c.Key) && !k.heard[k.row(p.Table, p.Key)] {
			return p, true
		}
	}
	return nil, c.IfMissing == Wait && !c.Replaces && !k.there[k.row(c.Table, c.Key)]
}
