package hasura

import (
	"slices"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
)

// writer joins rows into one relation.
type writer struct {
	*applier
	r *relation
	// shows are the records that rows show besides what is their own, by key: a
	// new row needs them too.
	shows map[merge.Key]*merge.Row
}

// part is a row to be written.
type part struct {
	row *merge.Row
	// update says that the row is there and that no new one is to be inserted.
	update bool
	// was is what is stored of the columns that are read first, nil if there was
	// no such row; swaps are the guards that follow, by the place of the
	// register, and joined the joined values.
	was    stored
	swaps  map[int]exp
	joined map[string][]byte
	// left are the registers that another writer may have got to first.
	left    map[int]bool
	done    bool // it was inserted or changed
	counted bool // it is among those that are counted at the end
}

// partKey tells parts apart: rows by key, records by key and occupant.
type partKey struct {
	key merge.Key
	id  string
}

func (w *writer) keyOf(row answerRow) partKey {
	k, id := w.r.keyOf(row)
	return partKey{k, id}
}

func (w *writer) keyOfPart(p *part) partKey {
	k := partKey{key: p.row.Key}
	if len(w.r.key) > len(w.r.table.Key) {
		k.id = p.row.Occupant.ID
	}
	return k
}

func rowKey(r *merge.Row) merge.Key { return r.Key }

// write joins rows that may be inserted, and guests, which are there. With
// careful it looks first which of the rows are.
func (w *writer) write(inserts, guests []*merge.Row, careful bool) error {
	if w.r.table.Guard == sink.ByTrigger && !careful {
		if err := w.leave(inserts); err != nil {
			return err
		}
		inserts = nil
	}
	var parts []*part
	there := map[partKey]bool{}
	if careful && len(inserts) > 0 {
		found, err := w.lookUp(w.ctx, w.r, keysOf(inserts, rowKey), w.r.keyNames())
		if err != nil {
			return err
		}
		for _, row := range found {
			there[w.keyOf(row)] = true
		}
	}
	for _, r := range inserts {
		p := &part{row: r}
		p.update = there[w.keyOfPart(p)]
		parts = append(parts, p)
	}
	for _, r := range guests {
		parts = append(parts, &part{row: r, update: true})
	}
	if !slices.ContainsFunc(parts, w.swaps) {
		return w.put(parts)
	}
	for round := range maxRounds {
		if err := w.read(parts); err != nil {
			return err
		}
		if err := w.put(parts); err != nil {
			return err
		}
		if err := w.flush(); err != nil {
			return err
		}
		parts = slices.DeleteFunc(parts, func(p *part) bool { return len(p.left) == 0 })
		if len(parts) == 0 {
			return nil
		}
		if err := pause(w.ctx, min(round/4, 4)); err != nil {
			return err
		}
	}
	return operator("table %s: other writers were in the way %d times", w.r.name, maxRounds)
}

// swaps tells whether a part has a register that is read first.
func (w *writer) swaps(p *part) bool {
	return slices.ContainsFunc(w.r.registers, func(g register) bool { return g.swap && g.speaks(p.row) })
}

// read reads what the parts' swapped registers hold, and joins it.
func (w *writer) read(parts []*part) error {
	columns := w.r.keyNames()
	for _, g := range w.r.registers {
		if g.swap {
			columns += " " + g.columns[0].name
		}
	}
	var rows []*merge.Row
	for _, p := range parts {
		if w.swaps(p) {
			rows = append(rows, p.row)
		}
	}
	found, err := w.lookUp(w.ctx, w.r, keysOf(rows, rowKey), columns)
	if err != nil {
		return err
	}
	was := map[partKey]stored{}
	for _, row := range found {
		was[w.keyOf(row)] = stored(row)
	}
	for _, p := range parts {
		p.was, p.swaps, p.joined, p.left = was[w.keyOfPart(p)], map[int]exp{}, map[string][]byte{}, map[int]bool{}
		for i := range w.r.registers {
			g := &w.r.registers[i]
			if !g.swap || !g.speaks(p.row) {
				continue
			}
			if p.was == nil {
				p.left[i] = !p.update // until it is known to have been inserted
				continue
			}
			if guard, value := g.swapped(w.r.table.Table, p.row, p.was); guard != nil {
				p.swaps[i], p.joined[g.columns[0].name], p.left[i] = guard, value, true
			}
		}
		for i, left := range p.left {
			if !left {
				delete(p.left, i)
			}
		}
	}
	return nil
}

