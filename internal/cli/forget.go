package cli

import (
	"github.com/spf13/cobra"

	"github.com/hookfold/hookfold/internal/daemon"
)

// forgottenJSON is what forget prints under --json.
type forgottenJSON struct {
	OK     bool   `json:"ok"`
	Target string `json:"target"`
}

func (a *app) forget() *cobra.Command {
	return &cobra.Command{
		Use: "forget TARGET", Short: "Let the journal forget a target that the config no longer has", Args: count(1, 1, "the name of a target"),
		Long: "The journal keeps what a target has yet to take, whatever keep and max_size say. A\n" +
			"target that was taken out of the config for good would make it grow for ever: this\n" +
			"forgets it, with its waiting and dead events. No server may run meanwhile.",
		Example: "hookfold forget old",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := a.journalConfig()
			if err != nil {
				return err
			}
			if err := daemon.Forget(cmd.Context(), cfg, args[0]); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(forgottenJSON{OK: true, Target: args[0]})
			}
			a.printf("The journal has forgotten %s.\n", args[0])
			return nil
		},
	}
}
