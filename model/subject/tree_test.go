package subject

import (
	"bytes"
	"fmt"
	"math/rand"
	"runtime"
	"slices"
	"sort"
	"strings"
	"testing"
)

// naiveTree is a sorted list of subjects and a map of their values.
type naiveTree struct {
	subjects []string
	values   map[string]int
}

func (n *naiveTree) put(subject string, v int) {
	if _, ok := n.values[subject]; !ok {
		i := sort.SearchStrings(n.subjects, subject)
		n.subjects = slices.Insert(n.subjects, i, subject)
	}
	n.values[subject] = v
}

func (n *naiveTree) delete(subject string) bool {
	_, ok := n.values[subject]
	if ok {
		i := sort.SearchStrings(n.subjects, subject)
		n.subjects = slices.Delete(n.subjects, i, i+1)
		delete(n.values, subject)
	}
	return ok
}

func (n *naiveTree) query(pattern, from string) (found []string) {
	for _, s := range n.subjects {
		if s >= from && naiveMatches(s, pattern) {
			found = append(found, fmt.Sprint(s, "=", n.values[s]))
		}
	}
	return found
}

// verify checks the invariants that branch states, and the order of all keys.
func verify[V any](t *testing.T, tree *Tree[V]) {
	t.Helper()
	if tree.root == nil {
		return
	}
	type bounded struct {
		at    *branch[V]
		lower []byte
	}
	depths := map[int]bool{}
	layer := []bounded{{tree.root, nil}}
	for depth := 0; len(layer) > 0; depth++ {
		var next []bounded
		for _, b := range layer {
			if (b.at.below.len() > 0) == (b.at.leaves.len() > 0) {
				t.Fatalf("a branch has %d branches and %d leaves", b.at.below.len(), b.at.leaves.len())
			}
			checkBranchKeys(t, &b.at.below, b.lower)
			checkBranchKeys(t, &b.at.leaves, b.lower)
			for i := range b.at.below.len() {
				next = append(next, bounded{b.at.below.values[i], b.at.below.appendKey(nil, i)})
			}
			for i, leaf := range b.at.leaves.values {
				depths[depth] = true
				if leaf.len() == 0 {
					t.Fatal("a leaf is empty")
				}
				if first := leaf.appendKey(nil, 0); bytes.Compare(first, b.at.leaves.appendKey(nil, i)) < 0 {
					t.Fatalf("leaf begins with %q below its separator", first)
				}
			}
		}
		layer = next
	}
	if len(depths) != 1 {
		t.Fatalf("leaves on levels %v", depths)
	}
}

func checkBranchKeys[T any](t *testing.T, p *page[T], lower []byte) {
	t.Helper()
	for i := range p.len() {
		key := p.appendKey(nil, i)
		if i == 0 && !bytes.Equal(key, lower) {
			t.Fatalf("first key %q, lower bound %q", key, lower)
		}
		if i > 0 && bytes.Compare(key, p.appendKey(nil, i-1)) <= 0 {
			t.Fatalf("key %q is not ascending", key)
		}
	}
}

func TestTreeEqualsASortedList(t *testing.T) {
	tokens := []string{"a", "b", "c", "a-b", "b!", "orders", "orders-eu", "0", "zz", "*", ">", "\x00", "b/"}
	for i := range 30 {
		tokens = append(tokens, fmt.Sprintf("key%d", i))
	}
	patterns := []string{">", "*", "*.*", "a.>", "*.b.>", "a.*.c", "orders.*", "*.orders.*", "key1.key2", "*.*.key7", "*.*.*.*",
		"orders.*.*.b!", "b.*.>", "nothing.>", "orders.nothing.*", "a.*.a.*"}
	for _, growing := range []int{80, 50, 20} {
		seed := int64(growing)
		r := rand.New(rand.NewSource(seed))
		var tree Tree[int]
		naive := naiveTree{values: map[string]int{}}
		for step := range 12_000 {
			s := randomSubject(r, tokens)
			if r.Intn(2) == 0 && len(naive.subjects) > 0 {
				s = naive.subjects[r.Intn(len(naive.subjects))]
			}
			inserting := r.Intn(100) < growing
			if step/3000 == 3 {
				inserting = false
			}
			if inserting {
				if got := tree.Put([]byte(s), step); *got != step {
					t.Fatalf("seed %d step %d: Put(%q) leads to %d", seed, step, s, *got)
				}
				naive.put(s, step)
			} else if tree.Delete([]byte(s)) != naive.delete(s) {
				t.Fatalf("seed %d step %d: Delete(%q)", seed, step, s)
			}
			want, ok := naive.values[s]
			if got := tree.Get([]byte(s)); (got != nil) != ok || (ok && *got != want) {
				t.Fatalf("seed %d step %d: Get(%q) = %v, want %d %v", seed, step, s, got, want, ok)
			}
			if tree.Len() != len(naive.subjects) {
				t.Fatalf("seed %d step %d: Len %d", seed, step, tree.Len())
			}
			if step%50 == 0 {
				verify(t, &tree)
				from := ""
				if r.Intn(2) == 0 {
					from = randomSubject(r, tokens)
				}
				checkQuery(t, &tree, &naive, patterns[r.Intn(len(patterns))], from)
			}
		}
	}
}

