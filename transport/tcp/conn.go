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
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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
	// Written reports n bytes handed to the kernel, and gives back the buffer that held the last of them, if any.
	Written(id uint64, n int, buffer []byte)
}

// Conn is one client connection.
type Conn struct {
	id       uint64
	sock     net.Conn
	raw      syscall.RawConn
	handler  Handler
	deadline time.Duration // of a blocked write
	parser   *wire.Parser

	mu      sync.Mutex
	queue   [][]byte
	writing bool // somebody is writing; whoever it is takes the queue before it stops
	closing bool // close once the queue is empty
	closed  bool
	reason  wire.Reason
	control func(*wire.Parser) // to be applied by the reader before it parses on
	stall   time.Duration      // for the reader to wait before it reads on

	tryBytes   []byte // argument and results of try
	tryWritten int
	tryErr     error
	try        func(fd uintptr) bool
}

// NewConn wraps an accepted socket. The caller calls Serve; writeDeadline bounds a write that the kernel does not take.
func NewConn(id uint64, sock *net.TCPConn, handler Handler, writeDeadline time.Duration) (*Conn, error) {
	raw, err := sock.SyscallConn()
	if err != nil {
		return nil, err
	}
	c := &Conn{id: id, sock: sock, raw: raw, handler: handler, deadline: writeDeadline}
	c.parser = wire.NewParser(wire.Limits{ControlLineBytes: wire.DefaultControlLineBytes, PayloadBytes: wire.DefaultPayloadBytes})
	c.try = c.tryFD
	return c, nil
}

// ID is the identity given to NewConn.
func (c *Conn) ID() uint64 { return c.id }

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
	for {
		n, err := c.sock.Read(buffer)
		if n > 0 && !c.parse(buffer[:n], &ops) {
			return
		}
		if err != nil {
			reason := wire.ReadError
			if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed) {
				reason = wire.ClientClosed
			}
			c.end(reason)
			return
		}
		c.waitStalled()
		if n == len(buffer) && len(buffer) < ReadBufferMax {
			buffer = make([]byte, 2*len(buffer))
		}
	}
}

func (c *Conn) waitStalled() {
	c.mu.Lock()
	d := c.stall
	c.stall = 0
	c.mu.Unlock()
	if d > 0 {
		time.Sleep(d)
	}
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

// Queue adds bytes to what is to be written. The connection owns b until Written gives it back. It never blocks.
func (c *Conn) Queue(b []byte) {
	c.mu.Lock()
	if !c.closed {
		c.queue = append(c.queue, b)
	}
	c.mu.Unlock()
}

// Close closes the connection once everything queued is written, at once with abort. Closed is reported with reason.
func (c *Conn) Close(reason wire.Reason, abort bool) {
	c.mu.Lock()
	if c.reason == 0 {
		c.reason = reason
	}
	c.closing = true
	if abort {
		c.queue = nil
	}
	idle := !c.writing && len(c.queue) == 0
	c.mu.Unlock()
	if idle || abort {
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
	c.mu.Unlock()
	// The peer may be gone already; there is nothing to do about an error here.
	_ = c.sock.Close()
	c.handler.Closed(c.id, reason)
}

// Flush writes what is queued as far as the kernel takes it without waiting, and leaves the rest to the connection's
// own goroutine. Any goroutine may call it; if another is writing, that one takes the queue along.
func (c *Conn) Flush() {
	c.mu.Lock()
	if c.writing || c.closed || len(c.queue) == 0 {
		c.mu.Unlock()
		return
	}
	c.writing = true
	for len(c.queue) > 0 {
		b := c.queue[0]
		c.mu.Unlock()
		n, err := c.tryWrite(b)
		if err != nil {
			c.end(wire.WriteError)
			return
		}
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return
		}
		if n < len(b) {
			c.queue[0] = b[n:]
			c.mu.Unlock()
			c.handler.Written(c.id, n, nil)
			go c.writeBlocked()
			return
		}
		c.dequeue()
		c.mu.Unlock()
		c.handler.Written(c.id, n, b)
		c.mu.Lock()
	}
	c.stopWriting()
}

// dequeue drops the head of the queue and keeps the slice's memory. The caller holds mu.
func (c *Conn) dequeue() {
	n := copy(c.queue, c.queue[1:])
	c.queue[n] = nil
	c.queue = c.queue[:n]
}

// stopWriting ends a turn of writing; the caller holds mu, which it releases.
func (c *Conn) stopWriting() {
	c.writing = false
	closing := c.closing
	c.mu.Unlock()
	if closing {
		c.end(c.reason)
	}
}

// tryWrite writes without waiting and returns how many bytes the kernel took.
func (c *Conn) tryWrite(b []byte) (int, error) {
	c.tryBytes, c.tryWritten, c.tryErr = b, 0, nil
	if err := c.raw.Write(c.try); err != nil {
		return c.tryWritten, err
	}
	c.tryBytes = nil
	return c.tryWritten, c.tryErr
}

// tryFD is the body of tryWrite; it returns true always, so that the runtime does not wait for the socket.
func (c *Conn) tryFD(fd uintptr) bool {
	for len(c.tryBytes) > 0 {
		n, err := unix.Write(int(fd), c.tryBytes)
		if n > 0 {
			c.tryWritten += n
			c.tryBytes = c.tryBytes[n:]
			continue
		}
		if err == unix.EINTR {
			continue
		}
		if err != unix.EAGAIN {
			c.tryErr = err
		}
		return true
	}
	return true
}

// writeBlocked writes with waiting until the queue is empty.
func (c *Conn) writeBlocked() {
	c.mu.Lock()
	for len(c.queue) > 0 {
		b := c.queue[0]
		c.mu.Unlock()
		if err := c.sock.SetWriteDeadline(time.Now().Add(c.deadline)); err != nil {
			c.end(wire.WriteError)
			return
		}
		n, err := c.sock.Write(b)
		if err != nil {
			reason := wire.WriteError
			if errors.Is(err, os.ErrDeadlineExceeded) {
				reason = wire.SlowConsumerWriteDeadline
			}
			c.end(reason)
			return
		}
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return
		}
		c.dequeue()
		c.mu.Unlock()
		c.handler.Written(c.id, n, b)
		c.mu.Lock()
	}
	c.stopWriting()
}
