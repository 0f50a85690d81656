package expr

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hookfold/hookfold/event"
)

// bigInput is an event of some 1.6 MB with a long text, long lists and large
// numbers.
func bigInput(t testing.TB) *Input {
	t.Helper()
	list := func(n int, of string) string { return "[" + strings.TrimSuffix(strings.Repeat(of+",", n), ",") + "]" }
	var items strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&items, `{"id":%d,"name":"Name of item %d","tags":["a","b%d"],"text":"%s"},`, i, i, i, strings.Repeat("y", 100))
	}
	body, err := event.ParseJSON([]byte(fmt.Sprintf(`{"k":"a","s":"%s","l":%s,"o":%s,"n":1e1000000,"m":1e-1000000,"big":%s,"i":9223372036854775807,"query":"NAME OF ITEM 4999","words":%s,"items":[%s]}`,
		strings.Repeat("a", 1<<20), list(20000, "1"), list(20000, `{"a":1}`), strings.Repeat("9", 100000), list(5000, `"w"`), strings.TrimSuffix(items.String(), ","))))
	if err != nil {
		t.Fatal(err)
	}
	in := &Input{}
	in.Reset(&event.Event{Delivery: &event.Delivery{Body: body.Raw()}, Body: body, Envelope: body, Time: time.Unix(0, 0)}, time.UTC)
	return in
}

