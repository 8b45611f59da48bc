package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// text renders an operation in full; nil and empty slices differ.
func text(op *Op) string {
	field := func(name string, value []byte) string {
		if value == nil {
			return " " + name + "=-"
		}
		return " " + name + "=" + strconv.Quote(string(value))
	}
	switch op.Kind {
	case KindConnect:
		return "connect" + field("args", op.Args)
	case KindPub:
		return "pub" + field("subject", op.Subject) + field("reply", op.Reply) + field("header", op.Header) +
			field("payload", op.Payload)
	case KindSub:
		return "sub" + field("subject", op.Subject) + field("queue", op.Queue) + field("sid", op.Sid)
	case KindUnsub:
		return "unsub" + field("sid", op.Sid) + fmt.Sprintf(" max=%d", op.Max)
	case KindMsg:
		return "msg" + field("subject", op.Subject) + field("sid", op.Sid) + field("reply", op.Reply) +
			field("header", op.Header) + field("payload", op.Payload)
	case KindPing:
		return "ping"
	case KindPong:
		return "pong"
	case KindInfo:
		return "info" + field("args", op.Args)
	case KindOK:
		return "ok"
	case KindErr:
		return "err" + field("args", op.Args)
	}
	return fmt.Sprintf("kind %d", op.Kind)
}

// transcript feeds stream to p in pieces whose sizes come from next, and renders what happens.
func transcript(p *Parser, stream []byte, next func() int) string {
	var out strings.Builder
	for len(stream) > 0 {
		size := min(max(next(), 1), len(stream))
		// A copy of exact size, destroyed afterwards: an operation that aliases it too long shows.
		chunk := append(make([]byte, 0, size), stream[:size]...)
		ops, n, err := p.Feed(chunk, nil)
		for i := range ops {
			fmt.Fprintln(&out, text(&ops[i]))
		}
		for i := range chunk {
			chunk[i] = 0xFF
		}
		stream = stream[n:]
		var failure Failure
		if errors.As(err, &failure) {
			if failure.Text() == "" {
				fmt.Fprintf(&out, "failure: silent reason %q\n", failure.Reason())
			} else {
				fmt.Fprintf(&out, "failure: -ERR %q reason %q\n", failure.Text(), failure.Reason())
			}
			return out.String()
		}
		if p.gated && len(ops) > 0 {
			fmt.Fprintf(&out, "unconsumed %d\n", len(stream))
			return out.String()
		}
	}
	return out.String()
}

func TestOperationsAsRecorded(t *testing.T) {
	datadriven.Walk(t, "testdata/parser", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			limits := Limits{ControlLineBytes: DefaultControlLineBytes, PayloadBytes: DefaultPayloadBytes}
			d.MaybeScanArgs(t, "line", &limits.ControlLineBytes)
			d.MaybeScanArgs(t, "payload", &limits.PayloadBytes)
			var stream []byte
			for line := range strings.Lines(d.Input) {
				raw, err := strconv.Unquote(`"` + strings.ReplaceAll(strings.TrimSuffix(line, "\n"), `"`, `\"`) + `"`)
				if err != nil {
					t.Fatalf("%s: %v", d.Pos, err)
				}
				stream = append(stream, raw...)
			}
			build := func() *Parser {
				p := NewParser(limits)
				if d.Cmd == "server" {
					p = NewClientParser(limits)
				}
				if d.HasArg("gated") {
					p.Gate()
				}
				return p
			}
			whole := transcript(build(), stream, func() int { return len(stream) })
			for size := 1; size < len(stream); size++ {
				if d.HasArg("gated") {
					break // What remains unconsumed depends on the pieces.
				}
				if pieces := transcript(build(), stream, func() int { return size }); pieces != whole {
					t.Errorf("%s: pieces of %d bytes give\n%sinstead of\n%s", d.Pos, size, pieces, whole)
				}
			}
			return whole
		})
	})
}

