// Package assert crashes the process when one of Weir's own invariants is broken.
//
// It promises that a failed assertion never lets the program continue, and that an assertion which holds costs
// neither an allocation nor a call that survives inlining. It is not for errors of the environment (disk, network,
// clients): those are values of type error.
package assert

import (
	"fmt"
	"strings"
)

// True panics unless ok holds. The message states the relation that should hold ("applied <= committed"), nums are
// the numbers involved, in the order in which the message names them. True keeps no reference to nums.
func True(ok bool, message string, nums ...uint64) {
	if !ok {
		fail(message, append([]uint64(nil), nums...))
	}
}

// Unreachable panics: control flow came to a point that the invariants of the caller exclude, for example the default
// of a switch over a closed set. nums are the numbers that identify the case.
func Unreachable(message string, nums ...uint64) {
	fail("unreachable: "+message, append([]uint64(nil), nums...))
}

// Failure is the value that a failed assertion panics with. The simulator recognises it as a verdict on the code, as
// opposed to a fault of the harness.
type Failure struct {
	// Message is the relation that did not hold, with the numbers involved.
	Message string
}

// Error returns the message of the failure.
func (f Failure) Error() string { return "assertion failed: " + f.Message }

//go:noinline
func fail(message string, nums []uint64) {
	if len(nums) == 0 {
		panic(Failure{Message: message})
	}
	var text strings.Builder
	text.WriteString(message)
	text.WriteString(" (")
	for i, n := range nums {
		if i > 0 {
			text.WriteString(", ")
		}
		fmt.Fprintf(&text, "%d", n)
	}
	text.WriteString(")")
	panic(Failure{Message: text.String()})
}
