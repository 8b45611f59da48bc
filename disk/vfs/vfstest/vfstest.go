// Package vfstest is the conformance kit of vfs.FS: it checks any implementation against the sentences of the interface
// that can be observed without a power loss.
package vfstest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"weir/disk/vfs"
)

// Run checks an empty file system and returns every broken sentence, joined, or nil. It leaves files behind.
func Run(fsys vfs.FS) error {
	var errs []error
	for _, c := range cases {
		if err := c.check(fsys); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.sentence, err))
		}
	}
	return errors.Join(errs...)
}

var cases = []struct {
	sentence string
	check    func(vfs.FS) error
}{
	{"Create fails with ErrExist where the name is taken", createIsExclusive},
	{"Open, Remove, Rename and List fail with ErrNotExist where there is nothing", missing},
	{"names cannot leave the root", names},
	{"WriteAt grows the file and a gap reads as zeros", gap},
	{"ReadAt gives fewer bytes only with io.EOF", shortRead},
	{"Truncate cuts, and a grown part reads as zeros", truncate},
	{"Rename replaces a file", renameReplaces},
	{"Rename moves a directory with its content", renameDirectory},
	{"List returns the names in ascending order", listSorted},
	{"Remove refuses a directory that is not empty", removeDirectory},
	{"two handles of a file see the same bytes", twoHandles},
	{"WriteUncached changes nothing but speed", uncached},
	{"Lock excludes a second holder until it is closed", lockExcludes},
	{"Free returns a number that is not negative", free},
	{"Sync and SyncDir succeed on a healthy device", syncs},
}

func want(err, target error) error {
	if !errors.Is(err, target) {
		return fmt.Errorf("got error %v, want %v", err, target)
	}
	return nil
}

// create makes a file with the given content.
func create(fsys vfs.FS, name, content string) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte(content), 0); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

func expect(fsys vfs.FS, name, content string) error {
	data, err := vfs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	if string(data) != content {
		return fmt.Errorf("%s contains %q, want %q", name, data, content)
	}
	return nil
}

func createIsExclusive(fsys vfs.FS) error {
	if err := create(fsys, "exclusive", "first"); err != nil {
		return err
	}
	_, err := fsys.Create("exclusive")
	return errors.Join(want(err, vfs.ErrExist), expect(fsys, "exclusive", "first"))
}

func missing(fsys vfs.FS) error {
	_, open := fsys.Open("missing")
	_, list := fsys.List("missing")
	_, made := fsys.Create("missing/file")
	return errors.Join(want(open, vfs.ErrNotExist), want(list, vfs.ErrNotExist), want(made, vfs.ErrNotExist),
		want(fsys.Remove("missing"), vfs.ErrNotExist), want(fsys.Rename("missing", "other"), vfs.ErrNotExist))
}

func names(fsys vfs.FS) error {
	_, create := fsys.Create("../escape")
	_, open := fsys.Open("/etc/passwd")
	_, list := fsys.List("..")
	_, lock := fsys.Lock("a/../../b")
	return errors.Join(want(create, vfs.ErrName), want(open, vfs.ErrName), want(list, vfs.ErrName), want(lock, vfs.ErrName),
		want(fsys.Remove("../escape"), vfs.ErrName), want(fsys.Rename("..", "x"), vfs.ErrName),
		want(fsys.MkdirAll("/x"), vfs.ErrName), want(fsys.SyncDir(""), vfs.ErrName))
}

func gap(fsys vfs.FS) error {
	f, err := fsys.Create("gap")
	if err != nil {
		return err
	}
	_, w := f.WriteAt([]byte("end"), 5000)
	size, s := f.Size()
	if size != 5003 {
		s = errors.Join(s, fmt.Errorf("size %d, want 5003", size))
	}
	if err := errors.Join(w, s, f.Close()); err != nil {
		return err
	}
	return expect(fsys, "gap", string(make([]byte, 5000))+"end")
}

func shortRead(fsys vfs.FS) error {
	if err := create(fsys, "short", "abc"); err != nil {
		return err
	}
	f, err := fsys.Open("short")
	if err != nil {
		return err
	}
	p := make([]byte, 8)
	n, err := f.ReadAt(p, 1)
	if n != 2 || string(p[:n]) != "bc" {
		return fmt.Errorf("read %q", p[:n])
	}
	_, past := f.ReadAt(p, 3)
	return errors.Join(want(err, io.EOF), want(past, io.EOF), f.Close())
}

func truncate(fsys vfs.FS) error {
	if err := create(fsys, "truncate", "abcdef"); err != nil {
		return err
	}
	f, err := fsys.Open("truncate")
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(2), f.Truncate(4), f.Close()); err != nil {
		return err
	}
	return expect(fsys, "truncate", "ab\x00\x00")
}

