package trace

import (
	"strings"
	"testing"
)

func TestHashSeesEveryFieldAndByte(t *testing.T) {
	base := func(change func(*Trace)) uint64 {
		var tr Trace
		tr.Time = 1
		tr.Add(ToNode, 2, 3, []byte("0123456789"))
		change(&tr)
		return tr.Hash()
	}
	seen := map[uint64]int{}
	for i, change := range []func(*Trace){
		func(*Trace) {},
		func(tr *Trace) { tr.Add(ToNode, 2, 3, nil) },
		func(tr *Trace) { tr.Time = 2; tr.Add(ToNode, 2, 3, nil) },
		func(tr *Trace) { tr.Add(ToClient, 2, 3, nil) },
		func(tr *Trace) { tr.Add(ToNode, 3, 2, nil) },
		func(tr *Trace) { tr.Add(ToNode, 2, 3, []byte("01234567")) },
		func(tr *Trace) { tr.Add(ToNode, 2, 3, []byte("012345678")) },
		func(tr *Trace) { tr.Add(ToNode, 2, 3, []byte("012345679")) },
	} {
		h := base(change)
		if other, twice := seen[h]; twice {
			t.Fatalf("changes %d and %d have one hash", other, i)
		}
		seen[h] = i
	}
}

func TestKeepingRecordsDoesNotChangeTheHash(t *testing.T) {
	kept, plain := Trace{Keep: true}, Trace{}
	for _, tr := range []*Trace{&kept, &plain} {
		tr.Time = 5
		tr.Add(Boot, 1, 2, nil)
		tr.Note("started")
	}
	if kept.Hash() != plain.Hash() {
		t.Fatal("the hashes differ")
	}
	var b strings.Builder
	if _, err := kept.WriteTo(&b); err != nil || !strings.Contains(b.String(), `"code":"boot","a":1,"b":2,"text":"started"`) {
		t.Fatalf("%v: %s", err, b.String())
	}
}
