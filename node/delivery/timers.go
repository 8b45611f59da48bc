package delivery

// timer is one deadline of one line.
type timer struct {
	at  int64
	key key
}

func (t timer) before(o timer) bool {
	switch {
	case t.at != o.at:
		return t.at < o.at
	case t.key.group != o.key.group:
		return t.key.group < o.key.group
	}
	return t.key.id < o.key.id
}

// timers is a heap of deadlines. A line that gets an earlier deadline adds another; one that fires and is not the one
// that its line has armed is ignored.
type timers struct {
	heap []timer
}

func (t *timers) next() int64 {
	if len(t.heap) == 0 {
		return 0
	}
	return t.heap[0].at
}

func (t *timers) push(e timer) {
	t.heap = append(t.heap, e)
	i := len(t.heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(t.heap[parent]) {
			break
		}
		t.heap[i] = t.heap[parent]
		i = parent
	}
	t.heap[i] = e
}

// pop removes and returns the earliest deadline when now has reached it.
func (t *timers) pop(now int64) (timer, bool) {
	if len(t.heap) == 0 || t.heap[0].at > now {
		return timer{}, false
	}
	top := t.heap[0]
	last := len(t.heap) - 1
	e := t.heap[last]
	t.heap = t.heap[:last]
	if last == 0 {
		return top, true
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && t.heap[child+1].before(t.heap[child]) {
			child++
		}
		if !t.heap[child].before(e) {
			break
		}
		t.heap[i] = t.heap[child]
		i = child
	}
	t.heap[i] = e
	return top, true
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
