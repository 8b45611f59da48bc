package wire

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// FuzzParser checks on arbitrary bytes that pieces never change the operations, for both directions.
func FuzzParser(f *testing.F) {
	f.Add([]byte("CONNECT {}\r\nPING\r\nPUB a 2\r\nok\r\nHPUB a r 12 12\r\nNATS/1.0\r\n\r\n\r\n"), uint64(1), false)
	f.Add([]byte("SUB a q 1\r\nUNSUB 1 5\r\n+OK\r\n-ERR 'x'\r\nINFO {}\r\n"), uint64(2), false)
	f.Add([]byte("MSG a 1 2\r\nok\r\nHMSG a 1 r 12 12\r\nNATS/1.0\r\n\r\n\r\nPONG\r\n"), uint64(3), true)
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64, fromServer bool) {
		build := func() *Parser {
			p := NewParser(Limits{ControlLineBytes: 24, PayloadBytes: 200})
			p.fromServer = fromServer
			return p
		}
		random := rand.New(rand.NewPCG(seed, 0))
		whole := transcript(build(), stream, func() int { return len(stream) })
		pieces := transcript(build(), stream, func() int { return random.IntN(9) })
		if pieces != whole {
			t.Fatalf("pieces give\n%sinstead of\n%s", pieces, whole)
		}
	})
}

// FuzzConnect checks that decoding never panics and that what was decoded survives a round trip.
func FuzzConnect(f *testing.F) {
	f.Add([]byte(`{"verbose":false,"user":"a","pass":"b","headers":true,"protocol":1}`))
	f.Fuzz(func(t *testing.T, args []byte) {
		c := DefaultConnect()
		if c.Decode(args) != nil {
			return
		}
		ops, _, err := NewParser(Limits{ControlLineBytes: 1 << 20}).Feed(AppendConnect(nil, &c), nil)
		if err != nil || len(ops) != 1 {
			t.Fatalf("%d operations, %v", len(ops), err)
		}
		back := DefaultConnect()
		if err := back.Decode(ops[0].Args); err != nil || back != c {
			t.Fatalf("%+v came back as %+v, %v", c, back, err)
		}
	})
}

// FuzzInfo checks that decoding never panics and that what was decoded can be sent.
func FuzzInfo(f *testing.F) {
	f.Add([]byte(`{"server_id":"x","connect_urls":["a:1","b:2"],"max_payload":-1}`))
	f.Fuzz(func(t *testing.T, args []byte) {
		info, err := DecodeInfo(args)
		if err != nil {
			return
		}
		ops, _, err := NewClientParser(Limits{ControlLineBytes: 1 << 20}).Feed(AppendInfo(nil, &info), nil)
		if err != nil || len(ops) != 1 {
			t.Fatalf("%d operations, %v", len(ops), err)
		}
	})
}

// TestHostileBytesNeitherPanicNorGrowMemory restarts the parser after each failure, as a client that reconnects does.
func TestHostileBytesNeitherPanicNorGrowMemory(t *testing.T) {
	const total = 100 << 20
	limits := Limits{ControlLineBytes: 4096, PayloadBytes: 100_000}
	random := rand.New(rand.NewPCG(11, 0))
	const streams = 64
	var prepared [streams][]byte
	for i := range prepared {
		prepared[i] = randomStream(random, 400, false)
		for range random.IntN(3) {
			prepared[i][random.IntN(len(prepared[i]))] = byte(random.IntN(256))
		}
		if i%8 == 0 {
			for j := range prepared[i] {
				prepared[i][j] = byte(random.IntN(256))
			}
		}
	}
	p := NewParser(limits)
	var ops []Op
	operations, failures := 0, 0
	for fed := 0; fed < total; {
		stream := prepared[random.IntN(streams)]
		stream = stream[random.IntN(len(stream)/2):]
		for len(stream) > 0 {
			chunk := stream[:min(len(stream), 1+random.IntN(20_000))]
			var n int
			var err error
			ops, n, err = p.Feed(chunk, ops[:0])
			operations += len(ops)
			fed += n
			if bound := 2*(limits.PayloadBytes+limits.ControlLineBytes) + 2*carryKeptBytes; p.HeldBytes() > bound {
				t.Fatalf("holds %d bytes", p.HeldBytes())
			}
			var failure Failure
			if errors.As(err, &failure) {
				failures++
				fed++
				p = NewParser(limits)
				break
			}
			stream = stream[n:]
		}
	}
	if operations < 1000 || failures < 1000 {
		t.Fatalf("%d operations and %d failures: the bytes are not hostile enough", operations, failures)
	}
}
