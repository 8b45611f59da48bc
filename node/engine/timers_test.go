package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir/disk/wal"
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

// TestWhatIsSetAgainAndAgainHasOneTimer has commits and questions of a mirror come and go as under load, where a timer for
// each of them would fill the memory and have the engine step for nothing.
func TestWhatIsSetAgainAndAgainHasOneTimer(t *testing.T) {
	const often = int64(1000)
	g := &group{id: 16, mirror: &mirror{}}
	g.mirror.group = g
	e := &Engine{groups: map[wal.GroupID]*group{g.id: g}}
	for e.now.Mono = 1; e.now.Mono < often*commitNanos/2; e.now.Mono += commitNanos / 2 {
		e.heldCommits = append(e.heldCommits, heldCommit{group: &group{}, at: e.now.Mono + commitNanos})
		e.awaitCommits()
		e.fire()
		e.heldCommits = e.heldCommits[:0]
		e.setCopyAlarm(g.mirror, copyLifeNanos)
		if n := e.timers.heap.Len(); n > 2 {
			t.Fatalf("%d timers wait", n)
		}
	}
	if first := g.mirror.armed; first > e.now.Mono+copyLifeNanos || g.mirror.alarm <= first {
		t.Fatalf("the alarm of %d has a timer at %d", g.mirror.alarm, first)
	}
	e.now.Mono = g.mirror.armed
	e.fire()
	if g.mirror.armed != g.mirror.alarm {
		t.Fatalf("the timer was not set again for %d but for %d", g.mirror.alarm, g.mirror.armed)
	}
}
