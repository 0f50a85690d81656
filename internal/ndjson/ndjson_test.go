package ndjson_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/ndjson"
)

func write(t testing.TB, d *event.Delivery) string {
	t.Helper()
	var b bytes.Buffer
	if err := ndjson.NewWriter(&b).Write(d); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func same(a, b *event.Delivery) string {
	return cmp.Diff(a, b, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(event.Delivery{}, "Position"))
}

func TestRoundTrip(t *testing.T) {
	at := time.Date(2026, 11, 29, 12, 51, 8, 250_000_001, time.UTC)
	for _, c := range []struct {
		name string
		d    event.Delivery
		line string
	}{
		{"JSON in a line", event.Delivery{Source: "calendly", Body: []byte(`{"a": 1.0, "a":2}`)}, `{"source":"calendly","body":{"a": 1.0, "a":2}}`},
		{"numbers keep their digits", event.Delivery{Source: "s", Body: []byte(`[9007199254740993,1e400,-0.0]`)}, `{"source":"s","body":[9007199254740993,1e400,-0.0]}`},
		{"escapes stay", event.Delivery{Source: "s", Body: []byte(`"caf\u00e9 \/ é"`)}, `{"source":"s","body":"caf\u00e9 \/ é"}`},
		{"null is a body", event.Delivery{Source: "s", Body: []byte(`null`)}, `{"source":"s","body":null}`},
		{"JSON over several lines", event.Delivery{Source: "s", Body: []byte("{\n \"a\":1\r\n}")}, `{"source":"s","raw":"{\n \"a\":1\r\n}"}`},
		{"JSON with a line break after it", event.Delivery{Source: "s", Body: []byte("{}\n")}, `{"source":"s","raw":"{}\n"}`},
		{"JSON with a space before it", event.Delivery{Source: "s", Body: []byte(" {}")}, `{"source":"s","raw":" {}"}`},
		{"no JSON", event.Delivery{Source: "s", Body: []byte(`{"a":`)}, `{"source":"s","raw":"{\"a\":"}`},
		{"what would end the body early", event.Delivery{Source: "s", Body: []byte(`1,"source":"evil"`)}, `{"source":"s","raw":"1,\"source\":\"evil\""}`},
		{"what would repeat the body", event.Delivery{Source: "s", Body: []byte(`1,"body":1`)}, `{"source":"s","raw":"1,\"body\":1"}`},
		{"what would end the line's object", event.Delivery{Source: "s", Body: []byte(`1}{"body":1`)}, `{"source":"s","raw":"1}{\"body\":1"}`},
		{"form", event.Delivery{Source: "s", Body: []byte("a=1&b=%C3%A9")}, `{"source":"s","raw":"a=1&b=%C3%A9"}`},
		{"nothing", event.Delivery{Source: "s"}, `{"source":"s","raw":""}`},
		{"byte order mark", event.Delivery{Source: "s", Body: []byte("\xef\xbb\xbf{}")}, `{"source":"s","raw":"` + "\ufeff" + `{}"}`},
		{"NUL", event.Delivery{Source: "s", Body: []byte("a\x00b")}, `{"source":"s","raw":"a\u0000b"}`},
		{"no UTF-8", event.Delivery{Source: "s", Body: []byte("{\"a\":\"\xff\"}")}, `{"source":"s","raw_base64":"eyJhIjoi/yJ9"}`},
		{"everything", event.Delivery{Source: "s", Received: at, Path: "/a b", Query: "x=%20&y", Body: []byte(`{}`),
			Header: http.Header{"X-B": {"1"}, "X-A": {"1", "2"}, "X-None": {}, "X-Latin": {"caf\xe9"}}},
			`{"source":"s","received":"2026-11-29T12:51:08.250000001Z","path":"/a b","query":"x=%20&y","headers":{"X-A":["1","2"],"X-B":"1","X-Latin":{"base64":"Y2Fm6Q=="},"X-None":[]},"body":{}}`},
		{"what was fetched", event.Delivery{Source: "s", Body: []byte(`{}`), Fetched: []event.Fetched{
			{Name: "invitee", Status: 200, At: at, Header: http.Header{"Etag": {"x"}}, Body: []byte(`{"v":1.0}`)},
			{Name: "invitee", Index: 3, Status: 404, At: at}, {Name: "raw", At: at, Status: 200, Body: []byte("{}\n")},
		}},
			`{"source":"s","fetched":[{"fetch":"invitee","status":200,"at":"2026-11-29T12:51:08.250000001Z","headers":{"Etag":"x"},"body":{"v":1.0}},` +
				`{"fetch":"invitee","event":3,"status":404,"at":"2026-11-29T12:51:08.250000001Z"},{"fetch":"raw","status":200,"at":"2026-11-29T12:51:08.250000001Z","raw":"{}\n"}],"body":{}}`},
		{"path that is no UTF-8", event.Delivery{Source: "s", Path: "/\xff", Body: []byte(`1`)}, `{"source":"s","path":{"base64":"L/8="},"body":1}`},
		{"nested as deep as is read", event.Delivery{Source: "s", Body: []byte(strings.Repeat("[", 1000) + strings.Repeat("]", 1000))},
			`{"source":"s","raw":"` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			line := write(t, &c.d)
			if line != c.line+"\n" {
				t.Errorf("wrote %s\nwant  %s", line, c.line)
			}
			got, err := ndjson.NewReader(strings.NewReader(line), 0).Next()
			if err != nil {
				t.Fatal(err)
			}
			if diff := same(&c.d, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadByHand(t *testing.T) {
	const in = "\xef\xbb\xbf\r\n" +
		`  {"body" : {"event": "x"} , "source": "calendly", "headers": {"x-a": "1", "X-A": ["2"]}, "received": "2026-11-29T13:51:08+01:00"}` + "\r\n\n" +
		`{"source":"shop","raw":"a=1","received":1786000000}`
	r := ndjson.NewReader(iotest.OneByteReader(strings.NewReader(in)), 0)
	for i, want := range []event.Delivery{
		{Source: "calendly", Body: []byte(`{"event": "x"}`), Header: http.Header{"X-A": {"1", "2"}}, Received: time.Date(2026, 11, 29, 12, 51, 8, 0, time.UTC)},
		{Source: "shop", Body: []byte("a=1"), Received: time.Unix(1786000000, 0).UTC()},
	} {
		got, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if diff := same(&want, got); diff != "" {
			t.Error(diff)
		}
		if at := []int{2, 4}[i]; r.Line() != at {
			t.Errorf("line %d, want %d", r.Line(), at)
		}
	}
	for range 2 {
		if d, err := r.Next(); err != io.EOF {
			t.Errorf("at the end: %v, %v", d, err)
		}
	}
}

func TestReadErrors(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"no JSON", `{"source":`, `line 1: not JSON`},
		{"no object", `[]`, `line 1: it is a list. A line is {"source":"…","body":{…}}`},
		{"two documents", `{"source":"s","raw":""} {}`, "line 1: not one JSON document"},
		{"unknown name", `{"source":"s","boby":{}}`, `line 1: "boby" is not known: a line has source, received,`},
		{"no source", `{"body":{}}`, "line 1: source is missing"},
		{"source of another kind", `{"source":1,"body":{}}`, "line 1: source is a number, not text"},
		{"no body", `{"source":"s"}`, "line 1: there is no body"},
		{"two bodies", `{"source":"s","raw":"","body":{}}`, "line 1: there is more than one of body, raw and raw_base64"},
		{"raw of another kind", `{"source":"s","raw":{}}`, "line 1: raw is an object, not text"},
		{"raw that is not Unicode", `{"source":"s","raw":"\ud800"}`, "line 1: raw holds what is not Unicode text"},
		{"raw that is not UTF-8", "{\"source\":\"s\",\"raw\":\"\xff\"}", "line 1: raw holds what is not Unicode text"},
		{"no base64", `{"source":"s","raw_base64":"?"}`, "line 1: raw_base64 is not base64 text"},
		{"base64 of another kind", `{"source":"s","raw_base64":0}`, "line 1: raw_base64 is not base64 text"},
		{"headers of another kind", `{"source":"s","raw":"","headers":[]}`, "line 1: headers is a list"},
		{"header of another kind", `{"source":"s","raw":"","headers":{"a":1}}`, "line 1: headers.a is a number, not text"},
		{"header value of another kind", `{"source":"s","raw":"","headers":{"a":["b",null]}}`, "line 1: headers.a[1] is null, not text"},
		{"object for a text", `{"source":"s","raw":"","path":{"base64":"?"}}`, `line 1: path is not text: give "…", or {"base64":"…"}`},
		{"no time", `{"source":"s","raw":"","received":"soon"}`, `line 1: received: "soon" is not a time`},
		{"time without offset", `{"source":"s","raw":"","received":"2026-01-01T00:00:00"}`, "line 1: received: "},
		{"fetched of another kind", `{"source":"s","raw":"","fetched":{}}`, "line 1: fetched is an object, not a list"},
		{"fetched without a name", `{"source":"s","raw":"","fetched":[{"at":"2026-01-01T00:00:00Z"}]}`, "line 1: fetched[0]: fetch is missing"},
		{"fetched without a time", `{"source":"s","raw":"","fetched":[{"fetch":"a"}]}`, "line 1: fetched[0]: at is missing"},
		{"fetched with another name", `{"source":"s","raw":"","fetched":[{"fetch":"a","code":1}]}`, `line 1: fetched[0]: "code" is not known`},
		{"fetched with a status that is none", `{"source":"s","raw":"","fetched":[{"fetch":"a","at":"2026-01-01T00:00:00Z","status":"ok"}]}`, "line 1: fetched[0]: status is"},
		{"too long", `{"source":"s","raw":"` + strings.Repeat("x", 200_000) + `"}`, "line 1: longer than 100000 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ndjson.NewReader(strings.NewReader(c.line+"\n"+`{"source":"next","raw":""}`), 100_000)
			d, err := r.Next()
			var at *ndjson.LineError
			if d != nil || !errors.As(err, &at) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, error %v, want %q", d, err, c.want)
			}
			// The next line is not lost.
			if d, err := r.Next(); err != nil || d.Source != "next" || r.Line() != 2 {
				t.Errorf("next line: %v, %v", d, err)
			}
		})
	}
}

func TestLineLimit(t *testing.T) {
	line := `{"source":"s","raw":""}`
	for _, end := range []string{"\n", ""} {
		if _, err := ndjson.NewReader(strings.NewReader(line+end), len(line)).Next(); err != nil {
			t.Errorf("a line of the limit: %v", err)
		}
		if _, err := ndjson.NewReader(strings.NewReader(line+end), len(line)-1).Next(); err == nil {
			t.Error("a line over the limit was read")
		}
	}
}

func TestReaderError(t *testing.T) {
	broken := errors.New("broken")
	r := ndjson.NewReader(io.MultiReader(strings.NewReader(`{"source":"s","raw":""}`+"\n{"), iotest.ErrReader(broken)), 0)
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestWriteRefuses(t *testing.T) {
	w := ndjson.NewWriter(io.Discard)
	for want, d := range map[string]*event.Delivery{
		"names no source": {Position: 3},
		"is not text":     {Source: "s", Header: http.Header{"\xff": {"1"}}},
	} {
		if err := w.Write(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// FuzzBody: whatever a body is, it is read back the same, from one line.
func FuzzBody(f *testing.F) {
	for _, s := range []string{"", "{}", `{"a":1}`, "{\n}", `1,"body":1`, "\xff", "a=1", "\ufeff{}", `"\ud800"`, "[[[", "\x00"} {
		f.Add([]byte(s), "x", "/p", "q=1")
	}
	f.Fuzz(func(t *testing.T, body []byte, value, path, query string) {
		d := &event.Delivery{Source: "s", Body: body, Path: path, Query: query, Header: http.Header{"X-A": {value}}}
		line := write(t, d)
		if strings.Count(line, "\n") != 1 {
			t.Fatalf("not one line: %q", line)
		}
		got, err := ndjson.NewReader(strings.NewReader(line), 0).Next()
		if err != nil {
			t.Fatal(err)
		}
		if diff := same(d, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// FuzzRead: whatever is read can be written and read again the same.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		`{"source":"s","body":{}}`, `{"source":"s","raw":"\ud83d\ude00"}`, `{"source":"s","raw_base64":"/w=="}`,
		`{"source":"s","raw":"","headers":{"a":["1",{"base64":"/w=="}]},"received":"2026-01-01T00:00:00Z","path":"/x","query":"y"}`,
		"\n\n{", "[]", `{"source":"s","body":1,"body":2}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := ndjson.NewReader(bytes.NewReader(in), 1<<16)
		for {
			d, err := r.Next()
			var line *ndjson.LineError
			switch {
			case err == io.EOF:
				return
			case errors.As(err, &line):
				continue
			case err != nil:
				t.Fatal(err)
			}
			for name := range d.Header {
				if strings.ContainsRune(name, '\ufffd') {
					return // not a name that HTTP knows
				}
			}
			again, err := ndjson.NewReader(strings.NewReader(write(t, d)), 0).Next()
			if err != nil {
				t.Fatal(err)
			}
			if diff := same(d, again); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}
