package wal

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"weir/disk/memfs"
	"weir/disk/record"
)

func entry(index uint64, data string) Entry { return Entry{Term: 1, Index: index, Data: []byte(data)} }

func TestAppendIsOneWriteAndOneSync(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	l, _, err := Open(fs, "wal", Options{SegmentBytes: 64 << 10})
	must(t, err)
	must(t, l.Append([]Write{{Group: 3, Entries: []Entry{entry(1, "x")}}})) // fills zeros in ahead
	fs.Record(true)
	must(t, l.Append([]Write{{Group: 1, Entries: []Entry{entry(1, "a")}}, {Group: 2, Entries: []Entry{entry(1, "b")}}}))
	must(t, l.Append([]Write{{Group: 1, Entries: []Entry{entry(2, "c")}}}))
	var trace strings.Builder
	for _, op := range fs.Trace() {
		fmt.Fprintln(&trace, op)
	}
	want := strings.Repeat("write wal/0000000000000001.seg off=0 len=4096\nsync wal/0000000000000001.seg\n", 2)
	if trace.String() != want {
		t.Fatalf("got\n%swant\n%s", trace.String(), want)
	}
}

// TestFewAppendsMakeTheFileLonger: a log that nobody prepared reaches the end of its file once per share of a segment.
func TestFewAppendsMakeTheFileLonger(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	const segment, size = 1 << 20, 3000
	l, _, err := Open(fs, "wal", Options{SegmentBytes: segment})
	must(t, err)
	longer, appends, used := 0, 0, fs.Used()
	for ; l.off+2*size < segment; appends++ {
		must(t, l.Append([]Write{{Group: 1, Entries: []Entry{entry(uint64(appends+1), strings.Repeat("x", size))}}}))
		if fs.Used() > used {
			longer++
		}
		used = fs.Used()
	}
	if longer > aheadShare+1 || appends < 300 {
		t.Errorf("%d of %d appends made the file longer", longer, appends)
	}
	if id, size := l.id, used; id != 1 || size > segment+2*pageBytes {
		t.Errorf("segment %d, %d bytes in files", id, size)
	}
}

// TestAppendNeedsNoRoomForZeros: a disk that has room for an append and not for the zeros ahead takes the append.
func TestAppendNeedsNoRoomForZeros(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	l, _, err := Open(fs, "wal", Options{SegmentBytes: 1 << 20})
	must(t, err)
	fs.SetCapacity(fs.Used() + 3*pageBytes)
	state := twin{}
	for i := range uint64(9) {
		w := Write{Group: 1, Entries: []Entry{entry(i+1, strings.Repeat("x", 1000))}}
		must(t, l.Append([]Write{w}))
		state.apply(w)
	}
	_, rec, err := Open(fs.Crash(memfs.LoseAll, 1), "wal", Options{SegmentBytes: 1 << 20})
	must(t, err)
	if err := check(rec, []twin{state}, nil); err != nil {
		t.Error(err)
	}
}

func TestLazyAppendDoesNotSync(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	l, _, err := Open(fs, "wal", Options{SegmentBytes: 64 << 10, Lazy: true})
	must(t, err)
	before := l.Stats().Syncs
	must(t, l.Append([]Write{{Group: 1, Entries: []Entry{entry(1, "a")}}}))
	if n := l.Stats().Syncs; n != before {
		t.Fatal("lazy append synced")
	}
	must(t, l.Sync())
	_, rec, err := Open(fs.Crash(memfs.LoseAll, 1), "wal", Options{})
	must(t, err)
	if len(rec.Groups) != 1 {
		t.Fatalf("got %v", rec)
	}
}

func TestPreparedSegmentsAreZeroFilledAndRecycled(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	opts := Options{SegmentBytes: 16 << 10}
	l, _, err := Open(fs, "wal", opts)
	must(t, err)
	for i := uint64(1); i < 400; i++ {
		must(t, l.Append([]Write{{Group: 1, Entries: []Entry{entry(i, strings.Repeat("x", 500))}, Compact: i - 1}}))
		for more := true; more; {
			more, err = l.PrepareNext(4096)
			must(t, err)
		}
		if next := fs.Size(l.path(segmentName(l.spare.id))); next < opts.SegmentBytes {
			t.Fatalf("prepared segment has %d bytes", next)
		}
		if files := fs.Files("wal"); len(files) > segmentsKept+2 {
			t.Fatalf("too many files: %v", files)
		}
	}
}

