// Package check decides whether a history of one stream could have come from a correct server.
//
// The exact checker (package seqlin) judges everything: the stream's last sequence, the last message of every subject
// and of every filter that was read. Around it stand the rules that follow from the identity of values: a message is
// what its publisher wrote, is stored once, and is still there in the end unless something may have removed it. When
// asked, Porcupine searches the same history with the models of package models as a second judge.
//
// The package promises a verdict that depends on its arguments alone. It does not check consumers or watches.
package check

import (
	"fmt"
	"math"

	"weir/linearizability/history"
	"weir/linearizability/seqlin"
)

// Class names a kind of violation, so that a smaller run can be recognised as failing in the same way.
type Class string

// The closed set of classes.
const (
	// NotLinearizable: the exact checker found no order.
	NotLinearizable Class = "not-linearizable"
	// Lost: an acknowledged message is gone without anything that may have removed it.
	Lost Class = "acknowledged-lost"
	// Invented: a message or sequence that nobody is known to have written, or with other bytes than were written.
	Invented Class = "invented"
	// Repeated: one publish, or one message id within the duplicate window, is stored twice.
	Repeated Class = "stored-twice"
	// Expectation: a publish was accepted or refused against its expected sequence.
	Expectation Class = "expectation-broken"
	// Limit: the messages that are left are not those that the limits leave.
	Limit Class = "limit-broken"
	// Risen: a message was seen after a purge that had removed it.
	Risen Class = "purged-seen"
	// NoOrder: Porcupine found no order.
	NoOrder Class = "porcupine-illegal"
	// NoVerdict: Porcupine's step budget ended first; a fault of the harness, never a pass.
	NoVerdict Class = "porcupine-no-verdict"
)

// Violation is one reason why the history is wrong.
type Violation struct {
	// Class is the rule that is broken.
	Class Class
	// Detail names the operations and numbers.
	Detail string
	// At is the time of the observation that shows it; 0 when none does.
	At int64
	// HTML is Porcupine's picture of the history in question, when there is one.
	HTML []byte
}

// Rules are what the checker must know of a stream's configuration.
type Rules struct {
	// Name is the stream's name; records of other streams are ignored.
	Name string
	// MaxMsgs and MaxMsgsPerSubject are limits that discard old messages; 0 is none.
	MaxMsgs, MaxMsgsPerSubject int
	// Vanishes says that messages may go by age or bytes, in ways that the checker does not follow.
	Vanishes bool
	// Window is the duplicate window in nanoseconds of server time.
	Window int64
	// Forgets says that the window may have passed during the history.
	Forgets bool
	// Unread holds sequences that the server said it could not read, for a reason that the caller accepts.
	Unread map[uint64]bool
}

// judge holds one history while it is judged.
type judge struct {
	rules   *Rules
	records []history.Record
	final   *history.Final
	// bySeq maps a sequence to the publish that is known to have written it.
	bySeq map[uint64]*history.Record
	// byID maps an ID to its publish.
	byID map[uint64]*history.Record
	// unresolved are the publishes that may or may not have happened, unseen.
	unresolved []*history.Record
	removals   []*history.Record
	// writes caches, per filter, the known publishes that it covers, by sequence.
	writes map[string][]*history.Record
	found  []Violation
}

// Check returns the violations of the history of one stream, none when it is right. records are in any order and are
// not changed; final is the complete read-back after the last of them.
func Check(records []history.Record, final *history.Final, rules *Rules) []Violation {
	j := newJudge(records, final, rules)
	j.values()
	j.stream()
	j.subjects()
	j.purges()
	j.audit()
	return j.found
}

func newJudge(records []history.Record, final *history.Final, rules *Rules) *judge {
	var own []history.Record
	for i := range records {
		if records[i].Stream == rules.Name {
			own = append(own, records[i])
		}
	}
	complete := rules.MaxMsgs == 0 && rules.MaxMsgsPerSubject == 0 && !rules.Vanishes
	j := &judge{
		rules: rules, final: final, records: history.Resolve(own, final, complete),
		bySeq: make(map[uint64]*history.Record), byID: make(map[uint64]*history.Record),
		writes: make(map[string][]*history.Record),
	}
	for i := range j.records {
		r := &j.records[i]
		switch {
		case r.Kind == history.Purge || r.Kind == history.DeleteMsg || r.Rollup:
			if r.Outcome != history.Rejected {
				j.removals = append(j.removals, r)
			}
		}
		if r.Kind != history.Publish {
			continue
		}
		j.byID[r.ID] = r
		switch {
		case r.Stored():
			if other := j.bySeq[r.Seq]; other != nil {
				j.fail(Invented, r.Return, "publishes #%d and #%d were both given sequence %d", other.ID, r.ID, r.Seq)
			}
			j.bySeq[r.Seq] = r
		case r.Outcome == history.Unknown:
			j.unresolved = append(j.unresolved, r)
		}
	}
	return j
}

