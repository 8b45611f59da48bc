// Package memfs is a deterministic vfs.FS in memory that loses, tears, reorders, fails and corrupts on demand.
//
// It keeps, for every file, what readers see, what the last successful Sync made durable, and every un-synced write in
// order; for every directory the entries that readers see and those that SyncDir made durable. Crash builds from that
// the image that survives a power loss under a chosen strategy. Faults are rules over operation numbers and names.
// Everything is a pure function of the calls made and of the keys given: no clock, no random source, no map order. It
// is not safe for concurrent use, and it does not model time.
package memfs

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"weir/disk/vfs"
	"weir/spec/assert"
)

// ErrStopped is what every call returns after the operation number set by StopAfter: the power is off.
var ErrStopped = errors.New("the machine is off")

// Options fix the properties of a simulated disk.
type Options struct {
	// SectorBytes is the unit that a power loss keeps or loses whole: 512 or 4096. Zero means 512.
	SectorBytes int
	// CapacityBytes bounds the sum of the file sizes; a write past it fails with vfs.ErrNoSpace. Zero means no bound.
	CapacityBytes int64
	// Seed keys the places of injected damage that the caller leaves open.
	Seed uint64
}

// FS is a simulated disk. The zero value is not usable; New makes one.
type FS struct {
	opts    Options
	root    *node
	pending []nameOp // name operations since the oldest one that is not durable, in order
	locks   map[string]bool
	used    int64 // sum of visible file sizes

	ops    uint64 // operations so far, failed ones included
	stop   uint64 // operations with a higher number fail with ErrStopped; 0 is no limit
	faults []Fault
	before func(Op)
	trace  []Op
	record bool
}

var _ vfs.FS = (*FS)(nil)

// node is a file or a directory.
type node struct {
	file    *content         // nil for a directory
	visible map[string]*node // entries that readers see
	durable map[string]*node // entries as of the durable name operations
}

func newDir() *node {
	return &node{visible: map[string]*node{}, durable: map[string]*node{}}
}

// nameOp is one change of directory entries. It is durable once waits is empty.
type nameOp struct {
	kind             OpKind // OpCreate (also for a directory), OpRename or OpRemove
	fromDir, toDir   *node  // OpCreate and OpRemove use toDir only
	fromName, toName string
	target           *node
	waits            []*node // directories that were not synced since
	claimed          []*node // those of them that a lying SyncDir has said to be durable
}

// New returns an empty disk.
func New(opts Options) *FS {
	if opts.SectorBytes == 0 {
		opts.SectorBytes = 512
	}
	assert.True(opts.SectorBytes == 512 || opts.SectorBytes == 4096, "sector is 512 or 4096 bytes", uint64(opts.SectorBytes))
	return &FS{opts: opts, root: newDir(), locks: map[string]bool{}}
}

// lookup returns the node with the given valid name, or nil.
func (f *FS) lookup(name string) *node {
	n := f.root
	if name == "." {
		return n
	}
	for part := range strings.SplitSeq(name, "/") {
		if n == nil || n.file != nil {
			return nil
		}
		n = n.visible[part]
	}
	return n
}

// parent returns the directory that holds or would hold the name, or nil.
func (f *FS) parent(name string) *node {
	d := f.lookup(path.Dir(name))
	if d == nil || d.file != nil {
		return nil
	}
	return d
}

func notExist(op, name string) error { return fmt.Errorf("%s %s: %w", op, name, vfs.ErrNotExist) }

// Create implements vfs.FS.
func (f *FS) Create(name string) (vfs.File, error) {
	if err := vfs.CheckName(name); err != nil {
		return nil, err
	}
	if err := f.enter(Op{Kind: OpCreate, Name: name}); err != nil {
		return nil, err
	}
	d := f.parent(name)
	if d == nil {
		return nil, notExist("create", name)
	}
	base := path.Base(name)
	if d.visible[base] != nil || name == "." {
		return nil, fmt.Errorf("create %s: %w", name, vfs.ErrExist)
	}
	if f.opts.CapacityBytes > 0 && f.used >= f.opts.CapacityBytes {
		return nil, fmt.Errorf("create %s: %w", name, vfs.ErrNoSpace)
	}
	n := &node{file: &content{}}
	d.visible[base] = n
	f.pending = append(f.pending, nameOp{kind: OpCreate, toDir: d, toName: base, target: n, waits: []*node{d}})
	return &handle{fs: f, name: name, c: n.file}, nil
}

