package keyed

import "testing"

func TestDrawsDependOnContentAlone(t *testing.T) {
	k := Key(7)
	first := k.Draw("net", 1, 2)
	k.Draw("disk", 9)
	if k.Draw("net", 1, 2) != first {
		t.Fatal("another draw moved this one")
	}
	if k.Draw("net", 2, 1) == first || k.Draw("disk", 1, 2) == first || Key(8).Draw("net", 1, 2) == first {
		t.Fatal("different content, same draw")
	}
}

func TestExponentialHasItsMean(t *testing.T) {
	const mean, count = 10_000, 200_000
	sum := int64(0)
	for i := range uint64(count) {
		v := Key(1).Exp(mean, "x", i)
		if v < 0 || v > 50*mean {
			t.Fatalf("draw %d is %d", i, v)
		}
		sum += v
	}
	if got := sum / count; got < mean*95/100 || got > mean*105/100 {
		t.Fatalf("mean is %d, want about %d", got, mean)
	}
}

func TestRangesAreKept(t *testing.T) {
	r := Key(3).Rand("range")
	low, high := false, false
	for range 10_000 {
		v := r.LogBetween(50, 100_000)
		if v < 50 || v > 100_000 {
			t.Fatalf("%d is outside [50, 100000]", v)
		}
		low, high = low || v < 200, high || v > 50_000
		if b := r.Between(3, 5); b < 3 || b > 5 {
			t.Fatalf("%d is outside [3, 5]", b)
		}
	}
	if !low || !high {
		t.Fatal("one end of the range never comes up")
	}
}
