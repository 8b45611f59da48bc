package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"weir/transport/peerwire"
)

// The bounds of a connection between servers.
const (
	// PeerReadBytes is the size of the read buffer; it grows for a frame that is larger, and shrinks again when it is empty
	// and larger than PeerReadKeptBytes.
	PeerReadBytes     = 256 << 10
	PeerReadKeptBytes = 4 << 20
	// PeerQueueBytesMax is how much may wait to be written before the session ends, because the other server does not
	// keep up: two messages of the largest payload that can be configured. Above half of it datagrams are dropped.
	PeerQueueBytesMax = 128 << 20
)

// The times after which the kernel asks the other side of an idle connection whether it is still there.
const (
	keepAliveIdle     = 5 * time.Second
	keepAliveInterval = time.Second
	keepAliveCount    = 5
)

// ErrPeerSlow ends a session whose other side does not take what is sent to it.
var ErrPeerSlow = errors.New("the other server does not keep up with what is sent to it")

// ErrPeerSilent ends a session whose other side says nothing any more, though it is to show signs of life.
var ErrPeerSilent = errors.New("the other server has said nothing")

// PeerOptions is how connections between servers are made.
type PeerOptions struct {
	// TLS, when it is not nil, protects the connection.
	TLS *tls.Config
	// Timeout bounds the making of a connection, and then the handshake.
	Timeout time.Duration
	// WriteDeadline bounds a write that the kernel does not take.
	WriteDeadline time.Duration
	// Silence is how long nothing may come in a session before it ends, or up to a sixteenth more; 0 does not bound it.
	Silence time.Duration
	// Release takes buffers back that were queued and have been written. It must not block.
	Release func(buffer []byte)
}

// PeerConn is a connection with another server: first greetings go over it, one after the other, then frames.
//
// Greet and Greeted belong to whoever makes the handshake. Start begins the session; from then on Queue, Flush and Close
// may be called by anybody, and one goroutine calls Run.
type PeerConn struct {
	sock    net.Conn // the TLS connection, if there is one
	base    net.Conn // the socket; to close the TLS connection could wait for the other side
	options PeerOptions

	mu      sync.Mutex
	queue   [][]byte
	queued  int  // bytes that are not written yet
	writing bool // somebody is writing; whoever it is takes the queue before it stops
	closing bool // close once the queue is empty
	closed  bool
	err     error // why it is closed

	taken  [][]byte // the writer's
	joined []byte   // the writer's
	direct direct   // the writer's; closed with TLS

	awaitedAt time.Time // the reader's: when it last set the time until which something has to come

	framesIn, framesOut, bytesIn, bytesOut, lastNanos atomic.Int64 // as in PeerTraffic
}

// DialPeer connects to a server, trying all addresses of its name.
func DialPeer(ctx context.Context, address string, o PeerOptions) (*PeerConn, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	dialer := net.Dialer{KeepAliveConfig: keepAlive()}
	sock, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	p, err := newPeer(sock, o)
	if err != nil || o.TLS == nil {
		return p, err
	}
	return p, p.protect(tls.Client(sock, o.TLS))
}

// AcceptPeer wraps an accepted socket.
func AcceptPeer(sock *net.TCPConn, o PeerOptions) (*PeerConn, error) {
	if err := sock.SetKeepAliveConfig(keepAlive()); err != nil {
		return nil, errors.Join(err, sock.Close())
	}
	p, err := newPeer(sock, o)
	if err != nil || o.TLS == nil {
		return p, err
	}
	return p, p.protect(tls.Server(sock, o.TLS))
}

func keepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount}
}

// newPeer owns the socket. The handshake has Timeout from here on.
func newPeer(sock net.Conn, o PeerOptions) (*PeerConn, error) {
	p := &PeerConn{sock: sock, base: sock, options: o}
	err := sock.SetDeadline(time.Now().Add(o.Timeout))
	if plain, ok := sock.(*net.TCPConn); ok && o.TLS == nil && err == nil {
		err = p.direct.open(plain)
	}
	if err != nil {
		return nil, errors.Join(err, sock.Close())
	}
	return p, nil
}

// protect makes the TLS handshake.
func (p *PeerConn) protect(sock *tls.Conn) error {
	p.sock = sock
	if err := sock.Handshake(); err != nil {
		p.Close(err)
		return fmt.Errorf("TLS route handshake: %w", err)
	}
	return nil
}

// Address is where the other side is.
func (p *PeerConn) Address() net.Addr { return p.sock.RemoteAddr() }

// Greet sends a greeting.
func (p *PeerConn) Greet(g *peerwire.Greeting) error {
	data, err := peerwire.AppendGreeting(nil, g)
	if err != nil {
		return err
	}
	_, err = p.sock.Write(data)
	return err
}

