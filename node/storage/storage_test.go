package storage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"weir/disk/checkpoint"
	"weir/disk/memfs"
	"weir/disk/msgstore"
	"weir/disk/vfs"
	"weir/disk/wal"
	"weir/node/event"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, fs vfs.FS) (*Storage, []event.Group) {
	t.Helper()
	s, groups, err := Open(fs, "data", Options{})
	must(t, err)
	return s, groups
}

func entries(first, last uint64) []wal.Entry {
	var es []wal.Entry
	for i := first; i <= last; i++ {
		es = append(es, wal.Entry{Term: 1, Index: i, Data: fmt.Appendf(nil, "entry-%d", i)})
	}
	return es
}

// do carries out one operation and returns its error.
func do(t *testing.T, s *Storage, op event.Op) error {
	t.Helper()
	op.Ticket = 7
	done := s.Do([]event.Op{op}, nil)
	if op.Kind == event.Keep {
		return nil
	}
	if len(done) != 1 || done[0].Ticket != 7 || done[0].Kind != op.Kind {
		t.Fatalf("completions %+v", done)
	}
	return done[0].Err
}

func save(t *testing.T, s *Storage, id wal.GroupID, index uint64) {
	t.Helper()
	u := checkpoint.Update{Index: index, Term: 1, Put: []checkpoint.Section{{ID: 1, Data: []byte("state")}}}
	must(t, do(t, s, event.Op{Kind: event.Save, Group: id, Save: event.Checkpoint{Update: u}}))
}

func TestSecondServerIsRefused(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	s, _ := open(t, fs)
	if _, _, err := Open(fs, "data", Options{}); !errors.Is(err, vfs.ErrLocked) {
		t.Fatalf("got %v, want ErrLocked", err)
	}
	must(t, s.Close())
	s, _ = open(t, fs)
	must(t, s.Close())
}

func TestUnknownLayoutIsRefusedAndUnlocked(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	s, _ := open(t, fs)
	must(t, s.Close())
	f, err := fs.Open("data/format")
	must(t, err)
	_, err = f.WriteAt([]byte("weir data 9\n"), 0)
	must(t, err)
	for range 2 {
		if _, _, err := Open(fs, "data", Options{}); !errors.Is(err, ErrVersion) {
			t.Fatalf("got %v, want ErrVersion", err)
		}
	}
}

// TestPersistsAppendTogether holds the joining of operations against appending them one by one.
func TestPersistsAppendTogether(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		last := map[wal.GroupID]uint64{}
		var ops []event.Op
		for range 1 + rng.IntN(8) {
			op := event.Op{Kind: event.Persist}
			for range 1 + rng.IntN(3) {
				w := wal.Write{Group: wal.GroupID(1 + rng.IntN(3))}
				first := last[w.Group] + 1
				if rng.IntN(5) == 0 && first > 2 {
					first -= 2
				}
				w.Entries = entries(first, first+rng.Uint64N(3))
				last[w.Group] = w.Entries[len(w.Entries)-1].Index
				if rng.IntN(3) == 0 {
					w.HasHardState, w.HardState = true, wal.HardState{Term: rng.Uint64N(9)}
				}
				if rng.IntN(6) == 0 {
					w.Meta = []byte{byte(rng.IntN(9))}
				}
				op.Writes = append(op.Writes, w)
			}
			ops = append(ops, op)
		}
		recovered := func(batch bool) string {
			fs := memfs.New(memfs.Options{})
			s, _ := open(t, fs)
			var done []event.Completion
			if batch {
				done = s.Do(slices.Clone(ops), nil)
			} else {
				for i := range ops {
					done = s.Do(ops[i:i+1], done)
				}
			}
			if len(done) != len(ops) {
				t.Fatalf("%d completions of %d operations", len(done), len(ops))
			}
			must(t, s.Close())
			_, groups := open(t, fs)
			return fmt.Sprintf("%+v", groups)
		}
		if one, all := recovered(false), recovered(true); one != all {
			t.Fatalf("seed %d: one by one\n%s\ntogether\n%s", seed, one, all)
		}
	}
}

