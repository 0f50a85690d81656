package config

import (
	"math"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	durationForm = regexp.MustCompile(`^(\d+(?:ms|s|m|h|d))+$`)
	durationPart = regexp.MustCompile(`(\d+)(ms|s|m|h|d)`)
	sizeForm     = regexp.MustCompile(`^(\d+) ?(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$`)
	schemeForm   = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*):`)
	parameter    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.%-]*$`)
	headerForm   = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$")
)

const durationHint = "a number and a unit, as in 300s, 10m, 24h, 30d or 1h30m"

// duration reads a length of time, not negative; also a word, where one is
// given, which stands for -1.
func (v value) duration(word string, to *time.Duration) {
	want := durationHint
	if word != "" {
		want += ", or " + word
	}
	s, ok := v.text(want)
	if !ok {
		return
	}
	if word != "" && s == word {
		*to = -1
		return
	}
	if !durationForm.MatchString(s) {
		v.fail("`%s` is not a length of time: write %s.", show(v.node.Value), want)
		return
	}
	units := map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
	var sum time.Duration
	for _, m := range durationPart.FindAllStringSubmatch(s, -1) {
		n, err := strconv.ParseInt(m[1], 10, 64)
		if unit := units[m[2]]; err != nil || n > (math.MaxInt64-int64(sum))/int64(unit) {
			v.fail("`%s` is longer than 292 years, the longest there is.", show(v.node.Value))
			return
		}
		sum += time.Duration(n) * units[m[2]]
	}
	*to = sum
}

// size reads a number of bytes.
func (v value) size(least, most int64, to *int64) {
	const want = "a number and a unit, as in 500MB, 20GB or 5MiB"
	s, ok := v.text(want)
	if !ok {
		return
	}
	m := sizeForm.FindStringSubmatch(s)
	if m == nil {
		v.fail("`%s` is not a size: write %s.", show(v.node.Value), want)
		return
	}
	units := map[string]int64{"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
	n, err := strconv.ParseInt(m[1], 10, 64)
	switch unit := units[m[2]]; {
	case err != nil || n > most/unit:
		v.fail("`%s` is too much: at most %s.", show(v.node.Value), sizeText(most))
	case n*unit < least:
		v.fail("`%s` is too little: at least %s.", show(v.node.Value), sizeText(least))
	default:
		*to = n * unit
	}
}

func sizeText(n int64) string {
	for _, u := range []struct {
		n    int64
		name string
	}{{1 << 40, "TiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.n && n%u.n == 0 {
			return strconv.FormatInt(n/u.n, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// number reads a whole number within bounds.
func (v value) number(least, most int, to *int) {
	want := "a whole number from " + strconv.Itoa(least) + " to " + strconv.Itoa(most)
	s, ok := v.text(want)
	if !ok {
		return
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most {
		v.fail("`%s` is not %s.", show(v.node.Value), want)
		return
	}
	*to = n
}

// address reads host:port.
func (v value) address(to *string) {
	const want = "an address with a port, as in 127.0.0.1:8080, or :8080 for every interface"
	s, ok := v.text(want)
	if !ok {
		return
	}
	_, port, err := net.SplitHostPort(s)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n > 65535 {
		v.fail("`%s` is not %s.", show(v.node.Value), want)
		return
	}
	*to = s
}

// zone reads the name of a time zone.
func (v value) zone(to **time.Location) {
	const want = "the name of a time zone, as in UTC or Europe/Berlin"
	s, ok := v.text(want)
	if !ok {
		return
	}
	z, err := time.LoadLocation(s)
	if err != nil || s == "Local" {
		v.fail("`%s` is not %s.", show(v.node.Value), want)
		return
	}
	*to = z
}

// header reads the name of an HTTP header.
func (v value) header(to *string) {
	s, ok := v.text("the name of a header, as in X-Signature")
	if !ok {
		return
	}
	if !headerForm.MatchString(s) {
		v.fail("`%s` is not the name of a header: letters, digits and hyphens, as in X-Signature.", show(v.node.Value))
		return
	}
	*to = s
}

// webURL reads an http or https URL.
func (v value) webURL(to *string) {
	s, ok := v.text("a URL, as in https://example.com/in/shop")
	if !ok {
		return
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		v.fail("`%s` is not a URL, as in https://example.com/in/shop.", show(v.node.Value))
		return
	}
	*to = s
}

// storeURL reads the URL of a target or a journal. It may hold a password, so no
// message repeats more of it than its scheme. Messages name the first of now.
func (v value) storeURL(now, later []string, to *Name) {
	named := list(now[:min(len(now), len(kinds))])
	n, ok := v.name("a URL, as in " + now[0] + "…")
	if !ok {
		return
	}
	m := schemeForm.FindStringSubmatch(n.Text)
	if m == nil {
		v.fail("is not a URL: it begins with none of %s.", named)
		return
	}
	scheme := strings.ToLower(m[1])
	known := func(names []string) bool { return slices.Contains(schemes(names), scheme) }
	rest := n.Text[len(m[0]):]
	switch {
	case known(later):
		v.fail("%s: is not yet supported by this version of Hookfold. It has %s.", scheme, named)
	case !known(now):
		hint := meant(scheme, schemes(now, later))
		if scheme == "http" || scheme == "https" { // not mysql, nor any other that is near by its letters
			if hint = ""; slices.Contains(now, "hasura+https://") {
				hint = " For Hasura write hasura+" + scheme + "://…, for Supabase supabase+" + scheme + "://…."
			}
		}
		v.fail("%s: is not a kind of database Hookfold knows. It has %s.%s", show(scheme), named, hint)
	case scheme == "sqlite" && strings.Trim(rest, "/") == "":
		v.fail("names no file: write sqlite:hookfold.db, or sqlite:/var/lib/hookfold/hookfold.db.")
	case strings.Contains(scheme, "+http") && !goodURL(n.Text):
		v.fail("is not a URL, as in hasura+https://host/v1/graphql or supabase+https://project.supabase.co.")
	case scheme != "sqlite" && !goodURL(n.Text):
		v.fail("is not a URL, as in %s://user:password@host:5432/database. In a password, write @ as %%40, / as %%2F, : as %%3A, ? as %%3F, # as %%23 and %% as %%25.", scheme)
	default:
		*to = n
	}
}

// schemes returns the schemes of what URLs begin with.
func schemes(beginnings ...[]string) []string {
	var out []string
	for _, b := range slices.Concat(beginnings...) {
		s, _, _ := strings.Cut(b, ":")
		out = append(out, s)
	}
	return out
}

// goodURL tells whether the URL of a database is whole. A password that was not
// escaped breaks it apart, often so that it still is a URL, whose host, path or
// query then is a part of the password and would be named in messages. Such a
// password leaves an @ behind its first /, ? or #, or a query that is none.
func goodURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Opaque != "" || u.Host == "" && !u.Query().Has("host") {
		return false
	}
	if u.Fragment != "" || strings.Contains(u.EscapedPath(), "@") {
		return false
	}
	for _, pair := range strings.Split(u.RawQuery, "&") {
		name, value, ok := strings.Cut(pair, "=")
		if pair != "" && (!ok || !parameter.MatchString(name) || strings.ContainsAny(value, "@?#")) {
			return false
		}
	}
	return true
}
