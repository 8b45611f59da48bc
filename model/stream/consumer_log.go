package stream

import (
	"slices"

	"weir/model/consumer"
	"weir/spec/assert"
)

var _ consumer.Log = (*entry)(nil)

// viewFor returns the view of the filters, which are those of the consumer or those of its next configuration.
func (e *entry) viewFor(filters []string) *view {
	if len(filters) > 0 && len(filters) == len(e.filters) && &filters[0] == &e.filters[0] {
		return e.view
	}
	if slices.Equal(filters, e.view.filters) {
		e.filters = filters
		return e.view
	}
	assert.True(e.next != nil && slices.Equal(filters, e.next.filters), "a consumer asks for its own filters", e.id)
	return e.next
}

// First implements consumer.Log.
func (e *entry) First() uint64 { return max(e.machine.log.first, 1) }

// Last implements consumer.Log.
func (e *entry) Last() uint64 { return e.machine.log.last }

// Next implements consumer.Log. Views make the budget needless.
func (e *entry) Next(filters []string, from uint64, _ int) (seq uint64, found bool) {
	seq, found = e.machine.viewSet(e.viewFor(filters)).Next(from)
	if !found {
		return max(from, e.machine.log.last+1), false
	}
	return seq, true
}

// Count implements consumer.Log.
func (e *entry) Count(filters []string, from uint64) uint64 {
	return e.machine.viewSet(e.viewFor(filters)).CountRange(from, ^uint64(0))
}

// LastSeqs implements consumer.Log. It costs the subjects that the filters select.
func (e *entry) LastSeqs(filters []string) []uint64 {
	if len(filters) == 0 {
		filters = []string{">"}
	}
	var seqs []uint64
	for _, filter := range filters {
		e.machine.log.subjects.match(filter, func(_ uint32, row *subjectRow) bool {
			last, _ := row.seqs.Last()
			seqs = append(seqs, last)
			return true
		})
	}
	slices.Sort(seqs)
	return slices.Compact(seqs)
}

// LastMatch implements consumer.Log.
func (e *entry) LastMatch(filters []string) uint64 {
	seq, _ := e.machine.viewSet(e.viewFor(filters)).Last()
	return seq
}

// Matches implements consumer.Log.
func (e *entry) Matches(filters []string, seq uint64) bool {
	return e.machine.viewSet(e.viewFor(filters)).Contains(seq)
}

// Meta implements consumer.Log.
func (e *entry) Meta(seq uint64) (consumer.Meta, bool) {
	meta, ok := e.machine.Get(seq)
	return consumer.Meta{Time: meta.Time, SubjectSize: len(meta.Subject), Size: meta.Size}, ok
}

// SeqAtTime implements consumer.Log.
func (e *entry) SeqAtTime(unixNanos int64) uint64 { return e.machine.SeqAtTime(unixNanos) }
