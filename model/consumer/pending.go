package consumer

import "weir/spec/assert"

// phase is where a pending message stands.
type phase uint8

const (
	// waiting: its ack wait or back-off runs.
	waiting phase = iota
	// delayed: a negative acknowledgement asked for a delay, which runs.
	delayed
	// queued: it is due for another delivery.
	queued
	// gone: it is done with; the place is not yet reused.
	gone
)

// entry is one message that was handed out and is not done with.
type entry struct {
	// seq is the sequence of the message, cseq that of its first delivery.
	seq, cseq uint64
	// last is the time of the last delivery, or of the last sign of progress, unix nanoseconds.
	last int64
	// deadline is when the phase ends, never when it does not end by itself.
	deadline int64
	// deliveries counts how often the message was handed out and not taken back.
	deliveries uint32
	phase      phase
}

// digest is the contribution of an entry to the digest of its set.
func (e *entry) digest() uint64 {
	h := mix(e.seq)
	h = mix(h ^ e.cseq)
	h = mix(h ^ uint64(e.last))
	h = mix(h ^ uint64(e.deadline))
	return mix(h ^ uint64(e.deliveries)<<8 ^ uint64(e.phase))
}

// pendingSet holds the entries in the order of their sequences. First deliveries come in ascending order, so that an
// entry is always added at the end; entries leave anywhere, most often at the front. Removed ones stay as gaps until they
// are at the front or outnumber the others.
//
// Two heaps order the entries by deadline and by sequence among those that are queued. Their elements are hints: one
// counts only while the entry agrees with it, so that removing or changing an entry never searches a heap.
type pendingSet struct {
	// entries[head:] are the places in use. Invariant: seq and cseq are strictly ascending.
	entries []entry
	head    int
	// live, queued and redelivered count the entries that are not gone, that are queued, that have deliveries > 1.
	live, queued, redelivered int
	// hash is the exclusive or of the digests of the live entries.
	hash uint64
	// deadlines has an element for each live entry that is not queued and has a deadline; redeliveries one for each
	// that is queued. Both may have elements that no longer count.
	deadlines    heap
	redeliveries heap
}

// slack is how many places or hints that no longer count are kept in any case.
const slack = 64

// shrinkMin is the capacity from which an empty set gives its memory back.
const shrinkMin = 1 << 14

