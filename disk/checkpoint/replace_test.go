package checkpoint

import (
	"errors"
	"iter"
	"math/rand/v2"
	"testing"

	"weir/disk/memfs"
	"weir/disk/vfs"
)

// all yields the sections of a state, and then the error unless it is nil.
func all(sections []Section, err error) iter.Seq2[Section, error] {
	return func(yield func(Section, error) bool) {
		for _, s := range sections {
			if !yield(s, nil) {
				return
			}
		}
		if err != nil {
			yield(Section{}, err)
		}
	}
}

func pinned(p *Pin) (twin, error) {
	t := twin{index: p.Index, sections: map[uint64]string{}}
	for i, id := range p.IDs {
		data, err := p.Read(i)
		if err != nil {
			return t, err
		}
		t.sections[id] = string(data)
	}
	return t, nil
}

// TestPinnedStateStaysReadable writes on behind pins, so much that files are rewritten, and replaces the state.
func TestPinnedStateStaysReadable(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 5))
		fs := memfs.New(memfs.Options{Seed: seed})
		s := NewStore(fs, "c")
		if p, err := s.Pin(); p != nil || err != nil {
			t.Fatalf("pinned nothing as %v, %v", p, err)
		}
		now := twin{}
		type held struct {
			pin  *Pin
			want twin
		}
		var pins []held
		for range 60 {
			switch u := randomUpdate(rng, now, 20_000); rng.IntN(6) {
			case 0:
				p, err := s.Pin()
				must(t, err)
				if p != nil {
					pins = append(pins, held{p, twin{now.index, "", now.sections}})
				}
			case 1:
				if len(pins) > 0 {
					must(t, pins[0].pin.Release())
					pins = pins[1:]
				}
			case 2:
				state, err := Load(fs, "c")
				must(t, err)
				r := Replacement{Index: now.index, Term: 1, Meta: []byte("r"), Sections: all(state.Sections, nil)}
				must(t, s.Replace(&r))
				now = twin{now.index, "r", now.sections}
			default:
				must(t, s.Write(u))
				now = now.apply(u)
			}
			for _, h := range pins {
				if got, err := pinned(h.pin); err != nil || got.String() != h.want.String() {
					t.Fatalf("seed %d: pinned %s is %s, %v", seed, h.want, got, err)
				}
			}
		}
		for _, h := range pins {
			must(t, h.pin.Release())
		}
		must(t, s.Write(Update{Index: now.index + 1, Meta: []byte("end")}))
		if files := fs.Files("c"); len(files) > 1 {
			t.Fatalf("seed %d: files %v are left", seed, files)
		}
	}
}

// TestCrashInReplaceLeavesOldOrNew cuts the power at every call of a Replace, for states that are sound and damaged.
func TestCrashInReplaceLeavesOldOrNew(t *testing.T) {
	for _, strategy := range memfs.Strategies() {
		for _, damaged := range []bool{false, true} {
			for call := uint64(0); ; call++ {
				fs := memfs.New(memfs.Options{Seed: call})
				s := NewStore(fs, "c")
				must(t, s.Write(Update{Index: 9, Put: []Section{{1, []byte("old")}, {2, []byte("gone")}}}))
				if damaged {
					must(t, fs.Damage("c/"+fileName(1), memfs.RotBit, 1))
					s = NewStore(fs, "c")
				}
				last := fs.Ops() + call
				fs.StopAfter(last)
				err := s.Replace(&Replacement{Index: 5, Meta: []byte("m"), Sections: all([]Section{{1, []byte("new")}, {3, nil}}, nil)})
				found, loadErr := Load(fs.Crash(strategy, call), "c")
				got := describe(found)
				isNew := got == `index 5 meta "m": 1=6e6577 3=`
				isOld := got == `index 9 meta "": 1=6f6c64 2=676f6e65` || damaged && errors.Is(loadErr, ErrCorrupt)
				if !isNew && (!isOld || err == nil) {
					t.Fatalf("call %d, %s: %s, %v after %v", call, strategy, got, loadErr, err)
				}
				if fs.Ops() < last {
					must(t, err)
					break
				}
			}
		}
	}
}

// TestReplaceThatFailsLeavesTheOldState ends the sections with an error, and fills the disk.
func TestReplaceThatFailsLeavesTheOldState(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	s := NewStore(fs, "c")
	must(t, s.Write(Update{Index: 1, Put: []Section{{1, []byte("old")}}}))
	stop := errors.New("stop")
	if err := s.Replace(&Replacement{Index: 2, Sections: all([]Section{{1, []byte("new")}}, stop)}); !errors.Is(err, stop) {
		t.Fatalf("got %v, want the error of the sections", err)
	}
	fs.SetCapacity(fs.Used() + 1)
	if err := s.Replace(&Replacement{Index: 2, Sections: all([]Section{{1, make([]byte, 5000)}}, nil)}); !errors.Is(err, vfs.ErrNoSpace) {
		t.Fatalf("got %v, want ErrNoSpace", err)
	}
	fs.SetCapacity(0)
	must(t, s.Write(Update{Index: 3, Put: []Section{{2, []byte("more")}}}))
	state, err := Load(fs, "c")
	must(t, err)
	if got := describe(state); got != `index 3 meta "": 1=6f6c64 2=6d6f7265` {
		t.Fatalf("the state is %s", got)
	}
	must(t, s.Verify())
	must(t, fs.Damage("c/"+fileName(1), memfs.RotBit, 50))
	if err := s.Verify(); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("got %v, want ErrCorrupt", err)
	}
}
