package cases

import (
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"testing"

	"github.com/hookfold/hookfold/internal/daemon"
	"github.com/hookfold/hookfold/internal/testtarget"
)

// api is a target behind an API, in front of PostgreSQL.
type api struct {
	kind string // of package testtarget
	like string // a target of its kind, which is not there
}

// fewer is by how much fewer orders of a case are tried through an API, where each
// costs more.
const fewer = 12

// fewCopies is how many copies of a case are sent at the same moment.
const fewCopies = 100

// throughAPI lets a few cases at a time through an API: a double has connections
// of its own, and a PostgreSQL takes a hundred.
var throughAPI = make(chan struct{}, 3)

// chosen are the engines for a scenario in this run: every one that takes it, but
// of the APIs one by chance, unless many orders are asked for.
func chosen(s *scenario, seed uint64) []engine {
	var out, apis []engine
	for _, e := range engines {
		switch {
		case !e.takes(s):
		case e.api == nil:
			out = append(out, e)
		default:
			apis = append(apis, e)
		}
	}
	if n := uint64(len(apis)); n > 0 && os.Getenv(ordersVar) == "" {
		name := fnv.New64()
		name.Write([]byte(s.name()))
		apis = apis[(name.Sum64()%n+seed%n)%n:][:1]
	}
	return append(out, apis...)
}

// scoped is a test of which a part cleans up before the rest goes on.
type scoped struct {
	testing.TB
	ends []func()
}

func (s *scoped) Cleanup(end func()) { s.ends = append(s.ends, end) }

func (s *scoped) end() {
	for _, end := range slices.Backward(s.ends) {
		end()
	}
}

// keeps tells whether the API can keep the tables of a scenario; which ones it
// refuses, and where, is what hookfold check says.
func (a *api) keeps(s *scenario) bool {
	plan, err := compile(fmt.Sprintf(head, "sqlite:journal.db", a.like) + s.config)
	return err == nil && daemon.Limits(plan).Err() == nil
}

// takes tells whether a scenario is run on an engine: through an API, those that
// it keeps and that are no Go functions, which lead the database itself.
func (e engine) takes(s *scenario) bool {
	if e.api == nil || !s.about(e.name) {
		return s.about(e.name)
	}
	return coded[s.name()] == nil && s.needs() == "" && e.api.keeps(s)
}

// sql is the engine whose schemas, statements and expectations it shares.
func (e engine) sql() string {
	if e.api != nil {
		return "postgres"
	}
	return e.name
}

// open makes an empty database, and tells the target that leads to it and its
// URL. ready, if not nil, is to be called when tables were made by hand.
func (e engine) open(t testing.TB) (target, url string, ready func(testing.TB)) {
	if e.api != nil {
		x := testtarget.Named(t, e.api.kind)
		return x.Config, x.Rows, x.Ready
	}
	url = e.database(t)
	target = url
	if e.through != nil {
		target = e.through(url)
	}
	return `{url: "` + target + `"}`, url, nil
}
