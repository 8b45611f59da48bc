package consumer

import (
	"weir/model/jsapi"
	"weir/spec/assert"
)

// start puts the consumer where its deliver policy says. In a stream that holds nothing that is the sequence after the
// last one. A start sequence beyond the end is kept: nothing is delivered until the stream gets there.
func (s *State) start() {
	first, last := s.log.First(), s.log.Last()
	assert.True(first >= 1 && first <= last+1, "1 <= first <= last+1", first, last)
	filters := s.rules.filters
	at := first
	switch s.config.DeliverPolicy {
	case jsapi.DeliverAll:
	case jsapi.DeliverNew:
		at = last + 1
	case jsapi.DeliverLast:
		at = max(last, first)
		if len(filters) > 0 {
			at = max(s.log.LastMatch(filters), first)
		}
	case jsapi.DeliverByStartSequence:
		at = max(s.config.OptStartSeq, first)
	case jsapi.DeliverByStartTime:
		if s.config.OptStartTime != nil {
			at = max(s.log.SeqAtTime(int64(*s.config.OptStartTime)), first)
		}
	case jsapi.DeliverLastPerSubject:
		if !s.options.OnePerSubject {
			s.startLastPerSubject(last)
			return
		}
	default:
		assert.Unreachable("deliver policy", uint64(s.config.DeliverPolicy))
	}
	s.cursor = at
	s.delivered.Stream, s.floor.Stream = at-1, at-1
	s.numPending = s.log.Count(filters, at)
}

// startLastPerSubject selects the last message of each subject; what comes after the present end follows.
func (s *State) startLastPerSubject(last uint64) {
	s.skip = newSkipList(s.log.LastSeqs(s.rules.filters))
	s.cursor = last + 1
	at := s.cursor
	if seq, ok := s.skip.first(); ok {
		at = seq
	}
	s.delivered.Stream, s.floor.Stream = at-1, at-1
	s.numPending = uint64(s.skip.live)
}
