package tcp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"weir/transport/peerwire"
)

// peers returns the two ends of a connection after an empty handshake.
func peers(t *testing.T, server, client *tls.Config) (dialer, acceptor *PeerConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	o := PeerOptions{Timeout: time.Minute, WriteDeadline: time.Minute, Release: func([]byte) {}}
	accepted := make(chan error, 1)
	go func() {
		sock, err := listener.Accept()
		if err == nil {
			with := o
			with.TLS = server
			acceptor, err = AcceptPeer(sock.(*net.TCPConn), with)
		}
		accepted <- err
	}()
	with := o
	with.TLS = client
	dialer, err = DialPeer(context.Background(), listener.Addr().String(), with)
	if err = errors.Join(err, <-accepted); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*PeerConn{dialer, acceptor} {
		t.Cleanup(func() { p.Close(io.EOF) })
	}
	return dialer, acceptor
}

// TestFramesComeAsTheyWereSent sends frames of all sizes in both directions at once, over plain sockets and over TLS.
func TestFramesComeAsTheyWereSent(t *testing.T) {
	server, client := certificates(t)
	for name, with := range map[string][2]*tls.Config{"plain": {}, "tls": {server, client}} {
		t.Run(name, func(t *testing.T) {
			a, b := peers(t, with[0], with[1])
			done := make(chan error, 2)
			for i, p := range []*PeerConn{a, b} {
				other := []*PeerConn{b, a}[i]
				if err := errors.Join(a.Start(nil), b.Start(nil)); err != nil {
					t.Fatal(err)
				}
				go send(p, uint64(i))
				go receive(other, uint64(i), done)
			}
			if err := errors.Join(<-done, <-done); err != nil {
				t.Fatal(err)
			}
			if x, y := a.Traffic(), b.Traffic(); x.FramesOut != framesSent || x.BytesOut != y.BytesIn || y.FramesIn != framesSent || y.LastNanos == 0 {
				t.Errorf("the ends count %+v and %+v", x, y)
			}
		})
	}
}

const framesSent = 2000

func frameOf(r *rand.Rand, n uint64) []byte {
	size := r.IntN(300)
	if r.IntN(200) == 0 {
		size = r.IntN(2 << 20)
	}
	return peerwire.Append(nil, &peerwire.Frame{Kind: peerwire.Msg, Token: n, Payload: bytes.Repeat([]byte{byte(n)}, size)})
}

func send(p *PeerConn, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	for n := range uint64(framesSent) {
		p.Queue(frameOf(r, n))
		if n%7 == 0 {
			p.Flush()
		}
	}
	p.Flush()
}

func receive(p *PeerConn, seed uint64, done chan<- error) {
	r := rand.New(rand.NewPCG(seed, 0))
	n := uint64(0)
	var wrong error
	err := p.Run(func(frames []byte) {
		for len(frames) > 0 {
			frame, rest, err := peerwire.Split(frames)
			if err == nil && !bytes.Equal(frame, frameOf(r, n)) {
				err = errors.New("another frame than the one that was sent")
			}
			wrong = errors.Join(wrong, err)
			n, frames = n+1, rest
		}
		if n == framesSent {
			done <- wrong
		}
	})
	if n < framesSent {
		done <- fmt.Errorf("%d frames are missing: %w", framesSent-n, errors.Join(wrong, err))
	}
}

// TestFinishWritesEverything ends a connection right after much was queued.
func TestFinishWritesEverything(t *testing.T) {
	a, b := peers(t, nil, nil)
	if err := errors.Join(a.Start(nil), b.Start(nil)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go receive(b, 1, done)
	send(a, 1)
	a.Finish(io.EOF)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	a.Queue([]byte("what comes after the end"))
	if err := a.Run(func([]byte) {}); !errors.Is(err, io.EOF) {
		t.Errorf("the connection ended with %v", err)
	}
}

// TestQueueOfASlowPeerIsBounded queues for a peer that reads nothing: first datagrams are dropped, then the session ends.
func TestQueueOfASlowPeerIsBounded(t *testing.T) {
	a, b := peers(t, nil, nil)
	if err := a.Start(nil); err != nil {
		t.Fatal(err)
	}
	large := peerwire.Append(nil, &peerwire.Frame{Kind: peerwire.Msg, Payload: make([]byte, 1<<20)})
	datagram := peerwire.Append(nil, &peerwire.Frame{Kind: peerwire.Raft, Payload: make([]byte, 1<<20)})
	for a.Traffic().Pending < PeerQueueBytesMax/2 {
		a.Queue(bytes.Clone(large))
	}
	a.Queue(append(bytes.Clone(datagram), large...))
	if got := a.Traffic().Pending; got != (got/len(large))*len(large) {
		t.Errorf("%d bytes wait, which is no number of frames of %d", got, len(large))
	}
	for range 2 * PeerQueueBytesMax / len(large) {
		a.Queue(bytes.Clone(large))
	}
	if err := a.Run(func([]byte) {}); !errors.Is(err, ErrPeerSlow) {
		t.Errorf("the session ended with %v", err)
	}
	if err := errors.Join(b.Start(nil)); err != nil {
		t.Fatal(err)
	}
	if err := b.Run(func([]byte) {}); err == nil {
		t.Error("the other side did not see the end")
	}
}

// TestFrameBeyondTheProtocolEndsTheSession claims a size that no frame may have.
func TestFrameBeyondTheProtocolEndsTheSession(t *testing.T) {
	a, b := peers(t, nil, nil)
	if err := errors.Join(a.Start(nil), b.Start(nil)); err != nil {
		t.Fatal(err)
	}
	good := peerwire.Append(nil, &peerwire.Frame{Kind: peerwire.Msg, Token: 5})
	a.Queue(append(bytes.Clone(good), 255, 255, 255, 255, 0, 0, 0, 0, 0))
	a.Flush()
	var got []byte
	err := b.Run(func(frames []byte) { got = bytes.Clone(frames) })
	if !errors.Is(err, peerwire.ErrMalformed) || !bytes.Equal(got, good) {
		t.Errorf("got %v and %d bytes", err, len(got))
	}
}

// TestDamagedFrameEndsTheSession changes a bit on the way.
func TestDamagedFrameEndsTheSession(t *testing.T) {
	a, b := peers(t, nil, nil)
	if err := errors.Join(a.Start(nil), b.Start(nil)); err != nil {
		t.Fatal(err)
	}
	frame := peerwire.Append(nil, &peerwire.Frame{Kind: peerwire.Msg, Token: 5})
	frame[len(frame)-1] ^= 1
	a.Queue(frame)
	a.Flush()
	if err := b.Run(func([]byte) { t.Error("a damaged frame is handed over") }); !errors.Is(err, peerwire.ErrMalformed) {
		t.Errorf("got %v", err)
	}
}

func TestSilenceEndsTheSession(t *testing.T) {
	a, _ := peers(t, nil, nil)
	if err := a.Start(nil); err != nil {
		t.Fatal(err)
	}
	a.options.Silence = 20 * time.Millisecond
	if err := a.Run(func([]byte) {}); !errors.Is(err, ErrPeerSilent) {
		t.Errorf("got %v", err)
	}
}

// TestHandshakeHasItsTime waits for a greeting that does not come.
func TestHandshakeHasItsTime(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p, err := DialPeer(context.Background(), listener.Addr().String(), PeerOptions{Timeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := p.Greeted(); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("got %v", err)
	}
}
