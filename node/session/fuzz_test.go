package session

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"weir/node/auth"
	"weir/transport/wire"
)

// FuzzSession sends arbitrary bytes to a server with one well-behaved subscriber, and checks what must hold whatever
// they are: what the client gets parses, and the table holds just the subscriptions of open sessions.
func FuzzSession(f *testing.F) {
	f.Add([]byte("CONNECT {\"verbose\":false}\r\nSUB a.> 1\r\nPUB a.b 2\r\nok\r\nUNSUB 1 3\r\nPING\r\n"), uint64(1), false)
	f.Add([]byte("SUB a q 1\r\nSUB a q 1\r\nUNSUB 1\r\nPUB a r 0\r\n\r\nCONNECT {}\r\nSUB > 2\r\n"), uint64(2), false)
	f.Add([]byte("CONNECT {\"user\":\"u\",\"pass\":\"p\"}\r\nHPUB a 12 12\r\nNATS/1.0\r\n\r\n\r\n"), uint64(3), true)
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64, users bool) {
		b, config := newBroker(), testConfig()
		config.PendingBytesMax, config.SubscriptionsMax = 4000, 20
		reader := b.open(1, config)
		b.send(reader, []byte("CONNECT {\"verbose\":false}\r\nSUB a.* 1\r\n"))
		if users {
			own := *config
			own.Auth, _ = auth.New(auth.Config{Users: []auth.User{{Name: "u", Password: "p"}}})
			config = &own
		}
		c := b.open(2, config)
		random := rand.New(rand.NewPCG(seed, 0))
		for len(stream) > 0 && !c.closed {
			n := min(len(stream), 1+random.IntN(40))
			b.send(c, stream[:n])
			stream = stream[n:]
			if random.IntN(8) == 0 {
				b.advance(int64(random.IntN(130)) * 1e9)
			}
			if got, want := b.Table(auth.GlobalAccount).Len(), len(c.session.Subs())+len(reader.session.Subs()); got != want {
				t.Fatalf("%d subscriptions in the table, %d in sessions", got, want)
			}
			if c.closed && len(c.session.Subs()) > 0 {
				t.Fatalf("closed with %d subscriptions", len(c.session.Subs()))
			}
		}
		understands(t, c.received)
		understands(t, reader.received)
	})
}

// understands checks that a client can parse all that it was sent.
func understands(t *testing.T, received []byte) {
	t.Helper()
	p := wire.NewClientParser(wire.Limits{ControlLineBytes: 1 << 16, PayloadBytes: -1})
	for len(received) > 0 {
		_, n, err := p.Feed(received, nil)
		var failure wire.Failure
		if errors.As(err, &failure) {
			t.Fatalf("cannot parse %q: %v", received, failure)
		}
		received = received[n:]
	}
	if p.HeldBytes() > 0 {
		if _, n, err := p.Feed([]byte("PING\r\n"), nil); err != nil || n != 6 {
			t.Fatalf("the last operation is incomplete: %v", err)
		}
	}
}

func TestHeldBytesOfASessionAreBounded(t *testing.T) {
	b, config := newBroker(), testConfig()
	config.PendingBytesMax = 10_000
	slow := b.open(1, config)
	b.send(slow, []byte("CONNECT {\"verbose\":false}\r\nSUB > 1\r\n"))
	slow.holds = true
	fast := b.open(2, config)
	b.send(fast, []byte("CONNECT {\"verbose\":false}\r\n"))
	warned := false
	for range 1000 {
		if slow.session.Congested() {
			warned = true
		} else if warned && !slow.closed {
			t.Fatal("congestion ends while nobody reads")
		}
		b.send(fast, wire.AppendPub(nil, &wire.Msg{Subject: []byte("a"), Payload: bytes.Repeat([]byte("x"), 100)}))
		if slow.session.PendingBytes() > config.PendingBytesMax {
			t.Fatalf("%d bytes pending", slow.session.PendingBytes())
		}
	}
	if !warned {
		t.Fatal("closed without a warning")
	}
	if slow.reason != wire.SlowConsumerPendingBytes || fast.closed {
		t.Fatalf("slow client: %v, fast client closed: %v", slow.reason, fast.closed)
	}
}

func TestSessionItselfRefusesWhatComesBeforeCredentials(t *testing.T) {
	b, config := newBroker(), testConfig()
	var err error
	if config.Auth, err = auth.New(auth.Config{Token: "t"}); err != nil {
		t.Fatal(err)
	}
	c := b.open(1, config)
	c.session.Handle(&wire.Op{Kind: wire.KindPub, Subject: []byte("a")}) // Past the parser, which is gated.
	b.drain()
	if c.reason != wire.AuthenticationFailure || c.session.Stats().InMsgs != 0 {
		t.Fatalf("closed for %d, %d messages taken", c.reason, c.session.Stats().InMsgs)
	}
}

func TestNewLimitsReachTheParser(t *testing.T) {
	b, config := newBroker(), testConfig()
	c := b.open(1, config)
	smaller := *config
	smaller.Limits.PayloadBytes = 5
	c.session.SetConfig(&smaller)
	out := c.session.Take()
	if out.Limits != smaller.Limits || out.Close || len(out.Bytes) != 0 {
		t.Fatalf("%+v", out)
	}
}