func renameReplaces(fsys vfs.FS) error {
	if err := errors.Join(create(fsys, "old", "old"), create(fsys, "new", "new"), fsys.Rename("new", "old")); err != nil {
		return err
	}
	_, err := fsys.Open("new")
	return errors.Join(want(err, vfs.ErrNotExist), expect(fsys, "old", "new"))
}

func renameDirectory(fsys vfs.FS) error {
	err := errors.Join(fsys.MkdirAll("from/deep"), fsys.MkdirAll("to"), create(fsys, "from/deep/file", "x"), fsys.Rename("from", "to/moved"))
	if err != nil {
		return err
	}
	_, err = fsys.List("from")
	return errors.Join(want(err, vfs.ErrNotExist), expect(fsys, "to/moved/deep/file", "x"))
}

func listSorted(fsys vfs.FS) error {
	if err := fsys.MkdirAll("list/b"); err != nil {
		return err
	}
	if err := errors.Join(create(fsys, "list/c", ""), create(fsys, "list/a", ""), create(fsys, "list/10", "")); err != nil {
		return err
	}
	got, err := fsys.List("list")
	if !slices.Equal(got, []string{"10", "a", "b", "c"}) {
		return errors.Join(err, fmt.Errorf("got %q", got))
	}
	return err
}

func removeDirectory(fsys vfs.FS) error {
	if err := errors.Join(fsys.MkdirAll("full"), create(fsys, "full/file", "")); err != nil {
		return err
	}
	if fsys.Remove("full") == nil {
		return errors.New("removed a directory with content")
	}
	return errors.Join(fsys.Remove("full/file"), fsys.Remove("full"))
}

func twoHandles(fsys vfs.FS) error {
	a, err := fsys.Create("shared")
	if err != nil {
		return err
	}
	b, err := fsys.Open("shared")
	if err != nil {
		return errors.Join(err, a.Close())
	}
	_, w := a.WriteAt([]byte("seen"), 0)
	p := make([]byte, 4)
	r := vfs.ReadFull(b, p, 0)
	if !bytes.Equal(p, []byte("seen")) {
		r = errors.Join(r, fmt.Errorf("read %q", p))
	}
	return errors.Join(w, r, a.Close(), b.Close())
}

func lockExcludes(fsys vfs.FS) error {
	first, err := fsys.Lock("LOCK")
	if err != nil {
		return err
	}
	_, second := fsys.Lock("LOCK")
	if err := errors.Join(want(second, vfs.ErrLocked), first.Close()); err != nil {
		return err
	}
	third, err := fsys.Lock("LOCK")
	if err != nil {
		return err
	}
	return third.Close()
}

func free(fsys vfs.FS) error {
	n, err := fsys.Free()
	if n < 0 {
		return fmt.Errorf("got %d", n)
	}
	return err
}

// uncached writes whole pages, few and many, and what is none, over each other in two files, of which one is told.
func uncached(fsys vfs.FS) error {
	var files [2]vfs.File
	names := [2]string{"uncached", "cached"}
	for i := range files {
		f, err := fsys.Create(names[i])
		if err != nil {
			return err
		}
		files[i] = f
	}
	vfs.WriteUncached(files[0])
	const page = 4096
	var errs []error
	for round, w := range []struct{ bytes, off int }{
		{page, 0}, {3 * page, 8 * page}, {100, page + 1}, {page, page}, {page, 100}, {200 * page, 4 * page}, {2 * page, 203 * page}, {page + 1, 0},
	} {
		for _, f := range files {
			_, err := f.WriteAt(bytes.Repeat([]byte{byte(round + 1)}, w.bytes), int64(w.off))
			errs = append(errs, err)
			if round%2 == 0 {
				errs = append(errs, f.Sync())
			}
		}
		told, told2 := vfs.ReadFile(fsys, names[0])
		other, other2 := vfs.ReadFile(fsys, names[1])
		errs = append(errs, told2, other2)
		if !bytes.Equal(told, other) {
			errs = append(errs, fmt.Errorf("the files differ after %d bytes at %d", w.bytes, w.off))
		}
	}
	return errors.Join(append(errs, files[0].Close(), files[1].Close())...)
}

func syncs(fsys vfs.FS) error {
	f, err := fsys.Create("synced")
	if err != nil {
		return err
	}
	_, w := f.WriteAt([]byte("x"), 0)
	return errors.Join(w, f.Sync(), f.Close(), fsys.SyncDir("."), vfs.MakeDir(fsys, "made/deep"))
}
