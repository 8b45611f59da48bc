// Package tcp pumps bytes between client sockets and a server: the only part of the transport that touches the network.
//
// It is thin. Reading: bytes go through the parser of transport/wire, whole batches of operations go to the Handler.
// Writing: byte slices are queued in the order in which they are given and written by whoever calls Flush, without
// waiting; only when the kernel takes no more does a goroutine of the connection take over. It decides nothing: limits,
// answers and reasons for closing come from the Handler's side.
package tcp

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"weir/transport/wire"
)

// ReadBufferMin and ReadBufferMax bound the read buffer of a connection in bytes; it grows when reads fill it.
const (
	ReadBufferMin = 4 << 10
	ReadBufferMax = 64 << 10
)

// Handler is told what happens on connections. Its methods are called from the goroutines of the connections, those
// about one connection's input one after the other.
type Handler interface {
	// Ops brings parsed operations; they are valid until Ops returns.
	Ops(id uint64, ops []wire.Op)
	// Refused reports that the bytes after the last Ops are not the protocol. Nothing more is read.
	Refused(id uint64, failure wire.Failure)
	// Closed reports that the connection can no longer be used, once.
	Closed(id uint64, reason wire.Reason)
	// Greet asks for what the server says first, because the client waits for it. It is called only with a guard that waits,
	// and before Secured.
	Greet(id uint64)
	// Secured reports that it is settled whether the connection is protected. It is called once with a guard, before any Ops,
	// unless Refused or Closed come instead.
	Secured(id uint64, h Handshake)
	// Written reports n bytes handed to the kernel, and gives back the buffer that held the last of them, if any.
	Written(id uint64, n int, buffer []byte)
}

// Conn is one client connection.
type Conn struct {
	id       uint64
	address  net.Addr
	sock     net.Conn
	handler  Handler
	deadline time.Duration // of a blocked write
	parser   *wire.Parser
	guard    *Guard      // nil: the connection stays plain
	web      *WebSockets // nil: it is none

	mu      sync.Mutex
	queue   [][]byte // nobody writes these; the last one may still grow
	writing bool     // somebody is writing; whoever it is takes the queue before it stops
	closing bool     // close once the queue is empty
	held    bool     // nothing may be written yet
	closed  bool
	reason  wire.Reason
	control func(*wire.Parser) // to be applied by the reader before it parses on
	stall   time.Duration      // for the reader to wait before it reads on
	// protected says that sock is more than a socket, and can not be written without waiting.
	protected bool

	taken  [][]byte // the writer's
	direct direct   // the writer's
}

// Protect has the connection begin as the guard says; nil leaves it plain. It is called before Serve, which settles it.
// Until the handler is told so, the owner queues nothing but what a client may see unprotected.
func (c *Conn) Protect(g *Guard) { c.guard = g }

// Upgrade has the connection become a WebSocket before anything else goes over it, once the guard is done. It is called before
// Serve. What is queued meanwhile waits.
func (c *Conn) Upgrade(w *WebSockets) { c.web, c.held = w, w != nil }

// Web reports whether the connection is a WebSocket, or is to become one.
func (c *Conn) Web() bool { return c.web != nil }

// NewConn wraps an accepted socket. The caller calls Serve; writeDeadline bounds a write that the kernel does not take.
func NewConn(id uint64, sock *net.TCPConn, handler Handler, writeDeadline time.Duration) (*Conn, error) {
	c := &Conn{id: id, address: sock.RemoteAddr(), sock: sock, handler: handler, deadline: writeDeadline}
	if err := c.direct.open(sock); err != nil {
		return nil, err
	}
	c.parser = wire.NewParser(wire.Limits{ControlLineBytes: wire.DefaultControlLineBytes, PayloadBytes: wire.DefaultPayloadBytes})
	return c, nil
}

// ID is the identity given to NewConn.
func (c *Conn) ID() uint64 { return c.id }

// Address is where the client is.
func (c *Conn) Address() net.Addr { return c.address }

// Control has f change the parser before any further bytes are parsed.
func (c *Conn) Control(f func(*wire.Parser)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if earlier := c.control; earlier != nil {
		c.control = func(p *wire.Parser) { earlier(p); f(p) }
		return
	}
	c.control = f
}

