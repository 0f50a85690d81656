package demo

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed hookfold.yaml
var configText string

// Secret is the secret of every source of the demo, known to everybody.
const Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// Config is the config of the demo, with its journal in a folder, its rows in a
// database, and the ports to listen on; 0 takes a free one.
func Config(folder, database string, port, admin int) string {
	return strings.NewReplacer(
		"{{dir}}", folder, "{{database}}", database, "{{secret}}", Secret,
		"{{port}}", fmt.Sprint(port), "{{admin}}", fmt.Sprint(admin),
	).Replace(configText)
}
