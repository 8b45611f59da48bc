package checkpoint

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"weir/disk/memfs"
	"weir/disk/record"
	"weir/disk/vfs"
)

// TestStories runs the files in testdata. Commands:
//
//	write index=      writes an update: "put id data" and "delete id", one a line
//	load              prints the newest checkpoint
//	trace             prints the calls that change the disk since the last trace
//	bytes             prints the frames of the newest file in hexadecimal: the format of version 1
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		fs := memfs.New(memfs.Options{})
		fs.Record(true)
		s, traced := NewStore(fs, "ckpt"), 0
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var text strings.Builder
			switch d.Cmd {
			case "write":
				u := Update{Term: 1, Meta: []byte("meta")}
				d.ScanArgs(t, "index", &u.Index)
				for line := range strings.SplitSeq(d.Input, "\n") {
					var id uint64
					var data string
					if n, _ := fmt.Sscanf(line, "put %d %s", &id, &data); n == 2 {
						u.Put = append(u.Put, Section{id, []byte(data)})
					} else if n, _ := fmt.Sscanf(line, "delete %d", &id); n == 1 {
						u.Delete = append(u.Delete, id)
					} else {
						t.Fatalf("unknown line %q", line)
					}
				}
				must(t, s.Write(u))
				return "ok"
			case "load":
				got, err := Load(fs, "ckpt")
				must(t, err)
				return describe(got)
			case "trace":
				for _, op := range fs.Trace()[traced:] {
					if op.Kind&memfs.OpChanges != 0 {
						fmt.Fprintln(&text, op)
					}
				}
				traced = len(fs.Trace())
			case "bytes":
				generations, err := list(fs, "ckpt")
				must(t, err)
				g := generations[len(generations)-1]
				data, err := vfs.ReadFile(fs, "ckpt/"+fileName(g))
				must(t, err)
				for off := int64(0); off < int64(len(data)); {
					frame, err := record.Next(data[off:], record.Place{Segment: g, Offset: off}, 0)
					must(t, err)
					fmt.Fprintf(&text, "%d type=%d %s\n", off, frame.Type, hex.EncodeToString(data[off:frame.End]))
					off = frame.End
				}
			default:
				t.Fatalf("unknown command %s", d.Cmd)
			}
			return text.String()
		})
	})
}
