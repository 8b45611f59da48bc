package storage

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"weir/disk/checkpoint"
	"weir/disk/memfs"
	"weir/disk/msgstore"
	"weir/disk/vfs"
	"weir/disk/wal"
	"weir/node/event"
)

func TestInstalledReplicaEqualsItsSource(t *testing.T) {
	from := sender(t)
	to := newCopy(t, 2)
	to.store(30) // blocks with the same ids and other contents
	must(t, to.save())
	p := from.pin()
	_, err := to.bring(from, p, false, nil)
	must(t, err)
	done := to.install(p)
	must(t, done.Err)
	if done.Installed.ID != theGroup || done.Installed.Checkpoint.Index != from.seq || len(done.Installed.Log.Entries) != 0 {
		t.Fatalf("installed %+v", done.Installed)
	}
	to.adopt(done.Installed, from)
	to.check(done.Installed)
	found := to.restart()
	must(t, found.Damage)
	to.adopt(&found, from)
	to.check(&found)
	to.store(50)
	must(t, to.save())
	again := to.restart()
	must(t, again.Damage)
	to.check(&again)
	for _, name := range to.fs.Files("data/groups") {
		if strings.Contains(name, incomingPrefix) {
			t.Errorf("%s is left behind", name)
		}
	}
}

func TestInstallNeedsEveryPart(t *testing.T) {
	from, to := sender(t), newCopy(t, 2)
	p := from.pin()
	if err := to.install(p).Err; !errors.Is(err, event.ErrNotStaged) {
		t.Fatalf("got %v, want ErrNotStaged", err)
	}
	pieces := 0
	_, err := to.bring(from, p, false, func(order *event.Snapshot) {
		if pieces++; pieces > 10 {
			order.Part = 1 << 40 // no block of the snapshot
		}
	})
	if !errors.Is(err, event.ErrNotStaged) {
		t.Fatalf("got %v, want ErrNotStaged", err)
	}
	if err := to.install(p).Err; !errors.Is(err, event.ErrNotStaged) {
		t.Fatalf("got %v, want ErrNotStaged", err)
	}
}

// TestSpoiledPieceIsFoundAndBroughtAgain spoils each piece of a transfer once.
func TestSpoiledPieceIsFoundAndBroughtAgain(t *testing.T) {
	from := sender(t)
	p := from.pin()
	for spoiled := 0; ; spoiled++ {
		to := newCopy(t, 2)
		piece := 0
		spoil := func(order *event.Snapshot) {
			if piece == spoiled {
				order.Data = slices.Clone(order.Data)
				order.Data[len(order.Data)/2] ^= 4
			}
			piece++
		}
		_, err := to.bring(from, p, false, spoil)
		if piece <= spoiled {
			must(t, err)
			return
		}
		if err == nil { // it was the byte of a message that is gone
			must(t, to.install(p).Err)
			continue
		}
		if !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Fatalf("piece %d: got %v, want ErrCorrupt", spoiled, err)
		}
		_, err = to.bring(from, p, false, nil)
		must(t, err)
		done := to.install(p)
		must(t, done.Err)
		to.adopt(done.Installed, from)
		to.check(done.Installed)
	}
}

// TestOnlyMissingBlocksAreBrought takes a snapshot twice, with few changes between.
func TestOnlyMissingBlocksAreBrought(t *testing.T) {
	from, to := sender(t), newCopy(t, 2)
	p := from.pin()
	all, err := to.bring(from, p, false, nil)
	must(t, err)
	must(t, to.install(p).Err)
	from.op(event.Unpin, event.Snapshot{Pin: p.Pin})
	from.store(5)
	must(t, from.save())
	p = from.pin()
	little, err := to.bring(from, p, false, nil)
	must(t, err)
	if limit := uint64(2048 + 200 + p.Manifest.Bytes); little > limit || all < 5*limit {
		t.Fatalf("brought %d bytes, then %d, want at most %d", all, little, limit)
	}
	done := to.install(p)
	must(t, done.Err)
	to.adopt(done.Installed, from)
	to.check(done.Installed)
}

// TestTransferGoesOnAfterARestart kills the receiver after every piece.
func TestTransferGoesOnAfterARestart(t *testing.T) {
	from, to := sender(t), newCopy(t, 2)
	p := from.pin()
	all := uint64(0)
	for range 1000 {
		pieces := 0
		bytes, err := to.bring(from, p, false, func(order *event.Snapshot) {
			if pieces++; pieces > 20 {
				order.Part = 1 << 40 // no block of the snapshot: the transfer ends
			}
		})
		all += bytes
		if err == nil {
			break
		}
		to.restart()
	}
	must(t, to.install(p).Err)
	found := to.restart()
	to.adopt(&found, from)
	to.check(&found)
	if whole := p.Manifest.Bytes + uint64(len(from.live))*150; all > 3*whole {
		t.Fatalf("brought %d bytes of %d", all, whole)
	}
}

