package route

import (
	"bytes"
	"encoding/binary"

	"weir/model/subject"
)

// cacheSlots is how many subjects have their result cached; a power of two.
const cacheSlots = 2048

// cachedSubjectBytesMax is the longest subject whose result is cached.
const cachedSubjectBytesMax = 256

// cache remembers the results of subjects. It is direct-mapped: a subject has one slot, which it takes from whatever
// subject had it before, with its memory. So a stream of ever new subjects allocates nothing once the slots are warm,
// and nothing depends on an order of eviction.
type cache struct {
	slots []slot
	// seen holds for each slot the hash of the subject that was looked up last. A subject gets the slot when it comes twice
	// in a row: those that occur once, as the subjects of answers do, cost neither a slot nor its memory traffic.
	seen []uint64
	// version counts changes of patterns with wildcards. A slot with another version is stale. Versions start at 1.
	version uint64
}

// slot is the result of one subject.
type slot struct {
	// version is the cache's version when the result was made, 0 for no result.
	version uint64
	subject []byte
	result  Result
}

// find returns the slot of the subject and whether it holds its result. The slot is nil when the subject is too long, or is
// not known to occur more than once.
func (c *cache) find(to []byte) (*slot, bool) {
	if len(to) > cachedSubjectBytesMax {
		return nil, false
	}
	if c.slots == nil {
		c.slots, c.seen = make([]slot, cacheSlots), make([]uint64, cacheSlots)
		c.version = 1
	}
	h := hash(to)
	if c.seen[h%cacheSlots] != h {
		c.seen[h%cacheSlots] = h
		return nil, false
	}
	at := &c.slots[h%cacheSlots]
	return at, at.holds(c.version, to)
}

// holds reports whether the slot has the result of the subject.
func (s *slot) holds(version uint64, to []byte) bool {
	return s.version == version && bytes.Equal(s.subject, to)
}

// claim makes the slot the subject's. The caller sets the result.
func (c *cache) claim(at *slot, to []byte) {
	at.subject = append(at.subject[:0], to...)
	at.version = c.version
}

// invalidate drops what a change of the pattern makes wrong: one subject for a literal, everything otherwise.
func (c *cache) invalidate(pattern string) {
	if c.slots == nil {
		return
	}
	if subject.HasWildcard(pattern) {
		c.version++
		return
	}
	var room [cachedSubjectBytesMax]byte
	if len(pattern) > len(room) {
		return
	}
	to := room[:copy(room[:], pattern)]
	if at := &c.slots[hash(to)%cacheSlots]; at.holds(c.version, to) {
		at.version = 0
	}
}

// hash spreads subjects over slots. It need not resist an adversary: a collision costs one lookup in the sublist.
func hash(s []byte) uint64 {
	const multiplier = 0x9E3779B97F4A7C15
	h := uint64(len(s)) * multiplier
	for len(s) >= 8 {
		h = (h ^ binary.LittleEndian.Uint64(s)) * multiplier
		h ^= h >> 29
		s = s[8:]
	}
	var tail uint64
	for i, c := range s {
		tail |= uint64(c) << (8 * i)
	}
	h = (h ^ tail) * multiplier
	return h ^ h>>32
}
