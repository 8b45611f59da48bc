package wal

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"weir/disk/memfs"
	"weir/disk/record"
	"weir/disk/vfs"
)

// TestStories runs the files in testdata. Commands:
//
//	open                 opens the log and prints what it recovered
//	append               appends the writes given one a line: group=1 hard=term/vote/commit meta=m compact=2 reset drop
//	                     entries=index:term:data,...
//	crash strategy=...   replaces the disk by what a power loss leaves
//	damage file=... off= flips a bit
//	trace                prints the calls of the disk since the last trace
//	bytes file=...       prints the frames of a file in hexadecimal: the format of version 1
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := story{fs: memfs.New(memfs.Options{})}
		s.fs.Record(true)
		datadriven.RunTest(t, path, s.run)
	})
}

type story struct {
	fs     *memfs.FS
	log    *Log
	traced int
}

func (s *story) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "open":
		l, rec, err := Open(s.fs, "wal", Options{SegmentBytes: 8192})
		if err != nil {
			return err.Error()
		}
		s.log = l
		return describeRecovered(&rec)
	case "append":
		var ws []Write
		for line := range strings.SplitSeq(d.Input, "\n") {
			ws = append(ws, parseWrite(t, line))
		}
		if err := s.log.Append(ws); err != nil {
			return err.Error()
		}
		return "ok"
	case "crash":
		var name string
		d.ScanArgs(t, "strategy", &name)
		for _, strategy := range memfs.Strategies() {
			if strategy.String() == name {
				s.fs = s.fs.Crash(strategy, 1)
				s.fs.Record(true)
				s.traced = 0
				return "ok"
			}
		}
		return "no such strategy"
	case "damage":
		var name string
		var off int64
		d.ScanArgs(t, "file", &name)
		d.ScanArgs(t, "off", &off)
		must(t, s.fs.Damage("wal/"+name, memfs.RotBit, off))
		return "ok"
	case "trace":
		var text strings.Builder
		for _, op := range s.fs.Trace()[s.traced:] {
			if op.Kind&memfs.OpChanges != 0 {
				fmt.Fprintln(&text, op)
			}
		}
		s.traced = len(s.fs.Trace())
		return text.String()
	case "bytes":
		var name string
		d.ScanArgs(t, "file", &name)
		return s.bytes(t, name)
	}
	t.Fatalf("unknown command %s", d.Cmd)
	return ""
}

func (s *story) bytes(t *testing.T, name string) string {
	data, err := vfs.ReadFile(s.fs, "wal/"+name)
	must(t, err)
	id, _ := parseSegmentName(name)
	var text strings.Builder
	for off := int64(0); ; {
		frame, err := record.Next(data[off:], record.Place{Segment: id, Offset: off}, 0)
		if err != nil {
			return text.String()
		}
		fmt.Fprintf(&text, "%d type=%d %s\n", off, frame.Type, hex.EncodeToString(data[off:frame.End]))
		off = frame.End
	}
}

func describeRecovered(rec *Recovered) string {
	var text strings.Builder
	for _, g := range rec.Groups {
		fmt.Fprintf(&text, "group %d: %s\n", g.ID, describe(g))
	}
	for _, d := range rec.Damaged {
		fmt.Fprintf(&text, "damaged: %v\n", d.Err)
	}
	for _, n := range rec.Notes {
		fmt.Fprintf(&text, "note: %s\n", n)
	}
	if rec.Incomplete {
		text.WriteString("incomplete\n")
	}
	for _, seg := range rec.Segments {
		fmt.Fprintf(&text, "segment %d ends at %d: %d appends, %d records\n", seg.ID, seg.End, seg.Appends, seg.Records)
	}
	if text.Len() == 0 {
		return "nothing"
	}
	return text.String()
}

func parseWrite(t *testing.T, line string) Write {
	var w Write
	num := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 10, 64)
		must(t, err)
		return n
	}
	for field := range strings.FieldsSeq(line) {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "group":
			w.Group = GroupID(num(value))
		case "hard":
			parts := strings.Split(value, "/")
			w.HasHardState, w.HardState = true, HardState{num(parts[0]), num(parts[1]), num(parts[2])}
		case "meta":
			w.Meta = []byte(value)
		case "compact":
			w.Compact = num(value)
		case "reset":
			w.Reset = true
		case "drop":
			w.Drop = true
		case "entries":
			for e := range strings.SplitSeq(value, ",") {
				parts := strings.Split(e, ":")
				w.Entries = append(w.Entries, Entry{Index: num(parts[0]), Term: num(parts[1]), Data: []byte(parts[2])})
			}
		default:
			t.Fatalf("unknown field %s", field)
		}
	}
	return w
}
