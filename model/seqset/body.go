package seqset

import (
	"slices"

	"weir/spec/assert"
)

// chunksOf builds the chunks of an ascending list. The result is not nil.
func chunksOf(list []uint64) []chunk {
	chunks := []chunk{}
	for _, seq := range list {
		key := keyOf(seq)
		if n := len(chunks); n == 0 || chunks[n-1].key != key {
			chunks = append(chunks, chunk{key: key})
		}
		chunks[len(chunks)-1].add(offsetOf(seq))
	}
	return chunks
}

// find returns the position of the chunk with the key, or where it would have to be.
func (b *body) find(key uint64) (int, bool) {
	// Appending at the end is by far the most frequent change of a stream's set.
	n := len(b.chunks)
	if n == 0 || b.chunks[n-1].key < key {
		return n, false
	}
	if b.chunks[n-1].key == key {
		return n - 1, true
	}
	return slices.BinarySearchFunc(b.chunks, key, func(c chunk, key uint64) int {
		switch {
		case c.key < key:
			return -1
		case c.key > key:
			return 1
		default:
			return 0
		}
	})
}

func (b *body) add(seq uint64) bool {
	i, ok := b.find(keyOf(seq))
	if !ok {
		b.chunks = slices.Insert(b.chunks, i, chunk{key: keyOf(seq)})
	}
	if !b.chunks[i].add(offsetOf(seq)) {
		return false
	}
	b.count++
	assert.True(b.count <= MaxLen, "set length <= MaxLen", b.count)
	return true
}

func (b *body) remove(seq uint64) bool {
	i, ok := b.find(keyOf(seq))
	if !ok || !b.chunks[i].remove(offsetOf(seq)) {
		return false
	}
	b.count--
	if b.chunks[i].n == 0 {
		b.cut(i, i+1)
	}
	return true
}

// cut removes chunks[lo:hi]. Removal at the front moves nothing.
func (b *body) cut(lo, hi int) {
	if lo == 0 {
		clear(b.chunks[:hi])
		b.chunks = b.chunks[hi:]
		return
	}
	b.chunks = slices.Delete(b.chunks, lo, hi)
}

func (b *body) addRange(first, last uint64) {
	lo, _ := b.find(keyOf(first))
	hi := lo
	for hi < len(b.chunks) && b.chunks[hi].key <= keyOf(last) {
		hi++
	}
	merged := make([]chunk, 0, keyOf(last)-keyOf(first)+1)
	old := b.chunks[lo:hi]
	for key := keyOf(first); key <= keyOf(last); key++ {
		c := chunk{key: key}
		if len(old) > 0 && old[0].key == key {
			c, old = old[0], old[1:]
			b.count -= uint64(c.n)
		}
		c.addRange(clip(key, first, last))
		b.count += uint64(c.n)
		merged = append(merged, c)
	}
	assert.True(b.count <= MaxLen, "set length <= MaxLen", b.count)
	b.chunks = slices.Replace(b.chunks, lo, hi, merged...)
}

func (b *body) removeRange(first, last uint64) {
	lo, _ := b.find(keyOf(first))
	dropFrom, dropTo := lo, lo
	for i := lo; i < len(b.chunks) && b.chunks[i].key <= keyOf(last); i++ {
		c := &b.chunks[i]
		before := c.n
		c.removeRange(clip(c.key, first, last))
		b.count -= uint64(before - c.n)
		// Only the chunks at both ends can survive, so the emptied ones are adjacent.
		if c.n > 0 && dropFrom == dropTo {
			dropFrom, dropTo = i+1, i+1
		} else if c.n == 0 {
			dropTo = i + 1
		}
	}
	if dropFrom < dropTo {
		b.cut(dropFrom, dropTo)
	}
}

func (b *body) next(from uint64) (uint64, bool) {
	i, ok := b.find(keyOf(from))
	if ok {
		if x, found := b.chunks[i].next(offsetOf(from)); found {
			return b.chunks[i].at(x), true
		}
		i++
	}
	if i == len(b.chunks) {
		return 0, false
	}
	x, found := b.chunks[i].next(0)
	assert.True(found, "chunk is not empty", b.chunks[i].key)
	return b.chunks[i].at(x), true
}

func (b *body) prev(from uint64) (uint64, bool) {
	i, ok := b.find(keyOf(from))
	if ok {
		if x, found := b.chunks[i].prev(offsetOf(from)); found {
			return b.chunks[i].at(x), true
		}
	}
	if i == 0 {
		return 0, false
	}
	x, found := b.chunks[i-1].prev(offsetMax)
	assert.True(found, "chunk is not empty", b.chunks[i-1].key)
	return b.chunks[i-1].at(x), true
}

// rank sums from the nearer end, as most questions are about the first or the last sequences.
func (b *body) rank(seq uint64) uint64 {
	i, ok := b.find(keyOf(seq))
	within := uint64(0)
	if ok {
		within = uint64(b.chunks[i].rank(offsetOf(seq)))
	}
	sum := uint64(0)
	if i <= len(b.chunks)/2 {
		for k := range b.chunks[:i] {
			sum += uint64(b.chunks[k].n)
		}
		return sum + within
	}
	for k := range b.chunks[i:] {
		sum += uint64(b.chunks[i+k].n)
	}
	return b.count - sum + within
}