func TestNothingOvertakesAnAppendThatFailed(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	s, _ := open(t, fs)
	must(t, do(t, s, event.Op{Kind: event.Persist, Writes: []wal.Write{{Group: 3, Entries: entries(1, 1)}}}))
	fs.Inject(memfs.Fault{On: memfs.OpWrite, Times: 1, Err: vfs.ErrNoSpace})
	for i := uint64(2); i <= 4; i++ {
		if err := do(t, s, event.Op{Kind: event.Persist, Writes: []wal.Write{{Group: 3, Entries: entries(i, i)}}}); !errors.Is(err, vfs.ErrNoSpace) {
			t.Fatalf("entry %d: got %v, want ErrNoSpace", i, err)
		}
	}
	must(t, do(t, s, event.Op{Kind: event.Persist, Resume: true, Writes: []wal.Write{{Group: 3, Entries: entries(2, 2)}}}))
	must(t, s.Close())
	_, groups := open(t, fs)
	if n := len(groups[0].Log.Entries); n != 2 {
		t.Fatalf("%d entries, want 2", n)
	}
}

func TestCompactionMarksOfMergedAppendsCount(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	s, _ := open(t, fs)
	save(t, s, 3, 2)
	s.Do([]event.Op{
		{Kind: event.Persist, Writes: []wal.Write{{Group: 3, Entries: entries(1, 3)}}},
		{Kind: event.Persist, Writes: []wal.Write{{Group: 3, Compact: 2}}},
	}, nil)
	must(t, s.Close())
	_, groups := open(t, fs)
	if log := groups[0].Log; log.Compact != 2 || len(log.Entries) != 1 {
		t.Fatalf("compacted to %d, %d entries", log.Compact, len(log.Entries))
	}
}

func TestLostCheckpointIsDamageNotAbsence(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	s, _ := open(t, fs)
	must(t, do(t, s, event.Op{Kind: event.Persist, Writes: []wal.Write{{Group: 3, Entries: entries(1, 9)}, {Group: 4, Entries: entries(1, 2)}}}))
	save(t, s, 3, 8)
	must(t, do(t, s, event.Op{Kind: event.Persist, Writes: []wal.Write{{Group: 3, Compact: 8}}}))
	must(t, s.Close())
	for _, name := range fs.Files("data/" + GroupDir(3)) {
		must(t, fs.Remove(name))
	}
	s, groups := open(t, fs)
	if len(groups) != 2 || !errors.Is(groups[0].Damage, checkpoint.ErrCorrupt) || groups[1].Damage != nil {
		t.Fatalf("got %+v", groups)
	}
	must(t, s.Close())
}

func TestCheckpointOneEntryShortOfTheLogIsDamage(t *testing.T) {
	for compact := uint64(3); compact <= 5; compact++ {
		fs := memfs.New(memfs.Options{})
		s, _ := open(t, fs)
		save(t, s, 3, 4)
		must(t, do(t, s, event.Op{Kind: event.Persist, Writes: []wal.Write{{Group: 3, Entries: entries(1, 6), Compact: compact}}}))
		must(t, s.Close())
		if _, groups := open(t, fs); (groups[0].Damage != nil) != (compact > 4) {
			t.Errorf("checkpoint at 4, log behind %d: %v", compact, groups[0].Damage)
		}
	}
}

func TestDroppedGroupIsQuarantinedThenReaped(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	s, _ := open(t, fs)
	must(t, do(t, s, event.Op{Kind: event.Persist, Writes: []wal.Write{{Group: 3, Entries: entries(1, 3)}}}))
	x := msgstore.NewIndex(msgstore.IndexOptions{})
	x.Append(msgstore.Msg{Seq: 1, Subject: []byte("s"), Payload: []byte("p")})
	must(t, do(t, s, event.Op{Kind: event.Keep, Group: 3, Blocks: x.TakeWrites(nil)}))
	save(t, s, 3, 3)
	must(t, do(t, s, event.Op{Kind: event.Persist, Writes: []wal.Write{{Group: 3, Drop: true}}}))
	must(t, do(t, s, event.Op{Kind: event.Drop, Group: 3}))
	if files := fs.Files("data/groups"); len(files) != 0 {
		t.Fatalf("left in place: %v", files)
	}
	if files := fs.Files("data/" + quarantineDir); len(files) == 0 {
		t.Fatal("nothing in the quarantine")
	}
	must(t, s.Close())
	s, groups := open(t, fs)
	if files := fs.Files("data/" + quarantineDir); len(files) != 0 || len(groups) != 0 {
		t.Fatalf("after the start: files %v, groups %v", files, groups)
	}
	must(t, s.Close())
}