// TestBudget evaluates expressions that would take minutes, hours or gigabytes
// over an event of 1.6 MB: none takes much more than a second.
func TestBudget(t *testing.T) {
	c := compiler(t)
	for name, text := range map[string]string{
		"concat":        `[1,2,3,4,5,6,7,8,9,10].map(x, event.s + event.s + event.s + event.s).join("")`,
		"concat2":       strings.Repeat("event.s + ", 900) + "event.s",
		"nested":        `event.l.map(x, event.l.map(y, event.l.map(z, 1))).size() > 0 ? "a" : "b"`,
		"exists":        `event.l.exists(x, event.l.exists(y, x + y == 7.5)) ? "a" : "b"`,
		"exists_in":     `event.l.exists(x, (x + 1) in event.l) ? "a" : "b"`,
		"in_objs":       `event.o.exists(x, {"a": 2} in event.o) ? "a" : "b"`,
		"eq_lists":      `event.l.exists(x, event.o == [x]) ? "a":"b"`,
		"eq_lists2":     `event.l.exists(x, event.o != event.o) ? "a":"b"`,
		"regex":         `event.s.matches("(a*)*b") ? "a" : "b"`,
		"regexmap":      `event.l.exists(x, event.s.matches("(a+)+(a+)+b")) ? "a" : "b"`,
		"contains":      `event.l.exists(x, event.s.contains("aaaaaaaaaaaaaaab")) ? "a" : "b"`,
		"lower":         `event.l.exists(x, lower(event.s) == "b") ? "a" : "b"`,
		"sha":           `event.l.exists(x, sha256(event.s) == "b") ? "a" : "b"`,
		"reverse":       `event.l.exists(x, event.s.reverse() == "b") ? "a" : "b"`,
		"sub":           `event.l.exists(x, event.s.substring(1) == "b") ? "a" : "b"`,
		"charAt":        `event.l.exists(x, event.s.charAt(1000000) == "b") ? "a" : "b"`,
		"indexOf":       `event.l.exists(x, event.s.indexOf("aaaaaaab") == 3) ? "a" : "b"`,
		"lastIndexOf":   `event.l.exists(x, event.s.lastIndexOf("baaaa") == 3) ? "a" : "b"`,
		"trim":          `event.l.exists(x, event.s.trim() == "b") ? "a" : "b"`,
		"size":          `event.l.exists(x, event.s.size() == 3) ? "a" : "b"`,
		"string":        `event.l.exists(x, json(event.s).a == 3) ? "a" : "b"`,
		"json":          `event.l.exists(x, json("[" + string(event.big) + "]").size() == 3) ? "a" : "b"`,
		"bytes":         `event.l.exists(x, size(bytes(event.s)) == 3) ? "a" : "b"`,
		"quote":         `event.l.exists(x, strings.quote(event.s) == "b") ? "a" : "b"`,
		"flatten":       `event.l.map(x, event.l).flatten().size() > 1 ? "a" : "b"`,
		"slice":         `event.l.exists(x, event.l.slice(0, 20000) == [1]) ? "a" : "b"`,
		"sort":          `event.l.exists(x, event.l.sort() == [1]) ? "a" : "b"`,
		"reverse_l":     `event.l.exists(x, event.l.reverse() == [1]) ? "a" : "b"`,
		"concat_l":      `event.l.exists(x, (event.l + event.l) == [1]) ? "a" : "b"`,
		"range":         `lists.range(100000).map(x, lists.range(100000)).size() > 1 ? "a" : "b"`,
		"pow":           `string(event.n)`,
		"mul":           `string(event.i * event.i * event.i * event.i * event.i * event.i * event.i * event.i)`,
		"mulbig":        `string(event.big * event.big)`,
		"mulbig2":       `string([1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16].map(x, event.big * event.big).size())`,
		"div":           `string(round(event.big / 7, 10))`,
		"mod":           `string(event.big % 7)`,
		"addexp":        `string(event.n + event.m > 1)`,
		"round":         `string(round(event.n, 2))`,
		"round2":        `string(round(1.5, 1000000000))`,
		"roundneg":      `string(round(1.5, -1000000000))`,
		"int":           `string(int(event.n))`,
		"intm":          `string(int(event.m))`,
		"cmp":           `event.n > event.m ? "a" : "b"`,
		"idx":           `string(event.l[event.n])`,
		"fmt":           `"%s%s%s%s%s%s%s%s%s%s".format([event.s,event.s,event.s,event.s,event.s,event.s,event.s,event.s,event.s,event.s])`,
		"fmt2":          `"%.1000000000f".format([1.5])`,
		"fmt3":          `event.l.exists(x, "%s".format([event.o]) == "") ? "a":"b"`,
		"split":         `event.l.exists(x, event.s.split("").size() == 1) ? "a":"b"`,
		"glob":          `event.l.exists(x, rank(event.s, ["a*a*a*a*a*a*a*a*b", "*"]) == 1) ? "a":"b"`,
		"glob2":         `event.l.exists(x, rank(event.s, ["*a*b*a*b", "*"]) == 1) ? "a":"b"`,
		"ts":            `event.l.exists(x, timestamp(event.s) == timestamp("2026-01-01T00:00:00Z")) ? "a":"b"`,
		"distinct":      `event.l.exists(x, event.l.slice(0,5000).distinct().size() == 3) ? "a":"b"`,
		"mapmap":        `event.l.map(x, event.l.slice(0,50)).map(x, x.map(y, [y,y,y])).size() == 1 ? "a":"b"`,
		"strcmp":        `event.l.exists(x, event.s + "b" < event.s) ? "a":"b"`,
		"jsonout":       `[event.o,event.o,event.o,event.o].map(x, [x,x,x,x,x,x,x,x]).map(x, [x,x,x,x,x,x,x,x]).map(x, [x,x,x,x,x,x,x,x])`,
		"trans":         `event.o.transformMapEntry(i, v, {string(i): event.o}).size() == 1 ? "a":"b"`,
		"url":           `event.s.replace("a", "bbbbbbbbbbbbbbbbbbbbbbbbbb").replace("b", "cccccccccc")`,
		"regexrep":      `regex.replace(event.s, "a", "bbbbbbbbbbbbbbbbbbbbbbb")`,
		"regexall":      `regex.extractAll(event.s, "(a)").size() == 1 ? "a":"b"`,
		"swallowed_or":  `lower(event.l.map(x, event.s).join("")) == "b" || true ? "a" : "b"`,
		"swallowed_all": `event.l.all(x, lower(event.s) == "b" || true) ? "a" : "b"`,
		"indexOf_long":  `event.s.indexOf(event.s.substring(0, 500000) + "b") == 1 ? "a" : "b"`,
		"zone":          `event.l.exists(x, time.getHours("Europe/Berlin") == 77) ? "a" : "b"`,
		"eq_text":       `event.l.exists(x, event.s == event.s + "") ? "b" : "a"`,
		"add_lists":     `event.o.map(x, event.o + event.o).size() > 1 ? "a" : "b"`,
		"by_key":        `event.items.sortBy(x, x.text).map(x, event.items.sortBy(y, y.text)).size() == 1 ? "a" : "b"`,
		"present":       `event.l.exists(x, present(event.s + "a") && x == 2) ? "a" : "b"`,
		"bignumbers":    `event.l.exists(x, 1e-300 / (x + 2) + x == 1e300) ? "a" : "b"`,
		"objects":       `event.items.all(x, event.items.all(y, y == x || true)) ? "a" : "b"`,
	} {
		t.Run(name, func(t *testing.T) {
			p, problems := c.Compile(text, ForMapping)
			if problems != nil {
				return // refused when it is read is bounded too
			}
			in := bigInput(t)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			done := make(chan string, 1)
			go func() {
				v, err := p.Eval(in)
				if err != nil {
					done <- err.Error()
				} else {
					done <- describe(v)
				}
			}()
			var got string
			select {
			case got = <-done:
			case <-time.After(10 * time.Second):
				got = "goes on"
			}
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			made := (after.TotalAlloc - before.TotalAlloc) >> 20
			t.Logf("%s, %d MB, %d M steps, %.0f%%: %s", took, made, in.worked/1_000_000, 1e5*float64(took.Nanoseconds())/float64(in.worked+1)/1e3, clip(got))
			if took > 3*time.Second || after.HeapSys > 2<<30 {
				t.Errorf("takes %s and %d MB", took, made)
			}
		})
	}
}

