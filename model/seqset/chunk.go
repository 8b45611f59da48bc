package seqset

import (
	"slices"

	"weir/spec/assert"
)

const (
	keyShift  = 16
	offsetMax = 1<<keyShift - 1
	// arrayMax is the length at which an array of offsets becomes dense; arrayMin the one at which dense goes back.
	arrayMax = 1024
	arrayMin = 512
	// chunkBytes is the size of a chunk without what its pointers lead to.
	chunkBytes = 48
)

// chunk holds the sequences of one key, that is with equal bits above the lowest 16. With neither array nor dense it is
// the run [lo, lo+n).
type chunk struct {
	key   uint64
	array []uint16
	dense *dense
	n     uint32
	lo    uint16
}

func keyOf(seq uint64) uint64    { return seq >> keyShift }
func offsetOf(seq uint64) uint16 { return uint16(seq & offsetMax) }

// clip returns the offsets of [first, last] within the key.
func clip(key, first, last uint64) (lo, hi uint16) {
	lo, hi = 0, offsetMax
	if keyOf(first) == key {
		lo = offsetOf(first)
	}
	if keyOf(last) == key {
		hi = offsetOf(last)
	}
	return lo, hi
}

func (c *chunk) at(x uint16) uint64 { return c.key<<keyShift | uint64(x) }

func (c *chunk) isRun() bool { return c.array == nil && c.dense == nil }

// runEnd is the offset after a run.
func (c *chunk) runEnd() uint32 { return uint32(c.lo) + c.n }

// own replaces what the chunk shares with the one it was copied from.
func (c *chunk) own() {
	c.array = slices.Clone(c.array)
	if c.dense != nil {
		c.dense = c.dense.clone()
	}
}

func (c *chunk) contains(x uint16) bool {
	switch {
	case c.dense != nil:
		return c.dense.contains(x)
	case c.array != nil:
		_, ok := slices.BinarySearch(c.array, x)
		return ok
	default:
		return x >= c.lo && uint32(x) < c.runEnd()
	}
}

func (c *chunk) add(x uint16) bool {
	if c.n == 0 {
		*c = chunk{key: c.key, n: 1, lo: x}
		return true
	}
	if c.isRun() {
		switch {
		case c.contains(x):
			return false
		case uint32(x) == c.runEnd():
			c.n++
			return true
		case uint32(x)+1 == uint32(c.lo):
			c.lo--
			c.n++
			return true
		}
		c.breakRun()
	}
	if c.dense != nil {
		if !c.dense.add(x) {
			return false
		}
		c.n++
		c.joinDense(x)
		return true
	}
	i, found := slices.BinarySearch(c.array, x)
	if found {
		return false
	}
	c.array = slices.Insert(c.array, i, x)
	c.n++
	c.normalise()
	return true
}

func (c *chunk) remove(x uint16) bool {
	if !c.contains(x) {
		return false
	}
	if c.isRun() && (x == c.lo || uint32(x)+1 == c.runEnd()) {
		if x == c.lo {
			c.lo++
		}
		c.n--
		return true
	}
	c.removeRange(x, x)
	return true
}

func (c *chunk) addRange(lo, hi uint16) {
	size := uint32(hi) - uint32(lo) + 1
	if c.n == 0 || size == offsetMax+1 {
		*c = chunk{key: c.key, n: size, lo: lo}
		return
	}
	if c.isRun() && uint32(lo) <= c.runEnd() && uint32(hi)+1 >= uint32(c.lo) {
		end := max(c.runEnd(), uint32(hi)+1)
		c.lo = min(c.lo, lo)
		c.n = end - uint32(c.lo)
		return
	}
	c.toDense()
	c.dense.setRange(lo, hi)
	c.n = c.dense.count()
	c.normalise()
}

func (c *chunk) removeRange(lo, hi uint16) {
	switch {
	case c.isRun():
		c.cutRun(lo, hi)
	case c.array != nil:
		i, _ := slices.BinarySearch(c.array, lo)
		j, found := slices.BinarySearch(c.array, hi)
		if found {
			j++
		}
		c.array = slices.Delete(c.array, i, j)
		c.n = uint32(len(c.array))
	default:
		c.dense.clearRange(lo, hi)
		c.n = c.dense.count()
	}
	c.normalise()
}

