// Package vfs is the file system as Weir's storage sees it: the handful of calls whose failure and durability the
// storage code reasons about.
//
// It promises that every method states what is durable after it returns, and that names cannot leave the root of the
// file system. It does not cache, retry or hide errors, and it knows nothing of what the files contain.
//
// Names are slash-separated paths relative to the root of the file system, valid in the sense of io/fs.ValidPath; the
// root itself is ".". Two facts decide how callers order their calls:
//
//   - the bytes of a file are durable after File.Sync and not before;
//   - the entry of a file in its directory (that it exists, its name, that it is gone) is durable after SyncDir of that
//     directory and not before. A rename between two directories needs both synced.
//
// Before those calls any part of the change may survive a power loss, in any order, down to single sectors.
package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
)

// ErrNotExist says that a file or directory is not there. It is io/fs.ErrNotExist.
var ErrNotExist = fs.ErrNotExist

// ErrExist says that a file that was to be created is there already. It is io/fs.ErrExist.
var ErrExist = fs.ErrExist

// ErrNoSpace says that the device or a quota is full. The call may have written a part of its bytes.
var ErrNoSpace = errors.New("no space left on device")

// ErrIO says that the device failed the call. After a failed Sync the un-synced bytes of the file may be gone even
// though reads still show them.
var ErrIO = errors.New("input/output error")

// ErrLocked says that another holder has the lock.
var ErrLocked = errors.New("locked by another process")

// ErrName says that a name is not a valid relative path.
var ErrName = errors.New("invalid file name")

// FS is a tree of files. An FS need not be safe for concurrent use unless the implementation says so.
type FS interface {
	// Create makes a new, empty file and opens it for reading and writing. It fails with ErrExist where the name is
	// taken: storage never truncates by opening. The entry is durable after SyncDir of the directory.
	Create(name string) (File, error)

	// Open opens an existing file for reading and writing. It fails with ErrNotExist where there is none.
	Open(name string) (File, error)

	// Rename gives a file or a directory another name, replacing a file that has it. Readers see the old or the new
	// state, nothing between. It is durable after SyncDir of both directories; until then a crash leaves the old or the
	// new name, never both and never neither.
	Rename(from, to string) error

	// Remove takes away a file or an empty directory. It is durable after SyncDir of the directory; until then a crash
	// may bring the file back.
	Remove(name string) error

	// List returns the names in a directory, without path, in ascending byte order. It fails with ErrNotExist where
	// there is no such directory.
	List(dir string) ([]string, error)

	// MkdirAll makes a directory and its missing parents. Each is durable after SyncDir of its parent.
	MkdirAll(dir string) error

	// SyncDir makes the entries of a directory durable: creations, renames and removals that returned before. It does
	// not sync the bytes of the files.
	SyncDir(dir string) error

	// Free returns how many bytes can still be written, as far as the file system knows.
	Free() (int64, error)

	// Lock takes an exclusive lock with the given name, held until the closer is closed or the process ends. It fails
	// with ErrLocked, without waiting, where another holder has it.
	Lock(name string) (io.Closer, error)
}

// File is an open file. ReadAt may be called concurrently with itself; the other methods need exclusion.
type File interface {
	// ReadAt fills p from the offset, as io.ReaderAt does: fewer bytes only with an error, io.EOF at the end.
	io.ReaderAt

	// WriteAt writes p at the offset and grows the file where needed; a gap reads as zeros. The bytes are durable after
	// Sync. After an error any part of p may have been written.
	io.WriterAt

	// Truncate sets the size in bytes; a grown part reads as zeros. It is durable after Sync.
	Truncate(size int64) error

	// Size returns the current size in bytes.
	Size() (int64, error)

	// Sync makes the bytes and the size of the file durable (fdatasync). After an error the state of the un-synced
	// bytes is unknown and stays so: the caller must not acknowledge anything through this file again.
	Sync() error

	// Close releases the file. It does not sync.
	Close() error
}

// Uncached is a File that can be written past the cache of the operating system.
type Uncached interface {
	// WriteUncached says that the file is written in whole pages of 4096 bytes, each write is waited for, and nobody reads
	// soon what was written. Nothing but speed depends on it.
	WriteUncached()
}

// WriteUncached tells a file what Uncached says, if it cares.
func WriteUncached(f File) {
	if u, ok := f.(Uncached); ok {
		u.WriteUncached()
	}
}

// CheckName returns an error that wraps ErrName unless the name is a valid path relative to the root.
func CheckName(name string) error {
	if !fs.ValidPath(name) {
		return fmt.Errorf("%w: %q", ErrName, name)
	}
	return nil
}

// MakeDir makes a directory with its missing parents and syncs the parents from the root down, so that the directory
// is durable when MakeDir returns.
func MakeDir(fsys FS, dir string) error {
	if err := CheckName(dir); err != nil {
		return err
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return fmt.Errorf("make directory %s: %w", dir, err)
	}
	for dir != "." {
		dir = path.Dir(dir)
		if err := fsys.SyncDir(dir); err != nil {
			return fmt.Errorf("sync directory %s: %w", dir, err)
		}
	}
	return nil
}

// ReadFile returns the whole content of a file in a new slice.
func ReadFile(fsys FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	data := make([]byte, size)
	if err := ReadFull(f, data, 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return data, f.Close()
}

// ReadFull fills p from the offset. A file that ends before p is full gives io.ErrUnexpectedEOF.
func ReadFull(f File, p []byte, off int64) error {
	n, err := f.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
