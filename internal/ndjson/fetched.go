package ndjson

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hookfold/hookfold/event"
)

var inFetched = around{`{"fetched":[{"body":`, `}]}`, func(doc event.JSON) event.JSON { return doc.Get("fetched").At(0).Get("body") }}

// writable tells why what was fetched could not be read back.
func writable(f *event.Fetched) error {
	if f.Name == "" || f.At.IsZero() {
		return fmt.Errorf("what was fetched for its event %d does not say by which fetch, or when", f.Index)
	}
	for name := range f.Header {
		if !utf8.ValidString(name) {
			return fmt.Errorf("the header name %q of what %s has fetched is not text", name, f.Name)
		}
	}
	return nil
}

func appendFetched(b []byte, all []event.Fetched) []byte {
	for i := range all {
		f := &all[i]
		b = append(b, []string{`,"fetched":[`, `,`}[min(i, 1)]...)
		b = appendText(append(b, `{"fetch":`...), f.Name)
		if f.Index != 0 {
			b = strconv.AppendInt(append(b, `,"event":`...), int64(f.Index), 10)
		}
		b = strconv.AppendInt(append(b, `,"status":`...), int64(f.Status), 10)
		b = f.At.UTC().AppendFormat(append(b, `,"at":"`...), time.RFC3339Nano)
		b = appendHeader(append(b, '"'), f.Header)
		if len(f.Body) > 0 {
			b = appendBody(b, f.Body, inFetched)
		}
		b = append(b, '}')
	}
	if len(all) > 0 {
		b = append(b, ']')
	}
	return b
}

var fetchedNames = []string{"fetch", "event", "status", "at", "headers", "body", "raw", "raw_base64"}

func fetched(v event.JSON) ([]event.Fetched, error) {
	if v.Kind() == event.Missing {
		return nil, nil
	}
	if v.Kind() != event.Array {
		return nil, fmt.Errorf("fetched is %s, not a list", v.Kind())
	}
	var all []event.Fetched
	for i := range v.Len() {
		f, err := oneFetched(v.At(i))
		if err == nil && slices.ContainsFunc(all, func(o event.Fetched) bool { return o.Index == f.Index && o.Name == f.Name }) {
			err = fmt.Errorf("%s has fetched something for event %d before", clip(f.Name), f.Index)
		}
		if err != nil {
			return nil, fmt.Errorf("fetched[%d]: %w", i, err)
		}
		all = append(all, f)
	}
	return all, nil
}

func oneFetched(v event.JSON) (f event.Fetched, err error) {
	if v.Kind() != event.Object {
		return f, fmt.Errorf("it is %s, not an object", v.Kind())
	}
	for _, name := range v.Names() {
		if !slices.Contains(fetchedNames, name) {
			return f, fmt.Errorf("%q is not known: it has %s", clip(name), strings.Join(fetchedNames, ", "))
		}
	}
	if name := v.Get("fetch"); name.Kind() != event.Missing {
		if f.Name, err = text(name); err != nil {
			return f, fmt.Errorf("fetch %w", err)
		}
	}
	if f.Name == "" {
		return f, errors.New("fetch is missing: name the fetch of the config")
	}
	f.Status = http.StatusOK
	for _, n := range []struct {
		name string
		most int
		to   *int
	}{{"event", 1 << 30, &f.Index}, {"status", 999, &f.Status}} {
		number := v.Get(n.name)
		if number.Kind() == event.Missing {
			continue
		}
		if *n.to, err = strconv.Atoi(number.Digits()); err != nil || *n.to < 0 || *n.to > n.most {
			return f, fmt.Errorf("%s is %s, and has to be a number from 0 to %d", n.name, clip(string(number.Raw())), n.most)
		}
	}
	at := v.Get("at")
	if at.Kind() == event.Missing {
		return f, errors.New("at is missing: say when the read began")
	}
	moment, _ := at.Scalar()
	if f.At, err = event.ParseTime(moment, nil); err != nil {
		return f, fmt.Errorf("at: %w", err)
	}
	if headers := v.Get("headers"); headers.Kind() != event.Missing {
		if f.Header, err = header(headers); err != nil {
			return f, err
		}
	}
	f.Body, _, err = body(v)
	return f, err
}
