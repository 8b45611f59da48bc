package msgstore

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"weir/disk/memfs"
	"weir/disk/vfs"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func message(rng *rand.Rand, seq uint64) Msg {
	m := Msg{Seq: seq, Time: rng.Int64(), Subject: []byte("subject." + strings.Repeat("x", rng.IntN(9)))}
	m.Payload = bytes.Repeat([]byte{byte(rng.IntN(256)), byte(rng.IntN(256))}, rng.IntN(300))
	if rng.IntN(3) == 0 {
		m.Header = []byte("NATS/1.0\r\nA: b\r\n\r\n")
	}
	return m
}

func same(a, b Msg) bool {
	return a.Seq == b.Seq && a.Time == b.Time && bytes.Equal(a.Subject, b.Subject) && bytes.Equal(a.Header, b.Header) &&
		bytes.Equal(a.Payload, b.Payload)
}

// store is an index with its files and the naive twin: a map.
type store struct {
	options  IndexOptions
	fs       *memfs.FS
	index    *Index
	files    *Files
	twin     map[uint64]Msg
	last     uint64
	sections map[uint64][]byte // as a checkpoint would hold them
}

func newStore(options IndexOptions) *store {
	fs := memfs.New(memfs.Options{})
	return &store{options, fs, NewIndex(options), NewFiles(fs, "g/msgs", Plant{}), map[uint64]Msg{}, 0, map[uint64][]byte{}}
}

func (s *store) write() error { return s.files.Write(s.index.TakeWrites(nil)) }

// save does what a checkpoint does.
func (s *store) save() error {
	if err := errors.Join(s.write(), s.files.Sync()); err != nil {
		return err
	}
	for _, section := range s.index.TakeState() {
		if section.Data == nil {
			delete(s.sections, section.ID)
			continue
		}
		s.sections[section.ID] = section.Data
	}
	return s.files.RemoveExcept(s.index.Blocks(nil))
}

// saveFails does what a checkpoint does that can not be written.
func (s *store) saveFails() {
	var gone []uint64
	for _, section := range s.index.TakeState() {
		if section.Data == nil {
			gone = append(gone, section.ID)
		}
	}
	s.index.StateFailed(gone)
}

// reopen restores index and files from the last save.
func (s *store) reopen() error {
	var sections []StateSection
	for _, id := range slices.Sorted(maps.Keys(s.sections)) {
		sections = append(sections, StateSection{id, s.sections[id]})
	}
	states, next, err := DecodeState(sections)
	if err != nil {
		return err
	}
	s.index, s.files = NewIndex(s.options), NewFiles(s.fs, "g/msgs", Plant{})
	found, err := s.files.Load(states)
	if err != nil {
		return err
	}
	s.index.Restore(next, found)
	return nil
}

func (s *store) read(seq uint64) (Msg, error) {
	if m, ok := s.index.Cached(seq); ok {
		return m, nil
	}
	loc, ok := s.index.Lookup(seq)
	if !ok {
		return Msg{}, fmt.Errorf("message %d is not in the index", seq)
	}
	if err := s.write(); err != nil {
		return Msg{}, err
	}
	return s.files.Read(loc)
}

// check compares everything with the twin.
func (s *store) check() error {
	live, liveBytes := 0, 0
	for _, b := range s.index.blocks {
		live += b.live
		liveBytes += b.liveBytes
		if b.size-blockHeaderBytes < b.liveBytes || b.liveBytes < 0 {
			return fmt.Errorf("block %d: %d of %d bytes live", b.id, b.liveBytes, b.size)
		}
		before := *b
		before.places = slices.Clone(b.places)
		before.recount()
		if before.live != b.live || before.liveBytes != b.liveBytes {
			return fmt.Errorf("block %d: counts %d, %d; recounted %d, %d", b.id, b.live, b.liveBytes, before.live, before.liveBytes)
		}
	}
	if live != len(s.twin) || s.index.Live() != uint64(live) {
		return fmt.Errorf("%d messages live, want %d", live, len(s.twin))
	}
	for seq := uint64(0); seq <= s.last+1; seq++ {
		want, there := s.twin[seq]
		if _, ok := s.index.Lookup(seq); ok != there {
			return fmt.Errorf("message %d: found %t, want %t", seq, ok, there)
		}
		if !there {
			continue
		}
		got, err := s.read(seq)
		if err != nil {
			return err
		}
		if !same(got, want) {
			return fmt.Errorf("message %d: got %v, want %v", seq, got, want)
		}
	}
	return nil
}

