package seqset

import (
	"math/bits"

	"weir/spec/assert"
)

const (
	blockShift = 12
	blockSize  = 1 << blockShift
	blocks     = 1 << (keyShift - blockShift)
	wordBits   = 64
	wordsBlock = blockSize / wordBits
)

// block is a bitmap of 4096 offsets.
type block [wordsBlock]uint64

// dense holds the offsets of a chunk as bitmaps. Empty and full blocks have no bitmap; their count tells which.
type dense struct {
	counts [blocks]uint16
	maps   [blocks]*block
}

func (d *dense) clone() *dense {
	c := *d
	for i, m := range d.maps {
		if m != nil {
			bitmap := *m
			c.maps[i] = &bitmap
		}
	}
	return &c
}

func (d *dense) count() uint32 {
	sum := uint32(0)
	for _, n := range d.counts {
		sum += uint32(n)
	}
	return sum
}

// split returns block, word and bit of an offset.
func split(x uint16) (b, word, bit int) {
	return int(x >> blockShift), int(x) % blockSize / wordBits, int(x) % wordBits
}

func (d *dense) contains(x uint16) bool {
	b, word, bit := split(x)
	if m := d.maps[b]; m != nil {
		return m[word]>>bit&1 == 1
	}
	return d.counts[b] == blockSize
}

// open gives a block a bitmap, so that bits can change.
func (d *dense) open(b int) *block {
	if d.maps[b] == nil {
		d.maps[b] = &block{}
		if d.counts[b] == blockSize {
			for i := range d.maps[b] {
				d.maps[b][i] = ^uint64(0)
			}
		}
	}
	return d.maps[b]
}

// shut drops the bitmap of a block that is empty or full.
func (d *dense) shut(b int) {
	if d.counts[b] == 0 || d.counts[b] == blockSize {
		d.maps[b] = nil
	}
}

func (d *dense) add(x uint16) bool {
	if d.contains(x) {
		return false
	}
	b, word, bit := split(x)
	d.open(b)[word] |= 1 << bit
	d.counts[b]++
	d.shut(b)
	return true
}

// setRange adds [lo, hi].
func (d *dense) setRange(lo, hi uint16) {
	d.eachMask(lo, hi, func(m *block, word int, mask uint64) { m[word] |= mask }, blockSize)
}

// clearRange removes [lo, hi].
func (d *dense) clearRange(lo, hi uint16) {
	d.eachMask(lo, hi, func(m *block, word int, mask uint64) { m[word] &^= mask }, 0)
}

// eachMask applies change to all words that hold bits of [lo, hi] and recounts the touched blocks. Blocks wholly inside
// take the count whole at once.
func (d *dense) eachMask(lo, hi uint16, change func(m *block, word int, mask uint64), whole uint16) {
	for from := int(lo); from <= int(hi); {
		b, first, bit := split(uint16(from))
		to := min(int(hi), (b+1)*blockSize-1)
		if from == b*blockSize && to == (b+1)*blockSize-1 {
			d.counts[b], d.maps[b] = whole, nil
			from = to + 1
			continue
		}
		m := d.open(b)
		_, last, lastBit := split(uint16(to))
		for word := first; word <= last; word++ {
			mask := ^uint64(0)
			if word == first {
				mask &= ^uint64(0) << bit
			}
			if word == last {
				mask &= ^uint64(0) >> (wordBits - 1 - lastBit)
			}
			change(m, word, mask)
		}
		d.counts[b] = m.count()
		d.shut(b)
		from = to + 1
	}
}

func (m *block) count() uint16 {
	n := 0
	for _, w := range m {
		n += bits.OnesCount64(w)
	}
	return uint16(n)
}

func (d *dense) next(from uint16) (uint16, bool) {
	first, word, bit := split(from)
	for b := first; b < blocks; b++ {
		m := d.maps[b]
		switch {
		case m == nil && d.counts[b] == blockSize:
			return uint16(b*blockSize + word*wordBits + bit), true
		case m != nil:
			for w := word; w < wordsBlock; w++ {
				if rest := m[w] >> bit << bit; rest != 0 {
					return uint16(b*blockSize + w*wordBits + bits.TrailingZeros64(rest)), true
				}
				bit = 0
			}
		}
		word, bit = 0, 0
	}
	return 0, false
}

func (d *dense) prev(from uint16) (uint16, bool) {
	last, word, bit := split(from)
	for b := last; b >= 0; b-- {
		m := d.maps[b]
		switch {
		case m == nil && d.counts[b] == blockSize:
			return uint16(b*blockSize + word*wordBits + bit), true
		case m != nil:
			for w := word; w >= 0; w-- {
				up := wordBits - 1 - bit
				if rest := m[w] << up >> up; rest != 0 {
					return uint16(b*blockSize + w*wordBits + wordBits - 1 - bits.LeadingZeros64(rest)), true
				}
				bit = wordBits - 1
			}
		}
		word, bit = wordsBlock-1, wordBits-1
	}
	return 0, false
}

func (d *dense) rank(x uint16) uint32 {
	b, word, bit := split(x)
	sum := uint32(0)
	for _, n := range d.counts[:b] {
		sum += uint32(n)
	}
	m := d.maps[b]
	if m == nil {
		if d.counts[b] == blockSize {
			sum += uint32(word*wordBits + bit + 1)
		}
		return sum
	}
	for _, w := range m[:word] {
		sum += uint32(bits.OnesCount64(w))
	}
	return sum + uint32(bits.OnesCount64(m[word]<<(wordBits-1-bit)))
}

// ranges visits runs in ascending order until visit returns false; adjacent runs may touch.
func (d *dense) ranges(visit func(lo, hi uint16) bool) bool {
	for b := range blocks {
		m := d.maps[b]
		if m == nil {
			assert.True(d.counts[b] == 0 || d.counts[b] == blockSize, "block without bitmap is empty or full", uint64(d.counts[b]))
			if d.counts[b] == blockSize && !visit(uint16(b*blockSize), uint16((b+1)*blockSize-1)) {
				return false
			}
			continue
		}
		for w, word := range m {
			base := b*blockSize + w*wordBits
			for word != 0 {
				lo := bits.TrailingZeros64(word)
				n := bits.TrailingZeros64(^(word >> lo))
				if !visit(uint16(base+lo), uint16(base+lo+n-1)) {
					return false
				}
				if lo+n == wordBits {
					break
				}
				word = word >> (lo + n) << (lo + n)
			}
		}
	}
	return true
}