func TestPinningNamesTheGroupOfTheOldestSegment(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	l, _, err := Open(fs, "wal", Options{SegmentBytes: 8192, LiveSegmentsMax: 3})
	must(t, err)
	must(t, l.Append([]Write{{Group: 7, Entries: []Entry{entry(1, "pins")}}}))
	for i := uint64(1); l.Stats().Segments <= 3; i++ {
		if _, ok := l.Pinning(); ok {
			t.Fatalf("pinning with %d segments", l.Stats().Segments)
		}
		must(t, l.Append([]Write{{Group: 9, Entries: []Entry{entry(i, strings.Repeat("x", 1000))}, Compact: i - 1}}))
	}
	if id, ok := l.Pinning(); !ok || id != 7 {
		t.Fatalf("got %d, %t; want 7", id, ok)
	}
	must(t, l.Append([]Write{{Group: 7, Compact: 1}}))
	if n := l.Stats().Segments; n != segmentsKept {
		t.Fatalf("%d segments are left", n)
	}
}

func TestAppendLargerThanASegmentSurvives(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	l, _, err := Open(fs, "wal", Options{SegmentBytes: 8192})
	must(t, err)
	big := strings.Repeat("big", 20000)
	must(t, l.Append([]Write{{Group: 1, Entries: []Entry{entry(1, "small")}}}))
	must(t, l.Append([]Write{{Group: 1, Entries: []Entry{entry(2, big)}}}))
	must(t, l.Append([]Write{{Group: 1, Entries: []Entry{entry(3, "small")}}}))
	_, rec, err := Open(fs.Crash(memfs.LoseAll, 1), "wal", Options{SegmentBytes: 8192})
	must(t, err)
	if g := rec.Groups[0]; len(g.Entries) != 3 || string(g.Entries[1].Data) != big {
		t.Fatalf("got %d entries", len(g.Entries))
	}
}

func TestDamagedGroupTakesOnlyAReset(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	l, _, err := Open(fs, "wal", Options{})
	must(t, err)
	must(t, l.Append([]Write{{Group: 1, Entries: []Entry{entry(1, strings.Repeat("a", 5000))}}}))
	must(t, l.Append([]Write{{Group: 2, Entries: []Entry{entry(1, "b")}}}))
	must(t, l.Close())
	must(t, fs.Damage("wal/0000000000000001.seg", memfs.RotBit, 2000))
	l, rec, err := Open(fs, "wal", Options{})
	must(t, err)
	if len(rec.Damaged) != 1 || rec.Damaged[0].Group != 1 || !errors.Is(rec.Damaged[0].Err, ErrCorrupt) {
		t.Fatalf("got %v, want group 1", rec.Damaged)
	}
	if len(rec.Groups) != 1 || rec.Groups[0].ID != 2 {
		t.Fatalf("got %v, want group 2", rec.Groups)
	}
	if err := l.Append([]Write{{Group: 1, Entries: []Entry{entry(2, "c")}}}); !errors.Is(err, ErrDamaged) {
		t.Fatalf("got %v, want ErrDamaged", err)
	}
	must(t, l.Append([]Write{{Group: 1, Reset: true, HasHardState: true, Meta: []byte("m"), Compact: 9, Entries: []Entry{entry(10, "d")}}}))
	_, rec, err = Open(fs.Crash(memfs.LoseAll, 1), "wal", Options{})
	must(t, err)
	if len(rec.Damaged) != 0 || len(rec.Groups) != 2 || rec.Groups[0].Compact != 9 || len(rec.Groups[0].Entries) != 1 {
		t.Fatalf("got %+v", rec)
	}
}

func TestUnknownVersionIsRefused(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	must(t, fs.MkdirAll("wal"))
	f, err := fs.Create("wal/" + segmentName(1))
	must(t, err)
	h := (&segmentHeader{id: 1}).append(nil)
	h[0] = version + 1
	_, err = f.WriteAt(record.Append(nil, frameHeader, h, record.Place{Segment: 1}), 0)
	must(t, err)
	if _, _, err := Open(fs, "wal", Options{}); !errors.Is(err, ErrVersion) {
		t.Fatalf("got %v, want ErrVersion", err)
	}
}

func TestAppendDoesNotAllocate(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	l, _, err := Open(discard{fs}, "wal", Options{})
	must(t, err)
	w := []Write{{Group: 1, Entries: []Entry{entry(1, strings.Repeat("x", 200))}}}
	must(t, l.Append(w))
	n := testing.AllocsPerRun(500, func() {
		w[0].Entries[0].Index++
		must(t, l.Append(w))
	})
	if n != 0 {
		t.Fatalf("%v allocations per append, want none", n)
	}
}