func TestFilesWithoutATraceInTheLogAreDamage(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	s, _ := open(t, fs)
	must(t, do(t, s, event.Op{Kind: event.Persist, Writes: []wal.Write{{Group: 3, Entries: entries(1, 3)}}}))
	save(t, s, 3, 3)
	must(t, do(t, s, event.Op{Kind: event.Persist, Writes: []wal.Write{{Group: 3, Drop: true}}}))
	must(t, s.Close())
	s, groups := open(t, fs)
	if len(groups) != 1 || groups[0].ID != 3 || !errors.Is(groups[0].Damage, wal.ErrCorrupt) {
		t.Fatalf("got %+v", groups)
	}
	must(t, do(t, s, event.Op{Kind: event.Drop, Group: 3})) // what the catalog asks for when it knows of the end
	must(t, s.Close())
}

func TestFailedSyncOfBlocksFailsTheSave(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	s, _ := open(t, fs)
	x := msgstore.NewIndex(msgstore.IndexOptions{})
	x.Append(msgstore.Msg{Seq: 1, Subject: []byte("s"), Payload: []byte("p")})
	must(t, do(t, s, event.Op{Kind: event.Keep, Group: 3, Blocks: x.TakeWrites(nil)}))
	fs.Inject(memfs.Fault{On: memfs.OpSync, Under: "data/groups", Times: 1, Err: vfs.ErrIO})
	for range 2 {
		u := checkpoint.Update{Index: 1, Term: 1}
		if err := do(t, s, event.Op{Kind: event.Save, Group: 3, Save: event.Checkpoint{Update: u}}); !errors.Is(err, vfs.ErrIO) {
			t.Fatalf("got %v, want ErrIO", err)
		}
	}
	if files := fs.Files("data/" + GroupDir(3) + "/checkpoint"); len(files) != 0 {
		t.Fatalf("a checkpoint was written: %v", files)
	}
}

func TestFilesOfManyGroupsAreNotAllOpen(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	s, _ := open(t, fs)
	x := msgstore.NewIndex(msgstore.IndexOptions{})
	x.Append(msgstore.Msg{Seq: 1, Subject: []byte("s"), Payload: []byte("p")})
	loc, _ := x.Lookup(1)
	writes := x.TakeWrites(nil)
	for id := wal.GroupID(1); id <= GroupsOpenMax+20; id++ {
		must(t, do(t, s, event.Op{Kind: event.Keep, Group: id, Blocks: writes}))
	}
	if n := len(s.open); n != GroupsOpenMax {
		t.Fatalf("%d groups open", n)
	}
	must(t, do(t, s, event.Op{Kind: event.Fetch, Group: 1, Loc: loc}))
	save(t, s, 1, 1)
	must(t, s.Close())
}

// TestGroupMayEndAndBeginAgain ends a group and begins one with its id, several times, with and without a restart between.
func TestGroupMayEndAndBeginAgain(t *testing.T) {
	for _, restart := range []bool{false, true} {
		fs := memfs.New(memfs.Options{})
		s, _ := open(t, fs)
		for round := uint64(1); round <= 4; round++ {
			must(t, do(t, s, event.Op{Kind: event.Persist, Writes: []wal.Write{{Group: 5, Entries: entries(1, round)}}}))
			save(t, s, 5, round)
			if restart {
				must(t, s.Close())
				var groups []event.Group
				if s, groups = open(t, fs); len(groups) != 1 || groups[0].Damage != nil || groups[0].Checkpoint.Index != round ||
					len(groups[0].Log.Entries) != int(round) {
					t.Fatalf("round %d: found %+v", round, groups)
				}
			}
			must(t, do(t, s, event.Op{Kind: event.Persist, Writes: []wal.Write{{Group: 5, Drop: true}}}))
			must(t, do(t, s, event.Op{Kind: event.Drop, Group: 5}))
		}
		must(t, s.Close())
		if _, groups := open(t, fs); len(groups) != 0 {
			t.Fatalf("found %+v", groups)
		}
	}
}
