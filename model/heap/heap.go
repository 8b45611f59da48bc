// Package heap is a priority queue of values with a total order, the first one on top.
//
// It promises that the order in which items leave depends on the items alone, not on how they came, as long as no two
// different items are equal in their order; that pushing and popping allocates nothing but room for growth; and that
// pushing items in ascending order, which is the usual case of deadlines, costs O(1) each. It finds and removes nothing
// but the first item: an owner that no longer wants an item notices when it comes out. Comparisons are calls, which is
// why the pending messages of a consumer have a heap of their own.
package heap

import "weir/spec/assert"

// Item is what a heap can order.
type Item[T any] interface {
	// Before reports whether the item has to leave before another. It is a strict total order.
	Before(T) bool
}

// Heap is a binary heap. The zero value is empty.
type Heap[T Item[T]] struct {
	items []T
}

// Len is the number of items.
func (h *Heap[T]) Len() int { return len(h.items) }

// Top is the first item. The heap is not empty.
func (h *Heap[T]) Top() T { return h.items[0] }

// Push adds an item in O(log n).
func (h *Heap[T]) Push(e T) {
	h.items = append(h.items, e)
	h.up(len(h.items)-1, e)
}

// Pop removes and returns the first item in O(log n). The heap is not empty.
//
// The last item takes the place of the first. As it nearly always belongs to the bottom, the hole moves all the way down
// without asking for it, and up from there: that takes half the comparisons.
func (h *Heap[T]) Pop() T {
	assert.True(len(h.items) > 0, "a heap that is popped has items")
	top := h.items[0]
	last := len(h.items) - 1
	e := h.items[last]
	var none T
	h.items[last] = none // what it refers to is not kept alive
	h.items = h.items[:last]
	if last == 0 {
		return top
	}
	items, hole := h.items, 0
	for child := 1; child < last; child = 2*hole + 1 {
		if right := child + 1; right < last && items[right].Before(items[child]) {
			child = right
		}
		items[hole] = items[child]
		hole = child
	}
	h.up(hole, e)
	return top
}

// up puts an item into the hole at i or into the place of one above it.
func (h *Heap[T]) up(i int, e T) {
	for i > 0 {
		parent := (i - 1) / 2
		if !e.Before(h.items[parent]) {
			break
		}
		h.items[i] = h.items[parent]
		i = parent
	}
	h.items[i] = e
}
