package consumer

import (
	"slices"

	"weir/model/jsapi"
)

// Update replaces the configuration by one that jsapi allows as an update of it. The position stays. With other filters
// the messages to deliver are counted anew, and pending messages that the filters no longer select are not delivered
// again. It costs O(pending).
func (s *State) Update(b *Batch, config *jsapi.ConsumerConfig) {
	before := s.Deliverable()
	old := s.rules
	s.config, s.rules, s.changed = config, deriveRules(config), true
	refiltered := !slices.Equal(old.filters, s.rules.filters)
	if refiltered {
		s.refilter()
	}
	rewaited := old.ackWaitNanos != s.rules.ackWaitNanos || !slices.Equal(old.backoffNanos, s.rules.backoffNanos)
	if refiltered || rewaited || old.maxDeliver != s.rules.maxDeliver {
		s.review(b, rewaited)
	}
	s.wake(b, before)
	s.check()
}

// refilter adapts what is still to deliver to the filters.
func (s *State) refilter() {
	for _, seq := range s.skip.all(nil) {
		if !s.log.Matches(s.rules.filters, seq) {
			s.skip.remove(seq)
		}
	}
	s.numPending = uint64(s.skip.live) + s.log.Count(s.rules.filters, s.cursor)
}

// review applies changed rules to every pending message.
func (s *State) review(b *Batch, rewaited bool) {
	for i := s.pending.head; i < len(s.pending.entries); i++ {
		switch e := &s.pending.entries[i]; {
		case e.phase == queued:
			s.due(b, e)
		case e.phase == waiting && rewaited:
			to := *e
			to.deadline = s.rules.deadline(e.last, uint64(e.deliveries))
			s.pending.update(e, to)
		}
	}
}
