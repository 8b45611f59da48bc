package consumer

// Meta is what a consumer needs to know about a stored message.
type Meta struct {
	// Time is when the message was stored, unix nanoseconds.
	Time int64
	// SubjectSize is the length of the subject in bytes.
	SubjectSize int
	// Size is the length of header and payload together in bytes.
	Size int
}

// Log is the stream as its consumer sees it. The stream implements it; a consumer asks only while an operation of its
// State runs, and the answers must be those of the stream's present state.
//
// Filters are the subject filters of the consumer; none select every message. The consumer never changes a slice of
// filters that it has passed, so that an implementation may keep what it derives from one (the same slice is passed until
// the configuration changes).
type Log interface {
	// First is the sequence of the first message, Last()+1 when there is none, and at least 1.
	First() uint64
	// Last is the highest sequence that the stream has given to a message, 0 before the first.
	Last() uint64
	// Next looks for the first message at or after from that the filters select, and examines about budget messages at
	// most. When it finds none it returns false and the sequence at which to go on: no message in [from, seq-1] is selected.
	Next(filters []string, from uint64, budget int) (seq uint64, found bool)
	// Count is the number of messages at or after from that the filters select.
	Count(filters []string, from uint64) uint64
	// LastSeqs returns, ascending, the last message of each subject that the filters select. The caller owns the slice.
	LastSeqs(filters []string) []uint64
	// LastMatch is the highest sequence of the messages that the filters select, 0 when there is none.
	LastMatch(filters []string) uint64
	// Matches reports whether the filters select the message; a message that does not exist is never selected.
	Matches(filters []string, seq uint64) bool
	// Meta describes a message and reports whether it exists.
	Meta(seq uint64) (Meta, bool)
	// SeqAtTime is the first message that was stored at or after the time, Last()+1 when there is none.
	SeqAtTime(unixNanos int64) uint64
}
