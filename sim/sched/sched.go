// Package sched orders the events of a simulation by virtual time.
//
// It promises a total order that depends only on what was pushed, in which order, and on the key of the tie mode. It
// holds events, it does not run them, and it never looks at a clock.
package sched

import (
	"weir/model/heap"
	"weir/sim/keyed"
	"weir/spec/assert"
)

// Event is one thing that happens at one instant. It is flat, so that the queue allocates nothing per event; what Kind,
// Conn, N and Bytes mean is the owner's business.
type Event struct {
	// At is the virtual time in nanoseconds.
	At int64
	// Kind says what happens.
	Kind uint8
	// Node is the server that the event belongs to, and Gen its incarnation; the owner drops events of older ones.
	Node, Gen uint32
	// Conn and N are identifiers.
	Conn, N uint64
	// Bytes are data on their way.
	Bytes []byte

	tie, seq uint64
}

// Mode decides in which order events of one instant come.
type Mode uint8

// The modes.
const (
	// FIFO: in the order in which they were pushed.
	FIFO Mode = iota
	// Random: in an order drawn per event.
	Random
	// Priorities: in the order of priorities drawn per actor (kind and connection), redrawn at a few points of the run
	// (Burckhardt et al., A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs).
	Priorities
)

// LenMax bounds the queue: a simulation that has so many events under way has lost control of itself.
const LenMax = 1 << 20

// epochEvents is how many pushes pass between two redrawings of priorities.
const epochEvents = 2000

// Queue holds events by their time. The zero value is a FIFO queue.
type Queue struct {
	heap heap.Heap[Event]
	seq  uint64
	mode Mode
	key  keyed.Key
}

// New returns an empty queue.
func New(mode Mode, key keyed.Key) *Queue { return &Queue{mode: mode, key: key} }

// Len is the number of events in the queue.
func (q *Queue) Len() int { return q.heap.Len() }

// Next is the time of the earliest event; the queue is not empty.
func (q *Queue) Next() int64 { return q.heap.Top().At }

// Push adds an event.
func (q *Queue) Push(e Event) {
	assert.True(q.heap.Len() < LenMax, "events under way < max", uint64(q.heap.Len()), LenMax)
	q.seq++
	e.seq = q.seq
	switch q.mode {
	case FIFO:
		e.tie = 0
	case Random:
		e.tie = q.key.Draw("tie", uint64(e.At), uint64(e.Kind)<<32|uint64(e.Node), e.Conn, e.N)
	case Priorities:
		e.tie = q.key.Draw("priority", uint64(e.Kind)<<32|uint64(e.Node), e.Conn, q.seq/epochEvents)
	default:
		assert.Unreachable("tie mode", uint64(q.mode))
	}
	q.heap.Push(e)
}

// Pop removes and returns the earliest event; false when there is none.
func (q *Queue) Pop() (Event, bool) {
	if q.heap.Len() == 0 {
		return Event{}, false
	}
	return q.heap.Pop(), true
}

// Before orders by time, then by the tie mode, then by when the event was pushed.
func (e Event) Before(o Event) bool {
	if e.At != o.At {
		return e.At < o.At
	}
	if e.tie != o.tie {
		return e.tie < o.tie
	}
	return e.seq < o.seq
}
