// Command bench measures Hookfold beside what people would use in its place, on
// one machine, in turn, and judges the ratios. Every run's rows are compared
// with what its deliveries say; a run whose rows are wrong is no run.
//
//	go run .            all measures; an hour or so
//	go run . -short     the same in small, in some five minutes
//
// It needs PostgreSQL with fsync on (HOOKFOLD_BENCH_POSTGRES names it), and ends
// with 1 if a ratio falls short.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// bench is one call of the program.
type bench struct {
	postgres, dir, binary string
	short                 bool
	runs                  int
	only                  string
	// halves are half of what subjects have sustained.
	halves map[string]float64
}

func main() {
	if len(os.Args) == 5 && os.Args[1] == "serve" {
		if err := serve(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	b := &bench{postgres: os.Getenv("HOOKFOLD_BENCH_POSTGRES")}
	if b.postgres == "" {
		b.postgres = "postgres://postgres@127.0.0.1:5432/postgres"
	}
	flag.BoolVar(&b.short, "short", false, "small forms of the measures")
	flag.IntVar(&b.runs, "runs", 5, "`runs` of each subject")
	flag.StringVar(&b.only, "only", "", "only measures whose name holds `text`")
	page := flag.String("write", "", "write the tables into this `file`, between its markers")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	report, err := b.all(ctx)
	if err == nil && *page != "" {
		err = report.writeTo(*page)
	}
	report.print(os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	case !report.ok():
		os.Exit(1)
	}
}

// all runs the measures.
func (b *bench) all(ctx context.Context) (r *report, err error) {
	r = &report{short: b.short, runs: b.runs}
	if b.dir, err = os.MkdirTemp("", "hookfold-bench-"); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if err := b.durable(ctx); err != nil {
		return r, err
	}
	b.binary = filepath.Join(b.dir, "hookfold")
	build := exec.CommandContext(ctx, "go", "build", "-o", b.binary, "./cmd/hookfold")
	build.Dir = ".." // as it is released: with its own go.mod
	if out, err := build.CombinedOutput(); err != nil {
		return r, fmt.Errorf("build hookfold: %w\n%s", err, out)
	}
	for _, m := range measures() {
		if !strings.Contains(m.name, b.only) || b.short && m.long {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s …\n", m.name)
		if err := m.take(ctx, b, r); err != nil {
			return r, fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return r, nil
}

// durable refuses a database that forgets at a loss of power: it would win.
func (b *bench) durable(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, b.postgres)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL (%s; HOOKFOLD_BENCH_POSTGRES names another): %w", b.postgres, err)
	}
	defer conn.Close(ctx)
	for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		var value string
		if err := conn.QueryRow(ctx, "show "+name).Scan(&value); err != nil {
			return err
		}
		if value != "on" {
			return fmt.Errorf("PostgreSQL has %s = %s: switch it on, or the figures mean nothing", name, value)
		}
	}
	return nil
}
