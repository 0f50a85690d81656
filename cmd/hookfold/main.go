// Command hookfold receives webhooks and folds them into database rows.
package main

import (
	"os"

	"github.com/hookfold/hookfold/internal/cli"
)

func main() {
	os.Exit(cli.Run(os.Args[1:], cli.Process()))
}
