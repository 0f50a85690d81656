package lint

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/hookfold/hookfold"

// file is one file of the tree, by its path from the root, with slashes.
type file struct {
	path string
	text []byte
}

// tree reads every text file of the project.
func tree(t *testing.T) []file {
	t.Helper()
	root := filepath.Join("..", "..")
	var files []file
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel == ".git" || rel == "dist" {
				return filepath.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err != nil || info.Size() > 1<<20 {
			return err
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		if !bytes.ContainsRune(text, 0) {
			files = append(files, file{rel, text})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("found only %d files: is the root where it was?", len(files))
	}
	return files
}

func (f file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }
func (f file) pkg() string  { return path.Dir(f.path) }

// source is a parsed Go file.
type source struct {
	file
	set  *token.FileSet
	tree *ast.File
}

// sources parses every Go file outside testdata.
func sources(t *testing.T) []source {
	t.Helper()
	var out []source
	for _, f := range tree(t) {
		if !strings.HasSuffix(f.path, ".go") || strings.Contains(f.path, "testdata/") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, f.path, f.text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, source{f, set, parsed})
	}
	return out
}

// imports lists what a file imports: ours by the folder, others in full.
func (s source) imports() []string {
	var out []string
	for _, i := range s.tree.Imports {
		p := strings.Trim(i.Path.Value, `"`)
		out = append(out, strings.TrimPrefix(p, module+"/"))
	}
	return out
}

// uses visits the qualified names in a file: time.Now, os.Exit.
func (s source) uses(visit func(pkg, name string, at token.Position)) {
	ast.Inspect(s.tree, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok {
				visit(x.Name, sel.Sel.Name, s.set.Position(sel.Pos()))
			}
		}
		return true
	})
}

// line is the text of the line at a position.
func (s source) line(at token.Position) []byte {
	return bytes.Split(s.text, []byte("\n"))[at.Line-1]
}
