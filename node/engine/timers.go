package engine

import (
	"weir/disk/wal"
	"weir/model/heap"
	"weir/node/event"
	"weir/spec/assert"
)

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
	probeTimer
	restTimer
	lazyTimer
	unreadableTimer
	tickTimer
	scrubTimer
	askTimer
	commitTimer
	gatherTimer
	piecesTimer
	copyTimer
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

// earlier is the earlier of two times of which 0 means never.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// fire acts on the deadlines that have passed.
func (e *Engine) fire() {
	for {
		t, ok := e.timers.pop(e.now.Mono)
		if !ok {
			break
		}
		switch t.kind {
		case sessionTimer:
			e.tickClient(event.ConnID(t.owner))
		case groupTimer:
			if g := e.groups[wal.GroupID(t.owner)]; g != nil {
				e.tickGroup(g, t.at)
			}
		case retryTimer:
			e.retryAppends()
		case probeTimer:
			e.probing, e.probe = false, e.short
		case restTimer:
			e.settleResting()
		case scrubTimer:
			e.scrub()
		case tickTimer:
			e.tick()
		case askTimer:
			e.askAgain()
		case gatherTimer:
			if g := e.groups[wal.GroupID(t.owner)]; g != nil {
				e.gathered(g, t.at)
			}
		case copyTimer:
			e.copyTimerFired(t)
		case piecesTimer:
			e.giveLater(t.at)
		case commitTimer:
			e.releaseCommits()
		case unreadableTimer:
			e.readAgain()
		case lazyTimer:
			if g := e.groups[wal.GroupID(t.owner)]; g != nil {
				g.lazy = false
				e.markDirty(g)
			}
		default:
			assert.Unreachable("kind of timer", uint64(t.kind))
		}
	}
	if e.desk != nil {
		if at := e.desk.Deadline(); at != 0 && at <= e.now.Mono {
			e.desk.Tick(e.now.Mono)
		}
	}
}
