package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/source"
)

// writtenJSON is what init prints under --json.
type writtenJSON struct {
	File        string   `json:"file"`
	Presets     []string `json:"presets"`
	Environment []string `json:"environment"`
}

func (a *app) initial() *cobra.Command {
	var force bool
	var target string
	cmd := &cobra.Command{
		Use: "init [PRESET...]", Short: "Write a config to start from",
		Long: "Writes a commented config for the given presets (or for a source of your own)\n" +
			"to the file named by -c.",
		Example: "hookfold init calendly whatsapp\nhookfold init stripe --target supabase",
		RunE: func(cmd *cobra.Command, presets []string) error {
			if len(presets) == 0 {
				presets = []string{"http"}
			}
			for _, p := range presets {
				if source.PresetNamed(p) == nil {
					return usage(cmd, "there is no preset %s. The presets are: %s", p, strings.Join(presetNames(), ", "))
				}
			}
			text, err := config.Starter(presets, target)
			if err != nil {
				return usage(cmd, "%v", err)
			}
			return a.writeConfig(cmd, presets, text, force)
		},
	}
	cmd.Flags().StringVar(&target, "target", "sqlite", "`kind` of database: "+strings.Join(config.StarterTargets(), ", "))
	cmd.Flags().BoolVar(&force, "force", false, "overwrite the file if it is there")
	return cmd
}

func presetNames() []string {
	var names []string
	for _, p := range source.Presets() {
		names = append(names, p.Name)
	}
	return names
}

var (
	variable = regexp.MustCompile(`\$\{([A-Z][A-Z0-9_]*)\}`)
	comment  = regexp.MustCompile(`(?m)(^|\s)#.*$`)
)

func (a *app) writeConfig(cmd *cobra.Command, presets []string, text []byte, force bool) error {
	how := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		how = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(a.config, how, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return usage(cmd, "%s is there already. Say --force to overwrite it, or -c to name another file", a.config)
	}
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	out := writtenJSON{File: a.config, Presets: presets, Environment: []string{}}
	for _, m := range variable.FindAllStringSubmatch(comment.ReplaceAllString(string(text), ""), -1) {
		if !slices.Contains(out.Environment, m[1]) {
			out.Environment = append(out.Environment, m[1])
		}
	}
	if a.json {
		return a.printJSON(out)
	}
	c := ""
	if a.config != defaultConfig {
		c = " -c " + a.config
	}
	a.printf("Wrote %s for %s.\n\nNext:\n", a.config, strings.Join(presets, ", "))
	for _, v := range out.Environment {
		a.printf("  export %s=…\n", v)
	}
	for _, next := range [][2]string{
		{"check", "is it right?"}, {"migrate", "which DDL does the database need? (--apply runs it)"}, {"serve", "receive"},
	} {
		a.printf("  %-34s %s\n", fmt.Sprintf("%s %s%s", a.Program, next[0], c), a.style.dim("# "+next[1]))
	}
	return nil
}
