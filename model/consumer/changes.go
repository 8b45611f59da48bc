package consumer

import (
	"weir/model/effect"
	"weir/spec/assert"
)

// Removal is why a message left the stream.
type Removal uint8

const (
	// Deleted: a client deleted the message, or it was replaced by a rollup.
	Deleted Removal = iota
	// Limited: a limit of the stream removed the message.
	Limited
	// Purged: a purge removed the message.
	Purged
)

// reason is the text of the advisory about a pending message that was removed, "" when there is none.
func (r Removal) reason() string {
	switch r {
	case Deleted:
		return "Unacknowledged message was deleted"
	case Limited:
		return "Message deleted by stream limits"
	case Purged:
		return ""
	default:
		assert.Unreachable("removal", uint64(r))
		return ""
	}
}

// Stored reports a new message that the filters select. The stream calls it in the order of the sequences, after the
// message is in the log, for each consumer that the message matches and for no other.
func (s *State) Stored(b *Batch, seq uint64) {
	if seq < s.cursor {
		return // the consumer starts at a later sequence
	}
	before := s.Deliverable()
	s.numPending++
	s.changed = true
	s.wake(b, before)
}

// Removed reports that a message is gone from the log; matched says whether the filters selected it. The stream calls it
// for every consumer. A pending message ends as if it had been terminated.
func (s *State) Removed(b *Batch, seq uint64, matched bool, why Removal) {
	if matched && seq >= s.cursor || s.skip.remove(seq) {
		assert.True(s.numPending > 0, "a message that is removed was counted", seq)
		s.numPending--
		s.changed = true
		if s.options.Plant.PurgeMovesCursor && why == Purged && seq >= s.cursor {
			s.cursor = seq + 1
			s.numPending = uint64(s.skip.live) + s.log.Count(s.rules.filters, s.cursor)
		}
		return
	}
	e := s.pending.find(seq)
	if e == nil {
		return
	}
	before := s.Deliverable()
	if text := why.reason(); text != "" {
		out := b.Out.Add(effect.Terminated)
		out.Consumer, out.Seq, out.ConsumerSeq, out.Deliveries, out.Text = s.id, seq, e.cseq, uint64(e.deliveries), text
	}
	s.finish(e)
	s.wake(b, before)
	s.check()
}

// Purged reports that the stream now starts at first and that nothing below it is left. Positions below move up to it and
// pending messages below it end without advisories. It costs O(those), and a count when the cursor moves.
func (s *State) Purged(b *Batch, first uint64) {
	before := s.Deliverable()
	s.numPending -= s.skip.dropBelow(first)
	for e := s.pending.first(); e != nil && e.seq < first; e = s.pending.first() {
		s.floor.Consumer = max(s.floor.Consumer, e.cseq)
		s.pending.remove(e)
	}
	if s.cursor < first {
		s.cursor = first
		s.numPending = s.log.Count(s.rules.filters, first)
	}
	if s.skip.live == 0 {
		s.delivered.Stream = max(s.delivered.Stream, first-1)
	}
	s.floor.Stream = min(max(s.floor.Stream, first-1), s.delivered.Stream)
	if s.pending.live == 0 {
		s.floor.Consumer, s.floor.Stream = s.delivered.Consumer, s.delivered.Stream
	}
	s.changed = true
	s.wake(b, before)
	s.check()
}

// Recount counts the messages to deliver anew. The stream calls it, once the log reflects the change, in place of a
// Removed for each message when it removed many messages at or after the cursor at once.
func (s *State) Recount(b *Batch) {
	before := s.Deliverable()
	s.numPending = uint64(s.skip.live) + s.log.Count(s.rules.filters, s.cursor)
	s.changed = true
	s.wake(b, before)
}