func (s *store) step(rng *rand.Rand) error {
	switch kind := rng.IntN(20); {
	case kind < 11:
		s.last++
		if rng.IntN(30) == 0 {
			s.last += rng.Uint64N(gapMax + 500)
		}
		m := message(rng, s.last)
		s.index.Append(m)
		s.twin[m.Seq] = m
	case kind < 15 && s.last > 0:
		first := rng.Uint64N(s.last + 1)
		last := first + rng.Uint64N(4)
		if rng.IntN(30) == 0 {
			last = first + rng.Uint64N(60)
		}
		s.index.ForgetRange(first, last)
		for seq := first; seq <= last; seq++ {
			delete(s.twin, seq)
		}
	case kind == 15:
		s.index.Evict(rng.IntN(3000))
	case kind == 16:
		return s.write()
	case kind == 17 && rng.IntN(3) == 0:
		s.saveFails()
	case kind == 17:
		return s.save()
	case kind == 18:
		return s.rewrite(rng)
	case kind == 19 && rng.IntN(3) == 0:
		return errors.Join(s.save(), s.reopen())
	}
	return nil
}

// rewrite carries out an order, with things happening before its outcome arrives.
func (s *store) rewrite(rng *rand.Rand) error {
	if err := s.write(); err != nil {
		return err
	}
	order, ok := s.index.TakeRewrite()
	if !ok {
		return nil
	}
	done, err := s.files.Rewrite(&order)
	if err != nil {
		return err
	}
	for range rng.IntN(4) {
		seq := rng.Uint64N(s.last + 1)
		s.index.ForgetRange(seq, seq+rng.Uint64N(30))
		for i := seq; i <= s.last; i++ {
			if _, ok := s.index.Lookup(i); !ok {
				delete(s.twin, i)
			}
		}
	}
	if rng.IntN(2) == 0 {
		if err := s.save(); err != nil {
			return err
		}
	}
	s.index.Rewritten(done)
	return nil
}

func TestStoreEqualsTwin(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := newStore(IndexOptions{BlockBytes: 4096, Compress: seed%2 == 0, Volatile: seed == 11})
		if s.options.Volatile {
			s.files = nil
		}
		for i := range 1500 {
			var err error
			if s.options.Volatile {
				if kind := rng.IntN(2); kind == 0 {
					s.last++
					m := message(rng, s.last)
					s.index.Append(m)
					s.twin[m.Seq] = m
				} else {
					seq := rng.Uint64N(s.last + 1)
					s.index.Forget(seq)
					delete(s.twin, seq)
				}
			} else {
				err = s.step(rng)
			}
			if err == nil && i%25 == 0 {
				err = s.check()
			}
			if err != nil {
				t.Fatalf("seed %d step %d: %v", seed, i, err)
			}
		}
	}
}

func TestMemoryOfColdMessagesIsSmall(t *testing.T) {
	x := NewIndex(IndexOptions{})
	m := Msg{Subject: []byte("s"), Payload: make([]byte, 128)}
	const n = 200_000
	for m.Seq = 1; m.Seq <= n; m.Seq++ {
		x.Append(m)
		x.TakeWrites(nil)
	}
	x.Evict(0)
	places := 0
	for _, b := range x.blocks {
		places += 4*cap(b.places) + 4*cap(b.seqs)
	}
	if x.MemoryBytes() != 0 || places > 6*n {
		t.Fatalf("%d bytes of blocks and %d of places for %d messages", x.MemoryBytes(), places, n)
	}
}

func TestSparseBlocksAreMerged(t *testing.T) {
	s := newStore(IndexOptions{BlockBytes: 8192})
	rng := rand.New(rand.NewPCG(1, 1))
	for range 4000 {
		s.last++
		m := message(rng, s.last)
		s.index.Append(m)
		if s.last%100 != 0 {
			s.index.Forget(m.Seq)
		} else {
			s.twin[m.Seq] = m
		}
	}
	must(t, s.save())
	before := len(s.index.blocks)
	for {
		order, ok := s.index.TakeRewrite()
		if !ok {
			break
		}
		done, err := s.files.Rewrite(&order)
		must(t, err)
		s.index.Rewritten(done)
	}
	must(t, s.save())
	must(t, s.check())
	if after := len(s.index.blocks); after > 8 || before < 30 {
		t.Fatalf("%d blocks, %d before", after, before)
	}
	if files := s.fs.Files("g/msgs"); len(files) != len(s.index.blocks) {
		t.Fatalf("files %v for %d blocks", files, len(s.index.blocks))
	}
	must(t, s.reopen())
	must(t, s.check())
}

