package subject

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
)

type pair struct {
	pattern string
	value   int
}

func TestSublistEqualsAListOfPairs(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewSource(seed))
	list := NewSublist[int]()
	var naive []pair
	version := list.Version()
	for step := range 10_000 {
		p := pair{randomSubject(r, []string{"a", "b", "c", "*", ">", "dd"}), r.Intn(4)}
		switch at := slices.Index(naive, p); {
		case !Valid(p.pattern):
		case r.Intn(100) < 45 && len(naive) < 300:
			list.Insert(p.pattern, p.value)
			naive = append(naive, p)
		case list.Remove(p.pattern, p.value) != (at >= 0):
			t.Fatalf("seed %d step %d: Remove(%v)", seed, step, p)
		case at >= 0:
			naive = slices.Delete(naive, at, at+1)
		}
		if list.Len() != len(naive) {
			t.Fatalf("seed %d step %d: Len %d, want %d", seed, step, list.Len(), len(naive))
		}
		literal := randomSubject(r, []string{"a", "b", "c", "*", ">", "dd", "e", ""})
		var want []int
		for _, q := range naive {
			if naiveMatches(literal, q.pattern) {
				want = append(want, q.value)
			}
		}
		got := list.Match([]byte(literal), nil)
		if list.HasMatch([]byte(literal)) != (len(want) > 0) {
			t.Fatalf("seed %d step %d: HasMatch(%q)", seed, step, literal)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d step %d: Match(%q) = %v, want %v", seed, step, literal, got, want)
		}
	}
	for _, p := range naive {
		list.Remove(p.pattern, p.value)
	}
	if root := list.root; len(root.literals) > 0 || root.star != nil || root.tail != nil {
		t.Fatal("levels are left after all pairs were removed")
	}
	if list.Version() == version {
		t.Fatal("the version did not change")
	}
}

func TestVersionStaysWhenNothingChanges(t *testing.T) {
	list := NewSublist[int]()
	list.Insert("a.*", 1)
	version := list.Version()
	list.Match([]byte("a.b"), nil)
	if list.Remove("a.*", 2) || list.Remove("a", 1) || list.Version() != version {
		t.Fatal("a Remove without effect changed the version")
	}
	if !list.Remove("a.*", 1) || list.Version() == version {
		t.Fatal("a Remove with effect kept the version")
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	list := filled(1000)
	subject, room := []byte("orders.77.new"), make([]int, 0, 16)
	if n := testing.AllocsPerRun(100, func() { list.Match(subject, room); list.HasMatch(subject) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func filled(n int) *Sublist[int] {
	list := NewSublist[int]()
	for i := range n {
		list.Insert(fmt.Sprintf("orders.%d.new", i), i)
	}
	list.Insert("orders.*.new", n)
	list.Insert("orders.>", n+1)
	return list
}

func BenchmarkSublistMatch(b *testing.B) {
	list := filled(10_000)
	subject, room := []byte("orders.7777.new"), make([]int, 0, 16)
	b.ReportAllocs()
	for b.Loop() {
		list.Match(subject, room)
	}
}
