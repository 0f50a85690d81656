package config

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files and docs/config.md anew")

var presets = []string{"calendly", "hasura", "http", "standard-webhooks", "stripe", "supabase", "whatsapp"}

// testOptions read an environment and files that are the same everywhere.
func testOptions() Options {
	env := map[string]string{
		"SECRET": "s3cr3t", "CALENDLY_SIGNING_KEY": "c", "META_APP_SECRET": "m", "META_VERIFY_TOKEN": "t", "SHOP_SECRET": "s",
		"DATABASE_URL": "postgres://hookfold:pw@db.example/app", "EMPTY": "", "LISTEN": "127.0.0.1:9000", "YAML": "x]\nlisten: 1", "NESTED": "${SECRET}",
		"PASSWORD": "not to be shown",
	}
	files := map[string]string{"/run/secrets/shop": "from a file\n", "/run/secrets/two": "a\r\n"}
	return Options{
		Presets: presets,
		Env:     func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		ReadFile: func(path string) ([]byte, error) {
			s, ok := files[path]
			if !ok {
				return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("no such file or directory")}
			}
			return []byte(s), nil
		},
	}
}

// TestCorpus reads every config of testdata and compares its problems with the
// golden file beside it.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no corpus", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, problems := Parse(filepath.Base(file), data, testOptions())
			got := problems.Error()
			if got != "" {
				got += "\n"
			}
			for _, secret := range []string{"s3cr3t", "not to be shown", "hunter2"} {
				if strings.Contains(got, secret) {
					t.Errorf("a secret is shown: %s", got)
				}
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".golden", got)
		})
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got, -update writes it anew):\n%s", file, d)
	}
}
