package stream

import (
	"weir/model/seqset"
	"weir/model/subject"
	"weir/spec/assert"
)

// subjectChunk is the number of subject ids in one chunk of the table, and in one subject section.
const subjectChunk = 1024

// noSubject is an id that no subject has.
const noSubject = ^uint32(0)

// subjectRow is one subject that has messages.
type subjectRow struct {
	// text is the subject; empty when the id is free.
	text string
	// seqs are the sequences of its messages. Invariant: empty exactly when text is empty.
	seqs seqset.Set
}

// subjectTable numbers the subjects of a stream and knows the sequences of each. Ids are small: the lowest free id is
// taken, so that equal sets of used ids lead to equal ids from then on, whatever the history.
type subjectTable struct {
	// index finds the id of a subject.
	index subject.Tree[uint32]
	// chunks hold the rows; the row of an id is chunks[id/subjectChunk][id%subjectChunk].
	chunks []*[subjectChunk]subjectRow
	// free are the unused ids below next.
	free seqset.Set
	// next is the lowest id that was never used.
	next uint32
	// recent is the id of the last subject looked up; publishers often stay on one subject.
	recent uint32
}

func newSubjectTable() subjectTable {
	return subjectTable{recent: noSubject}
}

func (t *subjectTable) row(id uint32) *subjectRow {
	return &t.chunks[id/subjectChunk][id%subjectChunk]
}

// find returns the id of a subject, or noSubject.
func (t *subjectTable) find(text []byte) uint32 {
	if t.recent != noSubject && t.row(t.recent).text == string(text) {
		return t.recent
	}
	id := t.index.Get(text)
	if id == nil {
		return noSubject
	}
	t.recent = *id
	return *id
}

// create numbers a subject that the table does not have. The caller adds a sequence at once.
func (t *subjectTable) create(text []byte) uint32 {
	id := t.next
	if low, ok := t.free.First(); ok {
		id = uint32(low)
		t.free.Remove(low)
	} else {
		t.next++
		assert.True(t.next < noSubject, "subjects < 2^32-1", uint64(t.next))
	}
	t.place(id, string(text))
	t.recent = id
	return id
}

// place enters a subject under a given id.
func (t *subjectTable) place(id uint32, text string) {
	for int(id/subjectChunk) >= len(t.chunks) {
		t.chunks = append(t.chunks, new([subjectChunk]subjectRow))
	}
	row := t.row(id)
	assert.True(row.text == "", "id of a new subject is free", uint64(id))
	row.text = text
	t.index.Put([]byte(text), id)
}

// remove frees the id of a subject that has no messages any more.
func (t *subjectTable) remove(id uint32) {
	row := t.row(id)
	assert.True(row.seqs.Len() == 0, "removed subject has no messages", uint64(id))
	t.index.Delete([]byte(row.text))
	*row = subjectRow{}
	t.free.Add(uint64(id))
	if t.recent == id {
		t.recent = noSubject
	}
}

// count is the number of subjects that have messages.
func (t *subjectTable) count() int { return int(uint64(t.next) - t.free.Len()) }

// match visits the subjects that match the pattern in byte order until visit returns false. A pattern that is no valid
// subject matches only the subject that is spelled the same.
func (t *subjectTable) match(pattern string, visit func(id uint32, row *subjectRow) bool) {
	if !subject.Valid(pattern) || !subject.HasWildcard(pattern) {
		if id := t.find([]byte(pattern)); id != noSubject {
			visit(id, t.row(id))
		}
		return
	}
	t.index.Query([]byte(pattern), func(_ []byte, id *uint32) bool { return visit(*id, t.row(*id)) })
}
