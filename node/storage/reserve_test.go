package storage

import (
	"errors"
	"testing"

	"weir/disk/memfs"
	"weir/disk/msgstore"
	"weir/disk/vfs"
)

// TestPurgeFreesAFullDisk fills the disk, removes nearly everything, and makes a checkpoint, with and without a reserve.
func TestPurgeFreesAFullDisk(t *testing.T) {
	for _, reserve := range []int64{0, 64 << 10} {
		fs := memfs.New(memfs.Options{CapacityBytes: 2 << 20})
		s, _, err := Open(fs, "data", Options{ReserveBytes: reserve})
		must(t, err)
		c := &copyOf{t: t, fs: fs, s: s, index: msgstore.NewIndex(msgstore.IndexOptions{BlockBytes: 2048})}
		for err == nil {
			c.store(100)
			err = c.save()
		}
		if !errors.Is(err, vfs.ErrNoSpace) {
			t.Fatal(err)
		}
		fs.SetCapacity(fs.Used()) // somebody else takes what is left
		c.forget(func(seq uint64) bool { return seq+10 < c.seq })
		before := fs.Used()
		err = c.save()
		if (err == nil) != (reserve > 0) {
			t.Fatalf("reserve of %d: %v", reserve, err)
		}
		if reserve == 0 {
			continue
		}
		if left := fs.Used(); left > before/4 {
			t.Fatalf("%d bytes of %d are still used", left, before)
		}
		must(t, c.save())
		if n := fs.Size("data/reserve"); n != reserve {
			t.Fatalf("a reserve of %d bytes was made again", n)
		}
	}
}
