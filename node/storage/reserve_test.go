package storage

import (
	"errors"
	"testing"

	"weir/disk/memfs"
	"weir/disk/msgstore"
	"weir/disk/vfs"
	"weir/disk/wal"
	"weir/node/event"
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

// TestAFullDiskStillTakesAppends has somebody else take the whole disk. The log then lives on its reserve and says so, also
// after a restart, until there is plenty again.
func TestAFullDiskStillTakesAppends(t *testing.T) {
	const size = 64 << 10
	options := Options{LogReserveBytes: size, Log: wal.Options{SegmentBytes: 16 << 10}}
	fs := memfs.New(memfs.Options{})
	s, _, err := Open(fs, "data", options)
	must(t, err)
	index := uint64(0)
	appendOne := func() (short bool) {
		t.Helper()
		index++
		op := event.Op{Kind: event.Persist, Ticket: 1, Writes: []wal.Write{{Group: 3, Entries: entries(index, index)}}}
		c := s.Do([]event.Op{op}, nil)[0]
		must(t, c.Err)
		return c.Short
	}
	appendSome := func(want bool) {
		t.Helper()
		for range 20 {
			if short := appendOne(); short != want {
				t.Fatalf("append %d: short is %v", index, short)
			}
		}
	}
	probe := func(want bool) {
		t.Helper()
		if c := s.Do([]event.Op{{Kind: event.Probe, Ticket: 2}}, nil)[0]; c.Short != want || c.Kind != event.Probe {
			t.Fatalf("short is %v", c.Short)
		}
	}
	appendSome(false)
	fs.SetCapacity(fs.Used())
	for !appendOne() {
		continue // what its files have already is room for some
	}
	appendSome(true)
	probe(true)
	must(t, s.Close())
	s, groups, err := Open(fs, "data", options)
	must(t, err)
	if last := groups[0].Log.Entries[len(groups[0].Log.Entries)-1].Index; last != index {
		t.Fatalf("the log ends at %d, %d was acknowledged", last, index)
	}
	appendSome(true)
	fs.SetCapacity(fs.Used() + reserveFreeFactor*size - 1)
	probe(true)
	fs.SetCapacity(fs.Used() + reserveFreeFactor*size)
	probe(false)
	appendSome(false)
	if n := fs.Size("data/log-reserve"); n != size {
		t.Fatalf("a reserve of %d bytes was made again", n)
	}
	must(t, s.Close())
}
