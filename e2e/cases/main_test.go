package cases

import (
	"flag"
	"os"
	"testing"

	"github.com/hookfold/hookfold/internal/cli"
)

var update = flag.Bool("update", false, "rewrite docs/cases.md")

// asProgram makes the test binary be the program itself.
const asProgram = "HOOKFOLD_CASES_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Run(os.Args[1:], cli.Process()))
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // cases wait more than they work
		panic(err)
	}
	os.Exit(m.Run())
}
