package event

import (
	"strings"
	"testing"
)

// Whoever reads what is wrong with a body need not know which library read it.
func TestErrorsNameNoLibrary(t *testing.T) {
	for text, want := range map[string]string{
		`nope`:     "not JSON: at byte 1: invalid character 'o'",
		`{"a":}`:   "not JSON: at byte 5: ",
		`{"a":1,}`: "not JSON: at byte 6: ",
		`{a:1}`:    "not JSON: at byte 1: ",
		`"\x"`:     "not JSON: at byte 1: ",
		`[1 2]`:    "not JSON: at byte 3: ",
		`{"a"`:     "not JSON: it ends in the middle, after 4 bytes",
	} {
		_, err := ParseJSON([]byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "jsontext") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
