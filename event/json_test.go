package event

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func mustParse(t *testing.T, s string) JSON {
	t.Helper()
	j, err := ParseJSON([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestJSONKeepsDigitsAndTellsNullFromMissing(t *testing.T) {
	j := mustParse(t, " {\"id\":9007199254740993,\"x\":null,\"l\":[1,2.50,\"a\\u0000b\"],\"id\":18446744073709551615,\"o\":{\"é\":true}}\n")
	if got := j.Get("id").Digits(); got != "18446744073709551615" {
		t.Errorf("id = %s: the last of two members counts, digit for digit", got)
	}
	if j.Get("x").Kind() != Null || j.Get("y").Kind() != Missing {
		t.Errorf("null and missing are not told apart")
	}
	if got := j.Get("l").At(1).Digits(); got != "2.50" {
		t.Errorf("l[1] = %q", got)
	}
	if s := j.Get("l").At(2); s.Text() != "a\x00b" || s.WellFormed() {
		t.Errorf("text with NUL: %q, well formed %v", s.Text(), s.WellFormed())
	}
	if !j.Path("o", "é").Bool() || j.Path("o", "nope", "deeper").Kind() != Missing {
		t.Errorf("path does not follow names")
	}
	if got := len(j.Names()); got != 4 {
		t.Errorf("%d names, want 4", got)
	}
}

func TestJSONRefusesWhatIsNotOneDocument(t *testing.T) {
	for _, s := range []string{"", "  ", `{"a":"`, `{"a":1}{"b":2}`, `{"a":01}`, `nul`, "\x00"} {
		if _, err := ParseJSON([]byte(s)); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
	for _, s := range []string{"null", `"text"`, "[]", "1e5", "\xef\xbb\xbf{}"} {
		if _, err := ParseJSON([]byte(s)); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func FuzzParseJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"\ud800"}]}`, "[\"\xff\"]", `1`, `{"a":1,"a":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		j, err := ParseJSON(b)
		if err != nil {
			return
		}
		walk(t, j)
	})
}

func walk(t *testing.T, j JSON) {
	switch j.Kind() {
	case Object:
		for _, n := range j.Names() {
			walk(t, j.Get(n))
		}
	case Array:
		for i := range j.Len() {
			walk(t, j.At(i))
		}
	default:
		if len(j.Raw()) == 0 {
			t.Fatal("a value without bytes")
		}
		_ = j.Text()
	}
}

func TestAListOfManySmallElementsCostsLittle(t *testing.T) {
	body := []byte("[1" + strings.Repeat(",1", 1<<20) + "]")
	j, err := ParseJSON(body)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	if got := j.At(1 << 20).Digits(); got != "1" {
		t.Errorf("last element %q", got)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := (after.HeapAlloc - before.HeapAlloc) / (1 << 20); each > 64 {
		t.Errorf("an element of two bytes costs %d bytes", each)
	}
	runtime.KeepAlive(j)
}

func TestOfRepeatedNamesTheLastCounts(t *testing.T) {
	many := `{"a":1,"\u0061":2,"b":3,"a":4`
	for i := range 20 {
		if got := mustParse(t, many+"}"); got.Get("a").Digits() != "4" || got.Len() != i+2 || got.Get("b").Digits() != "3" {
			t.Fatalf("%s}: a=%s, %d members", many, got.Get("a").Digits(), got.Len())
		}
		many += fmt.Sprintf(`,"m%d":0`, i)
	}
}