// randomStream returns mostly valid operations with occasional damage.
func randomStream(random *rand.Rand, operations int, damaged bool) []byte {
	var stream []byte
	word := func(least int) []byte {
		return bytes.Repeat([]byte{byte('a' + random.IntN(26))}, least+random.IntN(12))
	}
	for range operations {
		m := &Msg{Subject: word(1)}
		if random.IntN(2) == 0 {
			m.Reply = word(1)
		}
		switch random.IntN(9) {
		case 0, 1, 2:
			m.Payload = word(0)
			stream = AppendPub(stream, m)
		case 3:
			m.Header, m.Payload = []byte("NATS/1.0\r\nA: b\r\n\r\n"), word(0)
			stream = AppendPub(stream, m)
		case 4:
			m.Payload = bytes.Repeat([]byte("\r\n"), random.IntN(3000))
			stream = AppendPub(stream, m)
		case 5:
			stream = AppendSub(stream, m.Subject, m.Reply, word(1))
		case 6:
			stream = AppendUnsub(stream, m.Subject, random.IntN(3))
		case 7:
			stream = AppendPing(stream)
			stream = append(stream, "pong and more\n"...)
		case 8:
			stream = AppendConnect(stream, &Connect{Name: string(m.Subject)})
		}
	}
	if damaged && len(stream) > 0 {
		stream[random.IntN(len(stream))] = byte(random.IntN(256))
	}
	return stream
}

func TestChunksNeverChangeTheOperations(t *testing.T) {
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 0))
		limits := Limits{ControlLineBytes: 12 + random.IntN(60), PayloadBytes: 100 + random.IntN(6000)}
		stream := randomStream(random, 30, seed%2 == 0)
		whole := transcript(NewParser(limits), stream, func() int { return len(stream) })
		for range 5 {
			most := 1 + random.IntN(1+random.IntN(200))
			pieces := transcript(NewParser(limits), stream, func() int { return random.IntN(most + 1) })
			if pieces != whole {
				t.Fatalf("seed %d: pieces of up to %d bytes give\n%sinstead of\n%s", seed, most, pieces, whole)
			}
		}
	}
}

func TestEncodedOperationsParseBack(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for range 300 {
		m := &Msg{Subject: []byte("s.x"), Sid: []byte("17"), Payload: make([]byte, random.IntN(300))}
		if random.IntN(2) == 0 {
			m.Reply = []byte("r")
		}
		if random.IntN(2) == 0 {
			m.Header = []byte("NATS/1.0\r\n\r\n")
		}
		p := NewClientParser(Limits{ControlLineBytes: 100, PayloadBytes: -1})
		ops, n, err := p.Feed(AppendMsg(nil, m, true), nil)
		if err != nil || len(ops) != 1 || n == 0 {
			t.Fatalf("%d operations of %d bytes, %v", len(ops), n, err)
		}
		op := ops[0]
		back := Msg{Subject: op.Subject, Sid: op.Sid, Reply: op.Reply, Header: op.Header, Payload: op.Payload}
		if fmt.Sprintf("%q", back) != fmt.Sprintf("%q", *m) {
			t.Fatalf("%q came back as %q", *m, back)
		}
		if plain := AppendMsg(nil, m, false); bytes.Contains(plain, []byte("NATS/1.0")) || !bytes.HasPrefix(plain, []byte("MSG ")) {
			t.Fatalf("a receiver without headers gets %q", plain)
		}
	}
}

