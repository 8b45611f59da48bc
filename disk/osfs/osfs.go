//go:build unix

// Package osfs is vfs.FS on the operating system, below one root directory.
//
// It promises that File.Sync is fdatasync, that SyncDir is fsync of the directory, and that a lock excludes every other
// process on the machine. It makes no decision of its own: no cache, no retry. It is safe for concurrent use as far as
// vfs.File allows.
package osfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"weir/disk/vfs"
)

const (
	dirMode  = 0o750
	fileMode = 0o640
)

// FS is the part of the operating system's file system below a root directory.
type FS struct {
	root string
}

var _ vfs.FS = (*FS)(nil)

// New returns the file system below root, which is made if it does not exist.
func New(root string) (*FS, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := os.MkdirAll(root, dirMode); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	if err := syncDir(filepath.Dir(root)); err != nil {
		return nil, fmt.Errorf("sync parent of data directory %s: %w", root, err)
	}
	return &FS{root: root}, nil
}

// Existing returns the file system below root, which must exist. Nothing is written by the call itself.
func Existing(root string) (*FS, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	info, err := os.Stat(root)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("data directory: %s is not a directory", root)
	}
	return &FS{root: root}, nil
}

// Root returns the absolute path of the root directory.
func (f *FS) Root() string { return f.root }

func (f *FS) path(name string) (string, error) {
	if err := vfs.CheckName(name); err != nil {
		return "", err
	}
	return filepath.Join(f.root, filepath.FromSlash(name)), nil
}

// Create implements vfs.FS.
func (f *FS) Create(name string) (vfs.File, error) {
	return f.open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// Open implements vfs.FS.
func (f *FS) Open(name string) (vfs.File, error) {
	return f.open(name, os.O_RDWR)
}

func (f *FS) open(name string, flags int) (vfs.File, error) {
	p, err := f.path(name)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(p, flags, fileMode)
	if err != nil {
		return nil, mapError(err)
	}
	return &osFile{f: file}, nil
}

// Rename implements vfs.FS.
func (f *FS) Rename(from, to string) error {
	p, err := f.path(from)
	if err != nil {
		return err
	}
	q, err := f.path(to)
	if err != nil {
		return err
	}
	return mapError(os.Rename(p, q))
}

// Remove implements vfs.FS.
func (f *FS) Remove(name string) error {
	p, err := f.path(name)
	if err != nil {
		return err
	}
	return mapError(os.Remove(p))
}

// List implements vfs.FS.
func (f *FS) List(dir string) ([]string, error) {
	p, err := f.path(dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(p) // sorted by name
	if err != nil {
		return nil, mapError(err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// MkdirAll implements vfs.FS.
func (f *FS) MkdirAll(dir string) error {
	p, err := f.path(dir)
	if err != nil {
		return err
	}
	return mapError(os.MkdirAll(p, dirMode))
}

// SyncDir implements vfs.FS.
func (f *FS) SyncDir(dir string) error {
	p, err := f.path(dir)
	if err != nil {
		return err
	}
	return mapError(syncDir(p))
}

func syncDir(p string) error {
	d, err := os.Open(p)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Free implements vfs.FS with the space that an unprivileged process may use.
func (f *FS) Free() (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(f.root, &st); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", f.root, err)
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}

// Lock implements vfs.FS with flock. The file stays after unlocking; it holds the process id of its last holder, for
// the error message only.
func (f *FS) Lock(name string) (io.Closer, error) {
	p, err := f.path(name)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(p, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, mapError(err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		holder := make([]byte, 20)
		n, _ := file.ReadAt(holder, 0) // the holder is a courtesy, its absence no error
		_ = file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w%s", p, vfs.ErrLocked, describe(holder[:n]))
		}
		return nil, fmt.Errorf("lock %s: %w", p, err)
	}
	if err := errors.Join(file.Truncate(0), writePID(file)); err != nil {
		return nil, errors.Join(mapError(err), file.Close())
	}
	return file, nil
}

func writePID(file *os.File) error {
	_, err := file.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	return err
}

func describe(holder []byte) string {
	pid := strings.TrimSpace(string(holder))
	if pid == "" {
		return ""
	}
	return " (id " + pid + ")"
}

type osFile struct {
	f      *os.File
	direct *direct // nil: everything goes through the cache
}

func (o *osFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := o.f.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		err = mapError(err)
	}
	return n, err
}

// WriteUncached implements vfs.Uncached.
func (o *osFile) WriteUncached() {
	if o.direct == nil {
		o.direct = openDirect(o.f.Name())
	}
}

// WriteAt implements vfs.File.
func (o *osFile) WriteAt(p []byte, off int64) (int, error) {
	if o.direct.takes(len(p), off) {
		n, err := o.direct.write(p, off)
		if !errors.Is(err, unix.EINVAL) {
			return n, mapError(err)
		}
		_ = o.direct.close() // nothing is written through it that is not synced through the other
		o.direct = nil
	}
	n, err := o.f.WriteAt(p, off)
	return n, mapError(err)
}

func (o *osFile) Truncate(size int64) error { return mapError(o.f.Truncate(size)) }

func (o *osFile) Size() (int64, error) {
	info, err := o.f.Stat()
	if err != nil {
		return 0, mapError(err)
	}
	return info.Size(), nil
}

// Sync is fdatasync: it skips the time stamps of the inode and so needs no journal commit when a file is overwritten
// in place.
func (o *osFile) Sync() error {
	for {
		err := Datasync(o.f)
		if !errors.Is(err, unix.EINTR) {
			return mapError(err)
		}
	}
}

func (o *osFile) Close() error { return mapError(errors.Join(o.direct.close(), o.f.Close())) }

// mapError gives the errors of the operating system the identities that package vfs names.
func mapError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("%w: %w", vfs.ErrNoSpace, err)
	case errors.Is(err, unix.EIO):
		return fmt.Errorf("%w: %w", vfs.ErrIO, err)
	}
	return err
}