// cutRun removes [lo, hi] from a run.
func (c *chunk) cutRun(lo, hi uint16) {
	first, end := uint32(lo), uint32(hi)+1
	from, to := uint32(c.lo), c.runEnd()
	if end <= from || first >= to {
		return
	}
	switch {
	case first <= from && end >= to:
		c.n = 0
	case first <= from:
		c.lo, c.n = uint16(end), to-end
	case end >= to:
		c.n = first - from
	default:
		c.breakRun()
		c.removeRange(lo, hi)
	}
}

// breakRun changes a run to the form that can have gaps.
func (c *chunk) breakRun() {
	if c.n >= arrayMax {
		c.toDense()
		return
	}
	array := make([]uint16, 0, c.n+1)
	for x := uint32(c.lo); x < c.runEnd(); x++ {
		array = append(array, uint16(x))
	}
	c.array, c.lo = array, 0
}

func (c *chunk) toDense() {
	if c.dense != nil {
		return
	}
	d := &dense{}
	c.ranges(func(lo, hi uint16) bool {
		d.setRange(lo, hi)
		return true
	})
	c.dense, c.array, c.lo = d, nil, 0
}

// normalise picks the smallest form after a change.
func (c *chunk) normalise() {
	if c.n == 0 {
		*c = chunk{key: c.key}
		return
	}
	if c.isRun() {
		return
	}
	first, _ := c.next(0)
	last, _ := c.prev(offsetMax)
	switch {
	case uint32(last)-uint32(first)+1 == c.n:
		*c = chunk{key: c.key, n: c.n, lo: first}
	case c.dense != nil && c.n <= arrayMin:
		array := make([]uint16, 0, c.n+1)
		c.dense.ranges(func(lo, hi uint16) bool {
			for x := int(lo); x <= int(hi); x++ {
				array = append(array, uint16(x))
			}
			return true
		})
		c.array, c.dense = array, nil
	case c.array != nil && c.n > arrayMax:
		c.toDense()
	}
}

// joinDense turns a dense chunk into a run when adding x closed its last gap. It looks only when x filled a block or
// touches both neighbours, as otherwise a gap is left.
func (c *chunk) joinDense(x uint16) {
	openBelow := x > 0 && !c.dense.contains(x-1)
	openAbove := x < offsetMax && !c.dense.contains(x+1)
	if !openBelow && !openAbove {
		c.normalise()
	}
}

func (c *chunk) next(from uint16) (uint16, bool) {
	switch {
	case c.dense != nil:
		return c.dense.next(from)
	case c.array != nil:
		i, _ := slices.BinarySearch(c.array, from)
		if i == len(c.array) {
			return 0, false
		}
		return c.array[i], true
	default:
		x := max(from, c.lo)
		return x, uint32(x) < c.runEnd()
	}
}

func (c *chunk) prev(from uint16) (uint16, bool) {
	switch {
	case c.dense != nil:
		return c.dense.prev(from)
	case c.array != nil:
		i, found := slices.BinarySearch(c.array, from)
		if found {
			return from, true
		}
		if i == 0 {
			return 0, false
		}
		return c.array[i-1], true
	default:
		assert.True(c.n > 0, "chunk is not empty", c.key)
		x := min(uint32(from), c.runEnd()-1)
		return uint16(x), x >= uint32(c.lo)
	}
}

// rank returns the number of offsets <= x.
func (c *chunk) rank(x uint16) uint32 {
	switch {
	case c.dense != nil:
		return c.dense.rank(x)
	case c.array != nil:
		i, found := slices.BinarySearch(c.array, x)
		if found {
			i++
		}
		return uint32(i)
	default:
		if x < c.lo {
			return 0
		}
		return min(uint32(x)-uint32(c.lo)+1, c.n)
	}
}

// ranges visits runs in ascending order; adjacent runs may touch. It returns false when visit did.
func (c *chunk) ranges(visit func(lo, hi uint16) bool) bool {
	switch {
	case c.dense != nil:
		return c.dense.ranges(visit)
	case c.array != nil:
		for _, x := range c.array {
			if !visit(x, x) {
				return false
			}
		}
		return true
	default:
		return c.n == 0 || visit(c.lo, uint16(c.runEnd()-1))
	}
}
