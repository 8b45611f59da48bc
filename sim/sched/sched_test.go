package sched

import (
	"slices"
	"testing"

	"weir/sim/keyed"
)

func drain(q *Queue) []Event {
	var out []Event
	for {
		e, ok := q.Pop()
		if !ok {
			return out
		}
		out = append(out, e)
	}
}

func fill(q *Queue) {
	r := keyed.Key(5).Rand("fill")
	for i := range 3000 {
		q.Push(Event{At: int64(r.Below(40)), Kind: uint8(r.Below(4)), Conn: uint64(r.Below(9)), N: uint64(i)})
	}
}

func TestEventsComeInTheOrderOfTime(t *testing.T) {
	for _, mode := range []Mode{FIFO, Random, Priorities} {
		q := New(mode, 1)
		fill(q)
		out := drain(q)
		if len(out) != 3000 || !slices.IsSortedFunc(out, func(a, b Event) int { return int(a.At - b.At) }) {
			t.Fatalf("mode %d: %d events, not sorted by time", mode, len(out))
		}
	}
}

func TestTiesFollowTheMode(t *testing.T) {
	q := New(FIFO, 1)
	fill(q)
	out := drain(q)
	for i := 1; i < len(out); i++ {
		if out[i].At == out[i-1].At && out[i].N < out[i-1].N {
			t.Fatal("FIFO let a later event overtake")
		}
	}
	order := func(key keyed.Key) []uint64 {
		q := New(Random, key)
		fill(q)
		var ns []uint64
		for _, e := range drain(q) {
			ns = append(ns, e.N)
		}
		return ns
	}
	if !slices.Equal(order(1), order(1)) {
		t.Fatal("same key, different order")
	}
	if slices.Equal(order(1), order(2)) {
		t.Fatal("different keys, same order")
	}
}
