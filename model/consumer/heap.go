package consumer

// hint is one element of a heap: a sequence, ordered by at and then by seq.
type hint struct {
	at  int64
	seq uint64
}

func (h hint) less(o hint) bool { return h.at < o.at || h.at == o.at && h.seq < o.seq }

// heap is a binary heap of hints with the least one on top. Pushing hints in ascending order, which is the usual case,
// costs O(1). It is package heap for one type: each delivery and each ack pass here, and comparing in place takes half the
// time of calling what compares.
type heap struct {
	hints []hint
}

func (h *heap) len() int { return len(h.hints) }

func (h *heap) top() hint { return h.hints[0] }

// clear empties the heap; it gives the memory back when that is much.
func (h *heap) clear() {
	h.hints = h.hints[:0]
	if cap(h.hints) >= 2*shrinkMin {
		h.hints = nil
	}
}

// add appends a hint without ordering it; order must follow.
func (h *heap) add(e hint) { h.hints = append(h.hints, e) }

// order makes a heap of hints that were added.
func (h *heap) order() {
	for i := len(h.hints)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *heap) push(e hint) {
	h.hints = append(h.hints, e)
	i := len(h.hints) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.less(h.hints[parent]) {
			break
		}
		h.hints[i] = h.hints[parent]
		i = parent
	}
	h.hints[i] = e
}

func (h *heap) pop() {
	last := len(h.hints) - 1
	h.hints[0] = h.hints[last]
	h.hints = h.hints[:last]
	if last > 1 {
		h.down(0)
	}
}

// down moves the hint at i to its place among those below it.
func (h *heap) down(i int) {
	e := h.hints[i]
	for {
		child := 2*i + 1
		if child >= len(h.hints) {
			break
		}
		if right := child + 1; right < len(h.hints) && h.hints[right].less(h.hints[child]) {
			child = right
		}
		if !h.hints[child].less(e) {
			break
		}
		h.hints[i] = h.hints[child]
		i = child
	}
	h.hints[i] = e
}
