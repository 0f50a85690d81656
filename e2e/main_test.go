package e2e

import (
	"flag"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/hookfold/hookfold/internal/cli"
)

var update = flag.Bool("update", false, "rewrite the rows of the examples")

func TestMain(m *testing.M) {
	testscript.Main(cleaning{m}, map[string]func(){
		"hookfold": func() { os.Exit(cli.Run(os.Args[1:], cli.Process())) },
	})
}

// cleaning removes the program that the tests built.
type cleaning struct{ *testing.M }

func (c cleaning) Run() int {
	code := c.M.Run()
	if builtIn != "" {
		os.RemoveAll(builtIn)
	}
	return code
}
