package wal

import "weir/spec/assert"

// group is what the log remembers of a live group: what a table repeats, and where its entries lie.
type group struct {
	id           GroupID
	records      uint64 // number of the newest record
	fresh        bool   // no record is written yet
	staged       bool   // part of the append in progress
	stamp        uint64 // of the last append frame that lists the group
	hardState    HardState
	hasHardState bool
	meta         []byte
	compact      uint64 // entries <= compact are not needed
	last         uint64 // index of the newest entry, or compact
	damaged      bool   // sticky until a reset
	spans        []span // which segments hold needed entries, in ascending order of both
}

// span says that a segment holds the entries [first, last] of a group, as far as not overwritten later.
type span struct {
	segment     uint64
	first, last uint64
}

// refs counts for each live segment how many spans lie in it.
type refs struct {
	segments []segmentRef // ascending ids
}

type segmentRef struct {
	id   uint64
	refs int
	keep bool // holds records of a damaged group: it is set aside, not reused
}

func (r *refs) add(id uint64, n int) {
	for i := len(r.segments) - 1; i >= 0; i-- { // nearly always the newest
		if r.segments[i].id == id {
			r.segments[i].refs += n
			assert.True(r.segments[i].refs >= 0, "references of a segment >= 0", id)
			return
		}
	}
	assert.Unreachable("span in a segment that is not live", id)
}

// apply brings the state of the group to what it is after the write, which lies in the given segment. It reports
// whether the write fits: entries that leave a gap do not.
func (g *group) apply(w *Write, segment uint64, r *refs) bool {
	if w.Reset {
		g.unpin(r)
		g.compact, g.last, g.damaged = 0, 0, false
	}
	if w.HasHardState {
		g.hardState, g.hasHardState = w.HardState, true
	}
	if w.Meta != nil {
		g.meta = append(g.meta[:0:cap(g.meta)], w.Meta...)
		if g.meta == nil {
			g.meta = []byte{}
		}
	}
	if w.Compact > g.last {
		g.last = w.Compact
	}
	if n := len(w.Entries); n > 0 {
		first, last := w.Entries[0].Index, w.Entries[n-1].Index
		if first > g.last+1 || first == 0 {
			return false
		}
		g.cut(first, r)
		g.extend(span{segment, first, last}, r)
		g.last = last
	}
	if w.Compact > g.compact {
		g.compact = w.Compact
		g.release(r)
	}
	return true
}

// cut forgets the entries from the index on.
func (g *group) cut(from uint64, r *refs) {
	for i := len(g.spans) - 1; i >= 0 && g.spans[i].last >= from; i-- {
		if g.spans[i].first < from {
			g.spans[i].last = from - 1
			return
		}
		r.add(g.spans[i].segment, -1)
		g.spans = g.spans[:i]
	}
}

func (g *group) extend(s span, r *refs) {
	if n := len(g.spans); n > 0 && g.spans[n-1].segment == s.segment && g.spans[n-1].last+1 == s.first {
		g.spans[n-1].last = s.last
		return
	}
	r.add(s.segment, 1)
	g.spans = append(g.spans, s)
}

// release gives up the spans that the compaction mark covers.
func (g *group) release(r *refs) {
	n := 0
	for n < len(g.spans) && g.spans[n].last <= g.compact {
		r.add(g.spans[n].segment, -1)
		n++
	}
	if n > 0 {
		g.spans = append(g.spans[:0], g.spans[n:]...)
	}
}

// unpin gives up all spans.
func (g *group) unpin(r *refs) {
	for _, s := range g.spans {
		r.add(s.segment, -1)
	}
	g.spans = g.spans[:0]
}
