package storage

import (
	"errors"
	"testing"

	"weir/disk/memfs"
	"weir/disk/record"
)

func TestIdentityIsMadeOnce(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	for i := range uint64(3) {
		s, _, err := Open(fs, "data", Options{NewServer: 0xfeedface + i})
		must(t, err)
		if s.Server() != 0xfeedface {
			t.Fatalf("server %x at start %d", s.Server(), i)
		}
		must(t, s.Close())
	}
	s, _, err := Open(memfs.New(memfs.Options{}), "data", Options{NewServer: 5})
	must(t, err)
	if s.Server() != 5 {
		t.Fatalf("server %x on another disk", s.Server())
	}
}

// TestDataWithoutItsIdentityIsRefused spoils or removes the identity of a directory that has data.
func TestDataWithoutItsIdentityIsRefused(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	s, _, err := Open(fs, "data", Options{NewServer: 77})
	must(t, err)
	must(t, s.Close())
	for off := range fs.Size("data/identity") {
		for _, kind := range []memfs.Rot{memfs.RotBit, memfs.RotUnreadable} {
			spoiled := fs.Crash(memfs.KeepAll, 1)
			must(t, spoiled.Damage("data/identity", kind, off))
			if _, _, err := Open(spoiled, "data", Options{NewServer: 78}); !errors.Is(err, record.ErrCorrupt) {
				t.Fatalf("damage %d at %d: got %v, want ErrCorrupt", kind, off, err)
			}
		}
	}
	must(t, fs.Remove("data/identity"))
	for range 2 {
		if _, _, err := Open(fs, "data", Options{NewServer: 78}); !errors.Is(err, record.ErrCorrupt) {
			t.Fatalf("got %v, want ErrCorrupt", err)
		}
	}
}

// TestFirstStartThatWasCutOffIsRepeated cuts the power at every call of the first start.
func TestFirstStartThatWasCutOffIsRepeated(t *testing.T) {
	for _, strategy := range memfs.Strategies() {
		for call := uint64(1); call < 60; call++ {
			fs := memfs.New(memfs.Options{Seed: call})
			fs.StopAfter(call)
			_, _, _ = Open(fs, "data", Options{NewServer: 6})
			after := fs.Crash(strategy, call)
			s, _, err := Open(after, "data", Options{NewServer: 7})
			if err != nil {
				t.Fatalf("call %d, %s: %v", call, strategy, err)
			}
			server := s.Server()
			must(t, s.Close())
			s, _, err = Open(after.Crash(memfs.LoseAll, call), "data", Options{NewServer: 8})
			must(t, err)
			if s.Server() != server || server == 8 {
				t.Fatalf("call %d, %s: server %d became %d", call, strategy, server, s.Server())
			}
			must(t, s.Close())
		}
	}
}

// FuzzIdentity reads arbitrary files.
func FuzzIdentity(f *testing.F) {
	f.Add(appendIdentity(nil, 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		server, err := ParseIdentity(data)
		if err == nil && string(appendIdentity(nil, server)) != string(data) {
			t.Fatalf("server %d from %q", server, data)
		}
	})
}
