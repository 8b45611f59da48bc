package stream

import (
	"slices"

	"weir/model/jsapi"
	"weir/model/seqset"
	"weir/model/subject"
)

// Meta is what the machine knows about a stored message.
type Meta struct {
	// Seq is the sequence, Time the unix nanoseconds at which it was stored.
	Seq  uint64
	Time int64
	// Subject is the subject under which it was stored.
	Subject string
	// Size is the length of header and payload together.
	Size int
}

// State returns the state of the stream as info responses show it, without the lists of deleted messages and subjects.
func (m *Machine) State() jsapi.StreamState {
	log := &m.log
	state := jsapi.StreamState{
		Msgs:        log.live.Len(),
		Bytes:       log.bytes,
		FirstSeq:    log.first,
		LastSeq:     log.last,
		LastTime:    jsapi.Time(log.lastTime),
		NumSubjects: log.subjects.count(),
		Consumers:   len(m.consumers.byID),
	}
	if state.Msgs > 0 {
		state.FirstTime = jsapi.Time(log.pages.at(log.first).time)
		state.NumDeleted = int(log.last - log.first + 1 - state.Msgs)
	}
	return state
}

// Deleted returns, ascending, up to limit sequences between the first and the last one that have no message.
func (m *Machine) Deleted(limit int) []uint64 {
	var deleted []uint64
	next := m.log.first
	gap := func(end uint64) bool {
		for ; next < end && len(deleted) < limit; next++ {
			deleted = append(deleted, next)
		}
		return len(deleted) < limit
	}
	if m.log.live.Len() == 0 {
		return nil
	}
	goOn := true
	m.log.live.Ranges(func(first, last uint64) bool {
		goOn = gap(first)
		next = last + 1
		return goOn
	})
	if goOn {
		gap(m.log.last + 1)
	}
	return deleted
}

// SubjectCount is the number of messages of one subject.
type SubjectCount struct {
	Subject string
	Msgs    uint64
}

// SubjectCounts returns the subjects that match the filter with their numbers of messages, in byte order, without the
// first offset ones and at most limit of them, and how many match in all. It costs the matching subjects.
func (m *Machine) SubjectCounts(filter string, offset, limit int) (counts []SubjectCount, total int) {
	m.log.subjects.match(filter, func(_ uint32, row *subjectRow) bool {
		if total >= offset && len(counts) < limit {
			counts = append(counts, SubjectCount{Subject: row.text, Msgs: row.seqs.Len()})
		}
		total++
		return true
	})
	return counts, total
}

// Get returns what is known about the message at seq and reports whether it exists.
func (m *Machine) Get(seq uint64) (Meta, bool) {
	if !m.log.live.Contains(seq) {
		return Meta{}, false
	}
	r := m.log.pages.at(seq)
	return Meta{Seq: seq, Time: r.time, Subject: m.log.subjects.row(r.subject).text, Size: int(r.bytes())}, true
}

// lastOf returns the last sequence that the pattern selects, 0 when there is none.
func (m *Machine) lastOf(pattern string) uint64 {
	if m.selectsAll(pattern) {
		last, _ := m.log.live.Last()
		return last
	}
	var newest uint64
	m.log.subjects.match(pattern, func(_ uint32, row *subjectRow) bool {
		last, _ := row.seqs.Last()
		newest = max(newest, last)
		return true
	})
	return newest
}

// LastBySubject returns the last message whose subject matches the pattern. It costs the matching subjects.
func (m *Machine) LastBySubject(pattern string) (Meta, bool) { return m.Get(m.lastOf(pattern)) }

// scanMax is the number of messages that NextBySubject looks at one by one before it asks the index of subjects.
const scanMax = 256

// NextBySubject returns the first message at or after seq whose subject matches the pattern. It costs a bounded scan,
// and beyond it the matching subjects.
func (m *Machine) NextBySubject(pattern string, seq uint64) (Meta, bool) {
	next, ok := m.log.live.Next(seq)
	if !ok {
		return Meta{}, false
	}
	if m.selectsAll(pattern) {
		return m.Get(next)
	}
	if subject.HasWildcard(pattern) {
		for range scanMax {
			if subject.Matches(m.log.subjectOf(next), pattern) {
				return m.Get(next)
			}
			if next, ok = m.log.live.Next(next + 1); !ok {
				return Meta{}, false
			}
		}
	}
	var nearest uint64
	m.log.subjects.match(pattern, func(_ uint32, row *subjectRow) bool {
		if at, ok := row.seqs.Next(next); ok && (nearest == 0 || at < nearest) {
			nearest = at
		}
		return true
	})
	return m.Get(nearest)
}

// SeqAtTime returns the sequence of the first message that was stored at or after the time in unix nanoseconds, and the
// sequence after the last one when there is none. Later messages never have earlier times.
func (m *Machine) SeqAtTime(unixNanos int64) uint64 {
	live := &m.log.live
	lo, hi := m.log.first, m.log.last+1
	for lo < hi {
		mid := lo + (hi-lo)/2
		seq, ok := live.Next(mid)
		if !ok || seq >= hi {
			hi = mid
			continue
		}
		if m.log.pages.at(seq).time >= unixNanos {
			hi = mid
		} else {
			lo = seq + 1
		}
	}
	if seq, ok := live.Next(lo); ok {
		return seq
	}
	return m.log.last + 1
}

// MultiLast returns, ascending, the last message at or below upTo of each subject that matches one of the patterns, and
// false when there are more than limit. upTo 0 stands for the end of the stream. It costs the matching subjects.
func (m *Machine) MultiLast(patterns []string, upTo uint64, limit int) (seqs []uint64, ok bool) {
	if upTo == 0 {
		upTo = m.log.last
	}
	seen := make(map[uint32]struct{})
	for _, pattern := range patterns {
		m.log.subjects.match(pattern, func(id uint32, row *subjectRow) bool {
			if _, again := seen[id]; again {
				return true
			}
			if last, found := row.seqs.Prev(upTo); found {
				seen[id] = struct{}{}
				seqs = append(seqs, last)
			}
			return len(seqs) <= limit
		})
		if len(seqs) > limit {
			return nil, false
		}
	}
	slices.Sort(seqs)
	return seqs, true
}

// selectRank returns the rank-th sequence of the set (from 1), which lies in [first, last].
func selectRank(set *seqset.Set, rank, first, last uint64) uint64 {
	for first < last {
		mid := first + (last-first)/2
		if set.Rank(mid) >= rank {
			last = mid
		} else {
			first = mid + 1
		}
	}
	return first
}
