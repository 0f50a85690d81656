package mapping

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/expr"
	"github.com/hookfold/hookfold/source"
)

const fetching = head + `
fetches:
  a: {url: '"https://api.example.com/a/" + event.id', bearer: x, version: fetched.ver, not_found: value}
  b: {url: event.link, hosts: [api.example.com], bearer: x, event_headers: {X-Account: "event.?account"}, until: fetched.ver >= event.ver, or_else: "event.?instead", not_found: value}
tables:
  t:
    key: {id: text}
    on_delete: {set: {gone: true}}
    columns: {x: text, y: {type: text, scope: y}, n: {type: int, merge: count}}
    events:
      - {from: shop, type: a, fetch: a, clock: shop, key: {id: event.id}, set: {x: fetched.x}}
      - {from: shop, type: ab, fetch: a, clock: shop, key: {id: event.id}, set: {x: fetched.x}, delete: fetched.status == 404, version: 'coalesce(fetched.?ver, 9)'}
      - {from: shop, type: ab, fetch: b, clock: shop, version: 'coalesce(fetched.?ver, 9)', key: {id: event.id}, set: {y: fetched.x}}
      - {from: shop, type: counted, fetch: a, clock: shop, when: present(fetched.x), key: {id: event.id}, version: fetched.ver, set: {n: true}}
      - {from: shop, type: counted, clock: shop, version: event.ver, key: {id: event.id}, set: {n: true}}
`

// answered maps the event of a body for which fetches have read something.
func answered(t *testing.T, p *Plan, body string, fetched ...event.Fetched) Outcome {
	t.Helper()
	e := events(t, p, "shop", body)[0]
	for i := range fetched {
		if fetched[i].Status == 0 {
			fetched[i].Status = 200
		}
		fetched[i].At = time.Date(2026, 3, 1, 0, 0, 1, 0, time.UTC)
	}
	e.Delivery.Fetched = fetched
	return p.Map(e, "db")
}

func read(name, body string) event.Fetched { return event.Fetched{Name: name, Body: []byte(body)} }

func wants(out Outcome) (list []string) {
	for _, r := range out.Reads {
		list = append(list, fmt.Sprintf("%s %s %v", r.Fetch.Name, r.URL, map[string][]string(r.Header)))
	}
	return list
}

