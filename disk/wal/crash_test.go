package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"weir/disk/memfs"
	"weir/disk/record"
	"weir/disk/vfs"
)

// crashRun drives a log and, at every call to the disk, checks what every crash there would leave.
type crashRun struct {
	opts     Options
	versions []twin // since the newest durable one
	depth    int
	states   int
	failure  error
}

// watch checks the crashes at every call of the disk.
func (c *crashRun) watch(fs *memfs.FS, seed uint64) {
	busy := false
	fs.OnOp(func(op memfs.Op) {
		if busy || op.Kind&memfs.OpChanges == 0 || c.failure != nil {
			return
		}
		busy = true
		defer func() { busy = false }()
		for _, s := range memfs.Strategies() {
			key := memfs.Hash(seed, "crash", op.Number, uint64(s))
			if err := c.recover(fs.Crash(s, key), key, c.depth); err != nil {
				c.failure = fmt.Errorf("op %d (%s), %s, depth %d: %w", op.Number, op, s, c.depth, err)
				return
			}
		}
	})
}

// recover opens an image and checks it; on the way one more crash, at a keyed call, is tried.
func (c *crashRun) recover(fs *memfs.FS, key uint64, depth int) error {
	c.states++
	var inner error
	if depth > 0 {
		at := 1 + memfs.Hash(key, "second")%14
		fs.OnOp(func(op memfs.Op) {
			if op.Number != at {
				return
			}
			s := memfs.Strategies()[memfs.Hash(key, "strategy")%uint64(len(memfs.Strategies()))]
			inner = c.recover(fs.Crash(s, key+1), key+1, depth-1)
		})
	}
	l, rec, err := Open(fs, "wal", c.opts)
	if err != nil {
		return err
	}
	if len(rec.Damaged) > 0 {
		return rec.Damaged[0].Err
	}
	if err := check(rec, c.versions, nil); err != nil {
		return err
	}
	if err := leftovers(fs, l); err != nil {
		return err
	}
	if err := durable(fs, rec, c.opts); err != nil {
		return err
	}
	// A little more work must not disturb what was recovered.
	versions := c.versions
	if err := l.Append([]Write{{Group: 1 << 40, Entries: []Entry{{Term: 1, Index: 1, Data: []byte("x")}}}}); err != nil {
		return err
	}
	if c.opts.Lazy {
		if err := l.Sync(); err != nil {
			return err
		}
	}
	_, rec, err = Open(fs.Crash(memfs.LoseAll, key), "wal", c.opts)
	if err != nil {
		return fmt.Errorf("opened again: %w", err)
	}
	if n := len(rec.Groups); n == 0 || rec.Groups[n-1].ID != 1<<40 {
		return errors.New("an append after the recovery is lost")
	}
	rec.Groups = rec.Groups[:len(rec.Groups)-1]
	if err := check(rec, versions, nil); err != nil {
		return fmt.Errorf("opened again: %w", err)
	}
	return inner
}

// leftovers returns an error for a frame of a torn append behind the end of an open log: an append that happens to end
// right before such a frame would bring it back to life.
func leftovers(fs *memfs.FS, l *Log) error {
	data, err := vfs.ReadFile(fs, "wal/"+segmentName(l.id))
	if err != nil {
		return err
	}
	end := min(l.off, int64(len(data)))
	if at, ok := record.Find(data[end:], record.Place{Segment: l.id, Offset: end}); ok {
		return fmt.Errorf("segment %d ends at %d and holds a frame at %d", l.id, end, at)
	}
	return nil
}

// durable returns an error when a power loss right after a recovery takes something of what was recovered.
func durable(fs *memfs.FS, rec Recovered, opts Options) error {
	if sectors, names := fs.Unsynced(); sectors+names == 0 {
		return nil
	}
	_, again, err := Open(fs.Crash(memfs.LoseAll, 0), "wal", opts)
	if err == nil && (len(rec.Groups)+len(again.Groups) > 0 && !reflect.DeepEqual(rec.Groups, again.Groups)) {
		err = errors.New("a power loss after the recovery takes what was recovered")
	}
	return err
}

