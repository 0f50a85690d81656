package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/sink"
)

// acceptedUnique tells whether a table may have a unique index besides its key.
func acceptedUnique(t *sink.Table, u sink.Unique) bool {
	return slices.ContainsFunc(t.UnsafeUnique, func(name string) bool {
		return strings.EqualFold(name, u.Name) || len(u.Columns) == 1 && strings.EqualFold(name, u.Columns[0])
	})
}

// unsafeUnique says what is wrong with such an index, and what to do.
func unsafeUnique(t *sink.Table, u sink.Unique) string {
	on := strings.Join(u.Columns, ", ")
	if u.Partial {
		on = "a part of " + on
		if len(u.Columns) == 0 {
			on = "an expression"
		}
	}
	return fmt.Sprintf("unique index %s on (%s) besides the key (%s). MySQL takes any of them for the key, and ON DUPLICATE KEY UPDATE could write another row. Drop the index, make it the key, or say unsafe_unique: [%s]; then a row whose value another row has waits for it",
		u.Name, on, strings.Join(keyOf(t), ", "), u.Name)
}

// unsafe refuses a table that has no unique index on its key, which MySQL would
// fill with doubles, or one that its config does not accept.
func (mysql) unsafe(t *sink.Table, live *sink.Live) error {
	if !live.HasUnique(keyOf(t)) {
		return fmt.Errorf("table %s: no unique index on the key (%s). Create one (hookfold migrate shows how)", t.Name, strings.Join(keyOf(t), ", "))
	}
	for _, u := range live.Uniques {
		if (u.Partial || !sameColumns(u.Columns, keyOf(t))) && !acceptedUnique(t, u) {
			return fmt.Errorf("table %s: %s", t.Name, unsafeUnique(t, u))
		}
	}
	return nil
}

// foldedKey says that different keys are one in a column of the key.
func (d mysql) foldedKey(table string, c *sink.LiveColumn) string {
	return fmt.Sprintf("key column %s has the collation %s, for which different keys are one (aB and ab). Let it compare bytes: alter table %s modify column %s %s character set %s collate %[6]s_bin not null",
		c.Name, c.Collation, quoteTable(d, table), d.quote(c.Name), c.Type, c.Charset)
}
