package wal

import (
	"fmt"
	"testing"

	"weir/disk/memfs"
	"weir/disk/osfs"
	"weir/disk/vfs"
)

// discard is a file system whose open files swallow writes, to measure the log alone.
type discard struct{ *memfs.FS }

type discardFile struct{ vfs.File }

func (d discard) Create(name string) (vfs.File, error) {
	f, err := d.FS.Create(name)
	return discardFile{f}, err
}

func (discardFile) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }
func (discardFile) Sync() error                            { return nil }

func batch(groups, entries int) []Write {
	ws := make([]Write, groups)
	for i := range ws {
		ws[i].Group = GroupID(i + 1)
		for j := range entries {
			ws[i].Entries = append(ws[i].Entries, Entry{Term: 1, Index: uint64(j + 1), Data: make([]byte, 200)})
		}
	}
	return ws
}

func advance(ws []Write) {
	for i := range ws {
		n := uint64(len(ws[i].Entries))
		for j := range ws[i].Entries {
			ws[i].Entries[j].Index += n
		}
		ws[i].Compact = ws[i].Entries[0].Index - 1
	}
}

var shapes = []struct{ groups, entries int }{{1, 1}, {1, 100}, {64, 1}}

// BenchmarkAppend is to be compared with BenchmarkBare, which writes and syncs the same bytes.
func BenchmarkAppend(b *testing.B) {
	for _, s := range shapes {
		b.Run(fmt.Sprintf("groups=%d/entries=%d", s.groups, s.entries), func(b *testing.B) {
			fs, err := osfs.New(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			l, _, err := Open(fs, "wal", Options{})
			if err != nil {
				b.Fatal(err)
			}
			for more := true; more; {
				if more, err = l.PrepareNext(4 << 20); err != nil {
					b.Fatal(err)
				}
			}
			if err := l.startSegment(); err != nil {
				b.Fatal(err)
			}
			ws := batch(s.groups, s.entries)
			b.ReportAllocs()
			for b.Loop() {
				if err := l.Append(ws); err != nil {
					b.Fatal(err)
				}
				advance(ws)
				if l.off > l.opts.SegmentBytes/2 && l.spare.filled < l.opts.SegmentBytes { // the owner does this when idle
					b.StopTimer()
					for more := true; more; {
						if more, err = l.PrepareNext(4 << 20); err != nil {
							b.Fatal(err)
						}
					}
					b.StartTimer()
				}
			}
			b.SetBytes(int64(l.Stats().Bytes / l.Stats().Appends))
		})
	}
}

// BenchmarkEncode is Append without the disk.
func BenchmarkEncode(b *testing.B) {
	for _, s := range shapes {
		b.Run(fmt.Sprintf("groups=%d/entries=%d", s.groups, s.entries), func(b *testing.B) {
			l, _, err := Open(discard{memfs.New(memfs.Options{})}, "wal", Options{})
			if err != nil {
				b.Fatal(err)
			}
			ws := batch(s.groups, s.entries)
			b.ReportAllocs()
			for b.Loop() {
				if err := l.Append(ws); err != nil {
					b.Fatal(err)
				}
				advance(ws)
			}
		})
	}
}

// BenchmarkBare writes and syncs as many bytes as BenchmarkAppend into a zero-filled file.
func BenchmarkBare(b *testing.B) {
	for _, s := range shapes {
		b.Run(fmt.Sprintf("groups=%d/entries=%d", s.groups, s.entries), func(b *testing.B) {
			fs, err := osfs.New(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			f, err := fs.Create("bare")
			if err != nil {
				b.Fatal(err)
			}
			const fileBytes = 64 << 20
			for off := int64(0); off < fileBytes; off += int64(len(zeros)) {
				if _, err := f.WriteAt(zeros[:], off); err != nil {
					b.Fatal(err)
				}
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
			ws := batch(s.groups, s.entries)
			n := 0
			for i := range ws {
				n += len(appendGroup(nil, &ws[i], recordNumber{n: 1}))
			}
			p, off := make([]byte, n), int64(0)
			b.SetBytes(int64(n))
			for b.Loop() {
				if off+int64(n) > fileBytes {
					off = 0
				}
				if _, err := f.WriteAt(p, off); err != nil {
					b.Fatal(err)
				}
				if err := f.Sync(); err != nil {
					b.Fatal(err)
				}
				off += int64(n)
			}
		})
	}
}

// BenchmarkRecover reads a full log of 64 MiB.
func BenchmarkRecover(b *testing.B) {
	fs, err := osfs.New(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	l, _, err := Open(fs, "wal", Options{Lazy: true})
	if err != nil {
		b.Fatal(err)
	}
	ws := batch(1, 100)
	for l.Stats().Bytes < 60<<20 {
		if err := l.Append(ws); err != nil {
			b.Fatal(err)
		}
		advance(ws)
		ws[0].Compact = 0
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(60 << 20)
	for b.Loop() {
		l, rec, err := Open(fs, "wal", Options{})
		if err != nil || len(rec.Groups) != 1 {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkOpenIdle opens a log with one small append and the next segment prepared.
func BenchmarkOpenIdle(b *testing.B) {
	fs, err := osfs.New(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	open := func() {
		l, _, err := Open(fs, "wal", Options{})
		if err != nil {
			b.Fatal(err)
		}
		for more := true; more; {
			if more, err = l.PrepareNext(4 << 20); err != nil {
				b.Fatal(err)
			}
		}
		if err := l.startSegment(); err != nil {
			b.Fatal(err)
		}
		for more := true; more; {
			if more, err = l.PrepareNext(4 << 20); err != nil {
				b.Fatal(err)
			}
		}
		if err := l.Append(batch(1, 1)); err != nil {
			b.Fatal(err)
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
	open()
	for b.Loop() {
		l, _, err := Open(fs, "wal", Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
