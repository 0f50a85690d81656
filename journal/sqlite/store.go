package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/hookfold/hookfold/journal"
)

const (
	// applicationID marks the file as a journal of Hookfold ("hkfj").
	applicationID = 0x686b666a
	readers       = 4 // connections that read
)

var (
	//go:embed migrations/*.sql
	migrationFiles embed.FS
	//go:embed queries.sql
	queriesFile string
	queries     = parseQueries(queriesFile)
)

// parseQueries splits a file at its "-- name:" lines.
func parseQueries(file string) map[string]string {
	m := make(map[string]string)
	for _, part := range strings.Split(file, "-- name: ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		m[name] = strings.TrimSpace(text)
	}
	return m
}

func query(name string) string {
	text, ok := queries[name]
	if !ok {
		panic("journal/sqlite: no query " + name)
	}
	return text
}

// store is the open file: one connection that writes, and some that read.
type store struct {
	path  string
	write *sql.DB
	read  *sql.DB
	conn  *sql.Conn // the only connection of write; nil with Reader
	stmts map[string]*sql.Stmt
}

// openStore opens the file, makes it and its schema if there is none and this is
// the owner, and refuses a file that is something else.
func openStore(path string, options Options) (_ *store, err error) {
	s := &store{path: path, stmts: make(map[string]*sql.Stmt)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if options.Access == Owner {
		if err := createFile(path); err != nil {
			return nil, err
		}
	} else if _, err := os.Stat(path); err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			err = at.Err // the path is named once
		}
		return nil, fmt.Errorf("open journal: there is no journal to read at %s; check the path, or start the server once to make it (%w)", path, err)
	}
	if s.write, err = open(path, options, "mode=rw", "_pragma=synchronous(FULL)", "_pragma=wal_autocheckpoint(0)"); err != nil {
		return nil, s.openError(err)
	}
	s.write.SetMaxOpenConns(1)
	ctx := context.Background()
	if s.conn, err = s.write.Conn(ctx); err != nil {
		return nil, s.openError(err)
	}
	if err := s.prepareFile(ctx, options.Access); err != nil {
		return nil, err
	}
	if options.Access == Reader {
		err := s.conn.Close()
		s.conn = nil
		if err = errors.Join(err, s.write.Close()); err != nil {
			return nil, fmt.Errorf("open journal %s: %w", path, err)
		}
		s.write = nil
	}
	if s.read, err = open(path, options, "mode=rw", "_pragma=query_only(1)"); err != nil {
		return nil, s.openError(err)
	}
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(readers)
	if err := s.read.PingContext(ctx); err != nil {
		return nil, s.openError(err)
	}
	return s, nil
}

func open(path string, o Options, options ...string) (*sql.DB, error) {
	name := filepath.ToSlash(path)
	if !strings.HasPrefix(name, "/") {
		name = "/" + name // a drive of Windows
	}
	u := url.URL{Scheme: "file", Path: name}
	options = append(options, fmt.Sprintf("_pragma=busy_timeout(%d)", o.busy.Milliseconds()), "_error_rc=1")
	if o.vfs != "" {
		options = append(options, "vfs="+url.QueryEscape(o.vfs))
	}
	connector, err := driver.NewConnector(u.String() + "?" + strings.Join(options, "&"))
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// createFile makes an empty file that only its owner may read, since
// deliveries are private, unless there is one already.
func createFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create journal: %w; make the folder, and let this user write there", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("create journal: %w", err)
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return fmt.Errorf("create journal %s: %w", path, err)
	}
	return nil
}

func (s *store) prepareFile(ctx context.Context, access Access) error {
	var app, version, objects int
	for _, v := range []struct {
		query string
		into  *int
	}{
		{"PRAGMA application_id", &app}, {"PRAGMA user_version", &version}, {"SELECT count(*) FROM sqlite_schema", &objects},
	} {
		if err := s.conn.QueryRowContext(ctx, v.query).Scan(v.into); err != nil {
			return s.openError(err)
		}
	}
	isNew := app == 0 && version == 0 && objects == 0
	if !isNew && app != applicationID {
		return fmt.Errorf("open journal: %s is a SQLite database, but not a journal of Hookfold: give the journal a file of its own", s.path)
	}
	migrations, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return err
	}
	switch latest := len(migrations); {
	case version > latest:
		return fmt.Errorf("open journal: %s has schema %d, written by a newer Hookfold; this one knows schemas up to %d: run the newer version", s.path, version, latest)
	case version < latest && access != Owner:
		return fmt.Errorf("open journal: %s has schema %d, this Hookfold needs %d: start the server of this version once, which brings it up to date", s.path, version, latest)
	}
	if access != Owner {
		return nil
	}
	if isNew {
		// Free pages can be given back to the disk only if the file was made so.
		if _, err := s.conn.ExecContext(ctx, "PRAGMA auto_vacuum = INCREMENTAL"); err != nil {
			return s.openError(err)
		}
	}
	var mode string
	if err := s.conn.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return s.openError(err)
	}
	if mode != "wal" {
		return fmt.Errorf("open journal: %s cannot use a write-ahead log (it is in mode %s): put it on a local disk", s.path, mode)
	}
	for i := version; i < len(migrations); i++ {
		text, err := migrationFiles.ReadFile(migrations[i])
		if err != nil {
			return err
		}
		script := fmt.Sprintf("BEGIN IMMEDIATE;\n%s\nPRAGMA application_id = %d;\nPRAGMA user_version = %d;\nCOMMIT;", text, applicationID, i+1)
		if _, err := s.conn.ExecContext(ctx, script); err != nil {
			_, _ = s.conn.ExecContext(ctx, query("rollback")) // there may be no transaction
			return fmt.Errorf("open journal: bring %s to schema %d: %w", s.path, i+1, err)
		}
	}
	return nil
}

