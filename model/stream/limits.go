package stream

import (
	"weir/model/consumer"
	"weir/model/jsapi"
	"weir/spec/assert"
)

// ExpireMax bounds the messages that one Tick expires. While older ones remain, Deadline stays in the past and the
// leader proposes another Tick.
const ExpireMax = 4096

// maxPerSubject is the limit per subject, 0 for none.
func (m *Machine) maxPerSubject() uint64 {
	limit := m.config.MaxMsgsPerSubject
	if limit <= 0 {
		return 0
	}
	if m.restored && m.plant.LoosePerSubject {
		limit++
	}
	return uint64(limit)
}

// discardsNew returns why the stream refuses a message for lack of room, "" when it takes it. A message whose subject is
// at its limit replaces the oldest one of the subject, so the number of messages does not count against it, and its
// bytes do not when the replaced one is at least as large.
func (m *Machine) discardsNew(p *message) string {
	config := m.config
	if config.Discard != jsapi.DiscardNew {
		return ""
	}
	replaced := uint64(0)
	if limit := m.maxPerSubject(); limit > 0 {
		if id := m.log.subjects.find(p.subject); id != noSubject {
			if row := m.log.subjects.row(id); row.seqs.Len() >= limit {
				replaced, _ = row.seqs.First()
			}
		}
	}
	if replaced > 0 && config.DiscardNewPerSubject && len(p.fields.rollup) == 0 {
		return reasonMaxPerSubject
	}
	if config.MaxMsgs > 0 && m.log.live.Len() >= uint64(config.MaxMsgs) && replaced == 0 {
		return reasonMaxMsgs
	}
	size := m.log.accounted(len(p.subject), p.size())
	if config.MaxBytes <= 0 || m.log.bytes+size <= uint64(config.MaxBytes) {
		return ""
	}
	if replaced == 0 || m.log.accounted(len(p.subject), m.log.pages.at(replaced).size) < size {
		return reasonMaxBytes
	}
	return ""
}

// enforceSubject drops the oldest messages of a subject beyond the limit per subject.
func (m *Machine) enforceSubject(id uint32) {
	limit := m.maxPerSubject()
	if limit == 0 {
		return
	}
	for row := m.log.subjects.row(id); row.seqs.Len() > limit; {
		seq, _ := row.seqs.First()
		m.remove(seq, consumer.Limited)
	}
}

// enforceTotals drops the oldest messages of the stream beyond max_msgs and max_bytes.
func (m *Machine) enforceTotals() {
	if m.config.Discard != jsapi.DiscardOld {
		return
	}
	if limit := m.config.MaxMsgs; limit > 0 {
		for m.log.live.Len() > uint64(limit) {
			m.remove(m.log.first, consumer.Limited)
		}
	}
	if limit := m.config.MaxBytes; limit > 0 {
		for m.log.bytes > uint64(limit) && m.log.live.Len() > 0 {
			m.remove(m.log.first, consumer.Limited)
		}
	}
}

// enforceAll trims the stream to the limits of a new configuration. It costs what it removes, and the subjects when the
// limit per subject is lower than the one before (0 for none).
func (m *Machine) enforceAll(perSubjectBefore uint64) {
	if limit := m.maxPerSubject(); limit > 0 && (perSubjectBefore == 0 || limit < perSubjectBefore) {
		for i := range m.log.subjects.chunks {
			for j := range uint32(subjectChunk) {
				m.enforceSubject(uint32(i)*subjectChunk + j)
			}
		}
	}
	m.enforceTotals()
}

// tick acts on the deadlines that the clock has passed: messages beyond max_age, ids beyond the duplicate window, what
// the consumers wait for.
func (m *Machine) tick() {
	now := m.clock
	if m.plant.OwnClock != nil {
		now = max(now, m.plant.OwnClock())
	}
	if age := int64(m.config.MaxAge); age > 0 {
		for range ExpireMax {
			if m.log.live.Len() == 0 || addNanos(m.log.pages.at(m.log.first).time, age) > now {
				break
			}
			m.remove(m.log.first, consumer.Limited)
		}
	}
	window := int64(m.config.DuplicateWindow)
	if at := m.dedup.deadline(window); at != 0 && at <= now {
		m.dedup.forget(now, window, ExpireMax)
	}
	for _, e := range m.consumers.byID {
		if at, ok := e.state.Deadline(); ok && at <= now {
			m.changing(e).Tick(&m.batch)
		}
	}
}

// Deadline is the time, unix nanoseconds, at which a Tick should be proposed: in the past while work remains, 0 when
// nothing waits for time to pass. Its cost is that of the number of consumers.
func (m *Machine) Deadline() int64 {
	var earliest int64
	consider := func(at int64) {
		if at != 0 && (earliest == 0 || at < earliest) {
			earliest = at
		}
	}
	if age := int64(m.config.MaxAge); age > 0 && m.log.live.Len() > 0 {
		consider(addNanos(m.log.pages.at(m.log.first).time, age))
	}
	consider(m.dedup.deadline(int64(m.config.DuplicateWindow)))
	for _, e := range m.consumers.byID {
		if at, ok := e.state.Deadline(); ok {
			consider(at)
		}
	}
	return earliest
}

// remove takes away one message: from the log, the views, the consumers, and from storage.
func (m *Machine) remove(seq uint64, why consumer.Removal) {
	text := m.log.subjectOf(seq)
	m.log.remove(seq)
	m.forget(seq, seq)
	m.notifyRemoved(seq, text, why)
	assert.True(m.log.first <= m.log.last+1, "first <= last+1", m.log.first, m.log.last)
}
