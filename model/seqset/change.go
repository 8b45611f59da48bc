package seqset

import (
	"math"
	"slices"

	"weir/spec/assert"
)

// Add puts seq into the set and reports whether it was absent.
func (s *Set) Add(seq uint64) bool {
	if s.chunked() {
		return s.big.add(seq)
	}
	var buf [inlineMax]uint64
	list := s.smallest(&buf)
	i, found := slices.BinarySearch(list, seq)
	if found {
		return false
	}
	if s.big == nil && s.addInline(list, i, seq) {
		return true
	}
	if s.big == nil {
		grown := make([]uint64, len(list), 2*inlineMax)
		copy(grown, list)
		*s = Set{big: &body{list: grown, count: uint64(len(list))}}
	}
	s.big.list = slices.Insert(s.big.list, i, seq)
	s.big.count++
	s.big.growList()
	return true
}

// addInline inserts seq at position i of the inline form, unless it does not fit.
func (s *Set) addInline(list []uint64, i int, seq uint64) bool {
	if len(list) == inlineMax {
		return false
	}
	var grown [inlineMax]uint64
	copy(grown[:], list[:i])
	grown[i] = seq
	copy(grown[i+1:], list[i:])
	return s.setInline(grown[:len(list)+1])
}

// setInline makes the set hold the ascending list in the inline form, unless it does not fit.
func (s *Set) setInline(list []uint64) bool {
	if len(list) > inlineMax {
		return false
	}
	if len(list) == 0 {
		*s = Set{}
		return true
	}
	if list[len(list)-1]-list[0] > math.MaxUint32 {
		return false
	}
	small := Set{base: list[0], inline: uint32(len(list))}
	for i, seq := range list[1:] {
		small.deltas[i] = uint32(seq - list[0])
	}
	*s = small
	return true
}

// Remove takes seq out of the set and reports whether it was there.
func (s *Set) Remove(seq uint64) bool {
	if s.chunked() {
		removed := s.big.remove(seq)
		if removed {
			s.shrink()
		}
		return removed
	}
	var buf [inlineMax]uint64
	list := s.smallest(&buf)
	i, found := slices.BinarySearch(list, seq)
	if !found {
		return false
	}
	s.cutList(list, i, i+1)
	return true
}

// cutList removes list[lo:hi], where list is the inline or list form of the set.
func (s *Set) cutList(list []uint64, lo, hi int) {
	if s.big == nil {
		kept := append(list[:lo], list[hi:]...)
		fits := s.setInline(kept)
		assert.True(fits, "a part of an inline set is inline", uint64(len(kept)))
		return
	}
	if lo == 0 {
		// The front goes most often, by limits; cutting it there moves nothing. Append reclaims the space later.
		s.big.list = s.big.list[hi:]
	} else {
		s.big.list = slices.Delete(s.big.list, lo, hi)
	}
	s.big.count = uint64(len(s.big.list))
	s.shrink()
}

// AddRange adds all sequences in [first, last]. It costs the chunks it touches.
func (s *Set) AddRange(first, last uint64) {
	if first > last {
		return
	}
	assert.True(last-first < MaxLen, "added range < MaxLen", first, last)
	if last-first < addEachMax {
		for seq := first; ; seq++ {
			s.Add(seq)
			if seq == last {
				return
			}
		}
	}
	s.toChunks()
	s.big.addRange(first, last)
}

// RemoveRange removes all sequences in [first, last] and returns how many there were. It costs the chunks it touches.
func (s *Set) RemoveRange(first, last uint64) uint64 {
	if first > last {
		return 0
	}
	before := s.Len()
	if s.chunked() {
		s.big.removeRange(first, last)
		s.shrink()
		return before - s.Len()
	}
	var buf [inlineMax]uint64
	list := s.smallest(&buf)
	lo, _ := slices.BinarySearch(list, first)
	hi, found := slices.BinarySearch(list, last)
	if found {
		hi++
	}
	if lo < hi {
		s.cutList(list, lo, hi)
	}
	return before - s.Len()
}

// shrink gives up the list or chunks form when few sequences are left.
func (s *Set) shrink() {
	if s.big.count > shrinkMax {
		return
	}
	var buf [shrinkMax]uint64
	few := buf[:0]
	if s.big.chunks == nil {
		few = append(few, s.big.list...)
	}
	for i := range s.big.chunks {
		c := &s.big.chunks[i]
		c.ranges(func(lo, hi uint16) bool {
			for x := int(lo); x <= int(hi); x++ {
				few = append(few, c.at(uint16(x)))
			}
			return true
		})
	}
	assert.True(uint64(len(few)) == s.big.count, "sequences found == count", uint64(len(few)), s.big.count)
	if s.setInline(few) {
		return
	}
	if s.big.chunks != nil {
		s.big = &body{list: slices.Clone(few), count: uint64(len(few))}
	}
}

// toChunks changes the set to the chunks form, even when it is empty: callers add to it at once.
func (s *Set) toChunks() {
	if s.chunked() {
		return
	}
	var buf [inlineMax]uint64
	list := s.smallest(&buf)
	*s = Set{big: &body{chunks: chunksOf(list), count: uint64(len(list))}}
}

// growList turns a list into chunks when it is long, or when chunks would take less memory.
func (b *body) growList() {
	n := len(b.list)
	if n < listMax {
		doubled := n >= listCheckMin && n&(n-1) == 0
		if !doubled {
			return
		}
		keys, last := 0, uint64(math.MaxUint64)
		for _, seq := range b.list {
			if keyOf(seq) != last {
				last = keyOf(seq)
				keys++
			}
		}
		const offsetBytes, seqBytes = 2, 8
		if keys*chunkBytes+n*offsetBytes >= n*seqBytes {
			return
		}
	}
	b.chunks, b.list = chunksOf(b.list), nil
}