func (s *store) openError(err error) error {
	switch resultCode(err) & 0xff {
	case lib.SQLITE_NOTADB:
		return fmt.Errorf("open journal: %s is not a journal of Hookfold, nor any SQLite database: give the journal a file of its own (%w)", s.path, err)
	case lib.SQLITE_CANTOPEN, lib.SQLITE_READONLY, lib.SQLITE_PERM:
		return fmt.Errorf("open journal %s: %w: let this user write the file and its folder", s.path, err)
	}
	return fmt.Errorf("open journal %s: %w", s.path, err)
}

// stmt returns a statement of the writing connection. It is for the goroutine
// that writes.
func (s *store) stmt(ctx context.Context, name string) (*sql.Stmt, error) {
	if st := s.stmts[name]; st != nil {
		return st, nil
	}
	st, err := s.conn.PrepareContext(ctx, query(name))
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", name, err)
	}
	s.stmts[name] = st
	return st, nil
}

// exec runs a statement on the writing connection and returns how many rows it
// changed.
func (s *store) exec(ctx context.Context, name string, args ...any) (int64, error) {
	st, err := s.stmt(ctx, name)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(ctx, args...)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return res.RowsAffected()
}

// number reads one number on the writing connection.
func (s *store) number(ctx context.Context, name string, args ...any) (n int64, err error) {
	st, err := s.stmt(ctx, name)
	if err != nil {
		return 0, err
	}
	if err := st.QueryRowContext(ctx, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// used returns the bytes of the file that hold something.
func (s *store) used(ctx context.Context) (bytes, free int64, err error) {
	var n [3]int64
	for i, name := range []string{"page-size", "page-count", "free-count"} {
		if n[i], err = s.number(ctx, name); err != nil {
			return 0, 0, err
		}
	}
	return n[0] * (n[1] - n[2]), n[0] * n[2], nil
}

// log runs a statement about the write-ahead log and returns how many of its
// frames are not in the file yet.
func (s *store) log(ctx context.Context, name string) (behind int, busy bool, err error) {
	st, err := s.stmt(ctx, name)
	if err != nil {
		return 0, false, err
	}
	var frames, written int
	if err := st.QueryRowContext(ctx).Scan(&busy, &frames, &written); err != nil {
		return 0, false, fmt.Errorf("%s: %w", name, err)
	}
	return frames - written, busy, nil
}

func (s *store) close() error {
	var errs []error
	if s.read != nil {
		errs = append(errs, s.read.Close())
	}
	for _, st := range s.stmts {
		errs = append(errs, st.Close())
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.write != nil {
		errs = append(errs, s.write.Close())
	}
	return errors.Join(errs...)
}

// resultCode returns SQLite's result code of an error, 0 if it has none.
func resultCode(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// writeError puts an error of the contract into the chain of an error of a
// write, and tells what to do.
func (s *store) writeError(err error) error {
	if err == nil || known(err) {
		return err
	}
	switch resultCode(err) & 0xff {
	case lib.SQLITE_FULL:
		return fmt.Errorf("%w: the disk of %s has no room: free some (%w)", journal.ErrFull, s.path, err)
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return fmt.Errorf("%w: another process keeps %s locked: end its transaction (%w)", journal.ErrOverloaded, s.path, err)
	case lib.SQLITE_IOERR, lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN,
		lib.SQLITE_PERM, lib.SQLITE_PROTOCOL, lib.SQLITE_NOMEM, lib.SQLITE_INTERNAL:
		return fmt.Errorf("%w: %s cannot be written: look at its disk (%w)", journal.ErrBroken, s.path, err)
	}
	return err
}

func known(err error) bool {
	return errors.Is(err, journal.ErrFull) || errors.Is(err, journal.ErrBroken) || errors.Is(err, journal.ErrOverloaded)
}

// brokenUnless is writeError for a write that has no reason to fail but the
// file: whatever else it says, the file is in doubt.
func (s *store) brokenUnless(err error) error {
	if err = s.writeError(err); known(err) {
		return err
	}
	return fmt.Errorf("%w: %s: %w", journal.ErrBroken, s.path, err)
}
