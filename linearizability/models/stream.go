package models

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"

	"weir/linearizability/history"
)

// Limits are the rules of a stream that its model needs.
type Limits struct {
	// MaxMsgs and MaxMsgsPerSubject remove the oldest messages; 0 is no limit.
	MaxMsgs, MaxMsgsPerSubject int
	// Forgets says that the duplicate window may pass during the history, so that an id may be stored again.
	Forgets bool
}

// message is what the model keeps of a message.
type message struct {
	seq, id uint64
	subject string
}

// seenID is an entry of the duplicate table.
type seenID struct {
	msgID string
	seq   uint64
}

// log is the state of a stream. Its slices are never modified in place.
type log struct {
	// done counts the answered operations that led to this state.
	done     int
	last     uint64
	messages []message
	ids      []seenID
	hash     uint64
}

// Stream is the model of one whole stream: publishes with deduplication and expectations, all reads, purges, deletes,
// and limits that discard old messages. records are the whole history, resolved.
//
// An unanswered operation that would change nothing is only placed behind all answered ones: any earlier place leads to
// the same states, and trying them all is what makes searches endless. For the same reason an unanswered publish only
// takes a sequence that is known to have been given out and has no known writer; if it took a later one, nobody saw it.
func Stream(records []history.Record, limits Limits, budget *Budget) porcupine.Model {
	answered, free := countAnswered(records), unclaimed(records)
	return porcupine.Model{
		Init: func() any { return &log{} },
		Step: func(state, input, _ any) (bool, any) {
			if !budget.spend() {
				return false, state
			}
			l, r := state.(*log), input.(*history.Record)
			if r.Outcome == history.Unknown && r.Seq == 0 {
				if r.Kind == history.Publish && !free[l.last+1] {
					return l.done == answered, l
				}
				next := l.maybe(r, &limits)
				return next != l || l.done == answered, next
			}
			ok, next := l.step(r, &limits)
			if !ok {
				return false, l
			}
			counted := *next
			counted.done = l.done + 1
			return true, &counted
		},
		Equal: func(a, b any) bool {
			x, y := a.(*log), b.(*log)
			return x.hash == y.hash && x.last == y.last &&
				slices.Equal(x.messages, y.messages) && slices.Equal(x.ids, y.ids)
		},
		Hash:              func(state any) uint64 { return state.(*log).hash },
		DescribeOperation: describe,
		DescribeState: func(state any) string {
			l := state.(*log)
			return fmt.Sprintf("last %d, %d messages", l.last, len(l.messages))
		},
	}
}

// countAnswered counts the records whose place in the order is bounded, or whose effect is known.
func countAnswered(records []history.Record) int {
	count := 0
	for i := range records {
		if records[i].Outcome != history.Unknown || records[i].Seq != 0 {
			count++
		}
	}
	return count
}

// unclaimed returns the sequences that were given out, as the observations show, without a known writer.
func unclaimed(records []history.Record) map[uint64]bool {
	known, top := make(map[uint64]bool), uint64(0)
	for i := range records {
		top = max(top, records[i].Seq)
		if records[i].Stored() {
			known[records[i].Seq] = true
		}
	}
	free := make(map[uint64]bool)
	for seq := uint64(1); seq <= top; seq++ {
		if !known[seq] {
			free[seq] = true
		}
	}
	return free
}

// maybe is the state after an unanswered operation that happens now; the same pointer when it changes nothing.
func (l *log) maybe(r *history.Record, limits *Limits) *log {
	switch r.Kind {
	case history.Publish:
		if l.accepts(r) && (l.find(r.MsgID) == 0 || limits.Forgets) {
			return l.append(r, limits)
		}
	case history.Purge:
		if next, removed := l.purge(r); removed > 0 {
			return next
		}
	case history.DeleteMsg:
		if l.at(r.At).seq != 0 {
			return l.without(r.At)
		}
	}
	return l
}

// accepts says whether the expectations of a publish hold.
func (l *log) accepts(r *history.Record) bool {
	return (!r.ExpectLast.Set || r.ExpectLast.Seq == l.last) &&
		(!r.ExpectSubject.Set || r.ExpectSubject.Seq == l.lastOn(r.Subject).seq)
}

func (l *log) step(r *history.Record, limits *Limits) (bool, *log) {
	switch r.Kind {
	case history.Publish:
		return l.publish(r, limits)
	case history.GetLast:
		m := l.lastOn(r.Subject)
		return m.seq == r.Seq && (r.Seq == 0 || m.id == r.Value), l
	case history.GetSeq:
		m := l.at(r.At)
		return m.seq == r.Seq && (r.Seq == 0 || m.id == r.Value), l
	case history.Info:
		return r.Seq == l.last && r.Messages == uint64(len(l.messages)), l
	case history.Purge:
		if r.Outcome == history.Rejected {
			return true, l
		}
		next, removed := l.purge(r)
		return removed == r.Messages, next
	case history.DeleteMsg:
		if found := l.at(r.At).seq != 0; !found || r.Outcome == history.Rejected {
			return !found && r.Outcome == history.Rejected, l
		}
		return true, l.without(r.At)
	default:
		return false, l
	}
}

