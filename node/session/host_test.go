package session

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"weir/node/auth"
	"weir/node/event"
	"weir/node/route"
	"weir/transport/wire"
)

// broker is the smallest host: tables, a clock that tests move, and clients that are a parser and a session each.
type broker struct {
	now     event.Time
	tables  map[string]*route.Table
	clients map[event.ConnID]*client
	ready   []*Session
	// buffers returns the buffers that sessions write to; nil lets them grow their own.
	buffers func() []byte
	// members counts the clients of accounts.
	members map[string]int
}

// client is a connection without its socket.
type client struct {
	parser  *wire.Parser
	session *Session
	// rest are bytes that the gated parser has not taken.
	rest []byte
	// received are the bytes sent to the client.
	received []byte
	closed   bool
	reason   wire.Reason
	// holds makes the client leave its bytes unread.
	holds bool
}

func newBroker() *broker {
	return &broker{now: event.Time{Mono: 1e9, Wall: 1e18}, tables: map[string]*route.Table{}, members: map[string]int{}, clients: map[event.ConnID]*client{}}
}

func (b *broker) Now() event.Time { return b.now }

func (b *broker) Table(account string) *route.Table {
	if b.tables[account] == nil {
		b.tables[account] = route.NewTable(rand.NewPCG(1, 2))
	}
	return b.tables[account]
}

func (b *broker) Members(account string, change int) int {
	b.members[account] += change
	if b.members[account] < 0 {
		panic("an account counts fewer than no clients")
	}
	return b.members[account]
}

func (b *broker) Publish(s *Session, m *route.Message) bool {
	return b.Table(s.Identity().Account).Route(m.Subject, m) > 0
}

func (b *broker) Ready(s *Session) []byte {
	b.ready = append(b.ready, s)
	if b.buffers != nil {
		return b.buffers()
	}
	return nil
}

func (b *broker) Session(id event.ConnID) *Session {
	if c := b.clients[id]; c != nil {
		return c.session
	}
	return nil
}

// open connects a client.
func (b *broker) open(id event.ConnID, config *Config) *client {
	return b.begin(id, config, event.Plain)
}

// begin opens a connection that begins in one of the ways.
func (b *broker) begin(id event.ConnID, config *Config, start event.Start) *client {
	c := &client{parser: wire.NewParser(config.Limits)}
	c.session = New(Params{ID: id, Address: "10.0.0.1", Random: uint64(id), Start: start, Nonce: fmt.Sprintf("n%d", id)}, config, b)
	b.clients[id] = c
	b.drain()
	return c
}

// send brings bytes of a client as far as they are accepted.
func (b *broker) send(c *client, data []byte) {
	c.rest = append(c.rest, data...)
	for len(c.rest) > 0 && !c.closed {
		ops, n, err := c.parser.Feed(c.rest, nil)
		for i := range ops {
			c.session.Handle(&ops[i])
		}
		if failure, failed := err.(wire.Failure); failed {
			c.session.Fail(failure)
		}
		c.rest = c.rest[n:]
		b.drain()
	}
}

// drain carries out what sessions ask for.
func (b *broker) drain() {
	slices.SortFunc(b.ready, func(x, y *Session) int { return int(x.ID()) - int(y.ID()) })
	for _, s := range b.ready {
		c := b.clients[s.ID()]
		if c == nil {
			c = &client{} // Still being opened.
		}
		out := s.Take()
		c.received = append(c.received, out.Bytes...)
		if !c.holds {
			s.Flushed(len(out.Bytes))
		}
		if out.Gate {
			c.parser.Gate()
		}
		if out.Admit {
			c.parser.Admit()
		}
		if out.Limits != (wire.Limits{}) && c.parser != nil {
			c.parser.SetLimits(out.Limits)
		}
		if out.Close {
			c.closed, c.reason = true, out.Reason
		}
	}
	b.ready = b.ready[:0]
}

// advance moves the clock and ticks every session that is due.
func (b *broker) advance(nanos int64) {
	b.now.Mono += nanos
	b.now.Wall += nanos
	for id := event.ConnID(0); int(id) <= len(b.clients); id++ {
		if c := b.clients[id]; c != nil {
			if at := c.session.Deadline(); at != 0 && at <= b.now.Mono {
				c.session.Tick()
			}
		}
	}
	b.drain()
}

func testConfig() *Config {
	authenticator, err := auth.New(auth.Config{})
	if err != nil {
		panic(err)
	}
	return &Config{
		Info:               wire.Info{ServerID: "NID", ServerName: "weir", Version: "2.15.2", Proto: 1, Headers: true, JetStream: true},
		Auth:               authenticator,
		Limits:             wire.Limits{ControlLineBytes: 4096, PayloadBytes: 1 << 20},
		PendingBytesMax:    64 << 20,
		AuthTimeoutNanos:   2e9,
		PingIntervalNanos:  120e9,
		PingOutstandingMax: 2,
		SystemAccount:      "$SYS",
	}
}