// TestDamagedBlockIsBroughtAgain spoils a byte of a message in a block that the replica has.
func TestDamagedBlockIsBroughtAgain(t *testing.T) {
	from, to := sender(t), newCopy(t, 2)
	p := from.pin()
	_, err := to.bring(from, p, false, nil)
	must(t, err)
	done := to.install(p)
	must(t, done.Err)
	to.adopt(done.Installed, from)
	must(t, to.op(event.Scrub, event.Snapshot{}).Err)
	loc, _ := to.index.Lookup(200)
	name := "data/" + GroupDir(theGroup) + "/msgs/" + msgstore.FileName(loc.Block)
	must(t, to.fs.Damage(name, memfs.RotBit, int64(loc.Offset)+40))
	damaged := 0
	for block := msgstore.BlockID(0); ; {
		order, ok := to.index.TakeScrub(block)
		if !ok {
			break
		}
		if err := to.op(event.Scrub, event.Snapshot{Scrub: order}).Err; errors.Is(err, msgstore.ErrCorrupt) && order.Block == loc.Block {
			damaged++
		} else if err != nil {
			t.Fatal(err)
		}
		block = order.Block
	}
	if damaged != 1 {
		t.Fatalf("the scrub found %d damaged blocks", damaged)
	}
	if none, err := to.bring(from, p, false, nil); none > p.Manifest.Bytes || err != nil {
		t.Fatalf("brought %d bytes, though the tables are sound: %v", none, err)
	}
	little, err := to.bring(from, p, true, nil)
	must(t, err)
	if little == 0 || little > 3000+p.Manifest.Bytes {
		t.Fatalf("brought %d bytes for a block", little)
	}
	done = to.install(p)
	must(t, done.Err)
	to.adopt(done.Installed, from)
	to.check(done.Installed)
}

func TestPinnedSnapshotOutlivesTheSender(t *testing.T) {
	from, to := sender(t), newCopy(t, 2)
	then := *from
	then.live = slices.Clone(from.live)
	p := from.pin()
	for range 6 {
		from.store(100)
		from.forget(func(seq uint64) bool { return seq%3 != 0 })
		from.rewrite()
		must(t, from.save())
	}
	before := len(from.fs.Files("data/groups"))
	_, err := to.bring(from, p, false, nil)
	must(t, err)
	done := to.install(p)
	must(t, done.Err)
	to.adopt(done.Installed, &then)
	to.check(done.Installed)
	from.op(event.Unpin, event.Snapshot{Pin: p.Pin})
	if after := len(from.fs.Files("data/groups")); after >= before {
		t.Errorf("%d files before the pin ended, %d after", before, after)
	}
	if err := from.op(event.ReadPart, event.Snapshot{Pin: p.Pin, Max: 1}).Err; !errors.Is(err, event.ErrUnpinned) {
		t.Errorf("got %v, want ErrUnpinned", err)
	}
	for range event.PinsMax {
		from.pin()
	}
	if err := from.op(event.Pin, event.Snapshot{}).Err; !errors.Is(err, event.ErrPinned) {
		t.Errorf("got %v, want ErrPinned", err)
	}
	if err := to.s.Do([]event.Op{{Kind: event.Pin, Ticket: 1, Group: 99}}, nil)[0].Err; !errors.Is(err, event.ErrNoCheckpoint) {
		t.Errorf("got %v, want ErrNoCheckpoint", err)
	}
}

// TestDamagedCheckpointIsReplaced installs a snapshot in the place of a checkpoint that can not be read.
func TestDamagedCheckpointIsReplaced(t *testing.T) {
	from, to := sender(t), newCopy(t, 2)
	to.store(400)
	must(t, to.save())
	for _, name := range to.fs.Files("data/" + GroupDir(theGroup) + "/checkpoint") {
		must(t, to.fs.Damage(name, memfs.RotBit, 3))
	}
	if found := to.restart(); !errors.Is(found.Damage, checkpoint.ErrCorrupt) {
		t.Fatalf("got %v, want ErrCorrupt", found.Damage)
	}
	p := from.pin()
	_, err := to.bring(from, p, true, nil)
	must(t, err)
	done := to.install(p)
	must(t, done.Err)
	to.adopt(done.Installed, from)
	to.check(done.Installed)
	reset := wal.Write{Group: theGroup, Reset: true, HasHardState: true, Meta: []byte("m"), Compact: p.Manifest.Index}
	must(t, to.s.Do([]event.Op{{Kind: event.Persist, Ticket: 1, Writes: []wal.Write{reset}}}, nil)[0].Err)
	found := to.restart()
	must(t, found.Damage)
	to.check(&found)
}

