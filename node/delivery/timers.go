package delivery

import "weir/model/heap"

// timer is one deadline of one line.
type timer struct {
	at  int64
	key key
}

// Before orders by time; what comes at one time has an order of its own, so that runs can be repeated.
func (t timer) Before(o timer) bool {
	switch {
	case t.at != o.at:
		return t.at < o.at
	case t.key.group != o.key.group:
		return t.key.group < o.key.group
	}
	return t.key.id < o.key.id
}

// timers holds deadlines. A line that gets an earlier deadline adds another; one that fires and is not the one
// that its line has armed is ignored.
type timers struct {
	heap heap.Heap[timer]
}

// next is the earliest deadline; 0 when there is none.
func (t *timers) next() int64 {
	if t.heap.Len() == 0 {
		return 0
	}
	return t.heap.Top().at
}

func (t *timers) push(e timer) { t.heap.Push(e) }

// pop removes and returns the earliest deadline when now has reached it.
func (t *timers) pop(now int64) (timer, bool) {
	if t.heap.Len() == 0 || t.heap.Top().at > now {
		return timer{}, false
	}
	return t.heap.Pop(), true
}

// arm makes sure that the line is ticked at the given time at the latest.
func (d *Desk) arm(l *line, at int64) {
	if at == 0 || l.armed != 0 && l.armed <= at {
		return
	}
	l.armed = at
	d.timers.push(timer{at, l.key})
}

// rearm arms the line for the earliest of all its deadlines.
func (d *Desk) rearm(l *line) { d.arm(l, d.deadline(l)) }