func (l *log) publish(r *history.Record, limits *Limits) (bool, *log) {
	known := l.find(r.MsgID)
	switch {
	case r.Outcome == history.Rejected:
		return l.refuses(r, l.accepts(r)), l
	case r.Outcome == history.OK && r.Duplicate:
		return known == r.Seq, l
	default:
		if !l.accepts(r) || r.Seq != l.last+1 || (known != 0 && !limits.Forgets) {
			return false, l
		}
		return true, l.append(r, limits)
	}
}

// refuses says whether a refusal of r is right in this state.
func (l *log) refuses(r *history.Record, matches bool) bool {
	if !r.ExpectLast.Set && !r.ExpectSubject.Set {
		return true
	}
	if matches {
		return false
	}
	if !r.Observed {
		return true
	}
	return (r.ExpectLast.Set && r.Seq == l.last) || (r.ExpectSubject.Set && r.Seq == l.lastOn(r.Subject).seq)
}

func (l *log) append(r *history.Record, limits *Limits) *log {
	next := &log{done: l.done, last: l.last + 1, ids: l.ids}
	kept := slices.Clone(l.messages)
	if r.Rollup {
		kept = slices.DeleteFunc(kept, func(m message) bool { return m.subject == r.Subject })
	}
	kept = append(kept, message{next.last, r.ID, r.Subject})
	next.messages = enforce(kept, r.Subject, limits)
	if r.MsgID != "" {
		next.ids = append(slices.Clip(l.ids), seenID{r.MsgID, next.last})
	}
	next.rehash()
	return next
}

// enforce drops the oldest messages beyond the limits after an append on the subject.
func enforce(kept []message, subject string, limits *Limits) []message {
	if limits.MaxMsgsPerSubject > 0 {
		count := 0
		for i := range kept {
			if kept[i].subject == subject {
				count++
			}
		}
		kept = slices.DeleteFunc(kept, func(m message) bool {
			if m.subject != subject || count <= limits.MaxMsgsPerSubject {
				return false
			}
			count--
			return true
		})
	}
	if limits.MaxMsgs > 0 && len(kept) > limits.MaxMsgs {
		kept = kept[len(kept)-limits.MaxMsgs:]
	}
	return kept
}

func (l *log) purge(r *history.Record) (*log, uint64) {
	matches := func(m message) bool {
		return (r.At == 0 || m.seq < r.At) && (r.Subject == "" || Covers(r.Subject, m.subject))
	}
	count := uint64(0)
	for _, m := range l.messages {
		if matches(m) {
			count++
		}
	}
	removed := count - min(r.Keep, count)
	left := removed
	next := &log{done: l.done, last: l.last, ids: l.ids}
	next.messages = slices.DeleteFunc(slices.Clone(l.messages), func(m message) bool {
		if left == 0 || !matches(m) {
			return false
		}
		left--
		return true
	})
	next.rehash()
	return next, removed
}

// without is the log without the message at the sequence, which is there.
func (l *log) without(seq uint64) *log {
	next := &log{done: l.done, last: l.last, ids: l.ids}
	next.messages = slices.DeleteFunc(slices.Clone(l.messages), func(m message) bool { return m.seq == seq })
	next.rehash()
	return next
}

func (l *log) rehash() {
	h := mix(2, l.last)
	for i := range l.messages {
		h = mix(mix(h, l.messages[i].seq), l.messages[i].id)
	}
	for i := range l.ids {
		h = mix(h, l.ids[i].seq)
	}
	l.hash = h
}

func (l *log) lastOn(filter string) message {
	for i := len(l.messages) - 1; i >= 0; i-- {
		if Covers(filter, l.messages[i].subject) {
			return l.messages[i]
		}
	}
	return message{}
}

func (l *log) at(seq uint64) message {
	i, found := slices.BinarySearchFunc(l.messages, seq, func(m message, seq uint64) int {
		switch {
		case m.seq < seq:
			return -1
		case m.seq > seq:
			return 1
		default:
			return 0
		}
	})
	if !found {
		return message{}
	}
	return l.messages[i]
}

func (l *log) find(msgID string) uint64 {
	if msgID == "" {
		return 0
	}
	for i := len(l.ids) - 1; i >= 0; i-- {
		if l.ids[i].msgID == msgID {
			return l.ids[i].seq
		}
	}
	return 0
}