// Open implements vfs.FS.
func (f *FS) Open(name string) (vfs.File, error) {
	if err := vfs.CheckName(name); err != nil {
		return nil, err
	}
	if err := f.enter(Op{Kind: OpOpen, Name: name}); err != nil {
		return nil, err
	}
	n := f.lookup(name)
	if n == nil {
		return nil, notExist("open", name)
	}
	if n.file == nil {
		return nil, fmt.Errorf("open %s: is a directory", name)
	}
	return &handle{fs: f, name: name, c: n.file}, nil
}

// Rename implements vfs.FS.
func (f *FS) Rename(from, to string) error {
	if err := errors.Join(vfs.CheckName(from), vfs.CheckName(to)); err != nil {
		return err
	}
	if err := f.enter(Op{Kind: OpRename, Name: from, To: to}); err != nil {
		return err
	}
	src, dst := f.parent(from), f.parent(to)
	if src == nil || dst == nil || src.visible[path.Base(from)] == nil {
		return notExist("rename", from)
	}
	n := src.visible[path.Base(from)]
	old := dst.visible[path.Base(to)]
	if old == n {
		return nil
	}
	if old != nil && (old.file == nil || n.file == nil) {
		return fmt.Errorf("rename %s to %s: %w", from, to, vfs.ErrExist)
	}
	if old != nil {
		f.used -= int64(len(old.file.data))
	}
	delete(src.visible, path.Base(from))
	dst.visible[path.Base(to)] = n
	op := nameOp{kind: OpRename, fromDir: src, fromName: path.Base(from), toDir: dst, toName: path.Base(to), target: n, waits: []*node{src}}
	if dst != src {
		op.waits = append(op.waits, dst)
	}
	f.pending = append(f.pending, op)
	return nil
}

// Remove implements vfs.FS.
func (f *FS) Remove(name string) error {
	if err := vfs.CheckName(name); err != nil {
		return err
	}
	if err := f.enter(Op{Kind: OpRemove, Name: name}); err != nil {
		return err
	}
	n := f.lookup(name)
	if n == nil || name == "." {
		return notExist("remove", name)
	}
	if n.file == nil && len(n.visible) > 0 {
		return fmt.Errorf("remove %s: directory not empty", name)
	}
	if n.file != nil {
		f.used -= int64(len(n.file.data))
	}
	d := f.parent(name)
	delete(d.visible, path.Base(name))
	f.pending = append(f.pending, nameOp{kind: OpRemove, toDir: d, toName: path.Base(name), target: n, waits: []*node{d}})
	return nil
}

// List implements vfs.FS.
func (f *FS) List(dir string) ([]string, error) {
	if err := vfs.CheckName(dir); err != nil {
		return nil, err
	}
	if err := f.enter(Op{Kind: OpList, Name: dir}); err != nil {
		return nil, err
	}
	d := f.lookup(dir)
	if d == nil || d.file != nil {
		return nil, notExist("list", dir)
	}
	return slices.Sorted(maps.Keys(d.visible)), nil
}

// MkdirAll implements vfs.FS.
func (f *FS) MkdirAll(dir string) error {
	if err := vfs.CheckName(dir); err != nil {
		return err
	}
	if err := f.enter(Op{Kind: OpCreate, Name: dir}); err != nil {
		return err
	}
	d := f.root
	if dir == "." {
		return nil
	}
	for part := range strings.SplitSeq(dir, "/") {
		next := d.visible[part]
		if next == nil {
			next = newDir()
			d.visible[part] = next
			f.pending = append(f.pending, nameOp{kind: OpCreate, toDir: d, toName: part, target: next, waits: []*node{d}})
		}
		if next.file != nil {
			return fmt.Errorf("make directory %s: %w", dir, vfs.ErrExist)
		}
		d = next
	}
	return nil
}

