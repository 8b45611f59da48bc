package msgstore

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestStories runs the files in testdata. Commands:
//
//	append seq= payload=   lays a message out
//	forget first= last=    drops messages
//	writes                 prints what is to be written, in hexadecimal: the format of version 1
//	state                  prints the sections that changed
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		x := NewIndex(IndexOptions{BlockBytes: 128})
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var text strings.Builder
			switch d.Cmd {
			case "append":
				m := Msg{Time: 77, Subject: []byte("a.b"), Header: []byte("NATS/1.0\r\n\r\n")}
				var payload string
				d.ScanArgs(t, "seq", &m.Seq)
				d.ScanArgs(t, "payload", &payload)
				m.Payload = []byte(payload)
				x.Append(m)
				return "ok"
			case "forget":
				var first, last uint64
				d.ScanArgs(t, "first", &first)
				d.ScanArgs(t, "last", &last)
				x.ForgetRange(first, last)
				return "ok"
			case "writes":
				for _, w := range x.TakeWrites(nil) {
					fmt.Fprintf(&text, "%s at %d: %s\n", FileName(w.Block), w.Offset, hex.EncodeToString(w.Bytes))
				}
			case "state":
				for _, s := range x.TakeState() {
					fmt.Fprintf(&text, "section %d: %s\n", s.ID, hex.EncodeToString(s.Data))
				}
			default:
				t.Fatalf("unknown command %s", d.Cmd)
			}
			return text.String()
		})
	})
}
