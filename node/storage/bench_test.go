package storage

import (
	"testing"

	"weir/disk/msgstore"
	"weir/disk/osfs"
	"weir/node/event"
)

// BenchmarkTransfer brings a snapshot of 64 MiB of messages from one data directory to another and installs it.
func BenchmarkTransfer(b *testing.B) {
	fresh := func() *copyOf {
		fs, err := osfs.New(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		s, _, err := Open(fs, ".", Options{})
		if err != nil {
			b.Fatal(err)
		}
		return &copyOf{s: s, index: msgstore.NewIndex(msgstore.IndexOptions{})}
	}
	from := fresh()
	from.store(64 << 20 / 132)
	if err := from.save(); err != nil {
		b.Fatal(err)
	}
	p := from.op(event.Pin, event.Snapshot{}).Pinned
	bytes := int64(0)
	for b.Loop() {
		to := fresh()
		order := event.Snapshot{Pin: p.Pin, Manifest: p.Manifest}
		for {
			done := to.op(event.Stage, order)
			if done.Err != nil {
				b.Fatal(done.Err)
			}
			if len(done.Staged.Missing) == 0 {
				break
			}
			for _, m := range done.Staged.Missing {
				for order.Part = m.Part; m.Offset < m.Bytes; m.Offset += uint64(order.Max) {
					order.Offset, order.Max = m.Offset, int(min(event.PieceBytesMax, m.Bytes-m.Offset))
					order.Data = from.op(event.ReadPart, order).Data
					if err := to.op(event.StagePart, order).Err; err != nil {
						b.Fatal(err)
					}
					bytes += int64(len(order.Data))
				}
			}
		}
		if err := to.install(p).Err; err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(bytes / int64(b.N))
}
