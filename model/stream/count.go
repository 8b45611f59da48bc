package stream

// CountFrom returns the number of messages at or after seq whose subject matches the pattern. It costs the matching
// subjects.
func (m *Machine) CountFrom(pattern string, seq uint64) uint64 {
	last := m.log.last
	if m.selectsAll(pattern) {
		return m.log.live.CountRange(seq, last)
	}
	var count uint64
	m.log.subjects.match(pattern, func(_ uint32, row *subjectRow) bool {
		count += row.seqs.CountRange(seq, last)
		return true
	})
	return count
}
