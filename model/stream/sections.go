package stream

import (
	"encoding/binary"
	"maps"
	"slices"

	"weir/model/fields"
	"weir/spec/assert"
)

// sectionVersion is the first byte of every section. A change of a layout raises it and keeps a reader for the old one.
//
//	head      see appendHead
//	rows      count, then for each row from the page's first sequence on: time (distance from the row before), subject
//	          id, size*2 + 1 with a header
//	live      for each page of the chunk which of its messages exist, see appendLive
//	subjects  count, then for each id in use: its distance from the id before, its text
//	dedup     ordinal of the first entry, count, then for each entry: key, sequence, time (distance)
//	consumer  refiltered (0 or 1), then the State in its own form
//
// Numbers are varints, texts have their length in front. Rows of messages that do not exist any more may hold anything:
// the live sections alone say which messages exist, so that a removal rewrites 8 KiB at most and not the rows.
//
// Of version 1 the head lacked what a mirror has copied.
const (
	sectionVersion      = 2
	sectionVersionFirst = 1
)

// DirtySections appends the ids of the sections that changed since the last MarkClean, ascending.
func (m *Machine) DirtySections(dst []uint64) []uint64 { return m.dirty.append(dst) }

// MarkClean says that the dirty sections have been taken. Between DirtySections, AppendSection of each, and MarkClean
// nothing may be applied.
func (m *Machine) MarkClean() { m.dirty.reset() }

// MarkDirty takes MarkClean back for some sections, because writing them failed.
func (m *Machine) MarkDirty(ids []uint64) {
	for _, id := range ids {
		m.dirty.add(id)
	}
}

// Sections appends the ids of all sections, ascending: what a complete copy of the state consists of.
func (m *Machine) Sections(dst []uint64) []uint64 {
	dst = append(dst, headSection)
	for _, number := range slices.Sorted(maps.Keys(m.log.pages.pages)) {
		dst = append(dst, rowSection|number)
	}
	for seq, ok := m.log.live.First(); ok; seq, ok = m.log.live.Next((seq/liveChunkSeqs + 1) * liveChunkSeqs) {
		dst = append(dst, liveSection|seq/liveChunkSeqs)
	}
	for i := range uint64(len(m.log.subjects.chunks)) {
		if m.log.subjects.used(i) {
			dst = append(dst, subjectSection|i)
		}
	}
	for i := range uint64(len(m.dedup.chunks)) {
		dst = append(dst, dedupSection|(m.dedup.firstChunk+i))
	}
	for _, e := range m.consumers.byID {
		dst = append(dst, consumerSection|e.id)
	}
	return dst
}

// AppendSection appends the content of a section. It returns false, and dst as it was, when the section no longer exists.
func (m *Machine) AppendSection(dst []byte, id uint64) ([]byte, bool) {
	before := len(dst)
	dst = append(dst, sectionVersion)
	exists := false
	switch chunk := id & sectionChunkMask; id &^ sectionChunkMask {
	case headSection:
		dst, exists = m.appendHead(dst), true
	case rowSection:
		dst, exists = m.appendRows(dst, chunk)
	case liveSection:
		dst, exists = m.appendLive(dst, chunk)
	case subjectSection:
		dst, exists = m.appendSubjects(dst, chunk)
	case dedupSection:
		dst, exists = m.appendDedup(dst, chunk)
	case consumerSection:
		dst, exists = m.appendConsumer(dst, chunk)
	default:
		assert.Unreachable("kind of a section", id)
	}
	if !exists {
		return dst[:before], false
	}
	return dst, true
}

