package memfs

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"weir/disk/vfs"
	"weir/disk/vfs/vfstest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// file returns a synced, durable file of n sectors of 'a'.
func file(t *testing.T, f *FS, name string, sectors int) vfs.File {
	t.Helper()
	h, err := f.Create(name)
	must(t, err)
	_, err = h.WriteAt(bytes.Repeat([]byte{'a'}, sectors*512), 0)
	must(t, err)
	must(t, h.Sync())
	must(t, f.SyncDir("."))
	return h
}

// sectors describes the first byte of each sector.
func sectors(f *FS, name string) string {
	data, err := vfs.ReadFile(f, name)
	if err != nil {
		return err.Error()
	}
	var text strings.Builder
	for lo := 0; lo < len(data); lo += 512 {
		text.WriteByte(data[lo])
	}
	return text.String()
}

func TestConformance(t *testing.T) {
	if err := vfstest.Run(New(Options{})); err != nil {
		t.Fatal(err)
	}
}

func TestEachStrategyKeepsWhatItSays(t *testing.T) {
	f := New(Options{})
	h := file(t, f, "x", 4)
	for i, c := range "bcde" {
		_, err := h.WriteAt(bytes.Repeat([]byte{byte(c)}, 512), int64(i)*512)
		must(t, err)
	}
	for s, want := range map[Strategy]string{LoseAll: "aaaa", KeepAll: "bcde", OnlyLast: "aaae", AllButFirst: "acde"} {
		if got := sectors(f.Crash(s, 1), "x"); got != want {
			t.Errorf("%s: got %s, want %s", s, got, want)
		}
	}
	seen := map[Strategy]map[string]bool{Prefix: {}, Suffix: {}, Subset: {}, OlderVersion: {}}
	for s := range seen {
		for key := range uint64(400) {
			seen[s][sectors(f.Crash(s, key), "x")] = true
		}
	}
	for s, want := range map[Strategy]int{Prefix: 5, Suffix: 5, Subset: 16, OlderVersion: 16} {
		if len(seen[s]) != want {
			t.Errorf("%s: %d different images, want %d: %v", s, len(seen[s]), want, seen[s])
		}
	}
}

func TestTornLastSectorIsNewThenOld(t *testing.T) {
	f := New(Options{})
	h := file(t, f, "x", 1)
	_, err := h.WriteAt(bytes.Repeat([]byte{'b'}, 512), 0)
	must(t, err)
	mixed := 0
	for key := range uint64(50) {
		data, err := vfs.ReadFile(f.Crash(TornLast, key), "x")
		must(t, err)
		n := bytes.IndexByte(data, 'a')
		if n > 0 {
			mixed++
		}
		if strings.Trim(string(data), "b") != strings.Repeat("a", len(data)-max(n, 0)) && n >= 0 {
			t.Fatalf("key %d: not a prefix of the new and a suffix of the old content", key)
		}
	}
	if mixed == 0 {
		t.Fatal("no key tears the sector")
	}
}

func TestOlderVersionsOfASectorCanSurvive(t *testing.T) {
	f := New(Options{})
	h := file(t, f, "x", 1)
	for _, c := range "bcd" {
		_, err := h.WriteAt(bytes.Repeat([]byte{byte(c)}, 512), 0)
		must(t, err)
	}
	seen := map[string]bool{}
	for key := range uint64(100) {
		seen[sectors(f.Crash(OlderVersion, key), "x")] = true
	}
	if len(seen) != 4 {
		t.Fatalf("got versions %v, want a, b, c and d", seen)
	}
}

