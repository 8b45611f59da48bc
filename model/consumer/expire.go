package consumer

import "weir/model/effect"

// Deadline is the earliest time, in unix nanoseconds, at which a Tick would do something. It reports false when there is
// none.
func (s *State) Deadline() (int64, bool) {
	if e := s.pending.nextDue(); e != nil {
		return e.deadline, true
	}
	return 0, false
}

// Tick acts on the deadlines that the batch's time has reached, at most TickMax of them: messages whose ack wait or delay
// is over become due again, and those that have had their last delivery end with MaxDeliveries.
func (s *State) Tick(b *Batch) {
	before := s.Deliverable()
	for range TickMax {
		e := s.pending.nextDue()
		if e == nil || e.deadline > b.Time {
			break
		}
		s.changed = true
		s.due(b, e)
	}
	s.wake(b, before)
	s.check()
}

// due makes a message due again, or ends it when it has had its last delivery or the filters no longer select it. A
// message whose deliveries are exhausted stays in the stream; the ack floor passes over it.
func (s *State) due(b *Batch, e *entry) {
	if s.rules.exhausted(uint64(e.deliveries)) {
		out := b.Out.Add(effect.MaxDeliveries)
		out.Consumer, out.Seq, out.Deliveries = s.id, e.seq, uint64(e.deliveries)
		s.finish(e)
		return
	}
	if !s.log.Matches(s.rules.filters, e.seq) {
		s.finish(e)
		return
	}
	to := *e
	to.phase, to.deadline = queued, never
	s.pending.update(e, to)
}
