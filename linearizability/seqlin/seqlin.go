// Package seqlin decides linearizability of a log whose order of writes is known, exactly and in O(n log n).
//
// JetStream tells every publisher the sequence of its message and every reader the sequence of what it read. The order
// of the writes is therefore given, and only one question is left: is there a point inside each interval such that the
// points of the writes follow that order, and each observation lies behind the write that it saw and before the write
// that would have changed what it saw? Placing every write at its earliest feasible point answers it: the points that
// this leaves to later operations are a superset of what any other placement leaves.
//
// The package decides; it does not partition histories and knows nothing of subjects. Which write would have changed
// an observation (the next one of the stream, of the subject, of the filter) is for the caller to say. All observations
// of a stream belong into one call, because they share the points of its writes: judged subject by subject, each may be
// right and the whole still wrong.
package seqlin

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Op is one operation on a log: a closed interval, and either a write or an observation.
type Op struct {
	// Write says that the operation wrote Rev; otherwise it observed that Rev was there and Next was not.
	Write bool
	// Rev is the revision written or observed; an observation of 0 saw nothing written.
	Rev uint64
	// Next is the first revision that would have changed the observation, 0 if none does. It need not have been written;
	// then the first one written above it counts.
	Next uint64
	// Call and Return bound the closed interval; an operation without an answer has Return math.MaxInt64.
	Call, Return int64
	// ID is for the report only.
	ID uint64
}

// Violation says why no order exists.
type Violation struct {
	// Op is the operation for which no point is left.
	Op Op
	// Point is the earliest point at which the operation could be placed; it lies beyond Op.Return.
	Point int64
	// Other is the operation that pushed Point so far, if there is one.
	Other Op
	// Why is the rule in words.
	Why string
}

// Error describes the violation on one line.
func (v *Violation) Error() string {
	return fmt.Sprintf("%s: op %d rev %d next %d in [%d, %d], earliest point %d because of op %d rev %d in [%d, %d]",
		v.Why, v.Op.ID, v.Op.Rev, v.Op.Next, v.Op.Call, v.Op.Return, v.Point,
		v.Other.ID, v.Other.Rev, v.Other.Call, v.Other.Return)
}

// placed is a write with its earliest feasible point and the operation whose call made it so late.
type placed struct {
	op     Op
	point  int64
	pusher Op
}

// Check returns nil if the operations are linearizable, else the first violation: writes first, by revision, then
// observations in the order of ops. ops is not changed.
func Check(ops []Op) *Violation {
	writes, observations := split(ops)
	next := 0
	point, pusher := int64(math.MinInt64), Op{}
	for i := range writes {
		w := &writes[i]
		if i > 0 && w.op.Rev == writes[i-1].op.Rev || w.op.Rev == 0 {
			return &Violation{Op: w.op, Point: point, Other: writes[max(i, 1)-1].op, Why: "two writes of one revision"}
		}
		for ; next < len(observations) && observations[next].Next <= w.op.Rev; next++ {
			if o := &observations[next]; o.Call > point {
				point, pusher = o.Call, *o
			}
		}
		if w.op.Call > point {
			point, pusher = w.op.Call, w.op
		}
		w.point, w.pusher = point, pusher
		if point > w.op.Return {
			return &Violation{Op: w.op, Point: point, Other: pusher, Why: "write returned before it could take effect"}
		}
	}
	for i := range ops {
		if v := observe(&ops[i], writes); v != nil {
			return v
		}
	}
	return nil
}

// split returns the writes by revision and the observations that limit later writes by the revision that they limit.
func split(ops []Op) ([]placed, []Op) {
	var writes []placed
	var observations []Op
	for i := range ops {
		switch {
		case ops[i].Write:
			writes = append(writes, placed{op: ops[i]})
		case ops[i].Next != 0:
			observations = append(observations, ops[i])
		}
	}
	slices.SortFunc(writes, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.op.Rev, b.op.Rev), cmp.Compare(a.op.Call, b.op.Call), cmp.Compare(a.op.ID, b.op.ID))
	})
	slices.SortFunc(observations, func(a, b Op) int {
		return cmp.Or(cmp.Compare(a.Next, b.Next), cmp.Compare(a.Call, b.Call), cmp.Compare(a.ID, b.ID))
	})
	return writes, observations
}

// observe checks that the write which an observation saw could have happened before the observation returned.
func observe(o *Op, writes []placed) *Violation {
	if o.Write || o.Rev == 0 {
		return nil
	}
	i, found := slices.BinarySearchFunc(writes, o.Rev, func(w placed, rev uint64) int {
		return cmp.Compare(w.op.Rev, rev)
	})
	if !found {
		return &Violation{Op: *o, Point: math.MaxInt64, Why: "observed a revision that nobody wrote"}
	}
	if w := &writes[i]; w.point > o.Return {
		return &Violation{Op: *o, Point: w.point, Other: w.pusher, Why: "observed a revision before it could exist"}
	}
	return nil
}
