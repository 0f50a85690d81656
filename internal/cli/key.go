package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookfold/hookfold/internal/mapping"
	"github.com/hookfold/hookfold/merge"
)

// keyOf reads the key of a row: column=value for each of its columns, or the
// value alone where there is one column.
func keyOf(t *mapping.Table, args []string) (merge.Key, error) {
	form := make([]string, len(t.Key))
	for i, k := range t.Key {
		form[i] = k.Name + "=…"
	}
	parts, given := make([]string, len(t.Key)), make([]bool, len(t.Key))
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		i := slices.IndexFunc(t.Key, func(k merge.KeyColumn) bool { return ok && k.Name == name })
		if i < 0 && len(t.Key) == 1 && len(args) == 1 {
			i, text = 0, arg
		}
		if i < 0 {
			return "", fmt.Errorf("%s is no part of the key of %s: write %s", arg, t.Config.Text, strings.Join(form, " "))
		}
		if given[i] {
			return "", fmt.Errorf("%s is given twice", t.Key[i].Name)
		}
		v, err := merge.ParseValue(t.Key[i].Type, text)
		switch {
		case err != nil && ok && text == arg:
			return "", fmt.Errorf("%s is no part of the key of %s: write %s", arg, t.Config.Text, strings.Join(form, " "))
		case err != nil:
			return "", fmt.Errorf("%s: %w", t.Key[i].Name, err)
		}
		parts[i], given[i] = v.Text(), true
	}
	if i := slices.Index(given, false); i >= 0 {
		return "", fmt.Errorf("%s is missing: the key of %s is %s", t.Key[i].Name, t.Config.Text, strings.Join(form, " "))
	}
	return merge.NewKey(parts...), nil
}
