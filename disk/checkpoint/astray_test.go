package checkpoint

import (
	"errors"
	"math/rand/v2"
	"testing"

	"weir/disk/memfs"
)

// TestWritesThatTheDeviceLostAreFoundOut has the device say yes to writes that it loses or puts elsewhere, while the store
// goes on: nothing that it reads back is taken for what was written, and a file of the next generation holds the state.
func TestWritesThatTheDeviceLostAreFoundOut(t *testing.T) {
	outcomes := map[string]int{}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 11))
		fs := memfs.New(memfs.Options{Seed: seed})
		s, now := NewStore(fs, "c"), twin{}
		must(t, s.Write(Update{Index: 1, Term: 2, Put: []Section{{1, make([]byte, 1000)}}}))
		now = now.apply(Update{Index: 1, Put: []Section{{1, make([]byte, 1000)}}})
		at := rng.IntN(30)
		var failed error
		for i := 0; i < 60 && failed == nil; i++ {
			if i == at {
				fs.Inject(memfs.Fault{On: memfs.OpWrite, Times: 1, Lose: seed%2 == 0, Astray: seed%2 == 1})
			}
			u, generation := randomUpdate(rng, now, 9000), s.generation
			if failed = s.Write(u); failed != nil {
				break
			}
			now = now.apply(u)
			got, err := Load(fs, "c")
			switch {
			case err == nil && describe(got) == now.String():
			case err == nil && i == at: // the last update is lost, and nothing is behind it
				outcomes["lost"]++
			case !errors.Is(err, ErrCorrupt):
				t.Fatalf("seed %d: update %d reads as\n%s\nwant\n%s\n%v", seed, i, describe(got), now, err)
			case s.generation > generation && i != at:
				t.Fatalf("seed %d: generation %d is damaged: %v", seed, s.generation, err)
			}
			for id := range now.sections {
				if data, err := s.Section(id); err == nil && string(data) != now.sections[id] || err != nil && !errors.Is(err, ErrCorrupt) {
					t.Fatalf("seed %d: section %d reads as %x, %v", seed, id, data, err)
				}
			}
		}
		switch {
		case failed == nil:
			outcomes["mended"]++ // nothing that the next generation keeps was concerned
		case errors.Is(failed, ErrCorrupt):
			outcomes["found"]++
		default:
			t.Fatalf("seed %d: got %v, want ErrCorrupt", seed, failed)
		}
	}
	if outcomes["lost"] == 0 || outcomes["mended"] == 0 || outcomes["found"] == 0 {
		t.Fatalf("outcomes are %v", outcomes)
	}
}