// appendHead appends: applied, clock, account, name, incarnation, created, configuration version, configuration (JSON),
// strays, first, last, time of the last message, number of messages, bytes, last message id, bounds of the dedup ring,
// last consumer id, number of consumers, incarnation and last sequence of what a mirror has copied, digest.
func (m *Machine) appendHead(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, m.applied)
	dst = binary.AppendVarint(dst, m.clock)
	dst = fields.AppendText(dst, m.account)
	dst = fields.AppendText(dst, m.name)
	dst = binary.AppendUvarint(dst, m.incarnation)
	dst = binary.AppendVarint(dst, m.created)
	dst = binary.AppendUvarint(dst, m.configVersion)
	dst = fields.AppendText(dst, string(m.config.AppendJSON(nil)))
	dst = fields.AppendBool(dst, m.strays)
	dst = binary.AppendUvarint(dst, m.log.first)
	dst = binary.AppendUvarint(dst, m.log.last)
	dst = binary.AppendVarint(dst, m.log.lastTime)
	dst = binary.AppendUvarint(dst, m.log.live.Len())
	dst = binary.AppendUvarint(dst, m.log.bytes)
	dst = fields.AppendText(dst, m.lastMsgID)
	dst = binary.AppendUvarint(dst, m.dedup.first)
	dst = binary.AppendUvarint(dst, m.dedup.next)
	dst = binary.AppendUvarint(dst, m.consumers.lastID)
	dst = binary.AppendUvarint(dst, uint64(len(m.consumers.byID)))
	dst = binary.AppendUvarint(dst, m.copied.Incarnation)
	dst = binary.AppendUvarint(dst, m.copied.Through)
	return binary.LittleEndian.AppendUint64(dst, m.Digest())
}

func (m *Machine) appendRows(dst []byte, number uint64) ([]byte, bool) {
	p := m.log.pages.find(number)
	if p == nil {
		return dst, false
	}
	dst = binary.AppendUvarint(dst, uint64(len(p.rows)))
	before := int64(0)
	for _, r := range p.rows {
		dst = binary.AppendVarint(dst, r.time-before)
		dst = binary.AppendUvarint(dst, uint64(r.subject))
		size := r.bytes() << 1
		if r.hasHeader() {
			size |= 1
		}
		dst = binary.AppendUvarint(dst, size)
		before = r.time
	}
	return dst, true
}

// used reports whether a chunk of the table has subjects.
func (t *subjectTable) used(chunk uint64) bool {
	lo := chunk * subjectChunk
	hi := min(lo+subjectChunk, uint64(t.next))
	return lo < hi && t.free.CountRange(lo, hi-1) < hi-lo
}

func (m *Machine) appendSubjects(dst []byte, chunk uint64) ([]byte, bool) {
	table := &m.log.subjects
	if chunk >= uint64(len(table.chunks)) || !table.used(chunk) {
		return dst, false
	}
	rows := table.chunks[chunk]
	count := 0
	for i := range rows {
		if rows[i].text != "" {
			count++
		}
	}
	dst = binary.AppendUvarint(dst, uint64(count))
	before := 0
	for i := range rows {
		if rows[i].text == "" {
			continue
		}
		dst = binary.AppendUvarint(dst, uint64(i-before))
		dst = fields.AppendText(dst, rows[i].text)
		before = i
	}
	return dst, true
}

func (m *Machine) appendDedup(dst []byte, chunk uint64) ([]byte, bool) {
	d := &m.dedup
	lo, hi := max(d.first, chunk*dedupChunk), min(d.next, (chunk+1)*dedupChunk)
	if lo >= hi {
		return dst, false
	}
	dst = binary.AppendUvarint(dst, lo)
	dst = binary.AppendUvarint(dst, hi-lo)
	before := int64(0)
	for ordinal := lo; ordinal < hi; ordinal++ {
		entry := d.at(ordinal)
		dst = append(dst, entry.key[:]...)
		dst = binary.AppendUvarint(dst, entry.seq)
		dst = binary.AppendVarint(dst, entry.time-before)
		before = entry.time
	}
	return dst, true
}

func (m *Machine) appendConsumer(dst []byte, id uint64) ([]byte, bool) {
	e := m.consumers.find(id)
	if e == nil {
		return dst, false
	}
	return e.state.AppendState(fields.AppendBool(dst, e.refiltered)), true
}
