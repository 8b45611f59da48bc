package seqset

import (
	"bytes"
	"math"
	"math/rand"
	"slices"
	"testing"
	"unsafe"
)

func TestSetIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Set{}); size != 32 {
		t.Errorf("Set takes %d bytes", size)
	}
	if size := unsafe.Sizeof(chunk{}); size != chunkBytes {
		t.Errorf("chunk takes %d bytes", size)
	}
	if n := testing.AllocsPerRun(100, func() {
		var s Set
		for seq := uint64(10); seq < 10+inlineMax*1e8; seq += 1e8 {
			s.Add(seq)
		}
		s.Remove(10)
		s.Next(11)
	}); n != 0 {
		t.Errorf("%v allocations for %d sequences", n, inlineMax)
	}
}

// twin is the set as a sorted slice.
type twin []uint64

func (w *twin) add(seq uint64) bool {
	i, found := slices.BinarySearch(*w, seq)
	if !found {
		*w = slices.Insert(*w, i, seq)
	}
	return !found
}

func (w *twin) removeRange(first, last uint64) uint64 {
	before := len(*w)
	*w = slices.DeleteFunc(*w, func(seq uint64) bool { return seq >= first && seq <= last })
	return uint64(before - len(*w))
}

func (w twin) runs() (runs [][2]uint64) {
	for _, seq := range w {
		if n := len(runs); n > 0 && runs[n-1][1]+1 == seq {
			runs[n-1][1] = seq
			continue
		}
		runs = append(runs, [2]uint64{seq, seq})
	}
	return runs
}

func (s *Set) runs() (runs [][2]uint64) {
	s.Ranges(func(first, last uint64) bool {
		runs = append(runs, [2]uint64{first, last})
		return true
	})
	return runs
}

// check compares all answers about the sequences near seq, and now and then everything.
func check(t *testing.T, s *Set, w twin, seq uint64, whole bool) {
	t.Helper()
	if s.Len() != uint64(len(w)) {
		t.Fatalf("Len %d, want %d", s.Len(), len(w))
	}
	for _, q := range []uint64{seq - 1, seq, seq + 1, 0, math.MaxUint64} {
		i, found := slices.BinarySearch(w, q)
		if s.Contains(q) != found {
			t.Fatalf("Contains(%d) != %v", q, found)
		}
		next, ok := s.Next(q)
		if ok != (i < len(w)) || (ok && next != w[i]) {
			t.Fatalf("Next(%d) = %d, %v", q, next, ok)
		}
		if found {
			i++
		}
		prev, ok := s.Prev(q)
		if ok != (i > 0) || (ok && prev != w[i-1]) {
			t.Fatalf("Prev(%d) = %d, %v", q, prev, ok)
		}
		if s.Rank(q) != uint64(i) {
			t.Fatalf("Rank(%d) = %d, want %d", q, s.Rank(q), i)
		}
	}
	if !whole {
		return
	}
	if !slices.Equal(s.runs(), w.runs()) {
		t.Fatalf("ranges %v, want %v", s.runs(), w.runs())
	}
	encoded := s.AppendBinary([]byte("x"))[1:]
	var fresh, decoded Set
	for _, seq := range w {
		fresh.Add(seq)
	}
	if !bytes.Equal(encoded, fresh.AppendBinary(nil)) {
		t.Fatal("equal sets encode differently")
	}
	rest, err := decoded.Decode(append(encoded, 1, 2))
	if err != nil || len(rest) != 2 || !slices.Equal(decoded.runs(), w.runs()) {
		t.Fatalf("decoded %v, rest %v, error %v, want %v", decoded.runs(), rest, err, w.runs())
	}
}

// shape of a random workload: where sequences lie and how ranges grow.
type shape struct {
	name           string
	base, span     uint64
	ranges, remove int
	rangeMax       uint64
}