func TestEntriesAreDurableAfterSyncDirOnly(t *testing.T) {
	f := New(Options{})
	h, err := f.Create("x")
	must(t, err)
	must(t, h.Sync())
	if got := f.Crash(LoseAll, 1).Files("."); len(got) != 0 {
		t.Fatalf("an entry survived without SyncDir: %v", got)
	}
	must(t, f.SyncDir("."))
	if got := f.Crash(LoseAll, 1).Files("."); len(got) != 1 {
		t.Fatalf("an entry was lost after SyncDir: %v", got)
	}
	must(t, f.Rename("x", "y"))
	seen := map[string]bool{}
	for key := range uint64(50) {
		seen[fmt.Sprint(f.Crash(Subset, key).Files("."))] = true
	}
	if len(seen) != 2 || !seen["[x]"] || !seen["[y]"] {
		t.Fatalf("a rename leaves %v, want the old or the new name", seen)
	}
	must(t, f.SyncDir("."))
	must(t, f.Remove("y"))
	if got := f.Crash(LoseAll, 1).Files("."); fmt.Sprint(got) != "[y]" {
		t.Fatalf("after an un-synced removal: %v", got)
	}
}

func TestRenameBetweenDirectoriesNeedsBothSynced(t *testing.T) {
	f := New(Options{})
	must(t, vfs.MakeDir(f, "a"))
	must(t, vfs.MakeDir(f, "b"))
	_, err := f.Create("a/x")
	must(t, err)
	must(t, f.SyncDir("a"))
	must(t, f.Rename("a/x", "b/x"))
	must(t, f.SyncDir("b"))
	if got := fmt.Sprint(f.Crash(LoseAll, 1).Files(".")); got != "[a/x]" {
		t.Fatalf("with one directory synced: %s", got)
	}
	must(t, f.SyncDir("a"))
	if got := fmt.Sprint(f.Crash(LoseAll, 1).Files(".")); got != "[b/x]" {
		t.Fatalf("with both directories synced: %s", got)
	}
}

func TestFailedSyncDropsTheDirtySectorsForGood(t *testing.T) {
	f := New(Options{})
	h := file(t, f, "x", 2)
	_, err := h.WriteAt([]byte("b"), 0)
	must(t, err)
	f.Inject(Fault{On: OpSync, Times: 1, Err: vfs.ErrIO})
	if err := h.Sync(); !errors.Is(err, vfs.ErrIO) {
		t.Fatalf("got %v, want ErrIO", err)
	}
	must(t, h.Sync())
	if visible, durable := sectors(f, "x"), sectors(f.Crash(KeepAll, 1), "x"); visible != "ba" || durable != "aa" {
		t.Fatalf("visible %s, durable %s; want ba and aa", visible, durable)
	}
}

func TestLyingSyncMakesNothingDurable(t *testing.T) {
	f := New(Options{})
	h := file(t, f, "x", 1)
	_, err := h.WriteAt([]byte("b"), 0)
	must(t, err)
	f.Inject(Fault{On: OpSync, Lie: true})
	must(t, h.Sync())
	if got := sectors(f.Crash(LoseAll, 1), "x"); got != "a" {
		t.Fatalf("got %s, want a", got)
	}
}

func TestFullDiskWritesAPartAndRecovers(t *testing.T) {
	f := New(Options{CapacityBytes: 1024})
	h := file(t, f, "x", 1)
	n, err := h.WriteAt(make([]byte, 1024), 512)
	if n != 512 || !errors.Is(err, vfs.ErrNoSpace) {
		t.Fatalf("wrote %d with %v, want 512 with ErrNoSpace", n, err)
	}
	if _, err := f.Create("y"); !errors.Is(err, vfs.ErrNoSpace) {
		t.Fatalf("create on a full disk: %v", err)
	}
	if _, err := h.WriteAt([]byte("b"), 0); err != nil {
		t.Fatalf("overwriting on a full disk: %v", err)
	}
	must(t, f.Remove("x"))
	if free, err := f.Free(); free != 1024 || err != nil {
		t.Fatalf("free %d, %v", free, err)
	}
}

