// Package oracle is the simplest stream, consumer and key-value bucket that could be right.
//
// It is written from the description of the protocol, with slices and full scans, and shares no logic with the state
// machines it judges: no index, no cache, no shortcut. It promises answers, not speed. Time is an argument, unix
// nanoseconds, and never decreases from call to call. What it does not know: requests that wait, heartbeats, flow
// control, storage, and every feature that streams refuse so far.
package oracle

import (
	"strings"

	"weir/model/jsapi"
)

// Message is a stored message.
type Message struct {
	Seq     uint64
	Time    int64
	Subject string
	// Header is the block as delivered, "" when there is none.
	Header, Payload string
}

// Stream is a stream and its consumers. The fields are open to comparison, not to change.
type Stream struct {
	// Config is normalised.
	Config *jsapi.StreamConfig
	// Messages are what is stored, ascending by sequence.
	Messages []Message
	// First and Last are first_seq and last_seq. Both are 0 in a stream that never held a message.
	First, Last uint64
	// LastTime is the time of the message that had the last sequence, 0 before the first.
	LastTime int64
	// Copied is what a mirror has.
	Copied Copied
	// Consumers are in order of creation.
	Consumers []*Consumer

	// seen are the message ids of the duplicate window, in order.
	seen []seenID
	// lastID is the message id of the last stored message.
	lastID string
}

type seenID struct {
	id   string
	seq  uint64
	time int64
}

// New returns an empty stream.
func New(config *jsapi.StreamConfig) *Stream {
	s := &Stream{Config: config}
	if config.FirstSeq > 0 {
		s.First, s.Last = config.FirstSeq, config.FirstSeq-1
	}
	return s
}

// Bytes is what the messages count against max_bytes.
func (s *Stream) Bytes() uint64 {
	sum := uint64(0)
	for _, m := range s.Messages {
		sum += s.size(m)
	}
	return sum
}

// size follows the reference server's accounting, which clients see in the stream's state.
func (s *Stream) size(m Message) uint64 {
	if s.Config.Storage == jsapi.MemoryStorage {
		return uint64(len(m.Subject) + len(m.Header) + len(m.Payload) + 16)
	}
	size := uint64(30 + len(m.Subject) + len(m.Payload))
	if m.Header != "" {
		size += uint64(4 + len(m.Header))
	}
	return size
}

// PerSubject counts the messages of each subject that the filter selects; "" selects all.
func (s *Stream) PerSubject(filter string) map[string]uint64 {
	counts := map[string]uint64{}
	for _, m := range s.Messages {
		if filter == "" || matches(m.Subject, filter) {
			counts[m.Subject]++
		}
	}
	return counts
}

// Deleted are the sequences between First and Last that hold no message.
func (s *Stream) Deleted() []uint64 {
	var gone []uint64
	for seq := s.First; seq <= s.Last && seq > 0; seq++ {
		if s.at(seq) == nil {
			gone = append(gone, seq)
		}
	}
	return gone
}

// Get returns the message with the sequence, nil when there is none.
func (s *Stream) Get(seq uint64) *Message { return s.at(seq) }

// LastBySubject returns the last message that the filter selects, nil when there is none.
func (s *Stream) LastBySubject(filter string) *Message {
	for i := len(s.Messages) - 1; i >= 0; i-- {
		if matches(s.Messages[i].Subject, filter) {
			return &s.Messages[i]
		}
	}
	return nil
}

// NextBySubject returns the first message at or after seq that the filter selects, nil when there is none.
func (s *Stream) NextBySubject(filter string, seq uint64) *Message {
	for i := range s.Messages {
		if m := &s.Messages[i]; m.Seq >= seq && matches(m.Subject, filter) {
			return m
		}
	}
	return nil
}

// SeqAtTime is the first sequence stored at or after the time, Last+1 when there is none.
func (s *Stream) SeqAtTime(time int64) uint64 {
	for _, m := range s.Messages {
		if m.Time >= time {
			return m.Seq
		}
	}
	return s.Last + 1
}

func (s *Stream) at(seq uint64) *Message {
	for i := range s.Messages {
		if s.Messages[i].Seq == seq {
			return &s.Messages[i]
		}
	}
	return nil
}

// matches compares token by token.
func matches(subject, pattern string) bool {
	tokens, wanted := strings.Split(subject, "."), strings.Split(pattern, ".")
	for i, want := range wanted {
		if want == ">" && i == len(wanted)-1 {
			return len(tokens) > i
		}
		if i >= len(tokens) || want != "*" && want != tokens[i] {
			return false
		}
	}
	return len(tokens) == len(wanted)
}

// matchesAny says whether one of the filters selects the subject; no filters select all.
func matchesAny(subject string, filters []string) bool {
	for _, filter := range filters {
		if matches(subject, filter) {
			return true
		}
	}
	return len(filters) == 0
}
