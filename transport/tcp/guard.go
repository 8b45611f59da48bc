package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"weir/transport/wire"
)

// Guard is how connections of clients become protected. It is shared by all that begin while it counts.
type Guard struct {
	// Config is the server's side of the handshake.
	Config *tls.Config
	// Timeout bounds the handshake, and with Optional how long a client may take to begin one.
	Timeout time.Duration
	// First says that clients begin with the handshake, before the server has said anything. With Fallback, one that sends
	// nothing for that long is spoken to.
	First    bool
	Fallback time.Duration
	// Optional leaves it to clients whether to begin a handshake. First without Fallback does not.
	Optional bool
	// PerSecond bounds the handshakes that begin within a second; 0 does not.
	PerSecond int64

	mu     sync.Mutex
	second time.Time // when the present second began
	begun  int64     // in it
}

// Handshake is how it was settled whether a connection is protected.
type Handshake struct {
	// State describes the protection; nil: the connection is plain, or has ended because of Err.
	State *tls.ConnectionState
	// First says that the client began, before the server had said anything.
	First bool
	// Web is what the cookies of a WebSocket say of the client.
	Web Credentials
	// Err is why the handshake, or the request for a WebSocket, failed.
	Err error
}

// recordHandshake is the first byte of a TLS handshake. No operation of a client begins with it.
const recordHandshake = 0x16

// peekBytes is how much is read to see what a client begins with.
const peekBytes = 8

// Waits reports whether the server says nothing before a client has shown what it begins with.
func (g *Guard) Waits() bool { return g != nil && g.First }

// admit reports whether one more handshake may begin.
func (g *Guard) admit(now time.Time) bool {
	if g.PerSecond == 0 {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Sub(g.second) >= time.Second {
		g.second, g.begun = now, 0
	}
	g.begun++
	return g.begun <= g.PerSecond
}

// secure settles whether the connection is protected and tells the handler. It reports whether the connection goes on, and
// returns what a plain client has sent already.
func (c *Conn) secure(g *Guard) (begun []byte, goesOn bool) {
	var err error
	first := g.First
	if g.First && g.Fallback > 0 {
		if begun, err = c.peek(g.Fallback); err != nil {
			c.readFailed(err)
			return nil, false
		}
		if first = len(begun) > 0; !first {
			c.handler.Greet(c.id)
		}
	}
	if g.Optional && !first {
		if begun, err = c.peek(g.Timeout); err != nil {
			c.readFailed(err)
			return nil, false
		}
		if len(begun) == 0 || begun[0] != recordHandshake {
			c.handler.Secured(c.id, Handshake{})
			return begun, true
		}
	}
	if !g.admit(time.Now()) {
		c.handler.Refused(c.id, wire.FailureThrottled)
		return nil, false
	}
	return nil, c.shakeHands(g, begun, first)
}

// peek reads the first bytes of the client; none when there are none in time.
func (c *Conn) peek(wait time.Duration) ([]byte, error) {
	if err := c.sock.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return nil, err
	}
	begun := make([]byte, peekBytes)
	n, err := c.sock.Read(begun)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, err
	}
	return begun[:n], c.sock.SetReadDeadline(time.Time{})
}

// shakeHands makes the handshake, of which the client has sent the beginning already.
func (c *Conn) shakeHands(g *Guard, begun []byte, first bool) bool {
	inner := c.sock
	if len(begun) > 0 {
		inner = &resumed{Conn: inner, begun: begun}
	}
	sock := tls.Server(inner, g.Config)
	limit, cancel := context.WithTimeout(context.Background(), g.Timeout)
	defer cancel()
	if err := sock.HandshakeContext(limit); err != nil {
		c.handler.Secured(c.id, Handshake{First: first, Err: err})
		c.end(wire.TLSHandshakeFailure)
		return false
	}
	c.mu.Lock()
	// What is queued was meant for a plain connection. The client has seen INFO, which is all that there may have been.
	unsent := c.closing || c.writing || len(c.queue) > 0
	if c.closed || unsent && !c.held {
		c.mu.Unlock()
		c.end(wire.TLSHandshakeFailure)
		return false
	}
	c.sock, c.protected = sock, true
	c.mu.Unlock()
	state := sock.ConnectionState()
	return c.become(Handshake{State: &state, First: first})
}

// resumed is a socket of which the first bytes have been read already.
type resumed struct {
	net.Conn
	begun []byte
}

// Read implements net.Conn.
func (r *resumed) Read(p []byte) (int, error) {
	if len(r.begun) == 0 {
		return r.Conn.Read(p)
	}
	n := copy(p, r.begun)
	r.begun = r.begun[n:]
	return n, nil
}
