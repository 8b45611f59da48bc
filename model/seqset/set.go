// Package seqset holds ordered sets of sequences in little memory.
//
// A Set takes one of three forms, whichever is small:
//
//	inline   up to 4 sequences within 2^32 of each other, in the 32 bytes of the Set itself
//	list     some sequences far apart, 8 bytes each
//	chunks   one entry per touched span of 65536 sequences: a run, a sorted array of 16-bit offsets, or
//	         blocks of 4096 bits of which the empty and the full ones take no space
//
// The form is a matter of history and is never visible: equal sets answer and encode equally. The package promises that
// no operation costs more than the chunks it touches plus a logarithm or a scan of chunk counts. A Set is not safe for
// concurrent use and must not be changed while one of its visits runs.
package seqset

import (
	"math"
	"slices"

	"weir/spec/assert"
)

const (
	// inlineMax is the number of sequences that a Set holds without an allocation.
	inlineMax = 4
	// listMax is the number of sequences at which a list turns into chunks in any case.
	listMax = 4096
	// listCheckMin is the length from which a list asks, at each doubling, whether chunks would be smaller.
	listCheckMin = 16
	// addEachMax is the length up to which AddRange adds one by one.
	addEachMax = 8
	// shrinkMax is the number of sequences at which chunks turn back into a list or the inline form.
	shrinkMax = 8

	// MaxLen is the largest number of sequences in one Set. It bounds what a few encoded bytes can make Decode allocate.
	MaxLen = 1 << 32
)

// Set is an ordered set of sequences. The zero value is empty. A Set must not be copied after its first use; see Clone.
type Set struct {
	// big is nil in the inline form.
	big *body
	// base is the first sequence of the inline form, deltas are the distances of the others from it, ascending.
	base   uint64
	deltas [inlineMax - 1]uint32
	// inline is the number of sequences of the inline form. Invariant: 0 when big is not nil.
	inline uint32
}

// body is the list or the chunks form.
type body struct {
	// list is ascending. Invariant: nil in the chunks form.
	list []uint64
	// chunks is ascending by key, none of them empty. Invariant: nil in the list form.
	chunks []chunk
	// count is the number of sequences.
	count uint64
}

// smallest returns the sequences of the inline or list form in ascending order; buf is room for the inline form.
func (s *Set) smallest(buf *[inlineMax]uint64) []uint64 {
	if s.big != nil {
		return s.big.list
	}
	if s.inline == 0 {
		return nil
	}
	buf[0] = s.base
	for i, delta := range s.deltas[:s.inline-1] {
		buf[i+1] = s.base + uint64(delta)
	}
	return buf[:s.inline]
}

func (s *Set) chunked() bool { return s.big != nil && s.big.chunks != nil }

// Len returns the number of sequences.
func (s *Set) Len() uint64 {
	if s.big != nil {
		return s.big.count
	}
	return uint64(s.inline)
}

// Clear empties the set.
func (s *Set) Clear() { *s = Set{} }

// Contains reports whether seq is in the set.
func (s *Set) Contains(seq uint64) bool {
	if s.chunked() {
		i, ok := s.big.find(keyOf(seq))
		return ok && s.big.chunks[i].contains(offsetOf(seq))
	}
	var buf [inlineMax]uint64
	_, ok := slices.BinarySearch(s.smallest(&buf), seq)
	return ok
}

// First returns the smallest sequence; ok is false when the set is empty.
func (s *Set) First() (seq uint64, ok bool) { return s.Next(0) }

// Last returns the largest sequence; ok is false when the set is empty.
func (s *Set) Last() (seq uint64, ok bool) { return s.Prev(math.MaxUint64) }

// Next returns the smallest sequence >= from; ok is false when there is none.
func (s *Set) Next(from uint64) (seq uint64, ok bool) {
	if s.chunked() {
		return s.big.next(from)
	}
	var buf [inlineMax]uint64
	list := s.smallest(&buf)
	i, _ := slices.BinarySearch(list, from)
	if i == len(list) {
		return 0, false
	}
	return list[i], true
}

// Prev returns the largest sequence <= from; ok is false when there is none.
func (s *Set) Prev(from uint64) (seq uint64, ok bool) {
	if s.chunked() {
		return s.big.prev(from)
	}
	var buf [inlineMax]uint64
	list := s.smallest(&buf)
	i, found := slices.BinarySearch(list, from)
	if found {
		return from, true
	}
	if i == 0 {
		return 0, false
	}
	return list[i-1], true
}

// Rank returns the number of sequences <= seq.
func (s *Set) Rank(seq uint64) uint64 {
	if s.chunked() {
		return s.big.rank(seq)
	}
	var buf [inlineMax]uint64
	i, found := slices.BinarySearch(s.smallest(&buf), seq)
	if found {
		i++
	}
	return uint64(i)
}

// CountRange returns the number of sequences in [first, last].
func (s *Set) CountRange(first, last uint64) uint64 {
	if first > last {
		return 0
	}
	if first == 0 {
		return s.Rank(last)
	}
	return s.Rank(last) - s.Rank(first-1)
}

// Ranges visits the maximal runs [first, last] of the set in ascending order until visit returns false.
func (s *Set) Ranges(visit func(first, last uint64) bool) {
	var joined joiner
	if s.chunked() {
		for i := range s.big.chunks {
			c := &s.big.chunks[i]
			stopped := !c.ranges(func(lo, hi uint16) bool { return joined.add(c.at(lo), c.at(hi), visit) })
			if stopped {
				return
			}
		}
	} else {
		var buf [inlineMax]uint64
		for _, seq := range s.smallest(&buf) {
			if !joined.add(seq, seq, visit) {
				return
			}
		}
	}
	joined.flush(visit)
}

// Clone returns an independent copy.
func (s *Set) Clone() Set {
	clone := *s
	if s.big != nil {
		big := body{list: slices.Clone(s.big.list), chunks: slices.Clone(s.big.chunks), count: s.big.count}
		for i := range big.chunks {
			big.chunks[i].own()
		}
		clone.big = &big
	}
	return clone
}

// joiner merges adjacent runs that arrive in ascending order.
type joiner struct {
	first, last uint64
	any         bool
}

// add takes the next run and passes on the one before when they do not touch. It returns false to stop.
func (j *joiner) add(first, last uint64, visit func(first, last uint64) bool) bool {
	if j.any && first == j.last+1 {
		j.last = last
		return true
	}
	assert.True(!j.any || first > j.last, "run begins after the one before", first, j.last)
	goOn := j.flush(visit)
	j.first, j.last, j.any = first, last, true
	return goOn
}

func (j *joiner) flush(visit func(first, last uint64) bool) bool {
	return !j.any || visit(j.first, j.last)
}
