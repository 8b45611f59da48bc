package consumer

import (
	"slices"

	"weir/spec/assert"
)

// removedBit marks a place of a skipList as removed without disturbing the order of the list. Sequences stay far below it.
const removedBit = uint64(1) << 63

// skipList is the ascending list of messages that last_per_subject selected when the consumer was created, without those
// that were delivered or removed since.
//
// Invariant: seqs[head:] without removedBit is strictly ascending, and live of them are not marked as removed.
type skipList struct {
	seqs []uint64
	head int
	live int
	hash uint64
}

func newSkipList(seqs []uint64) skipList {
	l := skipList{seqs: seqs, live: len(seqs)}
	for i, seq := range seqs {
		assert.True(i == 0 || seqs[i-1] < seq, "skip list ascends", seq)
		assert.True(seq < removedBit, "sequence is below the mark of removed ones", seq)
		l.hash ^= mix(seq)
	}
	return l
}

// first returns the lowest sequence of the list.
func (l *skipList) first() (uint64, bool) {
	for l.head < len(l.seqs) {
		if seq := l.seqs[l.head]; seq&removedBit == 0 {
			return seq, true
		}
		l.head++
	}
	l.seqs, l.head = nil, 0
	return 0, false
}

// remove takes seq out of the list and reports whether it was there.
func (l *skipList) remove(seq uint64) bool {
	if l.live == 0 {
		return false
	}
	i, found := slices.BinarySearchFunc(l.seqs[l.head:], seq, func(at, want uint64) int {
		switch at &^= removedBit; {
		case at < want:
			return -1
		case at > want:
			return 1
		}
		return 0
	})
	i += l.head
	if !found || l.seqs[i]&removedBit != 0 {
		return false
	}
	l.seqs[i] |= removedBit
	l.live--
	l.hash ^= mix(seq)
	if gone := len(l.seqs) - l.head - l.live; gone > l.live+64 {
		l.compact()
	}
	return true
}

// compact gives the memory of removed places back. It costs O(list) and is called when most of the list is gone.
func (l *skipList) compact() {
	kept := make([]uint64, 0, l.live)
	for _, seq := range l.seqs[l.head:] {
		if seq&removedBit == 0 {
			kept = append(kept, seq)
		}
	}
	assert.True(len(kept) == l.live, "live sequences of the skip list are counted", uint64(len(kept)), uint64(l.live))
	l.seqs, l.head = kept, 0
}

// dropBelow removes every sequence below first and returns how many there were.
func (l *skipList) dropBelow(first uint64) uint64 {
	var dropped uint64
	for {
		seq, ok := l.first()
		if !ok || seq >= first {
			return dropped
		}
		l.remove(seq)
		dropped++
	}
}

// all appends the sequences of the list to dst, ascending.
func (l *skipList) all(dst []uint64) []uint64 {
	for _, seq := range l.seqs[l.head:] {
		if seq&removedBit == 0 {
			dst = append(dst, seq)
		}
	}
	return dst
}
