// Package cli is the command line: a function from arguments and streams to an
// exit code, with a file per command. What a command prints under --json is a
// contract, written down in docs/cli.md.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The exit codes.
const (
	// Fine says that the command did what it was asked.
	Fine = 0
	// NotSo says that the thing asked about is not so: events are dead, the
	// schema lacks a column, a request was refused.
	NotSo = 1
	// Usage says that the command line or the config is wrong, or that
	// something that the command needs cannot be reached.
	Usage = 2
)

// defaultConfig is the config that is read where -c names none.
const defaultConfig = "hookfold.yaml"

// World is what a command sees of the process it runs in.
type World struct {
	In       io.Reader
	Out, Err io.Writer
	// Program is how the user starts the program, for command lines that are
	// printed to be tried; "" is hookfold.
	Program string
	// Getenv looks an environment variable up.
	Getenv func(name string) (value string, ok bool)
	// Stop is closed when the user asks the command to end. Nil never ends.
	Stop <-chan struct{}
	// Terminal says that Out is a terminal that takes colours; TerminalErr that
	// Err is one on which a progress bar may be drawn.
	Terminal, TerminalErr bool
}

// Process is the real world: the standard streams, the environment, and an end
// on SIGINT or SIGTERM. A second signal ends the process at once.
func Process() World {
	stop := make(chan struct{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals)
		close(stop)
	}()
	return World{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Program: program(), Getenv: os.LookupEnv, Stop: stop,
		Terminal: isTerminal(os.Stdout), TerminalErr: isTerminal(os.Stderr),
	}
}

// program is how this process was started: by a path, by a name that was looked
// up, or by go run.
func program() string {
	path, err := os.Executable()
	switch {
	case err == nil && strings.Contains(path, "go-build"):
		return "go run ./cmd/hookfold"
	case len(os.Args) > 0 && filepath.Base(os.Args[0]) != os.Args[0]:
		return os.Args[0]
	}
	return "hookfold"
}

// app is one run of the command line.
type app struct {
	World
	// config is the path given by -c, json whether --json was.
	config string
	json   bool
	style  style
}

// Run runs one command line, without the program's name, and returns its exit
// code.
func Run(args []string, w World) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if w.Stop != nil {
		go func() {
			select {
			case <-w.Stop:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	if w.Program == "" {
		w.Program = "hookfold"
	}
	a := &app{World: w}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(w.In)
	root.SetOut(w.Out)
	root.SetErr(w.Err)
	cmd, err := root.ExecuteContextC(ctx)
	return a.exit(cmd, err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "hookfold",
		Short: "Receives webhooks and folds them into rows that are right in any order",
		Long: "Hookfold receives webhooks, keeps every one of them, and folds them into rows of\n" +
			"your own database, so that the rows are right whatever the order, duplication,\n" +
			"concurrency, retries or crashes.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          a.noSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRun: func(*cobra.Command, []string) {
			a.style = newStyle(a.Terminal && !a.json, a.Getenv)
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.PersistentFlags().StringVarP(&a.config, "config", "c", defaultConfig, "config `file`")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON (docs/cli.md says what)")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var wrong *pflag.InvalidValueError
		if errors.As(err, &wrong) {
			kind := wrong.GetFlag().Value.Type()
			if strings.HasPrefix(kind, "int") || strings.HasPrefix(kind, "uint") {
				kind = "a whole number within its bounds"
			}
			return usage(cmd, "--%s is %q; it has to be %s", wrong.GetFlag().Name, wrong.GetValue(), kind)
		}
		return usage(cmd, "%v", err)
	})
	root.SetHelpCommand(&cobra.Command{Use: "help [command]", Hidden: true, Short: "Show help", RunE: func(cmd *cobra.Command, args []string) error {
		of, _, err := root.Find(args)
		if err != nil || of == root && len(args) > 0 {
			return usage(root, "there is no command %s", strings.Join(args, " "))
		}
		return of.Help()
	}})
	root.AddGroup(groups()...)
	root.AddCommand(a.commands()...)
	return root
}

// noSuchCommand refuses arguments where a command's name is expected.
func (a *app) noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usage(cmd, "there is no command %s. Did you mean %s?", args[0], strings.Join(near, " or "))
	}
	return usage(cmd, "there is no command %s", args[0])
}

// failure is an error with the exit code that it stands for.
type failure struct {
	code int
	err  error
	// try is a command line that would work, "" for none.
	try string
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// usage is a wrong command line.
func usage(cmd *cobra.Command, format string, args ...any) error {
	try := cmd.CommandPath() + " --help"
	if cmd.Example != "" {
		try = strings.TrimSpace(strings.SplitN(cmd.Example, "\n", 2)[0])
	}
	return &failure{code: Usage, err: fmt.Errorf(format, args...), try: try}
}

// notSo is the answer "no" to what was asked. An empty text prints nothing:
// the command has said it already.
func notSo(format string, args ...any) error {
	return &failure{code: NotSo, err: fmt.Errorf(format, args...)}
}

// errSaid is a "no" that the command has told in its own output.
var errSaid = &failure{code: NotSo, err: errors.New("")}

// exit prints an error and returns its exit code.
func (a *app) exit(cmd *cobra.Command, err error) int {
	if err == nil {
		return Fine
	}
	f := &failure{code: Usage, err: err}
	errors.As(err, &f)
	if text := err.Error(); text != "" {
		fmt.Fprintf(a.Err, "%s: %s\n", cmd.CommandPath(), text)
	}
	if f.try != "" {
		fmt.Fprintf(a.Err, "Try: %s\n", a.Program+strings.TrimPrefix(f.try, "hookfold"))
	}
	return f.code
}

// count is a cobra argument check: from least to most arguments (most < 0 is
// any number), told in words.
func count(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || most >= 0 && len(args) > most {
			return usage(cmd, "needs %s, and was given %s", what, plural(len(args), "argument"))
		}
		return nil
	}
}
