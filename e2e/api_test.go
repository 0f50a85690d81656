package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/hookfold/hookfold/internal/enrich/enrichtest"
)

const apiKey key = "api"

// scriptedAPI is the provider's API of a transcript.
type scriptedAPI struct {
	*enrichtest.API
	mu     sync.Mutex
	status int
	body   string
	held   chan struct{} // closed when requests go on
	placed bool
}

func newScriptAPI(t testing.TB) *scriptedAPI {
	a := &scriptedAPI{status: http.StatusNotFound, held: make(chan struct{})}
	close(a.held)
	a.API = enrichtest.New(t, a.serve)
	return a
}

func (a *scriptedAPI) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	held := a.held
	a.mu.Unlock()
	select {
	case <-held:
	case <-r.Context().Done():
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	w.WriteHeader(a.status)
	fmt.Fprint(w, a.body)
}

func scriptAPI(ts *testscript.TestScript, _ bool, args []string) {
	a := ts.Value(apiKey).(*scriptedAPI)
	if !a.placed {
		a.placed = true
		file := ts.MkAbs("hookfold.yaml")
		ts.Check(os.WriteFile(file, []byte(strings.ReplaceAll(ts.ReadFile("hookfold.yaml"), "API_HOST", a.Host)), 0o644))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch what := strings.Join(args[:min(1, len(args))], ""); {
	case what == "hold":
		a.held = make(chan struct{})
	case what == "release":
		close(a.held)
	case what == "answer" && len(args) == 2:
		if status, err := strconv.Atoi(args[1]); err == nil {
			a.status, a.body = status, ""
			return
		}
		a.status, a.body = http.StatusOK, strings.TrimSpace(ts.ReadFile(args[1]))
	case what == "asked" && len(args) == 2:
		have, err := become(args[1], func(context.Context) (string, error) { return strconv.Itoa(len(a.Requests())), nil })
		if err != nil {
			ts.Fatalf("it was asked %s times: %v", have, err)
		}
	default:
		ts.Fatalf("usage: api hold|release|answer FILE|answer STATUS|asked N")
	}
}