func checkQuery(t *testing.T, tree *Tree[int], naive *naiveTree, pattern, from string) {
	t.Helper()
	want := naive.query(pattern, from)
	var got []string
	tree.QueryFrom([]byte(pattern), []byte(from), func(subject []byte, v *int) bool {
		got = append(got, fmt.Sprint(string(subject), "=", *v))
		return true
	})
	if !slices.Equal(got, want) {
		t.Fatalf("query %q from %q of %d: got %d, want %d\n%q\n%q", pattern, from, tree.Len(), len(got), len(want), got, want)
	}
	// Paging by single steps finds the same.
	paged, next := 0, []byte(from)
	for found := true; found && paged < 50; {
		found = false
		tree.QueryFrom([]byte(pattern), next, func(subject []byte, v *int) bool {
			if fmt.Sprint(string(subject), "=", *v) != want[paged] {
				t.Fatalf("page %d of %q is %q, want %q", paged, pattern, subject, want[paged])
			}
			next = append(append(next[:0], subject...), 0)
			paged, found = paged+1, true
			return false
		})
	}
	if paged != min(50, len(want)) {
		t.Fatalf("%d pages, want %d", paged, len(want))
	}
}

func TestTreeOfLongSubjects(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	var tree Tree[int]
	naive := naiveTree{values: map[string]int{}}
	for i := range 400 {
		s := strings.Repeat("long.", r.Intn(2000)) + fmt.Sprint(i)
		tree.Put([]byte(s), i)
		naive.put(s, i)
	}
	verify(t, &tree)
	checkQuery(t, &tree, &naive, ">", "")
	for _, s := range slices.Clone(naive.subjects) {
		if !tree.Delete([]byte(s)) {
			t.Fatalf("lost a subject of %d bytes", len(s))
		}
		verify(t, &tree)
	}
}

func TestQuerySkipsWhatCannotMatch(t *testing.T) {
	var tree Tree[int]
	for i := range 100 {
		for j := range 500 {
			tree.Put(fmt.Appendf(nil, "s.%03d.%03d", i, j), 0)
		}
	}
	seen := 0
	allocated := testing.AllocsPerRun(10, func() {
		seen = 0
		tree.Query([]byte("s.*.499"), func(_ []byte, _ *int) bool {
			seen++
			return true
		})
	})
	if seen != 100 || allocated > 10 {
		t.Fatalf("%d found, %v allocations", seen, allocated)
	}
}

func TestTreeTakesFewBytesPerSubject(t *testing.T) {
	measure := func(order func(i int) int) float64 {
		const n = 500_000
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var tree Tree[uint32]
		var buf []byte
		for i := range n {
			buf = fmt.Appendf(buf[:0], "$KV.bucket.user.%08d", order(i))
			tree.Put(buf, uint32(i))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(&tree)
		return float64(after.HeapAlloc-before.HeapAlloc) / n
	}
	ascending := measure(func(i int) int { return i })
	scattered := measure(func(i int) int { return i * 7919 % 500_000 })
	t.Logf("bytes per subject: %.1f ascending, %.1f scattered", ascending, scattered)
	if ascending > 20 || scattered > 30 {
		t.Fatalf("bytes per subject: %.1f ascending, %.1f scattered", ascending, scattered)
	}
}

func BenchmarkTreeGetOfMillion(b *testing.B) {
	var tree Tree[uint32]
	keys := make([][]byte, 1<<20)
	for i := range keys {
		keys[i] = fmt.Appendf(nil, "$KV.bucket.user.%08d", i)
		tree.Put(keys[i], uint32(i))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		tree.Get(keys[i*7919&(1<<20-1)])
	}
}