func TestMappingsWaitForWhatIsFetched(t *testing.T) {
	p := compiled(t, fetching)
	for _, tc := range []struct {
		name, body string
		fetched    []event.Fetched
		reads      []string
		lines      []string
	}{
		{"nothing yet", `{"id":"1","type":"a"}`, nil, []string{"a https://api.example.com/a/1 map[]"}, nil},
		{"an answer", `{"id":"1","type":"a"}`, []event.Fetched{read("a", `{"x":"new","ver":7}`)}, nil, []string{"t id=1: x=new @7"}},
		{"one of another event of the delivery", `{"id":"1","type":"a"}`, []event.Fetched{{Name: "a", Index: 1, Body: []byte(`{"x":"new","ver":7}`)}}, []string{"a https://api.example.com/a/1 map[]"}, nil},
		{"one of two", `{"id":"1","type":"ab","link":"https://api.example.com/b?x=1#part","account":"acct_1"}`, []event.Fetched{read("a", `{"x":"new","ver":7}`)},
			[]string{"b https://api.example.com/b?x=1 map[X-Account:[acct_1]]"}, []string{"t id=1: x=new @7"}},
		{"the same expression of two fetches", `{"id":"1","type":"ab","link":"https://api.example.com/b"}`, []event.Fetched{read("a", `{"x":"of a","ver":7}`), read("b", `{"x":"of b","ver":8}`)},
			nil, []string{"t id=1: x=of a @7", "t id=1: y=of b @8"}},
		{"a status of its own", `{"id":"1","type":"ab","link":"https://api.example.com/b"}`, []event.Fetched{read("a", `{"x":"new","ver":7,"status":404}`), read("b", `{"x":"of b","ver":8}`)},
			nil, []string{"t id=1: gone at NULL @7", "t id=1: y=of b @8"}},
		{"gone", `{"id":"1","type":"ab","link":"https://api.example.com/b"}`, []event.Fetched{{Name: "a", Status: 404}, read("b", `{"x":"of b","ver":8}`)},
			nil, []string{"t id=1: gone at NULL @9", "t id=1: y=of b @8"}},
		{"no URL", `{"id":"1","type":"ab","link":null}`, nil, []string{"a https://api.example.com/a/1 map[]"}, []string{"dead t.: fetch b: its url is null (event.link). Events that nothing is fetched for belong in a when:."}},
		{"another host", `{"id":"1","type":"ab","link":"https://evil.example.com/b"}`, []event.Fetched{read("a", `{"x":"new","ver":7}`)}, nil,
			[]string{"t id=1: x=new @7", "dead t.: https://evil.example.com is none of the hosts that fetch b may ask (api.example.com). If it is right name it in hosts:"}},
		{"who counts first is not known", `{"id":"1","type":"counted","ver":3}`, nil, []string{"a https://api.example.com/a/1 map[]"}, nil},
		{"both count", `{"id":"1","type":"counted","ver":3}`, []event.Fetched{read("a", `{"x":"new","ver":7}`)}, nil, []string{"t id=1: n=1 @7 as shop/1", "t id=1: n=1 @3 as shop/1/1"}},
		{"one counts", `{"id":"1","type":"counted","ver":3}`, []event.Fetched{read("a", `{"ver":7}`)}, nil, []string{"t id=1: n=1 @3 as shop/1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := answered(t, p, tc.body, tc.fetched...)
			if !out.Wanted {
				t.Error("it is not wanted")
			}
			if d := cmp.Diff(tc.reads, wants(out)); d != "" {
				t.Errorf("reads (-want +got):\n%s", d)
			}
			var got []string
			for _, line := range lines(out) {
				got = append(got, strings.TrimSuffix(line, " "))
			}
			if d := cmp.Diff(tc.lines, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestF6VersionsAreOverWhatWasFetched: the version's hash is over the answer too,
// and not over when it was read unless that is read.
func TestF6VersionsAreOverWhatWasFetched(t *testing.T) {
	p := compiled(t, fetching)
	version := func(body string) string {
		out := answered(t, p, `{"id":"1","type":"a"}`, read("a", body))
		return string(out.Changes[0].Version)
	}
	one, same, other := version(`{"x":"new","ver":7}`), version(`{"x":"new","ver":7}`), version(`{"x":"old","ver":7}`)
	if one != same || one == other {
		t.Errorf("%s, %s, %s", one, same, other)
	}
}

func TestUntilAndOrElse(t *testing.T) {
	p := compiled(t, fetching)
	out := answered(t, p, `{"id":"1","type":"ab","link":"https://api.example.com/b","ver":8,"instead":{"x":"y"}}`, read("a", `{"x":"new","ver":7}`))
	r := out.Reads[0]
	for body, want := range map[string]string{`{"ver":8}`: "true <nil>", `{"ver":7}`: "false <nil>", `{}`: "false until: no such field: fetched has no ver", "": "true <nil>"} {
		ok, err := r.Enough(&event.Fetched{Status: 200, Body: []byte(body)})
		if got := fmt.Sprint(ok, " ", err); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	f, ok, err := r.Instead()
	if err != nil || !ok || string(f.Body) != `{"x":"y"}` || f.Status != 0 || f.Name != "b" || !f.At.Equal(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%+v %v %v", f, ok, err)
	}
	out = answered(t, p, `{"id":"1","type":"a"}`)
	if f, ok, err := out.Reads[0].Instead(); f != nil || ok || err != nil {
		t.Errorf("%+v %v %v", f, ok, err)
	}
}

// TestFetchProblems: what is wrong with a fetch is told once, with what to do.
func TestFetchProblems(t *testing.T) {
	table := "\ntables: {t: {key: {id: text}, columns: {x: text}, events: [{from: %s, fetch: f, key: {id: type}, set: {x: fetched.x}}, {from: shop, type: b, fetch: f, clock: shop, version: time, key: {id: type}, set: {x: fetched.x}}]}}\n"
	for _, tc := range []struct{ from, fetch, want string }{
		{"shop", `{url: '"https://api.example.com/" + event.id'}`, ""},
		{"calendly", "{url: event.payload.uri}", ""}, // the host of the preset's API
		{"shop", "{url: event.link}", "fetches.f: needs hosts:, those that it may ask, for example hosts: [api.example.com]: its url: does not begin with one."},
		{"shop", `{url: '"https://api.example.com" + event.path'}`, "fetches.f: needs hosts:, those that it may ask, for example hosts: [api.example.com]: its url: does not begin with one."},
		{"shop", `{url: '"https://a.example.com/" + event.id', hosts: [b.example.com]}`, "fetches.f.url: https://a.example.com is none of the hosts that fetch f may ask (b.example.com). If it is right name it in hosts:"},
		{"shop", `{url: '"http://api.example.com/" + event.id'}`, "fetches.f.url: http://api.example.com: plain http is only for this machine and private networks. Write https, or if the host is in one say private: [\"api.example.com\"]"},
		{"shop", `{url: '"http://127.0.0.1:9000/" + event.id'}`, "fetches.f.url: http://127.0.0.1:9000: plain http is only for this machine and private networks. Write https, or if the host is in one say hosts: [\"127.0.0.1:9000\"]"},
		{"shop", `{url: '"https://127.0.0.1/" + event.id'}`, "fetches.f.url: https://127.0.0.1 is not an address of the internet, and fetch f may only ask those. If it is right name it in hosts:"},
		{"shop", `{url: '"https://169.254.169.254/" + event.id'}`, "fetches.f.url: https://169.254.169.254 is not an address of the internet, and fetch f may only ask those. If it is right name it in hosts:"},
		{"shop", `{url: '"http://127.0.0.1:8080/" + event.id', hosts: ["127.0.0.1:8080"]}`, ""},
		{"shop", `{url: '"http://intern/" + event.id', hosts: [intern], private: [intern]}`, ""},
		{"shop", `{url: event.link, hosts: [a.example.com], private: [b.example.com]}`, "fetches.f.private[0]: b.example.com is not among hosts:, so that it is never asked. Name it there too."},
		{"shop", "{url: evnt.link, hosts: [a.example.com]}", "fetches.f.url: `evnt` is not a name Hookfold knows. Did you mean event? For the text evnt write '\"evnt\"'."},
		{"shop", "{url: fetched.link, hosts: [a.example.com]}", "fetches.f.url: fetched is not known here: it is of a mapping's fetch:, and there is none"},
		{"shop", "{url: 1 + 1, hosts: [a.example.com]}", "fetches.f.url: gives a number, and has to be the text of a URL"},
		{"shop", "{url: event.link, hosts: [a.example.com], until: fetched.ver}", ""},
		{"shop", "{url: event.link, hosts: [a.example.com], until: '1'}", "fetches.f.until: gives a number, and has to be true or false"},
		{"shop", "{preset: calendly/invitees, bearer: x}", "fetches.f.preset: calendly/invitees is not a ready fetch. Did you mean calendly/invitee?"},
		{"shop", "{preset: calendly/invitee}", `fetches.f: needs bearer:, the token that the API knows who asks by, for example bearer: "${CALENDLY_TOKEN}".`},
		{"shop", "{preset: shopify/order, bearer: x}", `fetches.f: needs headers: with the token that the API knows who asks by, for example headers: {X-Shopify-Access-Token: "${SHOPIFY_TOKEN}"}.`},
		{"shop", "{preset: shopify/order, headers: {x-shopify-access-token: x}}", ""},
	} {
		_, problems := Compile(parsed(t, head+"fetches: {f: "+tc.fetch+"}"+fmt.Sprintf(table, tc.from)))
		got := ""
		for _, p := range problems.List {
			got += p.Path + ": " + p.Text
		}
		if got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tc.fetch, got, tc.want)
		}
	}
}

func TestAllowedHosts(t *testing.T) {
	f := &Fetch{Name: "f", Hosts: []string{"api.example.com", "*.shop.example.com", "port.example.com:8443", "10.0.0.1", "::1"}, Private: []string{"10.0.0.1", "::1"}}
	for text, ok := range map[string]bool{
		"https://api.example.com/x": true, "https://API.example.com:8443/x": true, "https://api.example.com.evil.com/": false, "https://xapi.example.com/": false,
		"https://a.shop.example.com/": true, "https://a.b.shop.example.com/": true, "https://shop.example.com/": false, "https://ashop.example.com/": false,
		"https://port.example.com:8443/": true, "https://port.example.com/": false, "http://10.0.0.1/": true, "https://[::1]:9/": true, "http://api.example.com/": false,
		"https://user:pw@api.example.com/": false, "ftp://api.example.com/": false, "https:///x": false, "https:api.example.com": false, "/x": false, "https://10.0.0.2/": false,
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Allows(u); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestReadyFetches: each compiles, asks its own hosts about an event as its
// provider sends it, and finds its version in an answer.
func TestReadyFetches(t *testing.T) {
	bodies := map[string]string{
		"github/issue": `{"issue":{"url":"https://api.github.com/repos/o/r/issues/7"}}`, "github/pull_request": `{"pull_request":{"url":"https://api.github.com/repos/o/r/pulls/7"}}`,
		"shopify/order": `{"id":450789469}`, "shopify/product": `{"id":632910392}`,
		"stripe/object": `{"account":"acct_1","data":{"object":{"object":"checkout.session","id":"cs_1"}}}`,
	}
	urls := map[string]string{
		"calendly/invitee":         "https://api.calendly.com/scheduled_events/",
		"calendly/scheduled_event": "https://api.calendly.com/scheduled_events/",
		"github/issue":             "https://api.github.com/repos/o/r/issues/7", "github/pull_request": "https://api.github.com/repos/o/r/pulls/7",
		"shopify/order":   "https://a.myshopify.com/admin/api/2026-07/orders/450789469.json",
		"shopify/product": "https://a.myshopify.com/admin/api/2026-07/products/632910392.json",
		"stripe/object":   "https://api.stripe.com/v1/checkout/sessions/cs_1",
	}
	for _, f := range source.Fetches() {
		t.Run(f.Name, func(t *testing.T) {
			from, auth := "shop", "bearer: x"
			if strings.HasPrefix(f.Name, "calendly/") {
				from = "calendly"
			}
			if f.Auth != source.AuthBearer {
				auth = "headers: {" + f.Auth + ": x}"
			}
			p := compiled(t, strings.Replace(head, "time: event.at", `time: "event.?at"`, 1)+fmt.Sprintf("fetches: {f: {preset: %s, %s}}\ntables: {t: {key: {id: text}, columns: {x: json}, events: [{from: %s, fetch: f, key: {id: '\"1\"'}, set: {x: fetched}}]}}\n", f.Name, auth, from))
			body := []byte(bodies[f.Name])
			if from == "calendly" {
				s, _ := source.SampleNamed("calendly/invitee.created")
				body = s.Body
			} else {
				body = append([]byte(`{"type":"x",`), body[1:]...)
				if !strings.Contains(f.Name, "shopify") {
					body = append([]byte(`{"id":"1",`), body[1:]...)
				}
			}
			e := events(t, p, from, string(body))[0]
			e.FirstReceived = e.Time // as it may be
			e.Delivery.Header = map[string][]string{"X-Shopify-Shop-Domain": {"a.myshopify.com"}}
			out := p.Map(e, "db")
			if len(out.Reads) != 1 || !strings.HasPrefix(out.Reads[0].URL, urls[f.Name]) {
				t.Fatalf("%v %v", wants(out), out.Faults)
			}
			if f.Name == "stripe/object" && out.Reads[0].Header.Get("Stripe-Account") != "acct_1" {
				t.Errorf("%v", out.Reads[0].Header)
			}
			e.Delivery.Fetched = []event.Fetched{{Name: "f", Status: 200, At: time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC), Body: []byte(f.Sample)}}
			out = p.Map(e, "db")
			if len(out.Changes) != 1 || len(out.Faults) > 0 || !strings.Contains(out.Changes[0].Version.Show(), "2026-03-01T1") {
				t.Errorf("%v %v", lines(out), out.Faults)
			}
			if (p.Tables[0].Mappings[0].Version[0].Expr.Reads&expr.FetchedAt != 0) != (f.Version == nil) {
				t.Error("its version is read from somewhere else")
			}
		})
	}
}
