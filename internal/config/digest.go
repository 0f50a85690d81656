package config

import (
	"fmt"
	"hash/fnv"
	"io"
	"reflect"
	"slices"
	"time"
)

// Digest stands for what parts of a config say: sources, tables and the like.
// Parts that say the same have the same digest, wherever in a file they stand,
// and whatever their secrets are. It is never 0.
func Digest(parts ...any) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		digest(h, reflect.ValueOf(p))
	}
	return max(h.Sum64(), 1)
}

// placed are the fields of which no digest depends: where something stands, and
// what nobody may learn.
var placed = []string{"Pos", "Path", "Quoted", "Secrets", "VerifyToken", "Bearer", "Basic", "Headers"}

func digest(w io.Writer, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.CanInterface() {
			if zone, ok := v.Interface().(*time.Location); ok && zone != nil {
				fmt.Fprintf(w, "%q", zone.String())
				return
			}
		}
		fmt.Fprint(w, v.IsNil(), ";")
		if !v.IsNil() {
			digest(w, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if !slices.Contains(placed, v.Type().Field(i).Name) {
				fmt.Fprint(w, v.Type().Field(i).Name, ":")
				digest(w, v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		fmt.Fprint(w, v.Len(), "[")
		for i := range v.Len() {
			digest(w, v.Index(i))
		}
	case reflect.String:
		fmt.Fprintf(w, "%q,", v.String())
	default: // bools and numbers
		fmt.Fprint(w, v, ",")
	}
}