// Stall has the reader wait once before it reads on, so that the peer is slowed down by its full socket.
func (c *Conn) Stall(d time.Duration) {
	c.mu.Lock()
	c.stall = d
	c.mu.Unlock()
}

// Serve reads until the connection ends. It runs on the connection's own goroutine.
func (c *Conn) Serve() {
	buffer := make([]byte, ReadBufferMin)
	ops := make([]wire.Op, 0, 64)
	switch {
	case c.guard != nil:
		begun, goesOn := c.secure(c.guard)
		c.guard = nil
		if !goesOn || !c.parse(begun, &ops) {
			return
		}
	case c.web != nil:
		if !c.become(Handshake{}) {
			return
		}
	}
	reader, err := newDirectReader(c.sock)
	if err != nil {
		c.readFailed(err)
		return
	}
	for {
		n, err := reader.Read(buffer)
		if n > 0 && !c.parse(buffer[:n], &ops) {
			return
		}
		if err != nil {
			c.readFailed(err)
			return
		}
		if !c.waitStalled() {
			return
		}
		if n == len(buffer) && len(buffer) < ReadBufferMax {
			buffer = make([]byte, 2*len(buffer))
		}
	}
}

// readFailed ends the connection. A peer that has only ended its own side still gets what is queued for it.
func (c *Conn) readFailed(err error) {
	var wrong *frameError
	switch {
	case errors.As(err, &wrong):
		c.end(wire.ProtocolViolation)
	case errors.Is(err, io.EOF):
		c.Close(wire.ClientClosed, false)
	case errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrUnexpectedEOF):
		c.end(wire.ClientClosed)
	default:
		c.end(wire.ReadError)
	}
}

// waitStalled waits as long as Stall said, and reports whether to read on: not while the connection is closing.
func (c *Conn) waitStalled() bool {
	c.mu.Lock()
	d := c.stall
	c.stall = 0
	closing := c.closing
	c.mu.Unlock()
	if d > 0 && !closing {
		time.Sleep(d)
	}
	return !closing
}

// parse hands over the operations in data; it reports false when the bytes are not the protocol.
func (c *Conn) parse(data []byte, ops *[]wire.Op) bool {
	for len(data) > 0 {
		c.applyControl()
		out, used, err := c.parser.Feed(data, (*ops)[:0])
		data = data[used:]
		*ops = out
		if len(out) > 0 {
			c.handler.Ops(c.id, out)
		}
		if err != nil {
			failure, ok := err.(wire.Failure)
			if !ok {
				failure = wire.FailureVerb
			}
			c.handler.Refused(c.id, failure)
			return false
		}
	}
	return true
}

func (c *Conn) applyControl() {
	c.mu.Lock()
	control := c.control
	c.control = nil
	c.mu.Unlock()
	if control != nil {
		control(c.parser)
	}
}

// Close closes the connection once everything queued is written, at once with abort. Closed is reported with reason.
// What a client does not take within the write deadline is dropped.
func (c *Conn) Close(reason wire.Reason, abort bool) {
	c.mu.Lock()
	if c.reason == 0 {
		c.reason = reason
	}
	waits := !abort && (c.writing || len(c.queue) > 0)
	if waits && !c.closing && !c.closed {
		// A failure shows at the writer, which closes as well.
		_ = c.sock.SetWriteDeadline(time.Now().Add(c.deadline))
	}
	c.closing = true
	c.mu.Unlock()
	if !waits {
		c.end(reason)
	}
}

// end closes the socket and reports it once.
func (c *Conn) end(reason wire.Reason) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	if c.reason != 0 {
		reason = c.reason
	}
	c.queue = nil
	sock, protected := c.sock, c.protected
	c.mu.Unlock()
	// The peer may be gone already; there is nothing to do about an error here.
	frames, web := sock.(*framed)
	switch {
	case web:
		go func() { _ = frames.closeFor(reason) }()
	case protected:
		go func() { _ = sock.Close() }() // it may wait until a last record is written
	default:
		_ = sock.Close()
	}
	c.handler.Closed(c.id, reason)
}
