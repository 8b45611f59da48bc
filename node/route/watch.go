package route

import (
	"slices"
	"strings"

	"weir/model/subject"
	"weir/spec/assert"
)

// Watch follows the interest in one literal subject: of plain subscriptions, or of one queue group. A push consumer has
// one on its deliver subject.
type Watch struct {
	// Subject is the literal subject.
	Subject string
	// Group is the queue group whose interest counts; empty counts plain subscriptions only.
	Group string
	// Token is the creator's.
	Token uint64

	// subscriptions counts those that match now; what another server has of one pattern counts once. Invariant: equal to a
	// recount over the table.
	subscriptions int
	// reported is the interest that the creator was last told.
	reported bool
	queued   bool
	active   bool
}

// Interested reports whether there is interest now.
func (w *Watch) Interested() bool { return w.subscriptions > 0 }

// watches are the watches of a table and those whose interest changed.
type watches struct {
	// sorted is ordered by subject; equal subjects are in the order of creation.
	sorted  []*Watch
	changes []*Watch
}

// Watch begins to watch. The creator reads the present interest from the watch; later changes come from Changed.
func (t *Table) Watch(literal, group string, token uint64) *Watch {
	assert.True(subject.ValidLiteral(literal), "a watched subject is literal")
	w := &Watch{Subject: literal, Group: group, Token: token, active: true}
	t.matched = t.subs.Match([]byte(literal), t.matched[:0])
	for _, s := range t.matched {
		if s.Queue == group {
			w.subscriptions++
		}
	}
	w.reported = w.Interested()
	at, _ := slices.BinarySearchFunc(t.watches.sorted, literal+"\x00", compareWatch)
	t.watches.sorted = slices.Insert(t.watches.sorted, at, w)
	return w
}

// Unwatch ends a watch of this table; it is not reported any more.
func (t *Table) Unwatch(w *Watch) {
	assert.True(w.active, "a watch ends once")
	w.active = false
	at, _ := slices.BinarySearchFunc(t.watches.sorted, w.Subject, compareWatch)
	for t.watches.sorted[at] != w {
		at++
	}
	t.watches.sorted = slices.Delete(t.watches.sorted, at, at+1)
}

// Watches returns how many watches there are.
func (t *Table) Watches() int { return len(t.watches.sorted) }

// Changed appends to dst the watches whose interest differs from what was last reported, in the order in which they
// changed first, and considers it reported.
func (t *Table) Changed(dst []*Watch) []*Watch {
	for i, w := range t.watches.changes {
		t.watches.changes[i] = nil
		w.queued = false
		if w.active && w.Interested() != w.reported {
			w.reported = w.Interested()
			dst = append(dst, w)
		}
	}
	t.watches.changes = t.watches.changes[:0]
	return dst
}

// changed counts a subscription in or out of the watches that it matches.
func (ws *watches) changed(s *Sub, by int) {
	if len(ws.sorted) == 0 {
		return
	}
	// Only subjects that start as the pattern does before its first wildcard can match.
	prefix := s.Pattern[:subject.LiteralPrefix(s.Pattern)]
	literal := len(prefix) == len(s.Pattern)
	at, _ := slices.BinarySearchFunc(ws.sorted, prefix, compareWatch)
	for ; at < len(ws.sorted) && strings.HasPrefix(ws.sorted[at].Subject, prefix); at++ {
		w := ws.sorted[at]
		if literal && w.Subject != prefix {
			break
		}
		if w.Group != s.Queue || !subject.Matches(w.Subject, s.Pattern) {
			continue
		}
		w.subscriptions += by
		assert.True(w.subscriptions >= 0, "subscriptions of a watch >= 0")
		if w.Interested() != w.reported && !w.queued {
			w.queued = true
			ws.changes = append(ws.changes, w)
		}
	}
}

func compareWatch(w *Watch, literal string) int { return strings.Compare(w.Subject, literal) }
