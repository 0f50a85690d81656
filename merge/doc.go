// Package merge says what is right: it joins changes into rows. It does no I/O
// and reads no clock, and every sink is tested against it.
//
// # The algebra
//
// A [Change] is what one event says about one row. [Lift] makes it a [Row], and
// [Join] joins two rows of one key. Join is
//
//	commutative   Join(a, b) = Join(b, a)
//	associative   Join(a, Join(b, c)) = Join(Join(a, b), c)
//	idempotent    Join(a, a) = a
//
// so a row does not depend on the order in which its changes came, on how often
// each came, or on how they were grouped into batches. Per rule, with v the
// version of a change and x its value:
//
//	latest  (v, x) ⊔ (w, y) = the one with the greater version
//	first   (v, x) ⊔ (w, y) = the one with the smaller version
//	max     x ⊔ y = the greater;  NULL ⊔ y = y
//	min     x ⊔ y = the smaller;  NULL ⊔ y = y
//	ladder  x ⊔ y = the higher rung;  NULL ⊔ y = y
//	union   x ⊔ y = x ∪ y, sorted;  NULL ⊔ y = y
//	touch   no part of the algebra: the sink sets it when a value changes
//
// Unset is the neutral element of every rule. All latest columns of one scope
// share one version: they are one register whose value is a tuple.
//
// # Versions
//
// A [Version] is the declared tuple, then a kind (write 0, delete 1, so that a
// delete wins its own instant), then a hash of what the mapping could read, so
// that two different events never compare equal. It is made once, when the
// event is mapped, in text of one width; memory and databases compare those
// bytes and nothing else. The empty version is NULL and older than all.
//
// # Occupants
//
// Several identities may hold one row in turn. Each has a record of its own,
// the join of the changes that are about it; the row shows the record of the
// newest one: the greatest since, then the greatest id. [Project] replaces, it
// does not join: nothing of an earlier occupant shows through. Columns of scope
// "key" belong to the row itself, whoever holds it.
package merge
