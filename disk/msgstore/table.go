package msgstore

import (
	"encoding/binary"
	"slices"

	"weir/disk/record"
	"weir/spec/assert"
)

// dead marks the place of a message that was forgotten. The place itself stays, so that the sizes of its neighbours are
// known.
const dead = 1 << 31

// blockBytesMax is what places can express.
const blockBytesMax = dead

// table says which sequences a block covers and where their messages lie. Entries ascend by sequence and by place.
type table struct {
	first uint64
	// places are the offsets of the messages, with the mark dead; 0 for a sequence that never had a message.
	places []uint32
	// seqs are the sequences of the entries relative to first. nil means that entry i is the sequence first+i. It is used
	// where few sequences of a range live on.
	seqs []uint32
}

// block is one block. Invariant: live counts the entries that have a place without the mark dead, liveBytes sums their
// sizes.
type block struct {
	table
	id        BlockID
	live      int
	liveBytes int
	size      int // bytes of header and messages
	sealed    bool
	data      []byte // header and messages from base on; nil when not in memory
	footer    []byte // of a sealed block, until it is handed out to be written
	base      int
	written   int  // bytes handed out to be written
	dirty     bool // the state differs from what the last TakeState gave
}

func (t *table) count() int { return len(t.places) }

func (t *table) seqAt(i int) uint64 {
	if t.seqs == nil {
		return t.first + uint64(i)
	}
	return t.first + uint64(t.seqs[i])
}

// seqsSum is a checksum of the sequences that the table lists.
func (t *table) seqsSum() uint32 {
	sum := uint32(0)
	var number [4]byte
	for _, seq := range t.seqs {
		binary.LittleEndian.PutUint32(number[:], seq)
		sum = record.Checksum(sum, number[:])
	}
	return sum
}

// last is the last sequence that the table covers. The table must not be empty.
func (t *table) last() uint64 { return t.seqAt(t.count() - 1) }

// from returns the first entry with a sequence of at least seq.
func (t *table) from(seq uint64) int {
	if seq <= t.first {
		return 0
	}
	if t.seqs == nil {
		return int(min(seq-t.first, uint64(t.count())))
	}
	if seq-t.first > 1<<32-1 {
		return t.count()
	}
	i, _ := slices.BinarySearch(t.seqs, uint32(seq-t.first))
	return i
}

// living returns the entry of a message that is there.
func (t *table) living(seq uint64) (int, bool) {
	if seq < t.first {
		return 0, false
	}
	i := t.from(seq)
	if i == t.count() || t.seqAt(i) != seq || t.places[i] == 0 || t.places[i]&dead != 0 {
		return 0, false
	}
	return i, true
}

// sizeAt returns the size of the message of an entry, dead or not, in a block whose messages end at size.
func (t *table) sizeAt(i, size int) int {
	place := int(t.places[i] &^ dead)
	for _, next := range t.places[i+1:] {
		if next != 0 {
			return int(next&^dead) - place
		}
	}
	return size - place
}

// put appends an entry; the sequence is higher than all before.
func (t *table) put(seq uint64, place int) {
	assert.True(seq >= t.first && seq-t.first < 1<<32, "a sequence is near the first of its block", seq, t.first)
	t.seqs = append(t.seqs, uint32(seq-t.first))
	t.places = append(t.places, uint32(place))
}

// pack gives up the explicit sequences of a table made by put where they take more room than the holes between them.
func (t *table) pack() {
	n := t.count()
	if n == 0 {
		return
	}
	if start := t.seqs[0]; start > 0 {
		t.first += uint64(start)
		for i := range t.seqs {
			t.seqs[i] -= start
		}
	}
	span := uint64(t.seqs[n-1]) + 1
	if span > 2*uint64(n) {
		t.seqs, t.places = slices.Clip(t.seqs), slices.Clip(t.places)
		return
	}
	places := make([]uint32, span)
	for i, rel := range t.seqs {
		places[rel] = t.places[i]
	}
	t.places, t.seqs = places, nil
}

// recount computes live and liveBytes.
func (b *block) recount() {
	b.live, b.liveBytes = 0, 0
	end := b.size
	for i := b.count() - 1; i >= 0; i-- {
		place := b.places[i]
		if place == 0 {
			continue
		}
		if place&dead == 0 {
			b.live++
			b.liveBytes += end - int(place)
		}
		end = int(place &^ dead)
	}
}
