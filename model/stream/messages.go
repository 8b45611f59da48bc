package stream

import (
	"weir/model/seqset"
	"weir/spec/assert"
)

// messages is the metadata of everything that a stream holds, with the indexes over it. Bodies live elsewhere.
//
// Invariants: live holds exactly the sequences whose rows count; every live sequence is in the sequence set of exactly
// one subject; first is the lowest live sequence, or last+1 when there is none (0 before the first message); bytes and
// sum are the totals over the live messages.
type messages struct {
	// fileSizes says that bytes follow the record sizes of the file store, not of the memory store.
	fileSizes bool
	first     uint64
	last      uint64
	// lastTime is the time of the last stored message, 0 before the first.
	lastTime int64
	bytes    uint64
	live     seqset.Set
	pages    pageTable
	subjects subjectTable
	// sum is the digest of the live messages.
	sum   uint64
	dirty *dirtySet
}

// The bytes that the reference's stores account for a message beyond subject, header and payload.
const (
	fileRecordBytes       = 30
	fileRecordHeaderBytes = 4
	memoryRecordBytes     = 16
)

// liveChunkSeqs is the number of sequences in one live section.
const liveChunkSeqs = 65536

func newMessages(fileSizes bool, dirty *dirtySet) messages {
	return messages{fileSizes: fileSizes, pages: newPageTable(), subjects: newSubjectTable(), dirty: dirty}
}

// accounted returns the bytes that a message counts towards max_bytes.
func (l *messages) accounted(subjectLen int, size uint32) uint64 {
	r := row{size: size}
	bytes := uint64(subjectLen) + r.bytes()
	if !l.fileSizes {
		return bytes + memoryRecordBytes
	}
	if r.hasHeader() {
		bytes += fileRecordHeaderBytes
	}
	return bytes + fileRecordBytes
}

// add stores a message behind all others. It returns the id of its subject, and whether it is the only message of the
// subject.
func (l *messages) add(seq uint64, text []byte, time int64, size uint32) (id uint32, fresh bool) {
	assert.True(seq > l.last, "sequences ascend", seq, l.last)
	id = l.subjects.find(text)
	fresh = id == noSubject
	if fresh {
		id = l.subjects.create(text)
		l.dirty.add(subjectSection | uint64(id/subjectChunk))
	}
	r := row{time: time, subject: id, size: size}
	l.pages.put(seq, r)
	l.subjects.row(id).seqs.Add(seq)
	added := l.live.Add(seq)
	assert.True(added, "new sequence is new", seq)
	if l.live.Len() == 1 {
		l.first = seq
	}
	l.last = seq
	l.lastTime = time
	l.bytes += l.accounted(len(text), size)
	l.sum += hashMessage(seq, r, hashText(text))
	l.dirty.add(rowSection | seq/pageRows)
	l.dirty.add(liveSection | seq/liveChunkSeqs)
	return id, fresh
}

// remove takes away a message that exists. The id may be free afterwards.
func (l *messages) remove(seq uint64) {
	r := l.pages.at(seq)
	subject := l.subjects.row(r.subject)
	removed := l.live.Remove(seq)
	assert.True(removed, "removed message exists", seq)
	removed = subject.seqs.Remove(seq)
	assert.True(removed, "removed message is known to its subject", seq, uint64(r.subject))
	l.bytes -= l.accounted(len(subject.text), r.size)
	l.sum -= hashMessage(seq, r, hashText(subject.text))
	if subject.seqs.Len() == 0 {
		l.subjects.remove(r.subject)
		l.dirty.add(subjectSection | uint64(r.subject/subjectChunk))
	}
	if l.pages.drop(seq) {
		l.dirty.add(rowSection | seq/pageRows)
	}
	l.dirty.add(liveSection | seq/liveChunkSeqs)
	if seq == l.first {
		l.findFirst()
	}
}

func (l *messages) findFirst() {
	next, ok := l.live.Next(l.first)
	if !ok {
		next = l.last + 1
	}
	l.first = next
}

// clear removes everything at once. It costs the pages, chunks and subjects that it frees, not the messages.
func (l *messages) clear() {
	for number := range l.pages.pages { // order-free: fills a set
		l.dirty.add(rowSection | number)
	}
	for seq, ok := l.live.First(); ok; seq, ok = l.live.Next((seq/liveChunkSeqs + 1) * liveChunkSeqs) {
		l.dirty.add(liveSection | seq/liveChunkSeqs)
	}
	for i := range l.subjects.chunks {
		l.dirty.add(subjectSection | uint64(i))
	}
	l.live.Clear()
	l.pages = newPageTable()
	l.subjects = newSubjectTable()
	l.bytes, l.sum = 0, 0
	l.first = l.last + 1
}

// subjectOf returns the subject of a message that exists.
func (l *messages) subjectOf(seq uint64) string { return l.subjects.row(l.pages.at(seq).subject).text }