// TestBudgetAllows evaluates what a user may well write over an event of more
// than 1 MB.
func TestBudgetAllows(t *testing.T) {
	in := bigInput(t)
	c := compiler(t)
	for text, want := range map[string]string{
		`event.items.exists(x, lower(x.name) == lower(event.query))`:                                     "true",
		`event.items.filter(x, x.id > 4990).map(x, x.name).join(", ").size()`:                            "the number 169",
		`event.items.map(x, sha256(x.text)).distinct().size()`:                                           "the number 1",
		`event.items.all(x, x.name.matches("^Name of item [0-9]+$"))`:                                    "true",
		`event.items.exists(x, x.tags.exists(y, y == "b4999"))`:                                          "true",
		`event.items.filter(x, x.name.split(" ")[3] == "17").size()`:                                     "the number 1",
		`event.items.map(x, "%s/%d".format([x.name, x.id])).sort()[0]`:                                   `the text "Name of item 0/0"`,
		`event.items.map(x, regex.replace(x.name, "[0-9]+", "n")).distinct().size()`:                     "the number 1",
		`event.items.map(x, x.id).reverse()[0] + event.l.size()`:                                         "the number 24999",
		`event.items.filter(x, x.name in ["Name of item 1", "Name of item 2"]).size()`:                   "the number 2",
		`event.words.filter(x, x in event.words).size()`:                                                 "the number 5000",
		`event.items.map(x, x.tags).flatten().size()`:                                                    "the number 10000",
		`event.items.sortBy(x, x.name)[4999].id`:                                                         "the number 999",
		`event.s.matches("b$") || event.s.contains("ab") || size(event.s) != 1048576`:                    "false",
		`lower(event.s) == event.s && sha256(event.s) == sha256(event.s)`:                                "true",
		`event.s.replace("a", "bb").size()`:                                                              "the number 2097152",
		`event.items.filter(x, x.name.replace(" ", "-").substring(5).startsWith("of-item-42")).size()`:   "the number 111",
		`event.items.map(x, round(x.id / 3, 2)).filter(x, x > 1666.3).size()`:                            "the number 1",
		`event.items.filter(x, timestamp("2026-01-01T00:00:00Z") + duration("1h") > time).size() > 4999`: "true",
		`event.items == event.items`:                                                                     "true",
	} {
		t.Run(text, func(t *testing.T) {
			p, problems := c.Compile(text, ForMapping)
			if problems != nil {
				t.Fatal(problems)
			}
			v, err := p.Eval(in)
			got := fmt.Sprint(err)
			if err == nil {
				got = describe(v)
			}
			t.Logf("%d M steps of %d M, made %d kB", in.worked/1_000_000, maxWork/1_000_000, in.made/1000)
			if !strings.Contains(got, want) {
				t.Errorf("gives %s, want %s", got, want)
			}
		})
	}
}

// TestEveryFunctionSpends: a function that is not guarded is one whose work does
// not grow with its arguments, or an operator or a function of our own.
func TestEveryFunctionSpends(t *testing.T) {
	fixed := " dyn first last hasValue value or orValue optional.none optional.of optional.ofNonZeroValue optional.unwrap unwrapOpt in "
	for name := range compiler(t).env.Functions() {
		_, guarded := guards[name]
		if !guarded && calls[name] == nil && !strings.ContainsAny(name[:1], "_@!-") && !strings.Contains(fixed, " "+name+" ") {
			t.Errorf("%s() spends nothing of the budget", name)
		}
	}
}

// The budget is that of one evaluation, and one that has passed it says what to
// do, whatever would pass over an error.
func TestBudgetIsPassedOnce(t *testing.T) {
	in := bigInput(t)
	c := compiler(t)
	for range 2 {
		for _, text := range []string{
			`event.l.all(x, lower(event.s) == "b" || true)`, `event.l.exists(x, sha256(event.s) == "b") || true`, `true || event.l.exists(x, true)`,
		} {
			p, problems := c.Compile(text, ForMapping)
			if problems != nil {
				t.Fatal(problems)
			}
			_, err := p.Eval(in)
			if passes := strings.HasPrefix(text, "true"); passes != (err == nil) || err != nil && !strings.Contains(err.Error(), "over this event: ") {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// Many evaluations over one event, of the elements of its list, have a budget of
// their own.
func TestBudgetOfAnEvent(t *testing.T) {
	p, problems := compiler(t).Compile(`event.items.exists(x, x.name == "none")`, ForMapping)
	if problems != nil {
		t.Fatal(problems)
	}
	in := bigInput(t)
	if _, err := p.Eval(in); err != nil || in.worked == 0 {
		t.Fatalf("%v, %d steps", err, in.worked)
	}
	if in.spent = maxEvent - in.worked - 1; in.worked > maxWork/10 {
		t.Errorf("a plain search takes %d steps", in.worked)
	}
	if _, err := p.Eval(in); err != nil {
		t.Errorf("within the budget: %v", err)
	}
	if _, err := p.Eval(in); err == nil || !strings.Contains(err.Error(), "too long in all") {
		t.Errorf("past the budget: %v", err)
	}
	in.Reset(in.Event, nil)
	if _, err := p.Eval(in); err != nil {
		t.Errorf("over the next event: %v", err)
	}
}
