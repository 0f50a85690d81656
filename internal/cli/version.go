package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

type versionJSON struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: count(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			if a.json {
				return a.printJSON(v)
			}
			a.printf("hookfold %s (%s, %s)\n", v.Version, v.Go, v.Platform)
			return nil
		},
	}
}

func buildVersion() versionJSON {
	v := versionJSON{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if m := info.Main.Version; m != "" && m != "(devel)" {
		v.Version = m
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	return v
}
