package session

import (
	"strings"
	"testing"

	"weir/transport/wire"
)

// stalled sends one read of the publisher to the broker and returns what its reader is told to wait.
func stalled(b *broker, from *client, text string) int64 {
	ops, _, err := from.parser.Feed([]byte(text), nil)
	if err != nil {
		panic(err)
	}
	for i := range ops {
		from.session.Handle(&ops[i])
	}
	nanos := from.session.Take().StallNanos
	b.ready = nil
	return nanos
}

func TestPublisherToCongestedClientIsSlowedDown(t *testing.T) {
	b := newBroker()
	config := testConfig()
	config.PendingBytesMax = 8000
	fast, slow := b.open(1, config), b.open(2, config)
	b.send(fast, []byte("CONNECT {\"verbose\":false}\r\n"))
	b.send(slow, []byte("CONNECT {\"verbose\":false}\r\nSUB x 1\r\n"))
	message := "PUB x 500\r\n" + strings.Repeat("m", 500) + "\r\n"
	for slow.session.PendingBytes() < 5000 {
		if nanos := stalled(b, fast, message); nanos != 0 {
			t.Fatalf("slowed down by %d at %d pending bytes", nanos, slow.session.PendingBytes())
		}
	}
	for !slow.session.Congested() {
		stalled(b, fast, message)
	}
	if nanos := stalled(b, fast, message); nanos != stallNanos {
		t.Errorf("one message: slowed down by %d, want %d", nanos, int64(stallNanos))
	}
	if nanos := stalled(b, fast, strings.Repeat("PUB x 0\r\n\r\n", 20)); nanos != stallMaxNanos {
		t.Errorf("many messages: slowed down by %d, want %d", nanos, int64(stallMaxNanos))
	}
	if slow.session.Closed() != 0 {
		t.Fatalf("the slow client is closed: %v", slow.session.Closed())
	}
	slow.session.Take()
	slow.session.Flushed(slow.session.PendingBytes())
	if nanos := stalled(b, fast, message); nanos != 0 {
		t.Errorf("slowed down by %d although nothing is pending", nanos)
	}
}

func TestClosingForSlownessSlowsNobodyDown(t *testing.T) {
	b := newBroker()
	config := testConfig()
	config.PendingBytesMax = 1000
	fast, slow := b.open(1, config), b.open(2, config)
	b.send(fast, []byte("CONNECT {\"verbose\":false}\r\n"))
	b.send(slow, []byte("CONNECT {\"verbose\":false}\r\nSUB x 1\r\n"))
	if nanos := stalled(b, fast, "PUB x 1200\r\n"+strings.Repeat("m", 1200)+"\r\n"); nanos != 0 {
		t.Errorf("slowed down by %d", nanos)
	}
	if slow.session.Closed() != wire.SlowConsumerPendingBytes {
		t.Errorf("closed: %v", slow.session.Closed())
	}
}
