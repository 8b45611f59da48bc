package consumer

import (
	"slices"

	"weir/model/jsapi"
)

// Reset has the consumer deliver again from seq on, or after its ack floor when seq is 0, as if nothing from there on had
// been delivered: pending messages, delivery counts and the times of activity are forgotten, and the consumer sequence
// starts anew. It returns the sequence. A consumer that does not start at the beginning of the stream may not be sent
// before its start; one that starts relative to what was there when it was created goes back to its ack floor only. It
// costs O(pending).
func (s *State) Reset(b *Batch, seq uint64) (uint64, *jsapi.Error) {
	if refused := s.checkReset(seq); refused != nil {
		return 0, refused
	}
	if seq == 0 {
		seq = s.floor.Stream + 1
	}
	before := s.Deliverable()
	if s.config.DeliverPolicy == jsapi.DeliverLastPerSubject && !s.options.OnePerSubject {
		// What was not selected is not delivered now either: only what was handed out comes back.
		s.skip = newSkipList(s.undelivered())
	} else {
		s.cursor = max(seq, s.log.First())
	}
	s.pending.clear()
	s.delivered, s.floor = Position{Stream: seq - 1}, Position{Stream: seq - 1}
	s.numPending = uint64(s.skip.live) + s.log.Count(s.rules.filters, s.cursor)
	s.changed = true
	s.wake(b, before)
	s.check()
	return seq, nil
}

// checkReset reports why the consumer may not deliver from seq on, or nil. The texts are the reference server's.
func (s *State) checkReset(seq uint64) *jsapi.Error {
	if seq == 0 {
		return nil
	}
	switch s.config.DeliverPolicy {
	case jsapi.DeliverAll:
		return nil
	case jsapi.DeliverByStartSequence:
		if seq < s.config.OptStartSeq {
			return jsapi.CodeConsumerInvalidReset.With("below start seq")
		}
		return nil
	case jsapi.DeliverByStartTime:
		if s.config.OptStartTime != nil && seq < s.log.SeqAtTime(int64(*s.config.OptStartTime)) {
			return jsapi.CodeConsumerInvalidReset.With("below start time")
		}
		return nil
	}
	return jsapi.CodeConsumerInvalidReset.With("not allowed")
}

// undelivered lists, ascending, what is pending and still selected, and what is left of the skip list.
func (s *State) undelivered() []uint64 {
	var seqs []uint64
	for i := s.pending.head; i < len(s.pending.entries); i++ {
		if e := &s.pending.entries[i]; e.phase != gone && s.log.Matches(s.rules.filters, e.seq) {
			seqs = append(seqs, e.seq)
		}
	}
	seqs = s.skip.all(seqs)
	slices.Sort(seqs)
	return seqs
}
