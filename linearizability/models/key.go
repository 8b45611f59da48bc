package models

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"

	"weir/linearizability/history"
)

// key is the state of one subject.
type key struct {
	// done counts the answered operations that led to this state.
	done int
	// current is the newest revision that can be read; 0 is none.
	current uint64
	// highest is the highest revision with a known number that was ever written.
	highest uint64
	// floating says that a write with an unknown revision above highest is the newest one.
	floating bool
}

// Key is the model of the last message of one literal subject: publishes with and without an expected subject
// sequence, reads of the last message, purges of the whole subject. Records are resolved (history.Resolve), concern the
// one subject, and nothing but the purges among them removes its last message.
//
// The order of the writes is known from their revisions, and the model insists on it early: a write may only follow the
// known write before it. That does not change the verdict and saves most of the search.
func Key(records []history.Record, budget *Budget) porcupine.Model {
	before, answered := predecessors(records), countAnswered(records)
	return porcupine.Model{
		Init: func() any { return key{} },
		Step: func(state, input, _ any) (bool, any) {
			if !budget.spend() {
				return false, state
			}
			k, r := state.(key), input.(*history.Record)
			if r.Outcome == history.Unknown && r.Seq == 0 {
				next := k.maybe(r, before)
				return next != k || k.done == answered, next
			}
			ok, next := k.step(r, before)
			next.done = k.done + 1
			return ok, next
		},
		Hash: func(state any) uint64 {
			k := state.(key)
			h := mix(mix(1, k.current), k.highest)
			if k.floating {
				h = mix(h, 1)
			}
			return h
		},
		DescribeOperation: describe,
		DescribeState: func(state any) string {
			k := state.(key)
			if k.floating {
				return fmt.Sprintf("an unanswered write above %d", k.highest)
			}
			return fmt.Sprintf("revision %d", k.current)
		},
	}
}

// predecessors maps each known revision to the known revision before it.
func predecessors(records []history.Record) map[uint64]uint64 {
	var revs []uint64
	for i := range records {
		if records[i].Stored() {
			revs = append(revs, records[i].Seq)
		}
	}
	slices.Sort(revs)
	before := make(map[uint64]uint64, len(revs))
	last := uint64(0)
	for _, rev := range revs {
		if rev != last {
			before[rev], last = last, rev
		}
	}
	return before
}

// maybe is the state after an unanswered operation that happens now; the same state when it changes nothing.
func (k key) maybe(r *history.Record, before map[uint64]uint64) key {
	switch r.Kind {
	case history.Publish:
		if r.ExpectSubject.Set {
			if ok, _ := k.pin(r.ExpectSubject.Seq, before); !ok {
				return k
			}
		}
		return key{done: k.done, highest: k.highest, floating: true}
	case history.Purge:
		return key{done: k.done, highest: k.highest}
	default:
		return k
	}
}

func (k key) step(r *history.Record, before map[uint64]uint64) (bool, key) {
	switch r.Kind {
	case history.Publish:
		return k.publish(r, before)
	case history.GetLast:
		return !k.floating && r.Seq == k.current, k
	case history.Purge:
		return true, key{highest: k.highest}
	default:
		return true, k
	}
}

func (k key) publish(r *history.Record, before map[uint64]uint64) (bool, key) {
	switch {
	case r.Outcome == history.Rejected:
		if !r.ExpectSubject.Set || !r.Observed {
			return true, k
		}
		if r.Seq == r.ExpectSubject.Seq {
			return false, k
		}
		return k.pin(r.Seq, before)
	case r.Outcome == history.OK && r.Duplicate:
		return true, k
	default:
		if prev, known := before[r.Seq]; !known || k.highest != prev {
			return false, k
		}
		if r.ExpectSubject.Set {
			if ok, _ := k.pin(r.ExpectSubject.Seq, before); !ok {
				return false, k
			}
		}
		return true, key{current: r.Seq, highest: r.Seq}
	}
}

// pin is the state after learning that the newest revision is rev, or false if it cannot be.
func (k key) pin(rev uint64, before map[uint64]uint64) (bool, key) {
	if !k.floating {
		return k.current == rev, k
	}
	// A revision that some record is known to have written is not that of the unanswered write.
	_, known := before[rev]
	return rev > k.highest && !known, k
}

// mix folds a number into a hash (the finaliser of splitmix64).
func mix(h, v uint64) uint64 {
	h ^= v + 0x9e3779b97f4a7c15 + h<<6 + h>>2
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
