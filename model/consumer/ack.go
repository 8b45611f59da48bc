package consumer

import (
	"weir/model/effect"
	"weir/model/jsapi"
)

// Delivery names one delivery, as the ack reply subject does.
type Delivery struct {
	// StreamSeq is the message, ConsumerSeq the delivery, Deliveries the delivery count.
	StreamSeq, ConsumerSeq, Deliveries uint64
}

// handedOut reports whether the message can have been delivered. Acknowledgements of others get no answer.
func (s *State) handedOut(seq uint64) bool {
	if s.skip.live > 0 {
		return seq <= s.delivered.Stream
	}
	return seq < s.cursor
}

// Ack ends the delivery of a message: it will not be delivered again. With ack policy all it ends every delivery up to
// that message. Which delivery of the message is acknowledged does not matter, late acknowledgements count as well. The
// Result says whether an answer is due: it is, also for a repeated Ack, but not for a message that was never delivered.
func (s *State) Ack(b *Batch, d Delivery) {
	s.result(b, s.settle(b, d, true))
}

// Term ends the delivery of a message as Ack does, because the client gives up on it.
func (s *State) Term(b *Batch, d Delivery, reason string) {
	live := s.pending.find(d.StreamSeq) != nil
	reply := s.settle(b, d, false)
	if live {
		e := b.Out.Add(effect.Terminated)
		e.Consumer, e.Seq, e.ConsumerSeq, e.Deliveries, e.Text = s.id, d.StreamSeq, d.ConsumerSeq, d.Deliveries, reason
	}
	s.result(b, reply)
}

// settle carries out an Ack or a Term and reports whether an answer is due.
func (s *State) settle(b *Batch, d Delivery, sample bool) (reply bool) {
	if s.rules.ack == jsapi.AckNone || !s.handedOut(d.StreamSeq) {
		return false
	}
	before := s.Deliverable()
	switch s.rules.ack {
	case jsapi.AckAll:
		s.ackThrough(b, d.StreamSeq)
	default:
		s.floor.Last = b.Time
		s.changed = true
		e := s.pending.find(d.StreamSeq)
		if e == nil {
			return true
		}
		if sample {
			s.sample(b, d, e)
		}
		s.finish(e)
	}
	if s.options.Plant.AckFloorAhead {
		s.floor.Consumer, s.floor.Stream = s.delivered.Consumer, s.delivered.Stream
	}
	s.wake(b, before)
	s.check()
	return true
}

// ackThrough ends every delivery up to seq. It costs O(those).
func (s *State) ackThrough(b *Batch, seq uint64) {
	if seq <= s.floor.Stream {
		return
	}
	s.floor.Last = b.Time
	s.changed = true
	for e := s.pending.first(); e != nil && e.seq <= seq; e = s.pending.first() {
		s.floor.Consumer = max(s.floor.Consumer, e.cseq)
		s.pending.remove(e)
	}
	s.floor.Stream = min(seq, s.delivered.Stream)
	if s.pending.live == 0 {
		s.floor.Consumer, s.floor.Stream = s.delivered.Consumer, s.delivered.Stream
	}
}

// finish takes an entry out of the pending set and moves the ack floor: over everything delivered when nothing is left,
// else up to the next pending message when this was the first.
func (s *State) finish(e *entry) {
	wasFirst := s.pending.remove(e)
	s.changed = true
	first := s.pending.first()
	switch {
	case first == nil:
		s.floor.Consumer, s.floor.Stream = s.delivered.Consumer, s.delivered.Stream
	case wasFirst:
		s.floor.Consumer = max(s.floor.Consumer, first.cseq-1)
		s.floor.Stream = max(s.floor.Stream, first.seq-1)
	}
}

// sample emits the metric of an acknowledgement for the share of messages that the configuration asks for. Which ones is
// a function of consumer and message, so that every replica agrees.
func (s *State) sample(b *Batch, d Delivery, e *entry) {
	if s.rules.samplePercent == 0 || mix(s.id^mix(d.StreamSeq))%100 >= s.rules.samplePercent {
		return
	}
	out := b.Out.Add(effect.Acked)
	out.Consumer, out.Seq, out.ConsumerSeq, out.Deliveries = s.id, d.StreamSeq, d.ConsumerSeq, d.Deliveries
	out.N = uint64(max(b.Time-e.last, 0))
}

// Nak makes a pending message due again, at once or after a delay in nanoseconds; a message that has had its last
// delivery ends instead. It is ignored when the message is not pending or the consumer sequence is not one that is
// neither done with nor in the future. The Result says whether an answer is due, which does not depend on that.
func (s *State) Nak(b *Batch, d Delivery, delay int64) {
	s.result(b, d.StreamSeq != 0 && s.rules.ack != jsapi.AckNone)
	e := s.pending.find(d.StreamSeq)
	if e == nil || d.ConsumerSeq <= s.floor.Consumer || d.ConsumerSeq > s.delivered.Consumer {
		return
	}
	out := b.Out.Add(effect.Naked)
	out.Consumer, out.Seq, out.ConsumerSeq, out.Deliveries = s.id, d.StreamSeq, d.ConsumerSeq, d.Deliveries
	before := s.Deliverable()
	s.changed = true
	if delay > 0 {
		to := *e
		to.phase, to.deadline = delayed, addNanos(b.Time, delay)
		s.pending.update(e, to)
		return
	}
	if e.phase != queued {
		s.due(b, e)
	}
	s.wake(b, before)
	s.check()
}

// Progress restarts the ack wait of a pending message. One that is already due again stays so.
func (s *State) Progress(b *Batch, d Delivery) {
	s.result(b, d.StreamSeq != 0 && s.rules.ack != jsapi.AckNone)
	e := s.pending.find(d.StreamSeq)
	if e == nil || e.phase == queued {
		return
	}
	to := *e
	to.phase, to.last = waiting, b.Time
	to.deadline = s.rules.deadline(b.Time, uint64(e.deliveries))
	s.pending.update(e, to)
	s.changed = true
}

// Release takes back the latest delivery of a message, which reached nobody: the message is due again with the same
// delivery count. It is ignored when the message is not pending or has been delivered again since.
func (s *State) Release(b *Batch, d Delivery) {
	s.result(b, false)
	e := s.pending.find(d.StreamSeq)
	if e == nil || uint64(e.deliveries) != d.Deliveries || e.deliveries == 0 {
		return
	}
	before := s.Deliverable()
	s.changed = true
	to := *e
	to.deliveries--
	s.pending.update(e, to)
	s.due(b, e)
	s.wake(b, before)
	s.check()
}
