package engine

import "weir/model/heap"

// timers holds deadlines. Entries are never removed before their time: an owner that no longer wants one notices when it
// fires, by its own record of what is armed.
type timers struct {
	heap heap.Heap[timer]
}

// timer is one deadline of one owner.
type timer struct {
	at    int64 // monotone nanoseconds
	kind  timerKind
	owner uint64
}

type timerKind uint8

const (
	sessionTimer timerKind = iota
	groupTimer
	retryTimer
	restTimer
	lazyTimer
	unreadableTimer
)

// Before orders by time; what comes at one time has an order of its own, so that runs can be repeated.
func (t timer) Before(o timer) bool {
	if t.at != o.at {
		return t.at < o.at
	}
	if t.kind != o.kind {
		return t.kind < o.kind
	}
	return t.owner < o.owner
}

// next is the earliest deadline; 0 when there is none.
func (t *timers) next() int64 {
	if t.heap.Len() == 0 {
		return 0
	}
	return t.heap.Top().at
}

func (t *timers) push(e timer) { t.heap.Push(e) }

// pop removes and returns the earliest deadline that is not after now.
func (t *timers) pop(now int64) (timer, bool) {
	if t.heap.Len() == 0 || t.heap.Top().at > now {
		return timer{}, false
	}
	return t.heap.Pop(), true
}