func TestStoppedMachineDoesNothing(t *testing.T) {
	f := New(Options{})
	h := file(t, f, "x", 1)
	f.StopAfter(f.Ops())
	if _, err := h.WriteAt([]byte("b"), 0); !errors.Is(err, ErrStopped) {
		t.Fatalf("got %v, want ErrStopped", err)
	}
	if got := sectors(f.Crash(KeepAll, 1), "x"); got != "a" {
		t.Fatalf("got %s, want a", got)
	}
}

func TestUnreadableSectorFailsUntilRewritten(t *testing.T) {
	f := New(Options{})
	h := file(t, f, "x", 3)
	must(t, f.Damage("x", RotUnreadable, 600))
	p := make([]byte, 1536)
	if n, err := h.ReadAt(p, 0); n != 512 || !errors.Is(err, vfs.ErrIO) {
		t.Fatalf("read %d with %v, want 512 with ErrIO", n, err)
	}
	_, err := h.WriteAt(make([]byte, 512), 512)
	must(t, err)
	_, err = h.ReadAt(p, 0)
	must(t, err)
}

func TestSameCallsGiveSameImages(t *testing.T) {
	run := func() (trace string, images []string) {
		f := New(Options{Seed: 7})
		f.Record(true)
		rng := rand.New(rand.NewPCG(1, 2))
		must(t, f.MkdirAll("d"))
		for i := range 200 {
			name := fmt.Sprintf("d/f%d", rng.IntN(5))
			h, err := f.Create(name)
			if err != nil {
				h, err = f.Open(name)
			}
			must(t, err)
			_, err = h.WriteAt(bytes.Repeat([]byte{byte(i)}, rng.IntN(2000)), int64(rng.IntN(3000)))
			must(t, err)
			switch rng.IntN(6) {
			case 0:
				must(t, h.Sync())
			case 1:
				must(t, f.SyncDir("d"))
			case 2:
				must(t, f.SyncDir("."))
			case 3:
				must(t, f.Rename(name, fmt.Sprintf("d/f%d", rng.IntN(5))))
			case 4:
				must(t, h.Truncate(int64(rng.IntN(3000))))
			}
			for _, s := range Strategies() {
				image := f.Crash(s, uint64(i))
				for _, name := range image.Files(".") {
					data, err := vfs.ReadFile(image, name)
					must(t, err)
					images = append(images, name+string(data))
				}
			}
		}
		for _, op := range f.Trace() {
			trace += op.String() + "\n"
		}
		return trace, images
	}
	traceA, imagesA := run()
	traceB, imagesB := run()
	if traceA != traceB || strings.Join(imagesA, "|") != strings.Join(imagesB, "|") {
		t.Fatal("two runs differ")
	}
}

func TestKilledProcessLeavesUnsyncedBytesUnsynced(t *testing.T) {
	f := New(Options{})
	h := file(t, f, "x", 2)
	must(t, h.Sync())
	must(t, f.SyncDir("."))
	_, err := h.WriteAt([]byte("new"), 0)
	must(t, err)
	killed := f.Crash(KeepAll, 1)
	want, err := vfs.ReadFile(f, "x")
	must(t, err)
	if got, err := vfs.ReadFile(killed, "x"); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("the next process reads %.3q, %v", got, err)
	}
	if got := sectors(killed.Crash(LoseAll, 1), "x"); got != sectors(f.Crash(LoseAll, 1), "x") {
		t.Fatalf("a power loss afterwards leaves %q", got)
	}
	again, err := killed.Open("x")
	must(t, err)
	must(t, again.Sync())
	if got, err := vfs.ReadFile(killed.Crash(LoseAll, 1), "x"); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("a power loss after a sync leaves %.3q, %v", got, err)
	}
}

