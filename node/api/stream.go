package api

import (
	"weir/model/consumer"
	"weir/model/jsapi"
	"weir/model/stream"
)

// Stream is the reading side of a stream's state machine, as stream.Machine documents it. All of it is applied state at
// one index.
type Stream interface {
	Messages
	// Config is the current configuration; it is not changed.
	Config() *jsapi.StreamConfig
	// ConfigVersion is the version of the catalog's configuration that Config is.
	ConfigVersion() uint64
	// Applied is the index of the last applied entry of the stream's group.
	Applied() uint64
	// State is the state without Subjects and Deleted.
	State() jsapi.StreamState
	// Consumers returns the states of all consumers, ascending by name.
	Consumers() []*consumer.State
	// ConsumerByName returns the state of the consumer, nil when there is none.
	ConsumerByName(name string) *consumer.State
}

// Messages finds messages of a stream. Patterns have to be valid.
type Messages interface {
	// Deleted returns, ascending, up to limit sequences between the first and the last that have no message.
	Deleted(limit int) []uint64
	// Get returns what is known of a message besides its bytes.
	Get(seq uint64) (stream.Meta, bool)
	// LastBySubject returns the last message that matches the pattern.
	LastBySubject(pattern string) (stream.Meta, bool)
	// NextBySubject returns the first message at or after seq that matches the pattern.
	NextBySubject(pattern string, seq uint64) (stream.Meta, bool)
	// SeqAtTime returns the first sequence stored at or after the time, one more than the last when there is none.
	SeqAtTime(unixNanos int64) uint64
	// CountFrom returns the number of messages at or after seq that match the pattern.
	CountFrom(pattern string, seq uint64) uint64
	// MultiLast returns, ascending, the last sequence up to upTo of each subject that matches one of the patterns; false
	// when more than limit subjects match.
	MultiLast(patterns []string, upTo uint64, limit int) ([]uint64, bool)
	// SubjectCounts returns the message counts of the subjects that match the filter, at most limit after the first
	// offset of them, and how many subjects match.
	SubjectCounts(filter string, offset, limit int) ([]stream.SubjectCount, int)
}

var _ Stream = (*stream.Machine)(nil)
