package route

import (
	"bytes"
	"encoding/binary"

	"weir/model/subject"
)

// cacheSlots is how many subjects have their result cached, familySlots how many families; powers of two.
const (
	cacheSlots  = 2048
	familySlots = 256
)

// cachedSubjectBytesMax is the longest subject whose result is cached.
const cachedSubjectBytesMax = 256

// cache remembers the results of subjects, and of families: all subjects that have everything but the last token in
// common, where no pattern says what that token is. The inboxes of one client are a family, so that an answer to a
// subject that was never seen before needs no walk through the sublist. The cache is direct-mapped: a subject has one slot,
// which it takes from whatever subject had it before, with its memory. So a stream of ever new subjects allocates nothing
// once the slots are warm, and nothing depends on an order of eviction.
type cache struct {
	slots []slot
	// seen holds for each slot the hash of the subject that was looked up last. A subject gets the slot when it comes twice
	// in a row: those that occur once, as the subjects of answers do, cost neither a slot nor its memory traffic.
	seen     []uint64
	families []slot
	// version counts changes of patterns with wildcards. A slot with another version is stale. Versions start at 1.
	version uint64
}

// slot is the result of one subject, or of one family by what its subjects have in common, up to the last dot.
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
	c.open()
	h := hash(to)
	if c.seen[h%cacheSlots] != h {
		c.seen[h%cacheSlots] = h
		return nil, false
	}
	at := &c.slots[h%cacheSlots]
	return at, at.holds(c.version, to)
}

func (c *cache) open() {
	if c.slots == nil {
		c.slots, c.seen, c.families = make([]slot, cacheSlots), make([]uint64, cacheSlots), make([]slot, familySlots)
		c.version = 1
	}
}

// findFamily returns the slot of the subject's family and whether it holds its result. The slot is nil when the subject has
// none, or a long one.
func (c *cache) findFamily(to []byte) (*slot, bool) {
	n := bytes.LastIndexByte(to, '.') + 1
	if n == 0 || n == len(to) || n > cachedSubjectBytesMax {
		return nil, false
	}
	c.open()
	at := &c.families[hash(to[:n])%familySlots]
	return at, at.holds(c.version, to[:n])
}

// claimFamily makes the slot that of the subject's family. The caller sets the result.
func (c *cache) claimFamily(at *slot, to []byte) { c.claim(at, to[:bytes.LastIndexByte(to, '.')+1]) }

// holds reports whether the slot has the result of the subject.
func (s *slot) holds(version uint64, to []byte) bool {
	return s.version == version && bytes.Equal(s.subject, to)
}

// claim makes the slot the subject's. The caller sets the result.
func (c *cache) claim(at *slot, to []byte) {
	at.subject = append(at.subject[:0], to...)
	at.version = c.version
}

// invalidate drops what a change of the pattern makes wrong: one subject and its family for a literal, everything otherwise.
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
	if at, hit := c.findFamily(to); hit {
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