// TestCopyOutlivesAnOlderList covers a checkpoint whose list was made before the outcome of a Rewrite was known.
func TestCopyOutlivesAnOlderList(t *testing.T) {
	s := newStore(IndexOptions{BlockBytes: 2048})
	rng := rand.New(rand.NewPCG(1, 1))
	for range 40 {
		s.last++
		m := message(rng, s.last)
		s.index.Append(m)
		s.twin[m.Seq] = m
	}
	s.index.ForgetRange(1, 5)
	s.index.ForgetRange(7, 20)
	for seq := range uint64(21) {
		if seq != 6 {
			delete(s.twin, seq)
		}
	}
	must(t, s.write())
	order, ok := s.index.TakeRewrite()
	if !ok {
		t.Fatal("no block to copy")
	}
	list := s.index.Blocks(nil)
	done, err := s.files.Rewrite(&order)
	must(t, err)
	must(t, s.files.Sync())
	must(t, s.files.RemoveExcept(list))
	s.index.Rewritten(done)
	s.index.Evict(0)
	must(t, s.check())
}

func TestDamagedMessageIsCorruptNotAbsent(t *testing.T) {
	s := newStore(IndexOptions{BlockBytes: 4096})
	rng := rand.New(rand.NewPCG(2, 2))
	for range 60 {
		s.last++
		m := message(rng, s.last)
		s.index.Append(m)
		s.twin[m.Seq] = m
	}
	must(t, s.save())
	clean := s.fs
	damaged := 0
	for _, name := range clean.Files("g/msgs") {
		for off := int64(0); off < clean.Size(name); off += 7 {
			for _, kind := range []memfs.Rot{memfs.RotBit, memfs.RotUnreadable} {
				s.fs = clean.Crash(memfs.KeepAll, 0)
				must(t, s.fs.Damage(name, kind, off))
				err := s.reopen()
				if err != nil {
					if !errors.Is(err, ErrCorrupt) && !strings.Contains(err.Error(), "version") {
						t.Fatalf("%s at %d: %v", name, off, err)
					}
					damaged++
					continue
				}
				for seq, want := range s.twin {
					got, err := s.read(seq)
					if err != nil {
						damaged++
						if !errors.Is(err, ErrCorrupt) {
							t.Fatalf("%s at %d: message %d: %v", name, off, seq, err)
						}
					} else if !same(got, want) {
						t.Fatalf("%s at %d: message %d reads as another", name, off, seq)
					}
				}
			}
		}
	}
	if damaged == 0 {
		t.Fatal("no damage was noticed")
	}
}

// TestMessageAtThePlaceOfAnotherIsCorrupt reads whole messages under the sequences of others: a write that went astray, or
// an index that is wrong, must not pass one message off as another.
func TestMessageAtThePlaceOfAnotherIsCorrupt(t *testing.T) {
	s := newStore(IndexOptions{BlockBytes: 4096})
	rng := rand.New(rand.NewPCG(3, 3))
	for range 3 {
		s.last++
		s.index.Append(message(rng, s.last))
	}
	must(t, s.save())
	for seq := uint64(1); seq <= s.last; seq++ {
		loc, ok := s.index.Lookup(seq)
		if !ok {
			t.Fatalf("message %d has no place", seq)
		}
		if _, err := s.files.Read(loc); err != nil {
			t.Fatal(err)
		}
		loc.Seq++
		if _, err := s.files.Read(loc); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("message %d is read as message %d: %v", seq, loc.Seq, err)
		}
	}
}

func TestFailedWriteFailsEverySyncAfterwards(t *testing.T) {
	for _, on := range []memfs.OpKind{memfs.OpWrite, memfs.OpSync, memfs.OpSyncDir} {
		s := newStore(IndexOptions{BlockBytes: 4096})
		s.index.Append(message(rand.New(rand.NewPCG(1, 1)), 1))
		s.fs.Inject(memfs.Fault{On: on, Times: 1, Err: vfs.ErrIO})
		writes := s.index.TakeWrites(nil)
		err := errors.Join(s.files.Write(writes), s.files.Sync())
		if !errors.Is(err, vfs.ErrIO) {
			t.Fatalf("%s failed: got %v", on, err)
		}
		if err := errors.Join(s.files.Write(nil), s.files.Sync()); !errors.Is(err, vfs.ErrIO) {
			t.Fatalf("%s failed, and a later sync says %v", on, err)
		}
	}
}

