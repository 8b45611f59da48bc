package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestTimersFireInOrderAndNotEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var heap timers
		var naive []timer
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "push") {
				e := timer{at: rapid.Int64Range(1, 20).Draw(t, "at"), owner: rapid.Uint64Range(0, 5).Draw(t, "owner")}
				heap.push(e)
				naive = append(naive, e)
				continue
			}
			now := rapid.Int64Range(0, 20).Draw(t, "now")
			slices.SortFunc(naive, func(a, b timer) int {
				if a.Before(b) {
					return -1
				}
				if b.Before(a) {
					return 1
				}
				return 0
			})
			got, ok := heap.pop(now)
			due := len(naive) > 0 && naive[0].at <= now
			if ok != due || ok && got != naive[0] {
				t.Fatalf("pop(%d) = %v, %v; the earliest of %v is expected", now, got, ok, naive)
			}
			if due {
				naive = naive[1:]
			}
		}
	})
}