func enumerate(t *testing.T, seed uint64, opts Options) (int, error) {
	gen := generator{rng: rand.New(rand.NewPCG(seed, 7))}
	fs := memfs.New(memfs.Options{Seed: seed})
	c := crashRun{opts: opts, versions: []twin{{}}, depth: 1}
	c.watch(fs, seed)
	l, _, err := Open(fs, "wal", opts)
	must(t, err)
	for range 25 {
		state := c.versions[len(c.versions)-1].clone()
		ws := gen.writes(state)
		if len(ws) == 0 {
			continue
		}
		for _, w := range ws {
			state.apply(w)
		}
		c.versions = append(c.versions, state)
		must(t, l.Append(ws))
		if opts.Lazy && gen.rng.IntN(5) == 0 {
			must(t, l.Sync())
		}
		if !opts.Lazy || l.synced == l.off {
			c.versions = []twin{state}
		}
		if gen.rng.IntN(4) == 0 {
			_, err := l.PrepareNext(4096)
			must(t, err)
		}
		if gen.rng.IntN(10) == 0 {
			must(t, l.SaveMark())
		}
	}
	return c.states, c.failure
}

func TestCrashAtEveryCallLosesNothingAcknowledged(t *testing.T) {
	states := 0
	for seed := range uint64(4) {
		n, err := enumerate(t, seed, Options{SegmentBytes: 8192, Lazy: seed%4 == 3})
		states += n
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	t.Logf("%d crash states", states)
}

func TestPlantedFaultsAreCaughtByCrashes(t *testing.T) {
	for name, plant := range map[string]Plant{"AckBeforeSync": {AckBeforeSync: true}, "NoSyncDir": {NoSyncDir: true}} {
		caught := false
		for seed := range uint64(16) {
			if _, err := enumerate(t, seed, Options{SegmentBytes: 8192, Plant: plant}); err != nil {
				caught = true
				break
			}
		}
		if !caught {
			t.Errorf("%s is not caught", name)
		}
	}
}

// filled returns a closed log of several segments with its twin, the mark saved.
func filled(t *testing.T, seed uint64) (*memfs.FS, twin) {
	gen := generator{rng: rand.New(rand.NewPCG(seed, 9))}
	fs := memfs.New(memfs.Options{Seed: seed})
	l, _, err := Open(fs, "wal", Options{SegmentBytes: 8192})
	must(t, err)
	state := twin{}
	for range 40 {
		ws := gen.writes(state)
		must(t, l.Append(ws))
		for _, w := range ws {
			state.apply(w)
		}
	}
	must(t, l.Close())
	return fs, state
}

// checkDamage opens a damaged log: each group must be as it was, or be reported.
func checkDamage(fs *memfs.FS, state twin, opts Options) (damaged int, err error) {
	l, rec, err := Open(fs, "wal", opts)
	if err != nil {
		if errors.Is(err, ErrCorrupt) {
			return len(state), nil
		}
		return 0, err
	}
	reported := map[GroupID]bool{}
	for _, d := range rec.Damaged {
		reported[d.Group] = true
	}
	if rec.Incomplete {
		for id := range state {
			reported[id] = true
		}
	}
	if err := check(rec, []twin{state}, reported); err != nil {
		return 0, err
	}
	if err := l.Close(); err != nil {
		return 0, err
	}
	// What was reported once is reported again, after more appends too.
	_, again, err := Open(fs, "wal", opts)
	if err != nil {
		return 0, err
	}
	if len(again.Damaged) != len(rec.Damaged) {
		return 0, fmt.Errorf("%d damaged groups, %d after another start: %v", len(rec.Damaged), len(again.Damaged), again.Notes)
	}
	return len(rec.Damaged), check(again, []twin{state}, reported)
}

func TestDamageIsNeverSilent(t *testing.T) {
	for seed := range uint64(1) {
		clean, state := filled(t, seed)
		total, runs := 0, 0
		for _, name := range clean.Files("wal") {
			size := clean.Size(name)
			for off := int64(0); off < size; off += 61 {
				for _, kind := range []memfs.Rot{memfs.RotBit, memfs.RotZeros, memfs.RotNoise, memfs.RotUnreadable} {
					if kind != memfs.RotBit && off%512 >= 61 {
						continue
					}
					fs := clean.Crash(memfs.KeepAll, 0)
					must(t, fs.Damage(name, kind, off))
					n, err := checkDamage(fs, state, Options{SegmentBytes: 8192})
					if err != nil {
						t.Fatalf("seed %d: %s, kind %d at %d: %v", seed, name, kind, off, err)
					}
					total += n
					runs++
				}
			}
		}
		t.Logf("seed %d: %d damages, %d groups of %d reported", seed, runs, total, runs*len(state))
	}
}

// TestDamagedHeaderOfANewSegmentIsNeverSilent damages the first page of each segment right after the append that began it.
func TestDamagedHeaderOfANewSegmentIsNeverSilent(t *testing.T) {
	opts := Options{SegmentBytes: 8192}
	gen := generator{rng: rand.New(rand.NewPCG(5, 9))}
	fs := memfs.New(memfs.Options{Seed: 5})
	l, _, err := Open(fs, "wal", opts)
	must(t, err)
	state, segments := twin{}, 0
	for range 60 {
		before := l.id
		ws := gen.writes(state)
		must(t, l.Append(ws))
		for _, w := range ws {
			state.apply(w)
		}
		if l.id == before {
			continue
		}
		segments++
		image := fs.Crash(memfs.LoseAll, 0)
		must(t, image.Damage("wal/"+segmentName(l.id), memfs.RotZeros, 0))
		if _, err := checkDamage(image, state, opts); err != nil {
			t.Fatalf("segment %d: %v", l.id, err)
		}
	}
	if segments < 5 {
		t.Fatalf("%d segments were begun", segments)
	}
}

func TestTornMarkLeavesTheOneBefore(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	l, _, err := Open(fs, "wal", Options{})
	must(t, err)
	for range 4 {
		must(t, l.Append([]Write{{Group: 1, HasHardState: true}}))
		must(t, l.SaveMark())
		for slot := range int64(markSlots) {
			image := fs.Crash(memfs.LoseAll, 0)
			must(t, image.Damage("wal/"+markName, memfs.RotNoise, slot*markSlotBytes))
			f, err := image.Open("wal/" + markName)
			must(t, err)
			if m, _, err := readMark(f, false); err != nil || m.number+1 < l.mark.last.number {
				t.Fatalf("mark %d with slot %d torn reads as %d, %v", l.mark.last.number, slot, m.number, err)
			}
		}
	}
}

func TestMissingFileIsNeverSilent(t *testing.T) {
	for seed := range uint64(20) {
		clean, state := filled(t, seed)
		for _, name := range clean.Files("wal") {
			fs := clean.Crash(memfs.KeepAll, 0)
			must(t, fs.Remove(name))
			if _, err := checkDamage(fs, state, Options{SegmentBytes: 8192}); err != nil {
				t.Fatalf("seed %d: without %s: %v", seed, name, err)
			}
		}
	}
}

// TestSegmentMayBeCutAnywhere cuts the newest segment at every length below its second page: what a torn first write of a
// growing file leaves. What is gone beyond the mark is reported, and nothing else goes wrong.
func TestSegmentMayBeCutAnywhere(t *testing.T) {
	clean, state := filled(t, 4)
	files := clean.Files("wal")
	name := files[len(files)-2] // the last one is the mark
	for size := int64(0); size < min(clean.Size(name), 8192); size += 5 {
		fs := clean.Crash(memfs.KeepAll, 0)
		f, err := fs.Open(name)
		must(t, err)
		must(t, f.Truncate(size))
		if _, err := checkDamage(fs, state, Options{SegmentBytes: 8192}); err != nil {
			t.Fatalf("%s cut to %d bytes: %v", name, size, err)
		}
		must(t, fs.Remove("wal/"+markName))
		if _, _, err := Open(fs, "wal", Options{SegmentBytes: 8192}); err != nil {
			t.Fatalf("%s cut to %d bytes, without the mark: %v", name, size, err)
		}
	}
}

func TestStopAtFirstBadIsCaughtByDamage(t *testing.T) {
	opts := Options{SegmentBytes: 8192, Plant: Plant{StopAtFirstBad: true}}
	for seed := range uint64(6) {
		clean, state := filled(t, seed)
		for _, name := range clean.Files("wal") {
			for off := int64(0); off < clean.Size(name); off += 97 {
				fs := clean.Crash(memfs.KeepAll, 0)
				must(t, fs.Damage(name, memfs.RotBit, off))
				if _, err := checkDamage(fs, state, opts); err != nil {
					return
				}
			}
		}
	}
	t.Fatal("not caught")
}

func TestFailedSyncPoisonsTheLog(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	l, _, err := Open(fs, "wal", Options{SegmentBytes: 8192})
	must(t, err)
	w := []Write{{Group: 1, HasHardState: true}}
	fs.Inject(memfs.Fault{On: memfs.OpSync, Times: 1, Err: vfs.ErrIO})
	first := l.Append(w)
	if !errors.Is(first, vfs.ErrIO) {
		t.Fatalf("got %v, want ErrIO", first)
	}
	if err := l.Append(w); !errors.Is(err, first) {
		t.Fatalf("got %v, want the first error", err)
	}
	if err := l.Sync(); !errors.Is(err, first) {
		t.Fatalf("got %v, want the first error", err)
	}
}

// TestHalfAppendsLeaveNothingBehind lets appends of many frames fail half-way, so that whole frames of theirs lie behind the
// end. The segment goes on with something shorter, and nothing that was refused ever follows it, also where that ends with
// a page, so that no padding is written behind it.
func TestHalfAppendsLeaveNothingBehind(t *testing.T) {
	for size := 0; size < pageBytes; size += 8 {
		fs := memfs.New(memfs.Options{})
		l, _, err := Open(fs, "wal", Options{SegmentBytes: 128 << 10})
		must(t, err)
		first := Write{Group: 1, Entries: []Entry{{Term: 1, Index: 1}}}
		must(t, l.Append([]Write{first}))
		before := l.id
		fs.SetCapacity(fs.Used() + 8192)
		second := Write{Group: 1, Entries: []Entry{{Term: 1, Index: 2, Data: make([]byte, size)}}}
		large := []Write{second} // so that the second frame lies where the end will be
		for i := range 3 {
			large = append(large, Write{Group: GroupID(10 + i), Entries: []Entry{{Term: 1, Index: 1, Data: make([]byte, 100)}}})
		}
		large = append(large, Write{Group: 9, Entries: []Entry{{Term: 1, Index: 1, Data: make([]byte, 64<<10)}}})
		for range 5 {
			if err := l.Append(large); !errors.Is(err, vfs.ErrNoSpace) {
				t.Fatalf("got %v, want ErrNoSpace", err)
			}
		}
		must(t, l.Append([]Write{second}))
		if l.id != before {
			t.Fatalf("refused appends cost segments: %d follows %d", l.id, before)
		}
		state := twin{}
		state.apply(first)
		state.apply(second)
		_, rec, err := Open(fs.Crash(memfs.KeepAll, 1), "wal", Options{SegmentBytes: 128 << 10})
		must(t, err)
		if err := check(rec, []twin{state}, nil); err != nil || len(rec.Damaged) > 0 || len(rec.Groups) != 1 {
			t.Fatalf("%d bytes: %v %v, %d groups", size, err, rec.Damaged, len(rec.Groups))
		}
	}
}

// TestLogWithoutSegmentsIsDamaged removes every segment of a log that was synced: nobody may take that for a new log.
func TestLogWithoutSegmentsIsDamaged(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	l, _, err := Open(fs, "wal", Options{})
	must(t, err)
	must(t, l.Append([]Write{{Group: 1, Entries: []Entry{{Term: 1, Index: 1}}}}))
	must(t, l.Close())
	for _, name := range fs.Files("wal") {
		if strings.HasSuffix(name, segmentSuffix) {
			must(t, fs.Remove(name))
		}
	}
	for range 3 {
		l, rec, err := Open(fs, "wal", Options{})
		must(t, err)
		if !rec.Incomplete {
			t.Fatal("the loss of the log is not reported")
		}
		must(t, l.Append([]Write{{Group: 9, Entries: []Entry{{Term: 1, Index: 1}}, Reset: true, HasHardState: true, Meta: []byte("m")}}))
		must(t, l.Close())
	}
}

func TestFullDiskRefusesAndRecoversWhenSpaceReturns(t *testing.T) {
	for budget := int64(12 << 10); budget < 40<<10; budget += 1100 {
		fs := memfs.New(memfs.Options{CapacityBytes: budget})
		l, _, err := Open(fs, "wal", Options{SegmentBytes: 8192})
		must(t, err)
		state := twin{}
		refused := 0
		for i := uint64(1); i < 200; i++ {
			w := Write{Group: 1 + GroupID(i%3), Entries: []Entry{{Term: 1, Index: state[1+GroupID(i%3)].last + 1, Data: make([]byte, 200)}}}
			err := l.Append([]Write{w})
			if err == nil {
				state.apply(w)
				continue
			}
			if !errors.Is(err, vfs.ErrNoSpace) {
				t.Fatalf("budget %d: %v", budget, err)
			}
			if refused++; refused == 3 {
				fs.SetCapacity(0)
			}
		}
		if refused != 3 {
			t.Fatalf("budget %d: refused %d appends, want 3", budget, refused)
		}
		_, rec, err := Open(fs.Crash(memfs.LoseAll, 1), "wal", Options{SegmentBytes: 8192})
		must(t, err)
		if err := check(rec, []twin{state}, nil); err != nil || len(rec.Damaged) > 0 {
			t.Fatalf("budget %d: %v %v", budget, err, rec.Damaged)
		}
	}
}