// TestFilesAreSyncedBeforeTheyAreClosed holds that no file is closed with bytes of which nobody will hear that they could
// not be written.
func TestFilesAreSyncedBeforeTheyAreClosed(t *testing.T) {
	for _, blocks := range []int{1, 2 * FilesOpenMax} {
		s := newStore(IndexOptions{BlockBytes: 4096})
		rng := rand.New(rand.NewPCG(2, 2))
		for len(s.files.dirty) < blocks {
			s.last++
			s.index.Append(message(rng, s.last))
			must(t, s.write())
		}
		for _, id := range s.files.dirty {
			if !slices.ContainsFunc(s.files.open, func(o openFile) bool { return o.id == id }) {
				t.Fatalf("block %d was closed before it was synced", id)
			}
		}
		must(t, s.files.Release())
		if sectors, names := s.fs.Unsynced(); sectors+names > 0 || len(s.files.open) > 0 {
			t.Fatalf("released with %d sectors and %d names to be synced, %d files open", sectors, names, len(s.files.open))
		}
	}
}

func TestFullDiskKeepsWhatItRefused(t *testing.T) {
	s := newStore(IndexOptions{BlockBytes: 4096})
	rng := rand.New(rand.NewPCG(3, 3))
	refused := false
	s.fs.SetCapacity(6000)
	for range 100 {
		s.last++
		m := message(rng, s.last)
		s.index.Append(m)
		s.twin[m.Seq] = m
		if err := s.write(); err != nil {
			refused = true
			if !errors.Is(err, vfs.ErrNoSpace) {
				t.Fatal(err)
			}
		}
		s.index.Evict(0)
	}
	if _, err := s.read(s.last); !errors.Is(err, vfs.ErrNoSpace) || !refused {
		t.Fatalf("got %v, want ErrNoSpace", err)
	}
	if err := s.files.Sync(); !errors.Is(err, vfs.ErrNoSpace) {
		t.Fatalf("sync: got %v, want ErrNoSpace", err)
	}
	for seq, want := range s.twin { // while the disk is full as well
		loc, _ := s.index.Lookup(seq)
		if got, err := s.files.Read(loc); err != nil || !same(got, want) {
			t.Fatalf("message %d: got %v, %v", seq, got, err)
		}
	}
	s.fs.SetCapacity(0)
	must(t, s.check())
	must(t, s.save())
	must(t, s.reopen())
	must(t, s.check())
}

func TestAppendAllocatesByBlockOnly(t *testing.T) {
	x := NewIndex(IndexOptions{})
	m := Msg{Seq: 1, Subject: []byte("s"), Payload: make([]byte, 128)}
	writes := make([]BlockWrite, 0, 8)
	n := testing.AllocsPerRun(20_000, func() {
		x.Append(m)
		m.Seq++
		writes = x.TakeWrites(writes[:0])
	})
	if n > 0.1 {
		t.Fatalf("%v allocations per message", n)
	}
}

func BenchmarkAppend(b *testing.B) {
	x := NewIndex(IndexOptions{})
	m := Msg{Subject: []byte("orders.new"), Payload: make([]byte, 128)}
	var writes []BlockWrite
	b.ReportAllocs()
	for b.Loop() {
		m.Seq++
		x.Append(m)
		if m.Seq%1000 == 0 {
			writes = x.TakeWrites(writes[:0])
			x.Evict(64 << 20)
		}
	}
}

func BenchmarkLoadMillion(b *testing.B) {
	s := newStore(IndexOptions{})
	m := Msg{Subject: []byte("orders.new"), Payload: make([]byte, 128)}
	for m.Seq = 1; m.Seq <= 1_000_000; m.Seq++ {
		s.index.Append(m)
		if m.Seq%10_000 == 0 {
			if err := s.write(); err != nil {
				b.Fatal(err)
			}
			s.index.Evict(0)
		}
	}
	if err := s.save(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := s.reopen(); err != nil {
			b.Fatal(err)
		}
	}
}