func FuzzDecodeGroup(f *testing.F) {
	f.Add(appendGroup(nil, &Write{Group: 3, HasHardState: true, Meta: []byte("m"), Compact: 4, Entries: []Entry{entry(5, "x"), entry(6, "")}}, recordNumber{9, false}))
	f.Add(appendGroup(nil, &Write{Group: 3, Drop: true}, recordNumber{1, true}))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, number, err := decodeGroup(data, nil)
		if err != nil {
			return
		}
		again, n, err := decodeGroup(appendGroup(nil, &w, number), nil)
		if err != nil || n != number || again.Group != w.Group || len(again.Entries) != len(w.Entries) || !bytes.Equal(again.Meta, w.Meta) {
			t.Fatalf("%+v reads back as %+v, %v", w, again, err)
		}
	})
}

func FuzzOpen(f *testing.F) {
	fs := memfs.New(memfs.Options{})
	l, _, err := Open(fs, "wal", Options{SegmentBytes: 8192})
	if err != nil {
		f.Fatal(err)
	}
	for i := uint64(1); i < 5; i++ {
		if err := l.Append([]Write{{Group: 1, Entries: []Entry{entry(i, "data")}}, {Group: GroupID(i + 1), HasHardState: true}}); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(uint16(100), []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, off uint16, patch []byte) {
		image := fs.Crash(memfs.KeepAll, 0)
		h, err := image.Open("wal/" + segmentName(1))
		must(t, err)
		_, err = h.WriteAt(patch, int64(off))
		must(t, err)
		l, _, err := Open(image, "wal", Options{SegmentBytes: 8192})
		if err != nil {
			return
		}
		must(t, l.Close())
	})
}

func TestDamagedPageConcernsTheGroupsWrittenThere(t *testing.T) {
	fs := memfs.New(memfs.Options{SectorBytes: 4096})
	l, _, err := Open(fs, "wal", Options{})
	must(t, err)
	for g := GroupID(1); g <= 50; g++ {
		must(t, l.Append([]Write{{Group: g, HasHardState: true, Entries: []Entry{entry(1, strings.Repeat("idle", 100))}}}))
	}
	start := l.off
	for i := uint64(2); i < 200; i++ {
		must(t, l.Append([]Write{{Group: GroupID(1 + i%3), Entries: []Entry{entry(l.groups[GroupID(1+i%3)].last+1, "busy")}}}))
	}
	must(t, l.Close())
	must(t, fs.Damage("wal/"+segmentName(1), memfs.RotZeros, (start+4096)/4096*4096))
	_, rec, err := Open(fs, "wal", Options{})
	must(t, err)
	if len(rec.Damaged) == 0 || len(rec.Damaged) > 3 || rec.Damaged[len(rec.Damaged)-1].Group > 3 || rec.Incomplete {
		t.Fatalf("damaged %v, incomplete %t; want some of the groups 1 to 3", rec.Damaged, rec.Incomplete)
	}
	if len(rec.Groups) != 50-len(rec.Damaged) {
		t.Fatalf("%d sound groups", len(rec.Groups))
	}
}

func FuzzDecodeAppend(f *testing.F) {
	f.Add((&appendInfo{synced: 9, since: 8, created: 3, groups: []listedGroup{{1, 2}, {3, 4}}}).append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := decodeAppend(data)
		if err != nil {
			return
		}
		again, err := decodeAppend(a.append(nil))
		if err != nil || again.since != a.since || len(again.groups) != len(a.groups) {
			t.Fatalf("%+v reads back as %+v, %v", a, again, err)
		}
	})
}

func FuzzDecodeTable(f *testing.F) {
	f.Add(appendTableEntry(appendTableEntry(nil, &group{id: 1, records: 2, meta: []byte("m")}), &group{id: 3, records: 1, damaged: true}))
	f.Fuzz(func(t *testing.T, data []byte) {
		groups, err := decodeTable(nil, data)
		if err != nil {
			return
		}
		var again []byte
		for i := range groups {
			again = appendTableEntry(again, &groups[i])
		}
		if back, err := decodeTable(nil, again); err != nil || len(back) != len(groups) {
			t.Fatalf("%d groups read back as %d, %v", len(groups), len(back), err)
		}
	})
}
