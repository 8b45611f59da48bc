package oracle

import (
	"fmt"

	"weir/model/jsapi"
)

// enforceLimits drops old messages until the limits hold: of one subject, then in number, then in bytes. A stream that
// discards new messages never drops old ones for its totals, not even when an update lowers them.
func (s *Stream) enforceLimits() {
	if limit := s.Config.MaxMsgsPerSubject; limit > 0 {
		for subject, count := range s.PerSubject("") { // order-free: subjects do not affect each other
			for ; count > uint64(limit); count-- {
				s.removeFirst(func(m Message) bool { return m.Subject == subject })
			}
		}
	}
	if s.Config.Discard == jsapi.DiscardNew {
		return
	}
	for s.Config.MaxMsgs > 0 && len(s.Messages) > int(s.Config.MaxMsgs) {
		s.removeFirst(func(Message) bool { return true })
	}
	for s.Config.MaxBytes > 0 && s.Bytes() > uint64(s.Config.MaxBytes) {
		s.removeFirst(func(Message) bool { return true })
	}
}

// Tick acts on all deadlines that have passed: messages older than max_age go, ack waits and delays end.
func (s *Stream) Tick(now int64) {
	if age := int64(s.Config.MaxAge); age > 0 {
		s.remove(func(m Message) bool { return m.Time+age <= now })
	}
	for _, c := range s.Consumers {
		c.tick(now)
	}
}

// Delete removes one message.
func (s *Stream) Delete(seq uint64) *jsapi.Error {
	switch {
	case s.Config.Sealed:
		return jsapi.CodeStreamSealed.Err()
	case s.Config.DenyDelete:
		return jsapi.CodeStreamMsgDeleteFailed.With("message delete not permitted")
	case s.Config.Storage == jsapi.FileStorage && seq == 0:
		return jsapi.CodeStreamMsgDeleteFailed.With("no message found")
	case s.Config.Storage == jsapi.FileStorage && seq > s.Last:
		return jsapi.CodeStreamMsgDeleteFailed.With("stream store EOF")
	case s.at(seq) == nil:
		return jsapi.CodeSequenceNotFound.With(fmt.Sprint(seq))
	}
	s.remove(func(m Message) bool { return m.Seq == seq })
	return nil
}

// Purge removes what the filter selects ("" selects all): everything, or what lies below seq, or all but the last keep.
// Only one of seq and keep may be given; 0 stands for none. A purge below a sequence that is not reached yet lets the
// stream go on there.
func (s *Stream) Purge(filter string, seq, keep uint64) (removed uint64, err *jsapi.Error) {
	switch {
	case seq > 0 && keep > 0:
		return 0, jsapi.CodeBadRequest.Err()
	case s.Config.Sealed:
		return 0, jsapi.CodeStreamSealed.Err()
	case s.Config.DenyPurge:
		return 0, jsapi.CodeStreamPurgeFailed.With("stream purge not permitted")
	case seq == 1:
		return 0, nil
	}
	before := len(s.Messages)
	var selected []Message
	for _, m := range s.Messages {
		if filter == "" || matches(m.Subject, filter) {
			selected = append(selected, m)
		}
	}
	if keep >= uint64(len(selected)) && keep > 0 {
		return 0, nil
	}
	switch {
	case filter != "" && filter != ">":
		if keep > 0 {
			seq = selected[uint64(len(selected))-keep].Seq
		}
		s.remove(func(m Message) bool { return matches(m.Subject, filter) && (seq == 0 || m.Seq < seq) })
	case keep > 0:
		s.removeBelow(selected[uint64(len(selected))-keep].Seq)
	case seq > 0:
		s.removeBelow(seq)
	default:
		s.removeBelow(s.Last + 1)
	}
	return uint64(before - len(s.Messages)), nil
}

// Update changes the configuration and enforces lowered limits.
func (s *Stream) Update(config *jsapi.StreamConfig) {
	s.Config = config
	if config.Mirror == nil {
		s.Copied = Copied{}
	}
	s.enforceLimits()
}

func (s *Stream) removeFirst(selected func(m Message) bool) {
	done := false
	s.remove(func(m Message) bool {
		gone := !done && selected(m)
		done = done || gone
		return gone
	})
}

// remove takes out messages, and tells consumers of each.
func (s *Stream) remove(gone func(m Message) bool) {
	for _, seq := range s.take(gone) {
		for _, c := range s.Consumers {
			c.vanished(seq)
		}
	}
}

// removeBelow takes out all messages below seq in one go: consumers move to the first sequence that is left.
func (s *Stream) removeBelow(seq uint64) {
	before := s.First
	s.take(func(m Message) bool { return m.Seq < seq })
	if seq > s.Last+1 {
		s.First, s.Last = seq, seq-1
	} else if len(s.Messages) == 0 {
		s.First = s.Last + 1
	}
	if s.First == before {
		return
	}
	for _, c := range s.Consumers {
		c.purgedTo(s.First)
	}
}

// take takes out messages and returns their sequences.
func (s *Stream) take(gone func(m Message) bool) []uint64 {
	var kept []Message
	var taken []uint64
	for _, m := range s.Messages {
		if gone(m) {
			taken = append(taken, m.Seq)
			continue
		}
		kept = append(kept, m)
	}
	if len(taken) == 0 {
		return nil
	}
	s.Messages = kept
	s.First = s.Last + 1
	if len(kept) > 0 {
		s.First = kept[0].Seq
	}
	return taken
}
