package cli

import (
	"bufio"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/hookfold/hookfold/event"
	"github.com/hookfold/hookfold/internal/ndjson"
)

func (a *app) export() *cobra.Command {
	var source, file string
	var from int64
	cmd := &cobra.Command{
		Use: "export", Short: "Print the journal's deliveries as NDJSON, which replay takes", Args: count(0, 0, "no arguments"),
		Example: "hookfold export > deliveries.ndjson\nhookfold export --source calendly -o calendly.ndjson",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			j, cfg, err := a.openJournal(reader)
			if err != nil {
				return err
			}
			defer j.Close()
			var to io.Writer = a.Out
			if file != "" {
				f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, f.Close()) }()
				to = f
			}
			buffered := bufio.NewWriterSize(to, 1<<16)
			w := ndjson.NewWriter(buffered)
			some := false
			err = j.Scan(cmd.Context(), event.Position(from), func(d *event.Delivery) error {
				if source != "" && d.Source != source {
					return nil
				}
				some = true
				return w.Write(d)
			})
			if err == nil && !some {
				err = (&choice{source: source}).unknown(cmd, cfg)
			}
			return errors.Join(err, buffered.Flush())
		},
	}
	cmd.Flags().StringVar(&source, "source", "", "only deliveries of this `source`")
	cmd.Flags().Int64Var(&from, "from", 0, "only deliveries from this `position` on")
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to this `file`, readable by you alone")
	return cmd
}