// Greeted waits for a greeting. It reads nothing beyond it.
func (p *PeerConn) Greeted() (*peerwire.Greeting, error) {
	var head [peerwire.GreetingHeadBytes]byte
	if _, err := io.ReadFull(p.sock, head[:]); err != nil {
		return nil, err
	}
	n, err := peerwire.GreetingLength(head[:])
	if err != nil {
		return nil, err
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(p.sock, data); err != nil {
		return nil, err
	}
	return peerwire.ParseGreeting(data)
}

// Start begins the session: what is queued goes behind the last greeting, which is nil when the other side sent it.
func (p *PeerConn) Start(last *peerwire.Greeting) error {
	if err := p.sock.SetDeadline(time.Time{}); err != nil {
		return err
	}
	p.lastNanos.Store(time.Now().UnixNano())
	if last == nil {
		return nil
	}
	data, err := peerwire.AppendGreeting(nil, last)
	p.mu.Lock()
	p.queue, p.queued = append(p.queue, data), p.queued+len(data)
	p.mu.Unlock()
	return err
}

// Run hands over whole frames as they come, many at a time, valid until take returns. It returns when the connection has
// ended, and says why.
func (p *PeerConn) Run(take func(frames []byte)) error {
	buffer, have := make([]byte, PeerReadBytes), 0
	reader, err := newDirectReader(p.sock)
	if err != nil {
		p.Close(err)
		return p.Err()
	}
	for {
		if err := p.awaitMore(); err != nil {
			p.Close(err)
			return p.Err()
		}
		n, err := reader.Read(buffer[have:])
		have += n
		p.bytesIn.Add(int64(n))
		whole, frames, wrong := wholeFrames(buffer[:have])
		if whole > 0 {
			p.framesIn.Add(int64(frames))
			p.lastNanos.Store(time.Now().UnixNano())
			take(buffer[:whole])
			have = copy(buffer, buffer[whole:have])
		}
		if err = errors.Join(wrong, err); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err = fmt.Errorf("%w for %v", ErrPeerSilent, p.options.Silence)
			}
			p.Close(err)
			return p.Err()
		}
		switch {
		case have == len(buffer):
			larger := make([]byte, min(2*len(buffer), peerwire.HeadBytes+peerwire.FrameBytesMax))
			copy(larger, buffer)
			buffer = larger
		case have == 0 && len(buffer) > PeerReadKeptBytes:
			buffer = make([]byte, PeerReadBytes)
		}
	}
}

// awaitMore sets the time until which something has to come. It is set anew when a sixteenth of it has passed only, which
// is added to it: to set it with every read would cost more than the look at the clock.
func (p *PeerConn) awaitMore() error {
	if p.options.Silence == 0 {
		return nil
	}
	now, slack := time.Now(), p.options.Silence/16
	if now.Sub(p.awaitedAt) < slack {
		return nil
	}
	p.awaitedAt = now
	return p.sock.SetReadDeadline(now.Add(p.options.Silence + slack))
}

// wholeFrames returns how many bytes of data are whole, undamaged frames, and how many frames. An error is about what
// follows them.
func wholeFrames(data []byte) (whole, frames int, err error) {
	for len(data)-whole >= peerwire.HeadBytes {
		n, err := peerwire.Length(data[whole:])
		if err != nil {
			return whole, frames, err
		}
		if len(data)-whole < peerwire.HeadBytes+n {
			break
		}
		if err := peerwire.Verify(data[whole : whole+peerwire.HeadBytes+n]); err != nil {
			return whole, frames, err
		}
		whole += peerwire.HeadBytes + n
		frames++
	}
	return whole, frames, nil
}

// Close ends the connection at once; the first reason counts.
func (p *PeerConn) Close(reason error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed, p.err, p.queue = true, reason, nil
	p.mu.Unlock()
	// The other side may be gone already; there is nothing to do about an error here.
	_ = p.base.Close()
}

// Finish ends the connection when everything queued is written, or after the write deadline.
func (p *PeerConn) Finish(reason error) {
	p.mu.Lock()
	idle := !p.writing && len(p.queue) == 0
	if !idle && !p.closing {
		// A failure shows at the writer, which closes as well.
		_ = p.sock.SetWriteDeadline(time.Now().Add(p.options.WriteDeadline))
	}
	p.closing = true
	if p.err == nil {
		p.err = reason
	}
	p.mu.Unlock()
	if idle {
		p.Close(reason)
		return
	}
	p.Flush()
}

// Err is why the connection has ended.
func (p *PeerConn) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// PeerTraffic is what has gone over a connection with another server.
type PeerTraffic struct {
	// FramesIn, FramesOut, BytesIn and BytesOut count what came and what was queued.
	FramesIn, FramesOut, BytesIn, BytesOut int64
	// Pending is how many bytes wait to be written.
	Pending int
	// LastNanos is when the last frame came, in unix nanoseconds.
	LastNanos int64
}

// Traffic is what has gone over the connection so far.
func (p *PeerConn) Traffic() PeerTraffic {
	p.mu.Lock()
	pending := p.queued
	p.mu.Unlock()
	return PeerTraffic{
		FramesIn: p.framesIn.Load(), FramesOut: p.framesOut.Load(), BytesIn: p.bytesIn.Load(), BytesOut: p.bytesOut.Load(),
		Pending: pending, LastNanos: p.lastNanos.Load(),
	}
}
