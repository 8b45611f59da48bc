package stream

import (
	"crypto/sha256"
	"encoding/binary"

	"weir/spec/assert"
)

const (
	// dedupChunk is the number of entries in one chunk of the ring, and in one dedup section.
	dedupChunk = 1024
	// DedupEntriesMax bounds the message ids that a stream remembers. A publish with one more is refused rather than
	// accepted without its promise.
	DedupEntriesMax = 1 << 24
	// dedupForgetMax bounds the expired entries that one insertion forgets. It is more than one, so that the table
	// shrinks while it is in use, and small, so that no publish pays for a busy past.
	dedupForgetMax = 16
	// dedupShrinkMin is the number of map entries below which the map is not rebuilt to give memory back.
	dedupShrinkMin = 4096
)

// msgKey stands for a message id: the first half of its SHA-256, so that an entry has one small size whatever the
// publisher sends, and nobody can construct two ids with one key.
type msgKey [16]byte

func keyOf(id []byte) msgKey {
	sum := sha256.Sum256(id)
	return msgKey(sum[:16])
}

// dedupEntry is one remembered message id.
type dedupEntry struct {
	key  msgKey
	seq  uint64
	time int64
}

func (e *dedupEntry) hash(ordinal uint64) uint64 {
	lo, hi := binary.LittleEndian.Uint64(e.key[:8]), binary.LittleEndian.Uint64(e.key[8:])
	return mix(mix(lo, hi), mix(ordinal, mix(e.seq, uint64(e.time))))
}

// dedupTable remembers the ids of stored messages for the duplicate window.
//
// Entries form a ring in order of insertion, which is the order of time as the clock of the machine does not go back.
// An entry counts while it is younger than the window at the time of the question; the ring may hold older ones that
// nobody has cleared yet.
type dedupTable struct {
	// chunks[i] holds the ordinals from (firstChunk+i)*dedupChunk.
	chunks     []*[dedupChunk]dedupEntry
	firstChunk uint64
	// first and next bound the ordinals of the ring: [first, next).
	first, next uint64
	// index finds the newest ordinal of a key.
	index map[msgKey]uint64
	// indexMax is the largest size that index had since it was built: maps do not shrink by themselves.
	indexMax int
	// sum is the digest of the entries.
	sum   uint64
	dirty *dirtySet
}

func newDedupTable(dirty *dirtySet) dedupTable {
	return dedupTable{index: make(map[msgKey]uint64), dirty: dirty}
}

func (d *dedupTable) len() uint64 { return d.next - d.first }

func (d *dedupTable) at(ordinal uint64) *dedupEntry {
	return &d.chunks[ordinal/dedupChunk-d.firstChunk][ordinal%dedupChunk]
}

// find returns the sequence under which the id was stored less than window ago.
func (d *dedupTable) find(key msgKey, now, window int64) (seq uint64, ok bool) {
	ordinal, ok := d.index[key]
	if !ok {
		return 0, false
	}
	entry := d.at(ordinal)
	if now-entry.time >= window {
		return 0, false
	}
	return entry.seq, true
}

// insert remembers an id that find does not know, and forgets a few entries older than window.
func (d *dedupTable) insert(entry dedupEntry, window int64) {
	d.forget(entry.time, window, dedupForgetMax)
	d.put(entry)
}

func (d *dedupTable) put(entry dedupEntry) {
	ordinal := d.next
	if d.len() == 0 {
		d.chunks, d.firstChunk = d.chunks[:0], ordinal/dedupChunk
	}
	if ordinal/dedupChunk-d.firstChunk == uint64(len(d.chunks)) {
		d.chunks = append(d.chunks, new([dedupChunk]dedupEntry))
	}
	d.next++
	*d.at(ordinal) = entry
	d.index[entry.key] = ordinal
	d.indexMax = max(d.indexMax, len(d.index))
	d.sum += entry.hash(ordinal)
	d.dirty.add(dedupSection | ordinal/dedupChunk)
}

// forget drops up to limit entries that are older than window at the time now, oldest first, and returns how many.
func (d *dedupTable) forget(now, window int64, limit int) int {
	count := 0
	for ; count < limit && d.first < d.next; count++ {
		entry := d.at(d.first)
		if now-entry.time < window {
			break
		}
		d.sum -= entry.hash(d.first)
		// A later publish may have stored the id again: then the index points to the newer entry.
		if d.index[entry.key] == d.first {
			delete(d.index, entry.key)
		}
		d.first++
		if d.first%dedupChunk == 0 {
			d.dirty.add(dedupSection | d.firstChunk)
			d.chunks[0] = nil
			d.chunks = d.chunks[1:]
			d.firstChunk++
		}
	}
	if d.len() == 0 && len(d.chunks) > 0 {
		d.dirty.add(dedupSection | d.firstChunk)
		d.chunks = nil
	}
	d.shrinkIndex()
	return count
}

// shrinkIndex rebuilds a map that was much larger. Its cost is paid by the entries forgotten since then.
func (d *dedupTable) shrinkIndex() {
	if d.indexMax < dedupShrinkMin || len(d.index) > d.indexMax/8 {
		return
	}
	rebuilt := make(map[msgKey]uint64, len(d.index))
	for ordinal := d.first; ordinal < d.next; ordinal++ {
		rebuilt[d.at(ordinal).key] = ordinal
	}
	assert.True(len(rebuilt) == len(d.index), "rebuilt index holds the same keys", uint64(len(rebuilt)))
	d.index, d.indexMax = rebuilt, len(rebuilt)
}

// deadline is when the last entry is out of the window, 0 when there is none: the moment at which an idle stream can
// give the memory back.
func (d *dedupTable) deadline(window int64) int64 {
	if d.len() == 0 {
		return 0
	}
	return addNanos(d.at(d.next-1).time, window)
}

func (d *dedupTable) digest() uint64 { return mix(d.sum, mix(d.first, d.next)) }

// addNanos adds a non-negative duration to a time without wrapping.
func addNanos(time, nanos int64) int64 {
	if sum := time + nanos; sum >= time {
		return sum
	}
	return 1<<63 - 1
}

// clear forgets every id: the stream no longer has a duplicate window. It costs the chunks.
func (d *dedupTable) clear() {
	for i := range d.chunks {
		d.dirty.add(dedupSection | d.firstChunk + uint64(i))
	}
	d.first = d.next
	d.chunks, d.index, d.indexMax, d.sum = nil, make(map[msgKey]uint64), 0, 0
}
