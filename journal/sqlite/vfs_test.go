package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// faultyDisk is a SQLite file system over the real one that fails on demand,
// and that knows what a loss of power would leave: of each file only what was
// written before its last successful sync. After a sync that failed, what was
// written before it is lost unless it is written again, which is how Linux does
// it: the next sync succeeds and does not write it.
type faultyDisk struct {
	name string

	mu      sync.Mutex
	open    map[uintptr]*diskFile // by sqlite3_file
	durable map[string]*diskFile  // by path
	methods map[uintptr]uintptr   // original io_methods → ours
	fault   func(op, path string) int32
	hits    int
	buffer  uintptr // 64 KiB
	keep    []any   // functions that SQLite points to
	vfs     *lib.Tsqlite3_vfs
}

type diskFile struct {
	path     string
	methods  *lib.Tsqlite3_io_methods // the original ones
	durable  []byte
	unsynced []span64
}

type span64 struct{ from, to int64 }

type (
	openFunc     = func(tls *libc.TLS, vfs, path, file uintptr, flags int32, out uintptr) int32
	deleteFunc   = func(tls *libc.TLS, vfs, path uintptr, sync int32) int32
	readFunc     = func(tls *libc.TLS, file, buf uintptr, n int32, offset int64) int32
	writeFunc    = func(tls *libc.TLS, file, buf uintptr, n int32, offset int64) int32
	truncateFunc = func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc     = func(tls *libc.TLS, file uintptr, flags int32) int32
)

// pointer makes a function that SQLite can call.
func pointer[F any](d *faultyDisk, f F) uintptr {
	p := &f
	d.keep = append(d.keep, p)
	return *(*uintptr)(unsafe.Pointer(p))
}

// function makes a function of SQLite callable.
func function[F any](p uintptr) F {
	return *(*F)(unsafe.Pointer(&struct{ uintptr }{p}))
}

// at is what lies at an address of SQLite's memory, which is not Go's.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// newFaultyDisk registers a file system for a test. It stays registered, since
// SQLite may keep pointers to it.
func newFaultyDisk(t *testing.T) *faultyDisk {
	tls := libc.NewTLS()
	original := at[lib.Tsqlite3_vfs](lib.Xsqlite3_vfs_find(tls, 0))
	d := &faultyDisk{
		name:    fmt.Sprintf("faulty-%p", t),
		open:    make(map[uintptr]*diskFile),
		durable: make(map[string]*diskFile),
		methods: make(map[uintptr]uintptr),
	}
	d.buffer = libc.Xcalloc(tls, 1, 64<<10)
	cname, err := libc.CString(d.name)
	if err != nil {
		t.Fatal(err)
	}
	p := libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(*original)))
	d.vfs = at[lib.Tsqlite3_vfs](p)
	*d.vfs = *original
	d.vfs.FzName = cname
	d.vfs.FxOpen = pointer[openFunc](d, func(tls *libc.TLS, vfs, path, file uintptr, flags int32, out uintptr) int32 {
		rc := function[openFunc](original.FxOpen)(tls, uintptr(unsafe.Pointer(original)), path, file, flags, out)
		if rc == lib.SQLITE_OK && path != 0 {
			d.opened(tls, libc.GoString(path), file)
		}
		return rc
	})
	d.vfs.FxDelete = pointer[deleteFunc](d, func(tls *libc.TLS, vfs, path uintptr, sync int32) int32 {
		rc := function[deleteFunc](original.FxDelete)(tls, uintptr(unsafe.Pointer(original)), path, sync)
		d.mu.Lock()
		defer d.mu.Unlock()
		if rc == lib.SQLITE_OK {
			delete(d.durable, libc.GoString(path))
		}
		return rc
	})
	if rc := lib.Xsqlite3_vfs_register(tls, p, 0); rc != lib.SQLITE_OK {
		t.Fatalf("register a file system: %d", rc)
	}
	disks.Store(d.name, d)
	return d
}

// disks keeps the file systems from the garbage collector.
var disks sync.Map

func (d *faultyDisk) opened(tls *libc.TLS, path string, file uintptr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.durable[path]
	if f == nil {
		content, _ := os.ReadFile(path)
		f = &diskFile{path: path, durable: content}
		d.durable[path] = f
	}
	d.open[file] = f
	methods := &at[lib.Tsqlite3_file](file).FpMethods
	f.methods = at[lib.Tsqlite3_io_methods](*methods)
	ours, ok := d.methods[*methods]
	if !ok {
		ours = libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(*f.methods)))
		m := at[lib.Tsqlite3_io_methods](ours)
		*m = *f.methods
		m.FxWrite = pointer[writeFunc](d, d.write)
		m.FxTruncate = pointer[truncateFunc](d, d.truncate)
		m.FxSync = pointer[syncFunc](d, d.sync)
		d.methods[*methods] = ours
	}
	*methods = ours
}

// strike returns the code to fail with, 0 for none.
func (d *faultyDisk) strike(op string, f *diskFile) int32 {
	if d.fault == nil {
		return 0
	}
	rc := d.fault(op, f.path)
	if rc != 0 {
		d.hits++
	}
	return rc
}

func (d *faultyDisk) write(tls *libc.TLS, file, buf uintptr, n int32, offset int64) int32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.open[file]
	if rc := d.strike("write", f); rc != 0 {
		return rc
	}
	rc := function[writeFunc](f.methods.FxWrite)(tls, file, buf, n, offset)
	f.unsynced = append(f.unsynced, span64{offset, offset + int64(n)})
	return rc
}

func (d *faultyDisk) truncate(tls *libc.TLS, file uintptr, size int64) int32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.open[file]
	rc := function[truncateFunc](f.methods.FxTruncate)(tls, file, size)
	if rc == lib.SQLITE_OK && int64(len(f.durable)) > size {
		f.durable = f.durable[:size:size]
	}
	return rc
}

func (d *faultyDisk) sync(tls *libc.TLS, file uintptr, flags int32) int32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.open[file]
	if rc := d.strike("sync", f); rc != 0 {
		f.unsynced = nil // lost
		return rc
	}
	rc := function[syncFunc](f.methods.FxSync)(tls, file, flags)
	if rc != lib.SQLITE_OK {
		return rc
	}
	for _, s := range f.unsynced {
		if grow := s.to - int64(len(f.durable)); grow > 0 {
			f.durable = append(f.durable, make([]byte, grow)...)
		}
		if rc := function[readFunc](f.methods.FxRead)(tls, file, d.buffer, int32(s.to-s.from), s.from); rc != lib.SQLITE_OK && rc != lib.SQLITE_IOERR_SHORT_READ {
			return rc
		}
		copy(f.durable[s.from:s.to], unsafe.Slice(at[byte](d.buffer), s.to-s.from))
	}
	f.unsynced = nil
	return rc
}

// fail sets what decides on faults: it gets "write" or "sync" and the path, and
// returns a result code of SQLite, 0 for none. nil ends all faults.
func (d *faultyDisk) fail(fault func(op, path string) int32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault, d.hits = fault, 0
}

func (d *faultyDisk) struck() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hits
}

// losePower writes what a loss of power at this moment would leave into a
// folder.
func (d *faultyDisk) losePower(t *testing.T, dir string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for path, f := range d.durable {
		if strings.HasSuffix(path, "-shm") {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), f.durable, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