// put adds what writes the parts to the mutation.
func (w *writer) put(parts []*part) error {
	var chunk []*part
	var objects [][]byte
	size := 0
	send := func() error {
		if len(chunk) == 0 {
			return nil
		}
		err := w.pushChunk(chunk, objects)
		chunk, objects, size = nil, nil, 0
		return err
	}
	for _, p := range parts {
		if p.update {
			continue
		}
		o := w.r.object(p.row, p.joined, w.shows[p.row.Key])
		if len(chunk) > 0 && (len(chunk) == maxRows || size+len(o) > w.limit()) {
			if err := send(); err != nil {
				return err
			}
		}
		chunk, objects, size = append(chunk, p), append(objects, o), size+len(o)
	}
	if err := send(); err != nil {
		return err
	}
	for _, p := range parts {
		if !p.update {
			continue
		}
		w.tally(p)
		if d := w.update(p); len(d.fields) > 0 {
			if err := w.push(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// pushChunk adds the fields of a chunk, and halves it if they are too much for
// one request.
func (w *writer) pushChunk(chunk []*part, objects [][]byte) error {
	d := w.upserts(chunk, objects)
	if half := len(chunk) / 2; half > 0 && d.bytes() > w.limit() {
		if err := w.pushChunk(chunk[:half], objects[:half]); err != nil {
			return err
		}
		return w.pushChunk(chunk[half:], objects[half:])
	}
	return w.push(d)
}

// upserts makes the fields that insert the parts of a chunk that are not there
// and move the registers of those that are. The first field inserts whole rows;
// the guards of the others find nothing to change in them.
func (w *writer) upserts(chunk []*part, objects [][]byte) *document {
	d := &document{}
	byKey := map[partKey]*part{}
	for _, p := range chunk {
		byKey[w.keyOfPart(p)] = p
	}
	type step struct {
		columns string
		arms    []exp
		swap    int // the register that is swapped, or -1
	}
	var steps []step
	for i := range w.r.registers {
		g := &w.r.registers[i]
		apart := len(w.r.touch) > 0 && (g.rule == merge.Latest || g.rule == merge.First)
		with, without := step{columns: g.names(w.r.touch), swap: -1}, step{columns: g.names(nil), swap: -1}
		if g.swap {
			with.swap = i
		}
		for _, p := range chunk {
			if !g.speaks(p.row) {
				continue
			}
			if g.swap {
				if guard := p.swaps[i]; guard != nil {
					with.arms = append(with.arms, allOf(w.r.sameKey(p.row), guard))
				}
				continue
			}
			for _, m := range g.moves(p.row, apart) {
				to := &with
				if !m.value {
					to = &without
				}
				to.arms = append(to.arms, allOf(w.r.sameKey(p.row), m.guard))
			}
		}
		for _, s := range []step{with, without} {
			if s.arms != nil {
				steps = append(steps, s)
			}
		}
	}
	shared := d.objects(w.r, objects)
	mark := func(each func(*part)) func(answer) {
		return func(a answer) {
			for _, row := range a.Returning {
				if p := byKey[w.keyOf(row)]; p != nil {
					p.done = true
					each(p)
				}
			}
		}
	}
	if slices.ContainsFunc(chunk, w.swaps) {
		// What is inserted is known to hold what it says.
		d.upsert(w.r, shared, "", nil, true, mark(func(p *part) { clear(p.left) }))
	}
	if len(steps)+len(d.fields) <= 1 {
		count := func(a answer) {
			n := min(a.Affected, len(chunk))
			w.result.Written += n
			w.result.Unchanged += len(chunk) - n
		}
		if len(d.fields) == 0 {
			if len(steps) == 0 {
				d.upsert(w.r, shared, "", nil, false, count)
			} else {
				d.upsert(w.r, shared, steps[0].columns, anyOf(steps[0].arms...), false, count)
			}
			return d
		}
	}
	for _, p := range chunk {
		w.tally(p)
	}
	for _, s := range steps {
		d.upsert(w.r, shared, s.columns, anyOf(s.arms...), true, mark(func(p *part) { delete(p.left, s.swap) }))
	}
	return d
}

// update makes the fields that move the registers of a row that is there.
func (w *writer) update(p *part) *document {
	d := &document{}
	for i := range w.r.registers {
		g := &w.r.registers[i]
		if !g.speaks(p.row) {
			continue
		}
		did := func(a answer) {
			if a.Affected > 0 {
				p.done = true
				delete(p.left, i)
			}
		}
		if g.swap {
			if guard := p.swaps[i]; guard != nil {
				d.update(w.r, p.row, g.set(p.row, p.joined[g.columns[0].name], w.r.touch), guard, did)
			}
			continue
		}
		apart := len(w.r.touch) > 0 && (g.rule == merge.Latest || g.rule == merge.First)
		for _, m := range g.moves(p.row, apart) {
			touch := w.r.touch
			if !m.value {
				touch = nil
			}
			d.update(w.r, p.row, g.set(p.row, nil, touch), m.guard, did)
		}
	}
	return d
}
