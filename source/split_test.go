package source_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/source"
)

// opened makes a source of any preset; its verification does not matter.
func opened(t testing.TB, preset string) source.Source {
	return open(t, preset, source.Options{Secrets: secrets(webhookSecret), Verify: source.Scheme{Kind: source.SchemeBearer}})
}

func delivery(body string) *event.Delivery {
	return &event.Delivery{Position: 7, Source: "s", Header: http.Header{}, Body: []byte(body), Received: time.Unix(signedAt, 0).UTC()}
}

// lines tells of events in a line each: type, id, time or its error.
func lines(events []*event.Event) []string {
	var out []string
	for _, e := range events {
		at := e.TimeError
		if !e.Time.IsZero() {
			at = e.Time.Format(time.RFC3339Nano)
		}
		id := e.ID
		if id == "" {
			id = "-"
		}
		out = append(out, strings.TrimSpace(e.Type+" "+id+" "+at))
	}
	return out
}

func TestSplitSamples(t *testing.T) {
	want := map[string][]string{
		"calendly/invitee.created":                          {"invitee.created - 2026-09-14T09:02:11.408233Z"},
		"calendly/invitee.canceled":                         {"invitee.canceled - 2026-09-18T16:20:40.223808Z"},
		"calendly/invitee_no_show.created":                  {"invitee_no_show.created - 2026-09-23T13:40:04.683444Z"},
		"calendly/invitee_no_show.deleted":                  {"invitee_no_show.deleted - 2026-09-23T14:02:31Z"},
		"calendly/reschedule.new.invitee.created":           {"invitee.created - 2026-09-16T13:45:07.512904Z"},
		"calendly/reschedule.old.invitee.canceled":          {"invitee.canceled - 2026-09-16T13:45:07.631446Z"},
		"calendly/reschedule.inverted.old.invitee.canceled": {"invitee.canceled - 2026-09-16T13:45:07.631446Z"},
		"hasura/insert":                                     {"INSERT 11111111-aaaa-4bbb-8ccc-000000000001 2026-09-16T13:45:07.51291Z"},
		"hasura/update":                                     {"UPDATE 11111111-aaaa-4bbb-8ccc-000000000002 2026-09-16T13:45:09.100007Z"},
		"hasura/update.retry2":                              {"UPDATE 11111111-aaaa-4bbb-8ccc-000000000002 2026-09-16T13:45:09.100007Z"},
		"hasura/delete":                                     {"DELETE 11111111-aaaa-4bbb-8ccc-000000000003 2026-09-16T13:50:00.000113Z"},
		"hasura/manual":                                     {"MANUAL 11111111-aaaa-4bbb-8ccc-000000000004 2026-09-16T14:00:00.5Z"},
		"standard-webhooks/contact.created":                 {"contact.created msg_2SAMPLE00000000000000000001 2026-09-16T13:45:07.512904Z"},
		"stripe/checkout.session.completed":                 {"checkout.session.completed evt_1SAMPLE000000000003 2026-09-10T00:26:42Z"},
		"stripe/customer.subscription.created":              {"customer.subscription.created evt_1SAMPLE000000000001 2026-09-10T00:26:42Z"},
		"stripe/customer.subscription.deleted":              {"customer.subscription.deleted evt_1SAMPLE000000000005 2026-09-15T19:20:00Z"},
		"stripe/customer.subscription.updated":              {"customer.subscription.updated evt_1SAMPLE000000000002 2026-09-10T00:26:42Z"},
		"stripe/invoice.paid":                               {"invoice.paid evt_1SAMPLE000000000004 2026-09-10T00:26:42Z"},
		"stripe/thin.v2.event":                              {"v1.billing.meter.error_report_triggered evt_test_65SAMPLE 2026-09-10T00:26:42.232083866Z"},
		"supabase/insert":                                   {"INSERT -"},
		"supabase/update":                                   {"UPDATE -"},
		"supabase/delete":                                   {"DELETE -"},
		"whatsapp/message.image":                            {"message.image - 2026-09-10T00:27:35Z"},
		"whatsapp/message.reaction":                         {"message.reaction - 2026-09-10T00:27:40Z"},
		"whatsapp/message.revoke":                           {"message.revoke - 2026-09-10T00:28:10Z"},
		"whatsapp/message.text.inbound":                     {"message.text - 2026-09-10T00:27:30Z"},
		"whatsapp/status.delivered":                         {"status.delivered - 2026-09-10T00:26:40Z"},
		"whatsapp/status.failed":                            {"status.failed - 2026-09-10T00:26:43Z"},
		"whatsapp/status.played":                            {"status.played - 2026-09-10T00:27:55Z"},
		"whatsapp/status.read":                              {"status.read - 2026-09-10T00:27:21Z"},
		"whatsapp/status.sent":                              {"status.sent - 2026-09-10T00:26:40Z"},
		"whatsapp/two-statuses-one-request":                 {"status.delivered - 2026-09-10T00:26:40Z", "status.read - 2026-09-10T00:27:21Z"},
		"whatsapp/batch.several-entries-and-changes": {
			"status.read - 2026-09-10T00:27:21Z", "message.text - 2026-09-10T00:27:30Z", "message_template_status_update -"},
	}
	got := map[string][]string{}
	for _, p := range source.Presets() {
		s := opened(t, p.Name)
		for _, sample := range p.Samples {
			d := delivery(string(sample.Body))
			d.Header = sample.Header
			events, err := s.Split(d)
			if err != nil {
				t.Errorf("%s: %v", sample.Name, err)
				continue
			}
			got[sample.Name] = lines(events)
			for i, e := range events {
				if e.Delivery != d || e.Index != i || !e.FirstReceived.Equal(d.Received) || e.Body.Kind() != event.Object || e.Envelope.Kind() != event.Object {
					t.Errorf("%s: event %d is not whole: %+v", sample.Name, i, e)
				}
				if p.Types != nil && !contains(p.Types, e.Type) {
					t.Errorf("%s: type %s is not among those the preset can send", sample.Name, e.Type)
				}
				if p.HasID != (e.ID != "") {
					t.Errorf("%s: HasID is %v, id is %q", sample.Name, p.HasID, e.ID)
				}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func TestSamplesAreByteExact(t *testing.T) {
	list, err := os.ReadFile("testdata/samples.sha256")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range source.Presets() {
		for _, s := range p.Samples {
			sum := sha256.Sum256(s.Body)
			if line := hex.EncodeToString(sum[:]) + "  " + s.Name + ".json\n"; !strings.Contains(string(list), line) {
				t.Errorf("testdata/samples.sha256 lacks %s", line)
			}
			n++
		}
	}
	if want := strings.Count(string(list), "\n") - strings.Count(string(list), ".headers.json\n"); n != want {
		t.Errorf("%d samples, %d in testdata/samples.sha256", n, want)
	}
}

func TestSampleNamed(t *testing.T) {
	s, p := source.SampleNamed("calendly/reschedule.new.invitee.created")
	if s == nil || p.Name != "calendly" || len(s.Body) != 2836 {
		t.Errorf("got %v of %v", s, p)
	}
	if s, p := source.SampleNamed("calendly/nothing"); s != nil || p == nil {
		t.Errorf("got %v of %v for a sample that is not there", s, p)
	}
	if s, p := source.SampleNamed("nobody/nothing"); s != nil || p != nil {
		t.Errorf("got %v of %v for a preset that is not there", s, p)
	}
}

func TestSplitWhatsAppEnvelope(t *testing.T) {
	sample, _ := source.SampleNamed("whatsapp/batch.several-entries-and-changes")
	events, err := opened(t, "whatsapp").Split(delivery(string(sample.Body)))
	if err != nil {
		t.Fatal(err)
	}
	status, template := events[0], events[2]
	for want, got := range map[string]string{
		"15550123456":                      status.Body.Get("recipient_id").Text(),
		"209900000000001":                  status.Envelope.Get("entry_id").Text(),
		"messages":                         status.Envelope.Get("field").Text(),
		"104880000000001":                  status.Envelope.Path("metadata", "phone_number_id").Text(),
		"US.10000000000000000001":          status.Envelope.Get("contacts").At(0).Get("user_id").Text(),
		"entry_id field messaging_product": strings.Join(status.Envelope.Names()[:3], " "),
		"555000111222333":                  template.Body.Get("message_template_id").Digits(),
		"209900000000002 1789000060":       template.Envelope.Get("entry_id").Text() + " " + template.Envelope.Get("entry_time").Digits(),
		"message_template_status_update":   template.Envelope.Get("field").Text(),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if k := status.Envelope.Get("statuses").Kind(); k != event.Missing {
		t.Errorf("the envelope repeats the statuses: %v", k)
	}
}

// whatsApp makes a delivery of one change of field messages.
func whatsApp(value string) string {
	return `{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"field":"messages","value":` + value + `}]}]}`
}

func TestSplitShapes(t *testing.T) {
	v1, err := os.ReadFile("testdata/calendly/legacy-v1.invitee.canceled.json")
	if err != nil {
		t.Fatal(err)
	}
	thousand := whatsApp(`{"statuses":[` + strings.Repeat(`{"id":"w","status":"sent","timestamp":"1789000000"},`, 999) + `{"id":"w","status":"read","timestamp":"1789000000"}]}`)
	for _, c := range []struct {
		name, preset, body string
		want               []string // of the events; nil where there is an error
		err                string
	}{
		{"calendly v1", "calendly", string(v1), nil, "a webhook of Calendly's retired API v1"},
		{"calendly cancel without cancellation", "calendly", `{"event":"invitee.canceled","created_at":"2026-01-01T00:00:00Z","payload":{"updated_at":"2026-01-02T00:00:00Z","cancellation":null}}`,
			[]string{"invitee.canceled - 2026-01-02T00:00:00Z"}, ""},
		{"calendly routing form", "calendly", `{"event":"routing_form_submission.created","created_at":"2026-01-02T00:00:00Z","payload":{"created_at":"2026-01-01T23:59:59.5Z"}}`,
			[]string{"routing_form_submission.created - 2026-01-01T23:59:59.5Z"}, ""},
		{"calendly contact", "calendly", `{"event":"contact.updated","created_at":"2026-01-02T00:00:00Z","payload":{}}`, []string{"contact.updated - 2026-01-02T00:00:00Z"}, ""},
		{"calendly created without its time", "calendly", `{"event":"invitee.created","created_at":"2026-01-02T00:00:00Z","payload":{}}`,
			[]string{"invitee.created - the event has no payload.created_at"}, ""},
		{"calendly time of another kind", "calendly", `{"event":"invitee.created","payload":{"created_at":[]}}`, []string{"invitee.created - payload.created_at is a list, not a time"}, ""},
		{"calendly v2 with a member time", "calendly", `{"event":"contact.updated","created_at":"2026-01-02T00:00:00Z","time":null}`, []string{"contact.updated - 2026-01-02T00:00:00Z"}, ""},
		{"calendly without event", "calendly", `{"payload":{}}`, nil, "not a Calendly webhook"},
		{"calendly list", "calendly", `[]`, nil, "not a Calendly webhook"},

		{"whatsapp nothing in it", "whatsapp", `{"object":"whatsapp_business_account","entry":[]}`, []string{}, ""},
		{"whatsapp a thousand", "whatsapp", thousand, nil, ""},
		{"whatsapp empty lists", "whatsapp", whatsApp(`{"statuses":[],"messages":[]}`), []string{}, ""},
		{"whatsapp statuses and messages", "whatsapp", whatsApp(`{"messages":[{"id":"m","type":"text","timestamp":"1789000001"}],"statuses":[{"id":"w","status":"sent","timestamp":"1789000000"}]}`),
			[]string{"status.sent - 2026-09-10T00:26:40Z", "message.text - 2026-09-10T00:26:41Z"}, ""},
		{"whatsapp a bad status costs no other", "whatsapp", whatsApp(`{"statuses":[null,{"id":"w"},{"id":"w","status":"read","timestamp":"x"}],"messages":[{"type":"text","timestamp":"1789000001"}]}`),
			[]string{"status - the event has no timestamp", "status - the event has no timestamp", `status.read - timestamp: "x" is not a time Hookfold can read (ISO 8601, or seconds or milliseconds since 1970)`, "message.text - 2026-09-10T00:26:41Z"}, ""},
		{"whatsapp only errors", "whatsapp", whatsApp(`{"errors":[{"code":1}]}`), []string{"messages -"}, ""},
		{"whatsapp statuses of calls are none of messages", "whatsapp", strings.Replace(whatsApp(`{"statuses":[{"status":"RINGING"}]}`), `"messages"`, `"calls"`, 1), []string{"calls -"}, ""},
		{"whatsapp page of Messenger", "whatsapp", `{"object":"page","entry":[]}`, nil, "not of a WhatsApp business account"},
		{"whatsapp without entry", "whatsapp", `{"object":"whatsapp_business_account"}`, nil, "not a Meta webhook"},
		{"whatsapp without changes", "whatsapp", `{"object":"whatsapp_business_account","entry":[{"id":"1"}]}`, nil, "entry[0] has no list changes"},
		{"whatsapp change without field", "whatsapp", `{"object":"whatsapp_business_account","entry":[{"changes":[{"value":{}}]}]}`, nil, "a change has no text field"},

		{"hasura wrapped by a transform", "hasura", `{"payload":{"event":{"op":"INSERT"}}}`, nil, "Does a request transform"},
		{"hasura of an old server", "hasura", `{"event":{"op":"INSERT","data":{"old":null,"new":{}}},"created_at":"2026-01-01T00:00:00.30702Z","id":"x","trigger":{"name":"t"},"table":{"schema":"public","name":"a"}}`,
			[]string{"INSERT x 2026-01-01T00:00:00.30702Z"}, ""},
		{"hasura time without offset", "hasura", `{"event":{"op":"INSERT"},"created_at":"2026-01-01T00:00:00","id":"x"}`,
			[]string{`INSERT x created_at: "2026-01-01T00:00:00" has no offset: say which zone it is in (zone: on the source, or timestamp(x, "Europe/Berlin"))`}, ""},
		{"supabase of something else", "supabase", `{"type":"INSERT"}`, nil, "not a Supabase database webhook"},
		{"stripe of something else", "stripe", `{"object":"charge"}`, nil, "not a Stripe event"},
		{"stripe without anything", "stripe", `{"object":"event"}`, []string{"- the event has no created"}, ""},
		{"standard webhooks without anything", "standard-webhooks", `{}`, []string{"- the event has no timestamp"}, ""},
		{"http", "http", `[1,2]`, []string{"-"}, ""},
		{"truncated", "http", `{"a":`, nil, "not JSON"},
		{"empty", "http", ``, nil, "an empty body is not JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			events, err := opened(t, c.preset).Split(delivery(c.body))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.name == "whatsapp a thousand" {
				if len(events) != 1000 || events[999].Index != 999 || events[999].Type != "status.read" {
					t.Errorf("%d events", len(events))
				}
				return
			}
			if got := lines(events); !cmp.Equal(c.want, got) && len(c.want)+len(got) > 0 {
				t.Error(cmp.Diff(c.want, got))
			}
		})
	}
}

func TestSplitStandardWebhooksID(t *testing.T) {
	d := delivery(`{"type":"a"}`)
	d.Header = headers("webhook-id", "msg_w", "svix-id", "msg_s")
	events, err := opened(t, "standard-webhooks").Split(d)
	if err != nil || events[0].ID != "msg_s" {
		t.Errorf("id %q, %v: want that of the headers that were verified", events[0].ID, err)
	}
}

func TestSplitByOptions(t *testing.T) {
	o := source.Options{
		Verify: source.Scheme{Kind: source.SchemeNone},
		Split: func(_ *event.Delivery, body event.JSON) ([]event.JSON, error) {
			var list []event.JSON
			for i := range body.Get("events").Len() {
				list = append(list, body.Get("events").At(i))
			}
			if list == nil {
				return nil, errors.New("no events")
			}
			return list, nil
		},
		Type: func(e *event.Event) (string, error) { return e.Body.Get("kind").Text(), nil },
		ID: func(e *event.Event) (string, error) {
			if e.Type == "" || e.Delivery == nil {
				return "", fmt.Errorf("id before type")
			}
			return e.Body.Get("no").Digits(), nil
		},
		Time: func(e *event.Event) (time.Time, error) {
			return event.ParseTime(e.Body.Get("at").Text(), time.UTC)
		},
	}
	s := open(t, "http", o)
	events, err := s.Split(delivery(`{"shop":"x","events":[{"kind":"a","no":9007199254740993,"at":"2026-01-01 10:00"},{"kind":"b","no":2,"at":"soon"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a 9007199254740993 2026-01-01T10:00:00Z", `b 2 "soon" is not a time Hookfold can read (ISO 8601, or seconds or milliseconds since 1970)`}
	if diff := cmp.Diff(want, lines(events)); diff != "" {
		t.Error(diff)
	}
	if got := events[1].Envelope.Get("shop").Text(); got != "x" {
		t.Errorf("the envelope is not the body: shop is %q", got)
	}
	if _, err := s.Split(delivery(`{}`)); err == nil || err.Error() != "split: no events" {
		t.Errorf("error %v", err)
	}
	if _, err := s.Split(delivery(`{"events":[{"kind":"a","at":"1789000000"},{}]}`)); err == nil || err.Error() != "event 1 of the delivery: id: id before type" {
		t.Errorf("error %v", err)
	}

	// They also take the place of what a preset with a shape of its own does.
	o = source.Options{
		Secrets: secrets("k"),
		ID:      func(e *event.Event) (string, error) { return e.Type + " " + e.Body.Path("payload", "uri").Text(), nil },
		Time:    func(e *event.Event) (time.Time, error) { return e.Delivery.Received, nil },
	}
	events, err = open(t, "calendly", o).Split(delivery(`{"event":"invitee.created","payload":{"uri":"u"}}`))
	if err != nil || events[0].ID != "invitee.created u" || !events[0].Time.Equal(events[0].Delivery.Received) || events[0].TimeError != "" {
		t.Errorf("%v, %v, time error %q", lines(events), err, events[0].TimeError)
	}
}

func TestSplitForm(t *testing.T) {
	s := open(t, "http", source.Options{Verify: source.Scheme{Kind: source.SchemeNone}, Format: source.FormatForm})
	for _, c := range []struct{ name, body, want, err string }{
		{"fields", "To=%2B1555&Body=caf%C3%A9+%22ok%22&Empty=&Flag", `{"To":"+1555","Body":"café \"ok\"","Empty":"","Flag":""}`, ""},
		{"a field twice", "tag=a&x=1&tag=b&tag=c", `{"tag":["a","b","c"],"x":"1"}`, ""},
		{"control characters and line breaks", "a=%00%0A%5C", `{"a":"\u0000\u000a\\"}`, ""},
		{"bytes that are no UTF-8 are kept", "a=%FF", "{\"a\":\"\xff\"}", ""},
		{"semicolon", "a=1;b=2", `{"a":"1;b=2"}`, ""},
		{"nothing", "", `{}`, ""},
		{"nested", "a[b][c]=1&a%5Bb%5D%5Bd%5D=2&x=3&a[e]=4", `{"a":{"b":{"c":"1","d":"2"},"e":"4"},"x":"3"}`, ""},
		{"a list", "a[]=1&b=&a[]=2", `{"a":["1","2"],"b":""}`, ""},
		{"a list of one", "a[]=1", `{"a":["1"]}`, ""},
		{"a list by numbers, in any order", "a[1]=y&a[0]=x", `{"a":["x","y"]}`, ""},
		{"numbers with a gap", "a[0]=x&a[2]=y&b[7]=z", `{"a":{"0":"x","2":"y"},"b":{"7":"z"}}`, ""},
		{"a number that no list begins with", "a[00]=x", `{"a":{"00":"x"}}`, ""},
		{"a list of objects by numbers", "l[0][sku]=a&l[1][sku]=b&l[0][n]=1", `{"l":[{"sku":"a","n":"1"},{"sku":"b"}]}`, ""},
		{"a list of objects", "l[][sku]=a&l[][n]=1&l[][sku]=b&l[][n]=2", `{"l":[{"sku":"a","n":"1"},{"sku":"b","n":"2"}]}`, ""},
		{"lists in lists", "l[][a][]=1&l[][a][]=2&m[][]=1&m[][]=2", `{"l":[{"a":["1","2"]}],"m":[["1","2"]]}`, ""},
		{"a nested field twice", "a[b]=1&a[b]=2", `{"a":{"b":["1","2"]}}`, ""},
		{"JSON in a field", `payload={"a":1}&x=1`, `{"payload":"{\"a\":1}","x":"1"}`, ""},
		{"a contradiction keeps its name", "a=1&a[b]=2&a[]=3&a[b]=4", `{"a":"1","a[b]":["2","4"],"a[]":"3"}`, ""},
		{"a contradiction further in", "a[b][c]=1&a[b]=2&a[b][]=3", `{"a":{"b":{"c":"1"}},"a[b]":"2","a[b][]":"3"}`, ""},
		{"brackets that are none", "a[b=1&[c]=2&d]=3&e[f]g=4&h[[i]]=5&j]k[l]=6", `{"a[b":"1","[c]":"2","d]":"3","e[f]g":"4","h[[i]]":"5","j]k[l]":"6"}`, ""},
		{"too deep", "a" + strings.Repeat("[b]", 33) + "=1", `{"a` + strings.Repeat("[b]", 33) + `":"1"}`, ""},
		{"the names of the form itself are no list", "0=a&1=b", `{"0":"a","1":"b"}`, ""},
		{"broken escape", "a=1&b=%4", "", "not a form: value of field 2"},
		{"broken name", "%zz=1", "", "not a form: name of field 1"},
		{"too many", strings.Repeat("a&", source.MaxFormFields+1), "", "the form has more than 10,000 fields"},
	} {
		t.Run(c.name, func(t *testing.T) {
			events, err := s.Split(delivery(c.body))
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := string(events[0].Body.Raw()); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestSplitGzip(t *testing.T) {
	pack := func(body []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(body)
		z.Close()
		return b.Bytes()
	}
	o := source.Options{Secrets: secrets("k"), Verify: source.Scheme{Kind: source.SchemeHMAC, Hash: "sha256", Header: "X-Sig", Encoding: "hex"}}
	s := open(t, "http", o)
	d := delivery("")
	d.Body = pack([]byte(`{"a":1}`))
	d.Header.Set("Content-Encoding", "GZIP")

	// The signature is over the bytes received.
	h := http.Header{}
	if err := s.(source.Signer).Sign(h, d.Body, d.Received); err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(&source.Request{Header: h, Body: d.Body}, d.Received); err != nil {
		t.Error(err)
	}
	events, err := s.Split(d)
	if err != nil || string(events[0].Body.Raw()) != `{"a":1}` {
		t.Errorf("split: %v, %v", events, err)
	}

	for name, c := range map[string]struct {
		body   []byte
		coding string
		want   string
	}{
		"not gzip":      {[]byte(`{"a":1}`), "gzip", "is not the gzip that its Content-Encoding says"},
		"cut short":     {d.Body[:len(d.Body)-9], "gzip", "unpack gzip body"},
		"another":       {d.Body, "br", "neither gzip nor identity"},
		"gzip twice":    {pack(d.Body), "gzip, gzip", "neither gzip nor identity"},
		"without limit": {pack(make([]byte, source.MaxInflated+1)), "gzip", "unpacks to more than 33,554,432 bytes"},
	} {
		d := delivery("")
		d.Body = c.body
		d.Header.Set("Content-Encoding", c.coding)
		if _, err := s.Split(d); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}
