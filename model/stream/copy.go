package stream

import (
	"weir/model/command"
	"weir/model/header"
	"weir/model/jsapi"
	"weir/model/subject"
)

// A mirror holds messages of another stream, its origin, under their sequences and with their times. Which ones it has got is
// a part of its state: each Copy says where it continues, so that one which was proposed twice, or by a leader of the past,
// changes nothing, and what is copied has no gap.
//
// What the origin accepted is not judged again. What the mirror's own configuration does not allow stops it, visibly.

// Copied is what a mirror has of its origin.
type Copied struct {
	// Incarnation is that of the origin; 0: the mirror has not begun.
	Incarnation uint64
	// Through is the sequence of the origin up to which the mirror has all that it is to have.
	Through uint64
}

// Copied is what the stream, as a mirror, has of its origin.
func (m *Machine) Copied() Copied { return m.copied }

// Fresh reports whether the stream never held a message, nor had its start moved.
func (m *Machine) Fresh() bool { return m.log.first == 0 && m.log.last == 0 }

// follow begins to copy a stream, behind a sequence. A mirror that holds messages goes on with the stream that they are of:
// those of another one with the same name are not mixed with them.
func (m *Machine) follow(c *command.Command) {
	switch {
	case m.config.Mirror == nil, c.Version == 0, c.Keep != m.copied.Incarnation, c.Version == c.Keep, c.StreamSeq > SeqMax,
		m.copied.Incarnation != 0 && m.log.live.Len() > 0:
		m.refuse(jsapi.CodeStreamSequenceNotMatch.Err())
		return
	}
	m.copied = Copied{Incarnation: c.Version, Through: max(c.StreamSeq, m.log.last)}
	if m.log.live.Len() == 0 && m.copied.Through > m.log.last {
		m.purgeBelow(m.copied.Through + 1)
	}
	m.result().Seq = m.copied.Through
}

// copy stores the next message of the origin.
func (m *Machine) copy(c *command.Command) {
	if m.config.Mirror == nil || c.Version != m.copied.Incarnation || c.From != m.copied.Through || c.StreamSeq <= c.From ||
		c.StreamSeq > SeqMax {
		m.refuse(jsapi.CodeStreamSequenceNotMatch.Err())
		return
	}
	if len(c.Subject) == 0 || c.StreamSeq <= m.log.last { // a purge may have moved the mirror ahead
		m.copied.Through = c.StreamSeq
		m.result().Seq = c.StreamSeq
		return
	}
	p := message{subject: c.Subject, header: c.Header, payload: c.Payload}
	if len(p.header) > 0 {
		p.fields = parsePublishFields(p.header)
	}
	if refused := m.admitCopy(&p); refused != nil {
		m.refuse(refused)
		return
	}
	m.copied.Through = c.StreamSeq
	m.keep(&p, c.StreamSeq, max(c.Time, m.log.lastTime))
}

// admitCopy makes the checks of a copied message: what stands against it is the mirror's own configuration.
func (m *Machine) admitCopy(p *message) *jsapi.Error {
	if m.config.Sealed {
		return jsapi.CodeStreamSealed.Err()
	}
	if m.config.Storage == jsapi.FileStorage && m.log.accounted(len(p.subject), p.size()) > recordBytesMax {
		return jsapi.CodeStreamStoreFailed.With(reasonTooLarge)
	}
	if !m.config.AllowRollup || m.config.DenyPurge ||
		!equalFold(p.fields.rollup, header.RollupSubject) && !equalFold(p.fields.rollup, header.RollupAll) {
		p.fields.rollup = nil
	}
	if reason := m.discardsNew(p); reason != "" {
		return jsapi.CodeStreamStoreFailed.With(reason)
	}
	return nil
}

// Scan visits, ascending, the messages at or after seq whose subjects match the pattern, "" for all, until visit returns
// false. It looks at up to limit messages, whether they match or not. It returns the sequence up to which there is nothing
// that it did not visit; that of the message at which visit returned false is behind it.
func (m *Machine) Scan(pattern string, seq uint64, limit int, visit func(Meta) bool) (through uint64) {
	for range limit {
		next, ok := m.log.live.Next(seq)
		if !ok {
			return max(m.log.last, seq-1)
		}
		known, _ := m.Get(next)
		if (pattern == "" || subject.Matches(known.Subject, pattern)) && !visit(known) {
			return next - 1
		}
		seq = next + 1
	}
	return seq - 1
}

// Behind counts the messages after seq, whatever their subjects.
func (m *Machine) Behind(seq uint64) uint64 {
	if seq >= m.log.last {
		return 0
	}
	return m.log.live.CountRange(seq+1, m.log.last)
}
