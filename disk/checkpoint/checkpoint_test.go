package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"weir/disk/memfs"
	"weir/disk/record"
	"weir/disk/vfs"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// twin is the naive checkpoint.
type twin struct {
	index    uint64
	meta     string
	sections map[uint64]string
}

func (t twin) apply(u Update) twin {
	next := twin{u.Index, string(u.Meta), maps.Clone(t.sections)}
	if next.sections == nil {
		next.sections = map[uint64]string{}
	}
	for _, s := range u.Put {
		next.sections[s.ID] = string(s.Data)
	}
	for _, id := range u.Delete {
		delete(next.sections, id)
	}
	return next
}

func (t twin) String() string {
	s := fmt.Sprintf("index %d meta %q:", t.index, t.meta)
	for _, id := range slices.Sorted(maps.Keys(t.sections)) {
		s += fmt.Sprintf(" %d=%x", id, t.sections[id])
	}
	return s
}

func describe(s State) string {
	t := twin{s.Index, string(s.Meta), map[uint64]string{}}
	for _, section := range s.Sections {
		t.sections[section.ID] = string(section.Data)
	}
	return t.String()
}

func randomUpdate(rng *rand.Rand, t twin, sizeMax int) Update {
	u := Update{Index: t.index + 1 + rng.Uint64N(5), Term: 2, Meta: fmt.Appendf(nil, "m%d", rng.IntN(50))}
	put := map[uint64]bool{}
	for range rng.IntN(6) {
		id := rng.Uint64N(12)
		if !put[id] {
			put[id] = true
			u.Put = append(u.Put, Section{id, bytes.Repeat([]byte{byte(rng.IntN(256))}, rng.IntN(sizeMax))})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(t.sections)) {
		if !put[id] && rng.IntN(8) == 0 {
			u.Delete = append(u.Delete, id)
		}
	}
	return u
}

func TestLoadedStateEqualsTwin(t *testing.T) {
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 1))
		fs := memfs.New(memfs.Options{})
		s := NewStore(fs, "g/ckpt")
		state := twin{}
		for i := range 300 {
			u := randomUpdate(rng, state, 3000)
			state = state.apply(u)
			must(t, s.Write(u))
			if rng.IntN(10) == 0 {
				must(t, s.Close())
				s = NewStore(fs, "g/ckpt")
				got, err := s.Load()
				must(t, err)
				if describe(got) != state.String() {
					t.Fatalf("seed %d step %d: got\n%s\nwant\n%s", seed, i, describe(got), state)
				}
			}
		}
		if s.generation < 5 {
			t.Fatalf("seed %d: %d generations: garbage is not collected", seed, s.generation)
		}
		if files := fs.Files("g/ckpt"); len(files) != 1 {
			t.Fatalf("seed %d: files are left: %v", seed, files)
		}
	}
}

func TestWithoutFileThereIsNoCheckpoint(t *testing.T) {
	got, err := Load(memfs.New(memfs.Options{}), "g/ckpt")
	if err != nil || got.Index != 0 || got.Sections != nil {
		t.Fatalf("got %v, %v", got, err)
	}
}

// TestCrashAtEveryCallKeepsOneState crashes at every call, and once more during what follows.
func TestCrashAtEveryCallKeepsOneState(t *testing.T) {
	states := 0
	for seed := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 2))
		fs := memfs.New(memfs.Options{Seed: seed})
		durable, newest := twin{}, twin{}
		var failure error
		busy := false
		fs.OnOp(func(op memfs.Op) {
			if busy || failure != nil || op.Kind&memfs.OpChanges == 0 {
				return
			}
			busy = true
			defer func() { busy = false }()
			for _, strategy := range memfs.Strategies() {
				key := memfs.Hash(seed, "crash", op.Number, uint64(strategy))
				states++
				if err := recoverTwice(fs.Crash(strategy, key), key, durable, newest); err != nil {
					failure = fmt.Errorf("seed %d: op %d (%s), %s: %w", seed, op.Number, op, strategy, err)
					return
				}
			}
		})
		s := NewStore(fs, "g/ckpt")
		for range 28 {
			u := randomUpdate(rng, newest, 9000)
			newest = newest.apply(u)
			must(t, s.Write(u))
			durable = newest
		}
		must(t, failure)
		if s.generation < 3 {
			t.Fatalf("seed %d: %d generations", seed, s.generation)
		}
	}
	t.Logf("%d crash states", states)
}

func recoverTwice(fs *memfs.FS, key uint64, durable, newest twin) error {
	got, err := Load(fs, "g/ckpt")
	if err != nil {
		return err
	}
	text := describe(got)
	if text != durable.String() && text != newest.String() {
		return fmt.Errorf("got\n%s\nwant\n%s\nor\n%s", text, durable, newest)
	}
	have := durable
	if text == newest.String() {
		have = newest
	}
	next := have.apply(Update{Index: have.index + 7, Put: []Section{{99, []byte("more")}}})
	var inner error
	at := 1 + memfs.Hash(key, "second")%16
	fs.OnOp(func(op memfs.Op) {
		if op.Number != at {
			return
		}
		strategy := memfs.Strategies()[memfs.Hash(key, "strategy")%9]
		again, err := Load(fs.Crash(strategy, key), "g/ckpt")
		if err != nil {
			inner = err
			return
		}
		if text := describe(again); text != durable.String() && text != have.String() && text != next.String() {
			inner = fmt.Errorf("second crash at %d: got %s", at, text)
		}
	})
	s := NewStore(fs, "g/ckpt")
	if err := s.Write(Update{Index: have.index + 7, Put: []Section{{99, []byte("more")}}}); err != nil {
		return err
	}
	again, err := Load(fs.Crash(memfs.LoseAll, key), "g/ckpt")
	if err != nil {
		return err
	}
	if describe(again) != next.String() {
		return fmt.Errorf("after one more write: got\n%s\nwant\n%s", describe(again), next)
	}
	return inner
}

