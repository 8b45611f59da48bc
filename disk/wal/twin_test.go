package wal

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"weir/disk/memfs"
)

// twin is the naive log: what each group has, as one string per group.
type twin map[GroupID]twinGroup

type twinGroup struct {
	hardState HardState
	hasHard   bool
	meta      string
	compact   uint64
	last      uint64
	entries   map[uint64]string
}

func (t twin) clone() twin {
	c := twin{}
	for id, g := range t {
		g.entries = maps.Clone(g.entries)
		c[id] = g
	}
	return c
}

func (t twin) apply(w Write) {
	if w.Drop {
		delete(t, w.Group)
		return
	}
	g, ok := t[w.Group]
	if !ok || w.Reset {
		g = twinGroup{entries: map[uint64]string{}}
	}
	if w.HasHardState {
		g.hardState, g.hasHard = w.HardState, true
	}
	if w.Meta != nil {
		g.meta = string(w.Meta)
	}
	g.last = max(g.last, w.Compact)
	for i, e := range w.Entries {
		if i == 0 {
			maps.DeleteFunc(g.entries, func(at uint64, _ string) bool { return at >= e.Index })
		}
		g.entries[e.Index] = fmt.Sprintf("%d/%d/%x", e.Term, e.Type, e.Data)
		g.last = e.Index
	}
	g.compact = max(g.compact, w.Compact)
	maps.DeleteFunc(g.entries, func(at uint64, _ string) bool { return at <= g.compact })
	t[w.Group] = g
}

func (g twinGroup) String() string {
	s := fmt.Sprintf("hard %v %t meta %q compact %d:", g.hardState, g.hasHard, g.meta, g.compact)
	for _, at := range slices.Sorted(maps.Keys(g.entries)) {
		s += fmt.Sprintf(" %d=%s", at, g.entries[at])
	}
	return s
}

func describe(g Group) string {
	t := twinGroup{hardState: g.HardState, hasHard: g.HasHardState, meta: string(g.Meta), compact: g.Compact, entries: map[uint64]string{}}
	for _, e := range g.Entries {
		t.entries[e.Index] = fmt.Sprintf("%d/%d/%x", e.Term, e.Type, e.Data)
	}
	return t.String()
}

// check reports whether every group of the recovered log is as in one of the versions, the same or not for each group,
// and no group is missing that all versions have.
func check(rec Recovered, versions []twin, damaged map[GroupID]bool) error {
	seen := map[GroupID]bool{}
	for _, g := range rec.Groups {
		seen[g.ID] = true
		ok := false
		for _, v := range versions {
			if have, there := v[g.ID]; there && have.String() == describe(g) {
				ok = true
			}
		}
		if !ok {
			return fmt.Errorf("group %d recovered as\n%s\nwant as in\n%s", g.ID, describe(g), versions[0][g.ID])
		}
	}
	for id := range versions[0] {
		missing := !seen[id] && !damaged[id]
		for _, v := range versions {
			if _, there := v[id]; !there {
				missing = false // it may have been dropped
			}
		}
		if missing {
			return fmt.Errorf("group %d is lost: %s", id, versions[0][id])
		}
	}
	return nil
}

// generator makes random appends that fit a twin.
type generator struct {
	rng  *rand.Rand
	next GroupID
}

func (g *generator) writes(t twin) []Write {
	var ws []Write
	used := map[GroupID]bool{}
	for range 1 + g.rng.IntN(3) {
		var id GroupID
		if ids := slices.Sorted(maps.Keys(t)); len(ids) > 0 && g.rng.IntN(6) > 0 {
			id = ids[g.rng.IntN(len(ids))]
		} else if len(ids) < 6 {
			g.next++
			id = g.next
			if again := 1 + g.rng.Uint64N(uint64(g.next)); g.rng.IntN(2) == 0 && !slices.Contains(ids, GroupID(again)) {
				id = GroupID(again) // the id of a group that has ended, perhaps
			}
		}
		if id == 0 || used[id] {
			continue
		}
		used[id] = true
		ws = append(ws, g.write(id, t))
	}
	return ws
}

func (g *generator) write(id GroupID, t twin) Write {
	w := Write{Group: id}
	have, known := t[id]
	if known && g.rng.IntN(30) == 0 {
		w.Drop = true
		return w
	}
	last := have.last
	if known && g.rng.IntN(40) == 0 { // a snapshot is installed
		w.Reset, w.Compact, last = true, last+uint64(g.rng.IntN(5)), 0
		last = w.Compact
	} else if g.rng.IntN(4) == 0 && last > have.compact {
		w.Compact = have.compact + 1 + g.rng.Uint64N(last-have.compact)
	}
	if w.Reset || g.rng.IntN(3) == 0 {
		w.HasHardState = true
		w.HardState = HardState{g.rng.Uint64N(9), g.rng.Uint64N(4), last}
	}
	if w.Reset || g.rng.IntN(5) == 0 {
		w.Meta = fmt.Appendf(nil, "meta-%d", g.rng.IntN(100))
	}
	first := last + 1
	floor := max(have.compact, w.Compact)
	if !w.Reset && last > floor && g.rng.IntN(8) == 0 {
		first = floor + 1 + g.rng.Uint64N(last-floor)
	}
	for i := range g.rng.Uint64N(5) {
		data := bytes.Repeat([]byte{byte(g.rng.IntN(256))}, g.rng.IntN(300))
		w.Entries = append(w.Entries, Entry{Term: g.rng.Uint64N(9), Index: first + i, Type: uint8(g.rng.IntN(3)), Data: data})
	}
	if len(w.Entries) == 0 && !w.HasHardState && w.Meta == nil && w.Compact == 0 {
		w.HasHardState = true
	}
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestReopenedLogEqualsTwin(t *testing.T) {
	for seed := range uint64(30) {
		gen := generator{rng: rand.New(rand.NewPCG(seed, 1))}
		fs := memfs.New(memfs.Options{})
		state := twin{}
		opts := Options{SegmentBytes: 8192, Lazy: seed%4 == 3}
		l, _, err := Open(fs, "wal", opts)
		must(t, err)
		for i := range 400 {
			if ws := gen.writes(state); len(ws) > 0 {
				must(t, l.Append(ws))
				for _, w := range ws {
					state.apply(w)
				}
			}
			if gen.rng.IntN(3) == 0 {
				_, err := l.PrepareNext(4096)
				must(t, err)
			}
			if gen.rng.IntN(20) == 0 {
				must(t, l.Close())
				var rec Recovered
				l, rec, err = Open(fs, "wal", opts)
				must(t, err)
				if len(rec.Damaged)+len(rec.Notes) > 0 {
					t.Fatalf("seed %d step %d: %v %v", seed, i, rec.Damaged, rec.Notes)
				}
				if err := check(rec, []twin{state}, nil); err != nil {
					t.Fatalf("seed %d step %d: %v", seed, i, err)
				}
			}
		}
		if n := l.Stats().Segments; n > 40 {
			t.Fatalf("seed %d: %d live segments", seed, n)
		}
	}
}
