package heap

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type pair struct {
	at int64
	id uint64
}

func (p pair) Before(o pair) bool { return p.at < o.at || p.at == o.at && p.id < o.id }

func compare(a, b pair) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) }

func drawPair(t *rapid.T) pair {
	return pair{at: rapid.Int64Range(1, 20).Draw(t, "at"), id: rapid.Uint64Range(0, 5).Draw(t, "id")}
}

func TestItemsLeaveInTheirOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h Heap[pair]
		var naive []pair
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				e := drawPair(t)
				h.Push(e)
				naive = append(naive, e)
			},
			"pop": func(t *rapid.T) {
				if len(naive) == 0 {
					t.Skip("empty")
				}
				slices.SortFunc(naive, compare)
				if top, got := h.Top(), h.Pop(); got != naive[0] || top != got {
					t.Fatalf("top %v, popped %v, the first of %v is expected", top, got, naive)
				}
				naive = naive[1:]
			},
			"": func(t *rapid.T) {
				if h.Len() != len(naive) {
					t.Fatalf("%d items, %d are expected", h.Len(), len(naive))
				}
			},
		})
	})
}

// The time of a push and a pop among a thousand others, in ascending order as deadlines are.
func BenchmarkPushPop(b *testing.B) {
	var h Heap[pair]
	for i := range uint64(1000) {
		h.Push(pair{at: int64(i), id: i})
	}
	b.ReportAllocs()
	at := int64(1000)
	for b.Loop() {
		at++
		h.Push(pair{at: at, id: uint64(at)})
		h.Pop()
	}
}
