package consumer

import (
	"slices"

	"weir/model/subject"
)

// fakeMessage is one message of a fakeLog.
type fakeMessage struct {
	seq     uint64
	subject string
	time    int64
	size    int
}

// fakeLog is the simplest stream: an ascending slice, scanned for every question.
type fakeLog struct {
	messages []fakeMessage
	last     uint64
}

func selects(filters []string, literal string) bool {
	return len(filters) == 0 || slices.ContainsFunc(filters, func(f string) bool { return subject.Matches(literal, f) })
}

func (l *fakeLog) store(literal string, time int64, size int) uint64 {
	l.last++
	l.messages = append(l.messages, fakeMessage{l.last, literal, time, size})
	return l.last
}

func (l *fakeLog) find(seq uint64) *fakeMessage {
	for i := range l.messages {
		if l.messages[i].seq == seq {
			return &l.messages[i]
		}
	}
	return nil
}

func (l *fakeLog) remove(seq uint64) {
	l.messages = slices.DeleteFunc(l.messages, func(m fakeMessage) bool { return m.seq == seq })
}

func (l *fakeLog) First() uint64 {
	if len(l.messages) == 0 {
		return l.last + 1
	}
	return l.messages[0].seq
}

func (l *fakeLog) Last() uint64 { return l.last }

func (l *fakeLog) Next(filters []string, from uint64, budget int) (uint64, bool) {
	for _, m := range l.messages {
		switch {
		case m.seq < from:
			continue
		case budget == 0:
			return m.seq, false
		case selects(filters, m.subject):
			return m.seq, true
		}
		budget--
	}
	return max(from, l.last+1), false
}

func (l *fakeLog) Count(filters []string, from uint64) (n uint64) {
	for _, m := range l.messages {
		if m.seq >= from && selects(filters, m.subject) {
			n++
		}
	}
	return n
}

func (l *fakeLog) LastSeqs(filters []string) (seqs []uint64) {
	for i, m := range l.messages {
		later := slices.ContainsFunc(l.messages[i+1:], func(o fakeMessage) bool { return o.subject == m.subject })
		if selects(filters, m.subject) && !later {
			seqs = append(seqs, m.seq)
		}
	}
	return seqs
}

func (l *fakeLog) LastMatch(filters []string) (last uint64) {
	for _, m := range l.messages {
		if selects(filters, m.subject) {
			last = m.seq
		}
	}
	return last
}

func (l *fakeLog) Matches(filters []string, seq uint64) bool {
	m := l.find(seq)
	return m != nil && selects(filters, m.subject)
}

func (l *fakeLog) Meta(seq uint64) (Meta, bool) {
	m := l.find(seq)
	if m == nil {
		return Meta{}, false
	}
	return Meta{Time: m.time, SubjectSize: len(m.subject), Size: m.size}, true
}

func (l *fakeLog) SeqAtTime(at int64) uint64 {
	for _, m := range l.messages {
		if m.time >= at {
			return m.seq
		}
	}
	return l.last + 1
}
