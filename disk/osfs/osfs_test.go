//go:build unix

package osfs

import (
	"errors"
	"strings"
	"testing"

	"weir/disk/vfs"
	"weir/disk/vfs/vfstest"
)

func TestConformance(t *testing.T) {
	fsys, err := New(t.TempDir() + "/data")
	if err != nil {
		t.Fatal(err)
	}
	if err := vfstest.Run(fsys); err != nil {
		t.Fatal(err)
	}
}

func TestSecondLockNamesTheDirectory(t *testing.T) {
	dir := t.TempDir()
	a, errA := New(dir)
	b, errB := New(dir)
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	held, err := a.Lock("LOCK")
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Lock("LOCK")
	if !errors.Is(err, vfs.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("got %v, want ErrLocked naming %s", err, dir)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestExistingRefusesAMissingDirectory(t *testing.T) {
	if _, err := Existing(t.TempDir() + "/missing"); !errors.Is(err, vfs.ErrNotExist) {
		t.Fatalf("got %v, want ErrNotExist", err)
	}
}
