package replica

import (
	"slices"
	"testing"
)

// TestWhatASnapshotMayHaveIsNotUndone has a leader that proposed something lose its office before it hears that another replica
// has it. The next leader commits it, and brings it to the former one in a snapshot: whoever waits for it must not be told that it
// is nowhere when an entry of the new term comes.
func TestWhatASnapshotMayHaveIsNotUndone(t *testing.T) {
	w := directed(t, Plant{})
	former, next := w.host(1), w.host(2)
	w.elect(1, 2)
	former.propose()
	w.work(1, 2, 3)
	w.cut[[2]uint64{2, 1}], w.cut[[2]uint64{1, 3}] = true, true // the second replica hears, and is not heard
	former.propose()
	w.work(1, 2)
	const waits = 2
	w.only(2, 3)
	w.elect(2, 3)
	for range 60 { // more than the log keeps for a replica that is away
		next.propose()
		w.work(2, 3)
		next.tick()
	}
	for next.disk.ckpt.mark.Index < next.replica.Commit() {
		next.checkpoint()
	}
	w.only(1, 2, 3)
	for range 60 {
		next.tick()
		w.work(1, 2, 3)
		former.install()
	}
	if w.snaps != 1 || !slices.Contains(former.machine.numbers, waits) {
		t.Fatalf("%d snapshots are installed, the former leader has %v", w.snaps, former.machine.numbers)
	}
	next.propose()
	w.work(1, 2, 3)
	next.tick()
	w.work(1, 2, 3)
	if former.machine.index != next.machine.index {
		t.Fatalf("the former leader has applied %d, its successor %d", former.machine.index, next.machine.index)
	}
	if w.undone[waits] {
		t.Fatal("a command that the snapshot has is said to be undone")
	}
}