func TestDamageIsCorruptOrTheStateBefore(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	fs := memfs.New(memfs.Options{})
	s := NewStore(fs, "g/ckpt")
	state, before := twin{}, twin{}
	for range 8 {
		u := randomUpdate(rng, state, 300)
		before, state = state, state.apply(u)
		must(t, s.Write(u))
	}
	start := s.last.start
	name := fs.Files("g/ckpt")[0]
	corrupt := 0
	for off := range fs.Size(name) {
		image := fs.Crash(memfs.KeepAll, 0)
		must(t, image.Damage(name, memfs.RotBit, off))
		got, err := Load(image, "g/ckpt")
		switch {
		case errors.Is(err, ErrCorrupt):
			corrupt++
			if off >= start {
				t.Fatalf("offset %d of the last update, which starts at %d, reads as corrupt", off, start)
			}
		case errors.Is(err, ErrVersion):
			t.Fatalf("offset %d: %v", off, err)
		case err != nil:
			t.Fatal(err)
		case describe(got) != state.String() && (off < start || describe(got) != before.String()):
			t.Fatalf("offset %d: got\n%s", off, describe(got))
		}
	}
	if corrupt == 0 {
		t.Fatal("no damage was noticed")
	}
}

func TestUnreadableCheckpointIsCorrupt(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	must(t, NewStore(fs, "g").Write(Update{Index: 1, Put: []Section{{1, []byte("x")}}}))
	must(t, fs.Damage(fs.Files("g")[0], memfs.RotUnreadable, 0))
	if _, err := Load(fs, "g"); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("got %v, want ErrCorrupt", err)
	}
}

func TestFailedSyncEndsTheStore(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	s := NewStore(fs, "g")
	must(t, s.Write(Update{Index: 1, Put: []Section{{1, []byte("x")}}}))
	fs.Inject(memfs.Fault{On: memfs.OpSync, Times: 1, Err: vfs.ErrIO})
	first := s.Write(Update{Index: 2})
	if !errors.Is(first, vfs.ErrIO) {
		t.Fatalf("got %v, want ErrIO", first)
	}
	if err := s.Write(Update{Index: 3}); !errors.Is(err, first) {
		t.Fatalf("got %v, want the first error", err)
	}
}

func TestFullDiskLeavesTheStateAndPasses(t *testing.T) {
	for budget := int64(0); budget < 6000; budget += 250 {
		fs := memfs.New(memfs.Options{CapacityBytes: 3000 + budget})
		s := NewStore(fs, "g")
		state := twin{}
		put := Update{Index: 1, Put: []Section{{1, make([]byte, 1000)}}}
		must(t, s.Write(put))
		state = state.apply(put)
		u := Update{Index: 2, Put: []Section{{2, make([]byte, 5000)}}}
		err := s.Write(u)
		if err != nil && !errors.Is(err, vfs.ErrNoSpace) {
			t.Fatalf("budget %d: %v", budget, err)
		}
		if err == nil {
			state = state.apply(u)
		}
		got, err := Load(fs, "g")
		must(t, err)
		if describe(got) != state.String() {
			t.Fatalf("budget %d: got %s", budget, describe(got))
		}
		fs.SetCapacity(0)
		u.Index = 3
		u.Put = append(u.Put, Section{3, []byte("y")})
		must(t, s.Write(u))
		got, err = Load(fs, "g")
		must(t, err)
		if describe(got) != state.apply(u).String() {
			t.Fatalf("budget %d: after space returned: %s", budget, describe(got))
		}
	}
}

func TestUnknownVersionIsRefused(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	must(t, fs.MkdirAll("g"))
	f, err := fs.Create("g/" + fileName(1))
	must(t, err)
	header := binary.LittleEndian.AppendUint16(nil, version+1)
	_, err = f.WriteAt(record.Append(nil, frameHeader, header, record.Place{Segment: 1}), 0)
	must(t, err)
	if _, err := Load(fs, "g"); !errors.Is(err, ErrVersion) {
		t.Fatalf("got %v, want ErrVersion", err)
	}
}

func FuzzParse(f *testing.F) {
	fs := memfs.New(memfs.Options{})
	s := NewStore(fs, "g")
	for i := uint64(1); i < 4; i++ {
		if err := s.Write(Update{Index: i, Put: []Section{{i, []byte("data")}}, Delete: []uint64{i - 1}}); err != nil {
			f.Fatal(err)
		}
	}
	data, err := vfs.ReadFile(fs, "g/"+fileName(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parse(data, 1)
		if err == nil {
			got.state(data)
		}
	})
}