// TestKeepAllIsWhatReadersSee also holds the incremental durable content against the visible one after a Sync.
func TestKeepAllIsWhatReadersSee(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	f := New(Options{})
	h := file(t, f, "x", 3)
	for i := range 2000 {
		if rng.IntN(4) == 0 {
			must(t, h.Truncate(int64(rng.IntN(5000))))
		} else {
			_, err := h.WriteAt(bytes.Repeat([]byte{byte(i)}, rng.IntN(1500)), int64(rng.IntN(4000)))
			must(t, err)
		}
		strategy := KeepAll
		if rng.IntN(3) == 0 {
			must(t, h.Sync())
			strategy = LoseAll
		}
		want, err := vfs.ReadFile(f, "x")
		must(t, err)
		got, err := vfs.ReadFile(f.Crash(strategy, 0), "x")
		must(t, err)
		if !bytes.Equal(got, want) {
			t.Fatalf("step %d: image under %s differs from the visible content", i, strategy)
		}
	}
}

func TestLostAndStrayWritesAreReportedAsDone(t *testing.T) {
	fs := New(Options{SectorBytes: 512, Seed: 3})
	f := file(t, fs, "f", 8)
	must(t, f.Sync())
	before := sectors(fs, "f")
	fs.Inject(Fault{On: OpWrite, Lose: true, Times: 1})
	fs.Inject(Fault{On: OpWrite, Astray: true, Times: 1})
	for i, want := range []int{0, 1} {
		n, err := f.WriteAt(bytes.Repeat([]byte{'z'}, 512), 7*512)
		must(t, err)
		must(t, f.Sync())
		changed := 0
		after := sectors(fs, "f")
		for k := range min(len(before), len(after)) {
			if before[k] != after[k] {
				changed++
			}
		}
		if n != 512 || (changed > 0) != (want > 0) || i == 1 && after[len(after)-1] != before[len(before)-1] {
			t.Errorf("write %d: %d bytes, %q became %q", i, n, before, after)
		}
		before = after
	}
}

// TestUndeceivedDiskIsWhatItSaid lies about syncs, loses a write and puts another elsewhere, and takes it all back: a power loss
// then leaves what an honest disk leaves.
func TestUndeceivedDiskIsWhatItSaid(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 9))
		honest, lying := New(Options{Seed: seed}), New(Options{Seed: seed})
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		both := func(do func(fs *FS) error) {
			t.Helper()
			must(do(honest))
			must(do(lying))
		}
		write := func(name string, off int64, data []byte) {
			t.Helper()
			both(func(fs *FS) error {
				f, err := fs.Open(name)
				if err != nil {
					return err
				}
				if _, err = f.WriteAt(data, off); err == nil {
					err = f.Sync()
				}
				return errors.Join(err, f.Close())
			})
		}
		both(func(fs *FS) error {
			f, err := fs.Create("a")
			if err != nil {
				return err
			}
			return errors.Join(f.Close(), fs.SyncDir("."))
		})
		write("a", 0, make([]byte, 8192))
		lying.Inject([]Fault{{On: OpWrite, Lose: true, Times: 1 + int(seed%3)}, {On: OpWrite, Astray: true, Times: 1 + int(seed%3)},
			{On: OpSync | OpSyncDir, Lie: true}}[rng.IntN(3)])
		for i := range 3 {
			data := make([]byte, 1+rng.IntN(2000))
			for k := range data {
				data[k] = byte(rng.IntN(256))
			}
			write("a", int64(i*2048+rng.IntN(40)), data)
		}
		both(func(fs *FS) error { return errors.Join(fs.Rename("a", "b"), fs.SyncDir(".")) })
		if !lying.Deceived("") {
			t.Fatalf("seed %d: a disk that lies says that it does not", seed)
		}
		lying.Undeceive()
		if lying.Deceived("") {
			t.Fatalf("seed %d: a disk that took it back says that it lies", seed)
		}
		want, err := vfs.ReadFile(honest.Crash(LoseAll, seed), "b")
		must(err)
		got, err := vfs.ReadFile(lying.Crash(LoseAll, seed), "b")
		must(err)
		if !bytes.Equal(got, want) {
			t.Fatalf("seed %d: the disk holds something else than it said", seed)
		}
	}
}