// find returns the entry of seq, or nil. The pointer is valid until the next add.
func (p *pendingSet) find(seq uint64) *entry {
	used := p.entries[p.head:]
	if len(used) == 0 || seq < used[0].seq || seq > used[len(used)-1].seq {
		return nil
	}
	// Without gaps in the stream the distance of the sequences is that of the places.
	if guess := seq - used[0].seq; guess < uint64(len(used)) && used[guess].seq == seq {
		return used[guess].orNil()
	}
	lo, hi := 0, len(used)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if used[mid].seq < seq {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if used[lo].seq != seq {
		return nil
	}
	return used[lo].orNil()
}

func (e *entry) orNil() *entry {
	if e.phase == gone {
		return nil
	}
	return e
}

// first returns the entry with the lowest sequence, or nil.
func (p *pendingSet) first() *entry {
	if p.live == 0 {
		return nil
	}
	return &p.entries[p.head]
}

// add appends an entry that waits for its deadline.
func (p *pendingSet) add(e entry) {
	assert.True(e.phase == waiting, "an entry starts waiting", e.seq)
	if n := len(p.entries); n > p.head {
		assert.True(p.entries[n-1].seq < e.seq, "pending sequences ascend", p.entries[n-1].seq, e.seq)
	}
	if len(p.entries) == cap(p.entries) && len(p.entries)-p.live > p.live+slack {
		p.compact()
	}
	p.entries = append(p.entries, e)
	p.live++
	p.hash ^= e.digest()
	p.schedule(&e)
}

// restore appends an entry in whatever phase it was when it was written.
func (p *pendingSet) restore(e entry) {
	p.entries = append(p.entries, e)
	p.live++
	p.hash ^= e.digest()
	p.count(&e, 1)
	p.schedule(&e)
}

// compact moves the live entries to the front of the memory.
func (p *pendingSet) compact() {
	kept := p.entries[:0]
	for _, e := range p.entries[p.head:] {
		if e.phase != gone {
			kept = append(kept, e)
		}
	}
	p.entries, p.head = kept, 0
}

// update replaces what may change of an entry and keeps counts, hints and hash right.
func (p *pendingSet) update(e *entry, to entry) {
	assert.True(e.seq == to.seq && e.cseq == to.cseq, "an entry keeps its sequences", e.seq, to.seq)
	assert.True(e.phase != gone && to.phase != gone, "a live entry is updated", e.seq)
	p.count(e, -1)
	p.hash ^= e.digest() ^ to.digest()
	*e = to
	p.count(e, 1)
	p.schedule(e)
}

func (p *pendingSet) count(e *entry, by int) {
	if e.phase == queued {
		p.queued += by
	}
	if e.deliveries > 1 {
		p.redelivered += by
	}
}

// schedule puts the hint of an entry into the heap where it belongs.
func (p *pendingSet) schedule(e *entry) {
	switch {
	case e.phase == queued:
		if p.redeliveries.len() > 2*p.queued+slack {
			p.rebuildRedeliveries()
			return
		}
		p.redeliveries.push(hint{seq: e.seq})
	case e.deadline != never:
		if p.deadlines.len() > 2*p.live+slack {
			p.rebuildDeadlines()
			return
		}
		p.deadlines.push(hint{at: e.deadline, seq: e.seq})
	}
}

func (p *pendingSet) rebuildRedeliveries() {
	p.redeliveries.clear()
	for i := p.head; i < len(p.entries); i++ {
		if e := &p.entries[i]; e.phase == queued {
			p.redeliveries.add(hint{seq: e.seq})
		}
	}
	p.redeliveries.order()
}

func (p *pendingSet) rebuildDeadlines() {
	p.deadlines.clear()
	for i := p.head; i < len(p.entries); i++ {
		if e := &p.entries[i]; e.phase < queued && e.deadline != never {
			p.deadlines.add(hint{at: e.deadline, seq: e.seq})
		}
	}
	p.deadlines.order()
}

// remove ends an entry and reports whether it was the one with the lowest sequence.
func (p *pendingSet) remove(e *entry) (wasFirst bool) {
	assert.True(e.phase != gone, "a live entry is removed", e.seq)
	wasFirst = e == &p.entries[p.head]
	p.count(e, -1)
	p.hash ^= e.digest()
	e.phase = gone
	p.live--
	if p.live == 0 {
		p.reset()
		return wasFirst
	}
	for p.entries[p.head].phase == gone {
		p.head++
	}
	return wasFirst
}

// reset empties the set, whose entries are all gone.
func (p *pendingSet) reset() {
	assert.True(p.queued == 0 && p.redelivered == 0, "counts of an empty set are 0", uint64(p.queued), uint64(p.redelivered))
	assert.True(p.hash == 0, "hash of an empty set is 0", p.hash)
	p.entries, p.head = p.entries[:0], 0
	if cap(p.entries) >= shrinkMin {
		p.entries = nil
	}
	p.deadlines.clear()
	p.redeliveries.clear()
}

// clear ends all entries.
func (p *pendingSet) clear() {
	p.live, p.queued, p.redelivered, p.hash = 0, 0, 0, 0
	p.reset()
}

// nextQueued returns the queued entry with the lowest sequence, or nil.
func (p *pendingSet) nextQueued() *entry {
	for p.redeliveries.len() > 0 {
		if e := p.find(p.redeliveries.top().seq); e != nil && e.phase == queued {
			return e
		}
		p.redeliveries.pop()
	}
	assert.True(p.queued == 0, "each queued entry has a hint", uint64(p.queued))
	return nil
}

// nextDue returns the entry whose deadline comes first, or nil. Equal deadlines come in the order of the sequences.
func (p *pendingSet) nextDue() *entry {
	for p.deadlines.len() > 0 {
		top := p.deadlines.top()
		if e := p.find(top.seq); e != nil && e.phase < queued && e.deadline == top.at {
			return e
		}
		p.deadlines.pop()
	}
	return nil
}
