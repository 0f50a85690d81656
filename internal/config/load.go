package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of a config.
const (
	// MaxSize is the most bytes of a config file.
	MaxSize = 1 << 20
	// maxValues is the most values of a config, where what an alias stands for
	// counts as often as it is used.
	maxValues = 200_000
	// maxProblems is the most problems that are reported.
	maxProblems = 100
	// maxSecretFile is the most bytes of a file that ${file:…} names.
	maxSecretFile = 64 << 10
)

// Options is what a config is read with. The zero Options read the process
// environment and the file system, and know no preset.
type Options struct {
	// Env looks up an environment variable; default os.LookupEnv.
	Env func(name string) (value string, ok bool)
	// ReadFile reads the file that ${file:path} names. The default reads at most
	// 64 KiB, and Load takes a relative path from the folder of the config.
	ReadFile func(path string) ([]byte, error)
	// Presets are the names that preset: may take; nil allows every name.
	Presets []string
	// WithoutSecrets has credentials of sources, lanes and fetches whose variable
	// is not set stand for themselves, for commands that neither receive nor send.
	WithoutSecrets bool
}

// credential is the path of what only receiving and sending need.
var credential = regexp.MustCompile(`^(sources|lanes|fetches)\.[^.]+\.(secrets|secret|verify_token|bearer|basic|headers)\b`)

// standIn takes the place of a credential that is not there. It has the form
// that each of them may have.
const standIn = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

func (o Options) withDefaults() Options {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	if o.ReadFile == nil {
		o.ReadFile = readSmallFile
	}
	return o
}

// Load reads the config file at path; see Parse.
func Load(path string, o Options) (*Config, *Problems) {
	data, err := readAtMost(path, MaxSize)
	if err != nil {
		p := &Problems{File: path}
		text := fmt.Sprintf("cannot be read: %v", cause(err))
		if errors.Is(err, fs.ErrNotExist) {
			text = "there is no such file. hookfold init writes one to start from"
		}
		p.Add(Error, Pos{1, 1}, "", "%s", text)
		return nil, p
	}
	if o.ReadFile == nil {
		dir := filepath.Dir(path)
		o.ReadFile = func(name string) ([]byte, error) {
			if !filepath.IsAbs(name) {
				name = filepath.Join(dir, name)
			}
			return readSmallFile(name)
		}
	}
	return Parse(path, data, o)
}

// Parse reads a config from data; name is what problems call the file.
//
// The problems are never nil, and are all that can be found without compiling
// an expression or asking a database, in the order of the file. The config is
// nil if the data is not YAML. Otherwise it holds whatever could be read, so
// that expressions can be checked too and their problems be reported together
// with these; Problems.Touches tells which parts already have one. Only a config
// whose Problems.Err is nil may be run.
func Parse(name string, data []byte, o Options) (*Config, *Problems) {
	l := &loader{Problems: &Problems{File: name}, o: o.withDefaults(), bad: map[*yaml.Node]bool{}, mended: map[Pos]bool{}, expanded: map[Pos]string{}, unread: map[string]bool{}}
	defer l.Sort()
	root := l.syntax(data)
	if root == nil {
		return nil, l.Problems
	}
	l.refuseTags(root, "")
	cfg := l.config(root)
	cfg.File = name
	l.cross(cfg)
	return cfg, l.Problems
}

// Touches tells whether an error is reported at a path, or at a path below it.
func (p *Problems) Touches(path string) bool {
	for _, x := range p.List {
		if x.Severity != Error {
			continue
		}
		rest, ok := strings.CutPrefix(x.Path, path)
		if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// loader reads one config.
type loader struct {
	*Problems
	o Options
	// bad are nodes whose problem has been reported.
	bad    map[*yaml.Node]bool
	values int
	// moved says where quotes that syntax has put into the text have moved what
	// follows them on the line.
	moved []moved
	// mended are the places of values that have got those quotes: what is wrong
	// with them has been said.
	mended map[Pos]bool
	// expanded are texts as they stand in the file, where that is not what they
	// have become.
	expanded map[Pos]string
	// unread are the paths of keys that are not there, but that a key which
	// nobody knows was most likely meant to be.
	unread map[string]bool
}

// report adds an error, once per place and text, up to a bound.
func (l *loader) report(pos Pos, path, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, x := range l.List {
		if x.Pos == pos && x.Text == text {
			return
		}
	}
	switch {
	case len(l.List) == maxProblems:
		l.Add(Error, pos, "", "there are more problems than these %d; mend them first.", maxProblems)
	case len(l.List) < maxProblems:
		l.Add(Error, pos, path, "%s", text)
	}
}

func readSmallFile(path string) ([]byte, error) { return readAtMost(path, maxSecretFile) }

func readAtMost(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("it has more than %d bytes", most)
	}
	return data, nil
}

// cause strips the operation and the path, which the message has already.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
