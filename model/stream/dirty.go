package stream

import (
	"maps"
	"slices"
)

// The kinds of sections: the top byte of a section's id. The rest of the id counts chunks of the kind.
const (
	headSection     uint64 = 1 << 56 // configuration, counters, clock: exactly one
	rowSection      uint64 = 2 << 56 // metadata of 1024 sequences, written once unless sequences are added
	liveSection     uint64 = 3 << 56 // which of 65536 sequences exist: the only section that a removal changes
	subjectSection  uint64 = 4 << 56 // texts of 1024 subject ids
	dedupSection    uint64 = 5 << 56 // 1024 message ids of the duplicate window
	consumerSection uint64 = 6 << 56 // one consumer, by its incarnation

	sectionKindShift        = 56
	sectionKinds            = 8
	sectionChunkMask uint64 = 1<<sectionKindShift - 1
)

// dirtySet collects the ids of the sections that changed since the last checkpoint.
type dirtySet struct {
	ids map[uint64]struct{}
	// recent is the last id added of each kind: appends mark the same section a thousand times in a row.
	recent [sectionKinds]uint64
}

func newDirtySet() *dirtySet { return &dirtySet{ids: make(map[uint64]struct{})} }

func (d *dirtySet) add(id uint64) {
	kind := id >> sectionKindShift
	if d.recent[kind] == id {
		return
	}
	d.recent[kind] = id
	d.ids[id] = struct{}{}
}

func (d *dirtySet) append(dst []uint64) []uint64 {
	return append(dst, slices.Sorted(maps.Keys(d.ids))...)
}

func (d *dirtySet) reset() {
	clear(d.ids)
	d.recent = [sectionKinds]uint64{}
}
