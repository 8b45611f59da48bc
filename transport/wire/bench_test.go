package wire

import (
	"bytes"
	"testing"
)

const benchChunkBytes = 32 << 10

// chunks cuts count copies of one operation into pieces of the size a reader reads.
func chunks(operation []byte, count int) [][]byte {
	stream := bytes.Repeat(operation, count)
	var out [][]byte
	for len(stream) > 0 {
		n := min(len(stream), benchChunkBytes)
		out = append(out, stream[:n])
		stream = stream[n:]
	}
	return out
}

func feedAll(tb testing.TB, p *Parser, pieces [][]byte, ops []Op) (int, []Op) {
	count := 0
	for _, piece := range pieces {
		for len(piece) > 0 {
			var n int
			var err error
			ops, n, err = p.Feed(piece, ops[:0])
			if err != nil {
				tb.Fatal(err)
			}
			count += len(ops)
			piece = piece[n:]
		}
	}
	return count, ops
}

func benchmarkFeed(b *testing.B, operation []byte) {
	perRound := max(10, 1_000_000/len(operation))
	pieces := chunks(operation, perRound)
	p := NewParser(Limits{ControlLineBytes: DefaultControlLineBytes, PayloadBytes: DefaultPayloadBytes})
	ops := make([]Op, 0, BatchMax)
	b.SetBytes(int64(len(operation)))
	b.ReportAllocs()
	for done := 0; done < b.N; done += perRound {
		_, ops = feedAll(b, p, pieces, ops)
	}
}

func BenchmarkFeedPub16(b *testing.B) {
	benchmarkFeed(b, AppendPub(nil, &Msg{Subject: []byte("orders.new"), Payload: make([]byte, 16)}))
}

func BenchmarkFeedPub128Reply(b *testing.B) {
	benchmarkFeed(b, AppendPub(nil, &Msg{Subject: []byte("orders.new"), Reply: []byte("_INBOX.abcdefghijklmnop.1"),
		Payload: make([]byte, 128)}))
}

func BenchmarkFeedPub100K(b *testing.B) {
	benchmarkFeed(b, AppendPub(nil, &Msg{Subject: []byte("orders.new"), Payload: make([]byte, 100_000)}))
}

func BenchmarkAppendMsg(b *testing.B) {
	m := &Msg{Subject: []byte("orders.new"), Sid: []byte("12"), Payload: make([]byte, 16)}
	var dst []byte
	b.ReportAllocs()
	for range b.N {
		dst = AppendMsg(dst[:0], m, true)
	}
}

func TestParsingDoesNotAllocate(t *testing.T) {
	for _, payload := range []int{0, 16, 5000, 100_000} {
		operation := AppendPub(nil, &Msg{Subject: []byte("orders.new"), Reply: []byte("r"), Payload: make([]byte, payload)})
		pieces := chunks(operation, 200)
		p := NewParser(Limits{ControlLineBytes: 4096, PayloadBytes: 1 << 20})
		ops := make([]Op, 0, BatchMax)
		_, ops = feedAll(t, p, pieces, ops)
		// A partial operation keeps the parser busy from round to round, as in a stream that does not end.
		allocs := testing.AllocsPerRun(5, func() {
			var count int
			if count, ops = feedAll(t, p, pieces, ops); count != 200 {
				t.Fatalf("%d operations", count)
			}
		})
		// The first large payload after an idle moment may have to grow its buffer anew.
		if most := 12.0; (payload < 64<<10 && allocs > 0) || allocs > most {
			t.Errorf("payload %d: %v allocations for 200 operations", payload, allocs)
		}
	}
}