// SyncDir implements vfs.FS.
func (f *FS) SyncDir(dir string) error {
	if err := vfs.CheckName(dir); err != nil {
		return err
	}
	err := f.enter(Op{Kind: OpSyncDir, Name: dir})
	lies := err == errLie //nolint:errorlint // enter returns it bare
	if err != nil && !lies {
		return err
	}
	d := f.lookup(dir)
	if d == nil || d.file != nil {
		return notExist("sync directory", dir)
	}
	for i := range f.pending {
		op := &f.pending[i]
		if lies && slices.Contains(op.waits, d) {
			op.claimed = append(op.claimed, d)
		} else if !lies {
			op.waits = slices.DeleteFunc(op.waits, func(w *node) bool { return w == d })
		}
	}
	f.settle()
	return nil
}

// settle makes the oldest name operations durable that wait for nothing.
func (f *FS) settle() {
	settled := 0
	for settled < len(f.pending) && len(f.pending[settled].waits) == 0 {
		f.pending[settled].apply(func(d *node) map[string]*node { return d.durable })
		settled++
	}
	f.pending = slices.Delete(f.pending, 0, settled)
}

// apply performs the operation on the entries that the function gives for a directory. An operation that lost one it
// builds on has no effect, except that a durable rename always brings its target to the new name.
func (op *nameOp) apply(entries func(*node) map[string]*node) {
	to := entries(op.toDir)
	switch op.kind {
	case OpCreate:
		to[op.toName] = op.target
	case OpRemove:
		if to[op.toName] == op.target {
			delete(to, op.toName)
		}
	case OpRename:
		from := entries(op.fromDir)
		there := from[op.fromName] == op.target
		if there {
			delete(from, op.fromName)
		}
		if there || len(op.waits) == 0 {
			to[op.toName] = op.target
		}
	default:
		assert.Unreachable("kind of name operation", uint64(op.kind))
	}
}

// Free implements vfs.FS. A disk without a bound says a large number.
func (f *FS) Free() (int64, error) {
	if err := f.enter(Op{Kind: OpFree, Name: "."}); err != nil {
		return 0, err
	}
	if f.opts.CapacityBytes == 0 {
		return 1 << 50, nil
	}
	return max(0, f.opts.CapacityBytes-f.used), nil
}

// Lock implements vfs.FS. Locks do not survive Crash.
func (f *FS) Lock(name string) (io.Closer, error) {
	if err := vfs.CheckName(name); err != nil {
		return nil, err
	}
	if err := f.enter(Op{Kind: OpLock, Name: name}); err != nil {
		return nil, err
	}
	if f.locks[name] {
		return nil, fmt.Errorf("data directory is in use by another server: %w", vfs.ErrLocked)
	}
	f.locks[name] = true
	return &lock{f, name}, nil
}

type lock struct {
	fs   *FS
	name string
}

func (l *lock) Close() error {
	delete(l.fs.locks, l.name)
	return nil
}

// SetCapacity changes the bound on the sum of file sizes; zero lifts it.
func (f *FS) SetCapacity(bytes int64) { f.opts.CapacityBytes = bytes }

// Used returns the sum of the visible file sizes in bytes.
func (f *FS) Used() int64 { return f.used }

// Files returns the names of all files below a directory as readers see them, in ascending order per directory, without
// counting an operation. It is for tests and harnesses.
func (f *FS) Files(dir string) []string {
	var files []string
	stack := []string{dir}
	for len(stack) > 0 {
		name := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		n := f.lookup(name)
		if n == nil {
			continue
		}
		if n.file != nil {
			files = append(files, name)
			continue
		}
		for _, child := range slices.Sorted(maps.Keys(n.visible)) {
			stack = append(stack, path.Join(name, child))
		}
	}
	slices.Sort(files)
	return files
}
