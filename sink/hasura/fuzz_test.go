package hasura_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/hookfold/hookfold/merge"
	"github.com/hookfold/hookfold/sink"
	"github.com/hookfold/hookfold/sink/hasura"
)

// canned answers every request alike.
type canned struct {
	status int
	header string
	body   []byte
}

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: c.status, Header: http.Header{"Retry-After": {c.header}}, Body: io.NopCloser(bytes.NewReader(c.body))}, nil
}

// Whatever comes back, it is an error of package sink or rows; never a panic, and
// never a wait without end.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		``, `null`, `[]`, `{"data":null}`, `{"data":{}}`, `{"errors":[{}]}`, `{"errors":[{"message":"x","extensions":{"code":"unexpected","internal":{"error":{"status_code":"4"}}}}]}`,
		`{"data":{"__typename":"query_root","r0":[{"id":1,"a":null}],"m0":{"affected_rows":-1,"returning":[{}]}}}`,
		`{"data":{"o0":{"fields":[{"name":"id","type":{"kind":"NON_NULL","ofType":{"kind":"SCALAR","name":"String"}}},{"name":"a","type":{"kind":"LIST","ofType":null}},{"name":"row_version","type":{"kind":"SCALAR","name":"String"}}]},
			"i0":{"inputFields":[{"name":"id"},{"name":"a"},{"name":"row_version"}]},"s0":{"inputFields":[{"name":"id"},{"name":"a"},{"name":"row_version"}]},
			"c0":{"enumValues":[{"name":"item_pkey","description":"unique or primary key constraint on columns \"id\""}]},"m0":{"affected_rows":1},"r0":[]}}`,
		`{"code":"not-exists","error":"x","path":"$.args","internal":7}`, `{"result_type":"TuplesOk","result":[["a"],["{\"Columns\":[{}]}"]]}`,
	} {
		f.Add(200, "", []byte(body))
		f.Add(400, "9999999999999999999", []byte(body))
	}
	table := tableOf(f, "item", "id text", "a text")
	f.Fuzz(func(t *testing.T, status int, header string, body []byte) {
		s, err := hasura.Open(t.Context(), "hasura+http://h/v1/graphql", nil, hasura.Options{Transport: canned{100 + (status%500+500)%500, header, body}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		check := func(err error) {
			t.Helper()
			var e *sink.Error
			var rows *sink.BatchError
			if err != nil && !errors.As(err, &e) && !errors.As(err, &rows) {
				t.Errorf("%v (%T)", err, err)
			}
			if e != nil && e.After < 0 {
				t.Errorf("after %s", e.After)
			}
		}
		check(s.Ping(t.Context()))
		_, err = s.Inspect(t.Context(), table)
		check(err)
		_, err = s.Read(t.Context(), table, []merge.Key{"k"})
		check(err)
	})
}
