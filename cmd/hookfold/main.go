// Command hookfold receives webhooks and folds them into database rows.
package main

import (
	"os"
	_ "time/tzdata" // zone: works on machines without a zone database

	"github.com/hookfold/hookfold/internal/cli"
)

func main() {
	os.Exit(cli.Run(os.Args[1:], cli.Process()))
}