func TestSetEqualsASortedSlice(t *testing.T) {
	shapes := []shape{
		{"few", 1, 12, 10, 55, 4},
		{"one chunk", 1, 3000, 10, 45, 300},
		{"dense across chunks", 1<<16 - 4000, 12000, 5, 45, 2500},
		{"sparse", 1, 1 << 40, 0, 30, 0},
		{"sparse clusters", 5 << 16, 1 << 24, 20, 40, 40},
		{"end of numbers", math.MaxUint64 - 70000, 70000, 10, 40, 900},
		{"wide", 0, 3 << 32, 0, 52, 0},
	}
	for _, sh := range shapes {
		t.Run(sh.name, func(t *testing.T) {
			const seed = 11
			r := rand.New(rand.NewSource(seed))
			var s Set
			var w twin
			for step := range 10_000 {
				seq := sh.base + r.Uint64()%(sh.span+1)
				if r.Intn(3) == 0 && len(w) > 0 {
					seq = w[r.Intn(len(w))]
				}
				randomStep(t, r, sh, seq, &s, &w)
				check(t, &s, w, seq, step%500 == 0)
				if step%2500 == 0 {
					clone := s.Clone()
					clone.AddRange(100, 100_000)
					clone.RemoveRange(sh.base, sh.base+sh.span/2)
				}
			}
			check(t, &s, w, sh.base, true)
		})
	}
}

func randomStep(t *testing.T, r *rand.Rand, sh shape, seq uint64, s *Set, w *twin) {
	t.Helper()
	last := seq
	if r.Intn(100) < sh.ranges {
		last += r.Uint64() % sh.rangeMax
		last = max(last, seq)
		last = min(last, sh.base+sh.span)
		last = max(last, seq)
	}
	removing := r.Intn(100) < sh.remove
	switch {
	case removing && last > seq:
		if got, want := s.RemoveRange(seq, last), w.removeRange(seq, last); got != want {
			t.Fatalf("RemoveRange(%d, %d) = %d, want %d", seq, last, got, want)
		}
	case removing:
		if got, want := s.Remove(seq), w.removeRange(seq, seq) == 1; got != want {
			t.Fatalf("Remove(%d) = %v", seq, got)
		}
	case last > seq:
		s.AddRange(seq, last)
		for q := seq; q <= last && q >= seq; q++ {
			w.add(q)
		}
	default:
		if got, want := s.Add(seq), w.add(seq); got != want {
			t.Fatalf("Add(%d) = %v", seq, got)
		}
	}
}

func TestRunsAndFullBlocksAreCompact(t *testing.T) {
	var s Set
	for seq := uint64(1); seq <= 1_000_000; seq++ {
		s.Add(seq)
	}
	for i := range s.big.chunks {
		if !s.big.chunks[i].isRun() {
			t.Fatalf("chunk %d is not a run", i)
		}
	}
	for seq := uint64(3); seq <= 500_000; seq += 2 {
		s.Remove(seq)
	}
	for seq := uint64(3); seq <= 500_000; seq += 2 {
		s.Add(seq)
	}
	for i := range s.big.chunks {
		if !s.big.chunks[i].isRun() {
			t.Fatalf("chunk %d did not become a run again", i)
		}
	}
	if got := s.AppendBinary(nil); len(got) != 5 {
		t.Fatalf("a single run takes %d bytes", len(got))
	}
}

func TestLargeRangesCostChunksOnly(t *testing.T) {
	var s Set
	s.AddRange(1, MaxLen)
	if removed := s.RemoveRange(1000, MaxLen-1000); removed != MaxLen-1999 {
		t.Fatalf("removed %d", removed)
	}
	if s.Len() != 1999 || s.Rank(MaxLen) != 1999 || s.CountRange(999, MaxLen-999) != 2 {
		t.Fatalf("len %d", s.Len())
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{0})
	f.Add([]byte{1, 5, 0})
	f.Add([]byte{2, 0, 200, 1, 0, 3})
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0})
	f.Add([]byte{2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 1, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		var s Set
		rest, err := s.Decode(data)
		if err != nil {
			if s.Len() != 0 {
				t.Fatal("a failed Decode left sequences")
			}
			return
		}
		if again := s.AppendBinary(nil); !bytes.Equal(again, data[:len(data)-len(rest)]) {
			t.Fatalf("%v decodes to a set that encodes to %v", data, again)
		}
	})
}

func BenchmarkAppendAndDropFront(b *testing.B) {
	var s Set
	s.AddRange(1, 1_000_000)
	seq := uint64(1_000_000)
	b.ReportAllocs()
	for b.Loop() {
		seq++
		s.Add(seq)
		s.Remove(seq - 1_000_000)
	}
}

func BenchmarkRankOfTenMillion(b *testing.B) {
	var s Set
	for seq := uint64(1); seq <= 10_000_000; seq += 3 {
		s.Add(seq)
	}
	for b.Loop() {
		s.Rank(5_000_000)
	}
}
