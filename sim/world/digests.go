package world

import (
	"weir/disk/wal"
	"weir/sim/trace"
)

// digestEvery is how many applied entries pass between two digests of a group: a digest costs in proportion to the
// state. It counts indexes, so that all incarnations look at the same ones.
const digestEvery = 4

// digests remembers what each group's state was at each applied index, over all incarnations: applying the same entries
// again, or restoring a checkpoint of them, must lead to the same state.
type digests struct {
	seen map[applied]uint64
	// consumers are sums of the states of the consumers.
	consumers map[applied]uint64
}

type applied struct {
	group wal.GroupID
	index uint64
}

// observe is told of every entry that a replica applied.
func (w *World) observe(m *machine, at applied, digest func() uint64) {
	if w.hidden(at.group) {
		return
	}
	m.appliedEntry(at)
	if at.index%digestEvery != 0 {
		return
	}
	now := digest()
	w.trace.Add(trace.Digest, uint64(at.group), now, nil)
	before, known := w.digests.seen[at]
	if m.spoiled && at.group == catalogGroup {
		if !known || before != now {
			return // it is wrong, as the plan says, until it has been mended
		}
		m.spoiled = false
	}
	if known && before != now {
		w.violate("digest", "group %d at index %d has the digest %016x in incarnation %d of node %d, it had %016x",
			at.group, at.index, now, m.gen, m.index, before)
	}
	w.digests.seen[at] = now
	w.lookBehind(m, at)
}

// spoil makes the catalog in the memory of the machine a wrong one.
func (m *machine) spoil() {
	if m.node == nil {
		return
	}
	if c := m.catalog(); c != nil {
		c.Spoil()
		m.spoiled = true
	}
}
