package engine

// timers is a heap of deadlines. Entries are never removed before their time: an owner that no longer wants one notices
// when it fires, by its own record of what is armed.
type timers struct {
	heap []timer
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

func (t timer) before(o timer) bool {
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
		if !t.heap[i].before(t.heap[parent]) {
			return
		}
		t.heap[i], t.heap[parent] = t.heap[parent], t.heap[i]
		i = parent
	}
}

// pop removes and returns the earliest deadline that is not after now.
func (t *timers) pop(now int64) (timer, bool) {
	if len(t.heap) == 0 || t.heap[0].at > now {
		return timer{}, false
	}
	top := t.heap[0]
	last := len(t.heap) - 1
	t.heap[0] = t.heap[last]
	t.heap = t.heap[:last]
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			return top, true
		}
		if child+1 < last && t.heap[child+1].before(t.heap[child]) {
			child++
		}
		if !t.heap[child].before(t.heap[i]) {
			return top, true
		}
		t.heap[i], t.heap[child] = t.heap[child], t.heap[i]
		i = child
	}
}