func (j *judge) fail(class Class, at int64, format string, args ...any) {
	j.found = append(j.found, Violation{Class: class, At: at, Detail: j.rules.Name + ": " + fmt.Sprintf(format, args...)})
}

// values checks that every message that was read carries what its publisher wrote.
func (j *judge) values() {
	for i := range j.records {
		r := &j.records[i]
		if !r.Reads() || r.Kind == history.Info || r.Seq == 0 {
			continue
		}
		j.value(r.Seq, r.Value, r.Return)
	}
}

func (j *judge) value(seq, value uint64, at int64) {
	writer := j.byID[value]
	switch {
	case writer == nil || writer.Outcome == history.Rejected || writer.Duplicate:
		j.fail(Invented, at, "sequence %d holds value #%d, which no successful publish wrote", seq, value)
	case writer.Seq != seq:
		j.fail(Repeated, at, "value #%d was stored at %d and seen at %d", value, writer.Seq, seq)
	}
}

// stream judges the order of everything: one call of the exact checker for the stream, its subjects and its filters.
func (j *judge) stream() {
	var ops []seqlin.Op
	for i := range j.records {
		r := &j.records[i]
		op := seqlin.Op{Rev: r.Seq, Call: r.Call, Return: r.Return, ID: r.ID}
		counts := true
		switch r.Kind {
		case history.Publish:
			counts = j.publish(r, &op)
		case history.Info:
			op.Next = r.Seq + 1
			counts = r.Outcome == history.OK
		case history.GetSeq:
			if r.Seq == 0 && !j.keepsAll() {
				counts = false
			} else if r.Seq == 0 {
				op.Next = r.At
			}
		case history.GetLast:
			op.Next, counts = j.observed(r)
		default:
			counts = false
		}
		if counts && r.Outcome != history.Unknown || op.Write {
			ops = append(ops, op)
		}
	}
	if v := seqlin.Check(j.addPhantoms(ops)); v != nil {
		j.fail(NotLinearizable, v.Op.Return, "%v", v)
	}
}

// keepsAll says that nothing ever left the stream.
func (j *judge) keepsAll() bool {
	return j.rules.MaxMsgs == 0 && j.rules.MaxMsgsPerSubject == 0 && !j.rules.Vanishes && len(j.removals) == 0
}

// publish fills in how a publish constrains the order and says whether it does.
func (j *judge) publish(r *history.Record, op *seqlin.Op) bool {
	switch {
	case r.Stored():
		op.Write = true
		if r.ExpectLast.Set && r.ExpectLast.Seq+1 != r.Seq {
			j.fail(Expectation, r.Return, "publish #%d expected last sequence %d and was stored at %d",
				r.ID, r.ExpectLast.Seq, r.Seq)
		}
		return true
	case r.Outcome == history.OK: // A duplicate: the first one is there.
		return true
	case r.Outcome == history.Rejected && r.ExpectLast.Set && r.Observed:
		op.Next = r.Seq + 1
		j.refused(r, r.ExpectLast)
		return true
	case r.Outcome == history.Rejected && r.ExpectSubject.Set && r.Observed:
		j.refused(r, r.ExpectSubject)
		next, counts := j.observed(r)
		op.Next = next
		return counts
	default:
		return false
	}
}

func (j *judge) refused(r *history.Record, want history.Expected) {
	if r.Seq == want.Seq {
		j.fail(Expectation, r.Return, "publish #%d expected %d and was refused although that was the last", r.ID, want.Seq)
	}
}

// addPhantoms adds a write for each sequence that was observed but not written by a known publish, as long as
// unanswered publishes can account for them.
func (j *judge) addPhantoms(ops []seqlin.Op) []seqlin.Op {
	known := make(map[uint64]bool)
	for i := range ops {
		if ops[i].Write {
			known[ops[i].Rev] = true
		}
	}
	var missing []uint64
	for i := range ops {
		if rev := ops[i].Rev; rev != 0 && !known[rev] {
			known[rev] = true
			missing = append(missing, rev)
		}
	}
	if len(missing) > len(j.unresolved) {
		return ops // The exact checker reports a revision that nobody wrote.
	}
	earliest := int64(math.MaxInt64)
	for _, r := range j.unresolved {
		earliest = min(earliest, r.Call)
	}
	for _, rev := range missing {
		ops = append(ops, seqlin.Op{Write: true, Rev: rev, Call: earliest, Return: math.MaxInt64})
	}
	return ops
}
