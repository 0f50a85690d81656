package check

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hookfold/hookfold/internal/config"
	"github.com/hookfold/hookfold/internal/mapping"
)

// TestHalfReadConfigs compiles and checks configs that the loader could read
// only in part: what is wrong has been reported, and nothing may panic.
func TestHalfReadConfigs(t *testing.T) {
	files, err := filepath.Glob("../config/testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no configs to try: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			cfg, _ := config.Parse(f, text, config.Options{Env: func(string) (string, bool) { return "x", true }, ReadFile: func(string) ([]byte, error) { return []byte("x"), nil }})
			if cfg == nil {
				return
			}
			p, problems := mapping.Compile(cfg)
			Run(p)
			for _, x := range problems.List {
				if x.Pos.Line == 0 {
					t.Errorf("no place: %s", problems.Line(x))
				}
			}
		})
	}
}
