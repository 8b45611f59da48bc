package tcp

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"weir/transport/wire"
)

// recorder is a Handler that remembers.
type recorder struct {
	mu      sync.Mutex
	written int
	spare   int // buffers given back
	reasons []wire.Reason
	closed  chan struct{}
}

func newRecorder() *recorder { return &recorder{closed: make(chan struct{})} }

func (r *recorder) Ops(uint64, []wire.Op)        {}
func (r *recorder) Refused(uint64, wire.Failure) {}
func (r *recorder) Greet(uint64)                 {}
func (r *recorder) Secured(uint64, Handshake)    {}

func (r *recorder) Closed(_ uint64, reason wire.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reasons = append(r.reasons, reason)
	if len(r.reasons) == 1 {
		close(r.closed)
	}
}

func (r *recorder) Written(_ uint64, n int, buffer []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written += n
	if buffer != nil {
		r.spare++
	}
}

// pair returns a connection of the server and the client's side of it.
func pair(t *testing.T, deadline time.Duration) (*Conn, *net.TCPConn, *recorder) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder()
	c, err := NewConn(1, server.(*net.TCPConn), r, deadline)
	if err != nil {
		t.Fatal(err)
	}
	return c, client.(*net.TCPConn), r
}

// TestBytesKeepTheirOrder has many goroutines flush what is queued in a known order, to a client that reads slower than
// they write for most of the time.
func TestBytesKeepTheirOrder(t *testing.T) {
	c, client, r := pair(t, time.Minute)
	const writers, rounds = 8, 3000
	var order sync.Mutex
	next, bytesSent := uint64(0), 0
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range rounds {
				order.Lock()
				b := make([]byte, 0, 64<<(i%7))
				for range 1 + (w+i)%40 {
					b = binary.BigEndian.AppendUint64(b, next)
					next++
				}
				bytesSent += len(b)
				c.Queue(b)
				order.Unlock()
				c.Flush()
			}
		})
	}
	done := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(client)
		done <- all
	}()
	wg.Wait()
	c.Close(wire.ServerShutdown, false)
	all := <-done
	<-r.closed
	if len(all) != bytesSent || r.written != bytesSent {
		t.Fatalf("%d bytes sent, %d received, %d reported", bytesSent, len(all), r.written)
	}
	for want := uint64(0); len(all) > 0; want++ {
		if got := binary.BigEndian.Uint64(all); got != want {
			t.Fatalf("number %d came in the place of %d", got, want)
		}
		all = all[8:]
	}
}

// TestAbortWhileWritingEndsOnce drops queues while others write them.
func TestAbortWhileWritingEndsOnce(t *testing.T) {
	for range 50 {
		c, client, r := pair(t, time.Minute)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 200 {
					c.Queue(make([]byte, 8<<10))
					c.Flush()
				}
			})
		}
		wg.Go(func() { c.Close(wire.SlowConsumerPendingBytes, true) })
		wg.Go(func() { c.Close(wire.ServerShutdown, false) })
		wg.Go(c.Serve)
		wg.Go(func() { io.CopyN(io.Discard, client, 64<<10) })
		<-r.closed
		client.Close()
		wg.Wait()
		if len(r.reasons) != 1 {
			t.Fatalf("closed %d times: %v", len(r.reasons), r.reasons)
		}
	}
}

// TestShortBytesShareBuffers keeps a client that does not read from holding the capacity of every buffer.
func TestShortBytesShareBuffers(t *testing.T) {
	c, _, r := pair(t, time.Minute)
	var want []byte
	for i := range 10_000 {
		b := append(make([]byte, 0, 64<<10), byte(i), byte(i>>8))
		want = append(want, b...)
		c.Queue(b)
	}
	if len(c.queue) != 1 || r.spare != 9_999 {
		t.Fatalf("%d buffers wait, %d are given back", len(c.queue), r.spare)
	}
	if !bytes.Equal(c.queue[0], want) {
		t.Fatal("what waits is not what was queued")
	}
}

// TestClientThatStopsReadingIsClosed holds the write deadline.
func TestClientThatStopsReadingIsClosed(t *testing.T) {
	c, _, r := pair(t, time.Millisecond)
	for range 64 {
		c.Queue(make([]byte, 1<<20))
	}
	c.Flush()
	<-r.closed
	if r.reasons[0] != wire.SlowConsumerWriteDeadline {
		t.Fatalf("closed because of %v", r.reasons[0])
	}
}

// TestEndOfInputLeavesWhatIsQueued has a client end its side before it has read anything.
func TestEndOfInputLeavesWhatIsQueued(t *testing.T) {
	c, client, r := pair(t, time.Minute)
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<19)
	c.Queue(bytes.Clone(want))
	c.Flush()
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	c.Serve()
	got, err := io.ReadAll(client)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes of %d came: %v", len(got), len(want), err)
	}
	<-r.closed
	if r.reasons[0] != wire.ClientClosed {
		t.Fatalf("closed because of %v", r.reasons[0])
	}
}