func TestEncodingsToTheLetter(t *testing.T) {
	cases := map[string][]byte{
		"-ERR 'Invalid Subject'\r\n":       AppendErr(nil, "Invalid Subject"),
		"+OK\r\n":                          AppendOK(nil),
		"PONG\r\n":                         AppendPong(nil),
		"SUB a q 1\r\n":                    AppendSub(nil, []byte("a"), []byte("q"), []byte("1")),
		"SUB a 1\r\n":                      AppendSub(nil, []byte("a"), nil, []byte("1")),
		"UNSUB 1 5\r\n":                    AppendUnsub(nil, []byte("1"), 5),
		"UNSUB 1\r\n":                      AppendUnsub(nil, []byte("1"), 0),
		"NATS/1.0 404 No Messages\r\n\r\n": AppendStatus(nil, 404, "No Messages"),
		"NATS/1.0 503\r\n\r\n":             AppendStatus(nil, 503, ""),
		"HMSG _INBOX.1 9 35 35\r\nNATS/1.0 503\r\nNats-Subject: foo\r\n\r\n\r\n": AppendNoResponders(nil,
			[]byte("_INBOX.1"), []byte("9"), []byte("foo")),
	}
	for want, got := range cases {
		if string(got) != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestBatchIsBounded(t *testing.T) {
	stream := bytes.Repeat([]byte("PING\r\n"), 3*BatchMax)
	p := NewParser(Limits{ControlLineBytes: 10})
	var ops []Op
	rounds := 0
	for len(stream) > 0 {
		batch, n, err := p.Feed(stream, nil)
		if err != nil || len(batch) > BatchMax {
			t.Fatalf("%d operations, %v", len(batch), err)
		}
		stream = stream[n:]
		ops = append(ops, batch...)
		rounds++
	}
	if len(ops) != 3*BatchMax || rounds != 3 {
		t.Fatalf("%d operations in %d rounds", len(ops), rounds)
	}
}

func TestPayloadWithoutLineEndFailsAtItsFirstByte(t *testing.T) {
	for _, chunks := range [][]string{{"PUB a 2\nhi\n"}, {"PUB a 2\r\nhi", "x"}, {"PUB a 0\r\n", "P"}} {
		p := NewParser(Limits{ControlLineBytes: 4096, PayloadBytes: 1 << 20})
		var err error
		for i, chunk := range chunks {
			if err != nil {
				t.Errorf("%q fails before chunk %d: %v", chunks, i, err)
			}
			_, _, err = p.Feed([]byte(chunk), nil)
		}
		if err != FailureVerb {
			t.Errorf("%q: got %v, want %v", chunks, err, FailureVerb)
		}
	}
}

func TestFailureRepeats(t *testing.T) {
	p := NewParser(Limits{ControlLineBytes: 10})
	_, _, first := p.Feed([]byte("X"), nil)
	ops, n, second := p.Feed([]byte("PING\r\n"), nil)
	if first != FailureVerb || second != FailureVerb || len(ops) != 0 || n != 0 {
		t.Fatalf("%v, then %v with %d operations", first, second, len(ops))
	}
}

func TestGatedParserHoldsAtMostAControlLine(t *testing.T) {
	p := NewParser(Limits{ControlLineBytes: 1000, PayloadBytes: -1})
	p.Gate()
	stream := append([]byte("CONNECT "), bytes.Repeat([]byte("x"), 100_000)...)
	var err error
	for len(stream) > 0 && err == nil {
		_, _, err = p.Feed(stream[:50], nil)
		stream = stream[50:]
		if p.HeldBytes() > 4096 {
			t.Fatalf("holds %d bytes", p.HeldBytes())
		}
	}
	if err != FailureControlLine {
		t.Fatal(err)
	}
}

func TestPayloadGrowsWithBytesReceived(t *testing.T) {
	p := NewParser(Limits{ControlLineBytes: 100, PayloadBytes: 1 << 20})
	if _, _, err := p.Feed([]byte("PUB foo 1000000\r\nabc"), nil); err != nil || p.HeldBytes() > 200 {
		t.Fatalf("holds %d bytes after 3 of the payload, %v", p.HeldBytes(), err)
	}
	whole := 3
	piece := make([]byte, 777)
	for whole+len(piece) < 1_000_000 {
		if _, _, err := p.Feed(piece, nil); err != nil {
			t.Fatal(err)
		}
		whole += len(piece)
		if p.HeldBytes() > 2*whole+200 {
			t.Fatalf("holds %d bytes for %d", p.HeldBytes(), whole)
		}
	}
	if p.HeldBytes() > 1_000_100 {
		t.Fatalf("holds %d bytes, more than the operation", p.HeldBytes())
	}
}