// TestFailedInstallLeavesOldOrNew lets every call of the disk fail once, for good or for lack of space.
func TestFailedInstallLeavesOldOrNew(t *testing.T) {
	from := sender(t)
	p := from.pin()
	for _, fault := range []error{vfs.ErrIO, vfs.ErrNoSpace} {
		olds, halves := 0, 0
		for call := uint64(1); ; call++ {
			to := newCopy(t, 2)
			to.store(30)
			must(t, to.save())
			old := *to
			_, err := to.bring(from, p, false, nil)
			must(t, err)
			at := to.fs.Ops() + call
			to.fs.Inject(memfs.Fault{On: ^memfs.OpKind(0), From: at, To: at, Times: 1, Err: fault})
			done := to.install(p)
			if to.fs.Ops() < at {
				must(t, done.Err)
				break
			}
			to.fs.Heal()
			if errors.Is(done.Err, event.ErrHalfInstalled) {
				halves++
				if err := old.save(); !errors.Is(err, event.ErrHalfInstalled) {
					t.Fatalf("call %d: the old state was saved over the new one: %v", call, err)
				}
				done = to.install(p)
				must(t, done.Err)
			} else if done.Err != nil {
				olds++
				found := to.restart()
				must(t, found.Damage)
				to.adopt(&found, &old)
				to.check(&found)
				continue
			}
			to.adopt(done.Installed, from)
			to.check(done.Installed)
			found := to.restart()
			must(t, found.Damage)
			to.check(&found)
		}
		if olds < 5 || halves < 5 {
			t.Errorf("%v: %d times the old state, %d times half the new one", fault, olds, halves)
		}
	}
}

// TestAnotherSnapshotFollowsOneInstalledInPart goes on behind an install that failed behind the switch with a snapshot of
// another index, as a replica whose state is all in memory does.
func TestAnotherSnapshotFollowsOneInstalledInPart(t *testing.T) {
	at := func(seed, index uint64) *copyOf {
		c := newCopy(t, seed)
		c.seq = index
		must(t, c.save())
		return c
	}
	for _, next := range []uint64{8, 10, 20} {
		for _, fault := range []error{vfs.ErrIO, vfs.ErrNoSpace} {
			halves := 0
			for call := uint64(1); ; call++ {
				first, second, to := at(1, 10), at(2, next), at(3, 5)
				p := first.pin()
				_, err := to.bring(first, p, false, nil)
				must(t, err)
				from := to.fs.Ops() + call
				to.fs.Inject(memfs.Fault{On: ^memfs.OpKind(0), From: from, To: from, Times: 1, Err: fault})
				done := to.install(p)
				if to.fs.Ops() < from {
					must(t, done.Err)
					break
				}
				to.fs.Heal()
				if !errors.Is(done.Err, event.ErrHalfInstalled) {
					continue
				}
				halves++
				p = second.pin()
				_, err = to.bring(second, p, true, nil)
				must(t, err)
				done = to.install(p)
				must(t, done.Err)
				to.adopt(done.Installed, second)
				to.check(done.Installed)
				to.seq++
				must(t, to.save())
				found := to.restart()
				must(t, found.Damage)
				to.check(&found)
			}
			if halves < 3 {
				t.Errorf("%v: only %d times half the new state", fault, halves)
			}
		}
	}
}

// TestOvertakenTransferIsGivenUp lets the log bring what a snapshot was to bring.
func TestOvertakenTransferIsGivenUp(t *testing.T) {
	from, to := sender(t), newCopy(t, 2)
	to.store(10)
	must(t, to.save())
	p := from.pin()
	_, err := to.bring(from, p, false, nil)
	must(t, err)
	left := func() int {
		return len(slices.DeleteFunc(to.fs.Files("data/groups"), func(name string) bool { return !strings.Contains(name, incomingPrefix) }))
	}
	found := to.restart()
	if to.adopt(&found, to); left() == 0 {
		t.Fatal("nothing was staged")
	}
	to.store(10)
	must(t, to.save())
	if left() == 0 {
		t.Fatal("a transfer that is ahead was given up")
	}
	to.store(400)
	must(t, to.save())
	if n := left(); n > 0 {
		t.Fatalf("%d files are left", n)
	}
	_, err = to.bring(from, p, false, nil)
	must(t, err)
	must(t, to.op(event.Unstage, event.Snapshot{}).Err)
	if n := left(); n > 0 {
		t.Fatalf("%d files are left", n)
	}
}
