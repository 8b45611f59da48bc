// Package history records what clients asked and what they were told, so that a checker can judge the whole run.
//
// One Record is one operation of one client: a closed interval of time, a request and an outcome. The package promises
// that an outcome is one of three (ok, rejected, unknown) and that a rejected operation definitely did nothing. It does
// not judge anything, and it does not care where the times come from: virtual nanoseconds of a simulation and wall
// nanoseconds of a live run are equally good, as long as one clock stamps a whole history.
package history

import (
	"math"

	"weir/spec/assert"
)

// Never is the return time of an operation whose outcome is unknown: it may take effect at any time after its call.
const Never int64 = math.MaxInt64

// Kind is what a client asked for.
type Kind uint8

// The closed set of operations. The comments name the fields of Record that each kind uses besides the common ones.
const (
	// Publish stores a message on Subject: MsgID, the Expect fields, Rollup. Result: Seq, Duplicate.
	Publish Kind = 1
	// GetLast reads the last message of Subject, which may be a filter. Result: Seq (0: none), Value, Time.
	GetLast Kind = 2
	// GetSeq reads the message at At. Result: Seq (0: none), Value, Time.
	GetSeq Kind = 3
	// Info reads the state of the stream. Result: First, Seq (the last sequence), Messages.
	Info Kind = 4
	// Purge removes messages that match Subject ("" is all) and lie below At (0: no bound), but for the last Keep.
	// Result: Messages, the number removed.
	Purge Kind = 5
	// DeleteMsg removes the message at At.
	DeleteMsg Kind = 6
)

// String names the kind in the words of the API.
func (k Kind) String() string {
	switch k {
	case Publish:
		return "publish"
	case GetLast:
		return "get-last"
	case GetSeq:
		return "get-seq"
	case Info:
		return "info"
	case Purge:
		return "purge"
	case DeleteMsg:
		return "delete-msg"
	default:
		return "invalid"
	}
}

// Outcome is what the client knows in the end.
type Outcome uint8

// The closed set of outcomes.
const (
	// Unknown: no answer that decides; the operation may have happened, may still happen, or never will.
	Unknown Outcome = 0
	// OK: the operation took effect inside the interval.
	OK Outcome = 1
	// Rejected: the server refused after deciding; the operation changed nothing, and what it was told is an observation.
	Rejected Outcome = 2
)

// Expected is an optional number of a request: the zero value asks for nothing.
type Expected struct {
	// Set says whether the client asked for it.
	Set bool
	// Seq is the sequence that the client expects; 0 means that nothing is there yet.
	Seq uint64
}

// Record is one operation. Fields that its kind does not use are zero.
type Record struct {
	// ID identifies the operation in its history; a Publish writes it into the message, so that every observation
	// names its writer. Invariant: unique, never 0.
	ID uint64
	// Client is the sequential process that issued it; after an unknown outcome the process goes on under a new number.
	Client int
	// Call and Return bound the closed interval in nanoseconds; Return is Never exactly when Outcome is Unknown.
	Call, Return int64
	// Kind is what was asked.
	Kind Kind
	// Outcome is how it ended.
	Outcome Outcome
	// Stream and Subject say where.
	Stream, Subject string
	// MsgID is the deduplication id of a Publish; "" is none.
	MsgID string
	// ExpectLast is the expected last sequence of the stream, ExpectSubject that of the subject.
	ExpectLast, ExpectSubject Expected
	// Rollup says that the Publish removes all earlier messages of its subject.
	Rollup bool
	// At is a sequence in the request.
	At uint64
	// Keep is the number of messages that a Purge leaves.
	Keep uint64

	// Seq is the sequence in the answer: assigned, found, or reported by a refusal (when Observed).
	Seq uint64
	// Observed says that a refusal reported the actual sequence in Seq.
	Observed bool
	// Duplicate says that the answer named an earlier message with the same MsgID.
	Duplicate bool
	// Value is the ID of the publish that wrote the message which was read.
	Value uint64
	// Time is the server's timestamp of the message that was read, in unix nanoseconds.
	Time int64
	// First and Messages are the state that an Info reported, or what a Purge removed.
	First, Messages uint64
	// Code is the API's error code of a refusal.
	Code int
}

// Reads says whether the record is an observation that changes nothing.
func (r *Record) Reads() bool { return r.Kind == GetLast || r.Kind == GetSeq || r.Kind == Info }

// Stored says whether the record is a Publish that is known to have stored a message at Seq.
func (r *Record) Stored() bool {
	return r.Kind == Publish && !r.Duplicate && r.Seq != 0 && r.Outcome != Rejected
}

// History is a set of records of one run, in the order of their calls.
type History struct {
	// Records are in the order of Begin.
	Records []Record
}

// Begin appends a record whose outcome is still unknown and returns its position. The caller has filled in the request.
func (h *History) Begin(r Record) int {
	assert.True(r.ID != 0, "an operation has an id", uint64(len(h.Records)))
	r.Outcome, r.Return = Unknown, Never
	h.Records = append(h.Records, r)
	return len(h.Records) - 1
}

// End gives the record at position i its answer. It returns the record, so that the caller can fill in the result.
func (h *History) End(i int, outcome Outcome, at int64) *Record {
	r := &h.Records[i]
	assert.True(r.Outcome == Unknown, "an operation ends once", r.ID)
	assert.True(outcome != Unknown, "an unknown outcome is the absence of an end", r.ID)
	assert.True(at >= r.Call, "return >= call", r.ID, uint64(at), uint64(r.Call))
	r.Outcome, r.Return = outcome, at
	return r
}
