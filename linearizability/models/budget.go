// Package models holds the sequential specifications that Porcupine searches with: a stream and a key.
//
// Each model says which answers a correct server may give in which state. The package promises pure steps (but for the
// counting of a Budget) and states that can be hashed. It does not decide histories; see package check.
package models

import (
	"fmt"
	"strings"

	"weir/linearizability/history"
)

// Budget bounds a search by the number of steps of the model instead of by time, so that the verdict of a history is
// the same on every machine. A search whose budget is exhausted has no verdict.
type Budget struct {
	// Limit is the largest number of steps.
	Limit int
	// Used is the number of steps taken so far.
	Used int
}

// spend counts a step and says whether it is still allowed. When nothing is allowed any more, the search ends soon,
// because no operation can be placed.
func (b *Budget) spend() bool {
	b.Used++
	return b.Used <= b.Limit
}

// Exhausted says that the search was cut short and its result means nothing.
func (b *Budget) Exhausted() bool { return b.Used > b.Limit }

// Covers says whether the filter matches the literal subject, by the rules of NATS: "*" stands for one token and ">"
// for one or more at the end. The judges have their own, plain form of it, because they judge the fast one.
func Covers(filter, subject string) bool {
	for {
		if filter == ">" {
			return true
		}
		f, fRest, fMore := strings.Cut(filter, ".")
		s, sRest, sMore := strings.Cut(subject, ".")
		if f != "*" && f != s {
			return false
		}
		if !fMore || !sMore {
			return fMore == sMore
		}
		filter, subject = fRest, sRest
	}
}

// describe renders an operation for the visualisation.
func describe(input, _ any) string {
	r := input.(*history.Record)
	var b strings.Builder
	fmt.Fprintf(&b, "#%d %s %s", r.ID, r.Kind, r.Subject)
	if r.MsgID != "" {
		fmt.Fprintf(&b, " id=%s", r.MsgID)
	}
	if r.ExpectLast.Set {
		fmt.Fprintf(&b, " expect-last=%d", r.ExpectLast.Seq)
	}
	if r.ExpectSubject.Set {
		fmt.Fprintf(&b, " expect-subject=%d", r.ExpectSubject.Seq)
	}
	if r.At != 0 {
		fmt.Fprintf(&b, " at=%d", r.At)
	}
	switch {
	case r.Outcome == history.Unknown:
		fmt.Fprintf(&b, " -> unknown (seen at %d)", r.Seq)
	case r.Outcome == history.Rejected:
		fmt.Fprintf(&b, " -> refused %d (actual %d)", r.Code, r.Seq)
	case r.Reads():
		fmt.Fprintf(&b, " -> seq %d value #%d", r.Seq, r.Value)
	default:
		fmt.Fprintf(&b, " -> seq %d duplicate=%v", r.Seq, r.Duplicate)
	}
	return b.String()
}
