package tcp

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"weir/transport/wire"
)

// speaker is a Handler that says INFO when it is asked to, answers PING, and remembers how connections were secured.
type speaker struct {
	recorder
	conn      *Conn
	said      sync.Once
	handshake chan Handshake
	refused   chan wire.Failure
}

const infoLine = "INFO {}\r\n"

func (s *speaker) Greet(uint64) { s.say() }

func (s *speaker) say() {
	s.said.Do(func() {
		s.conn.Queue([]byte(infoLine))
		s.conn.Flush()
	})
}

func (s *speaker) Secured(_ uint64, h Handshake) {
	if h.Err == nil {
		s.say()
	}
	s.handshake <- h
}

func (s *speaker) Refused(_ uint64, f wire.Failure) {
	s.refused <- f
	s.conn.Close(f.Reason(), true)
}

func (s *speaker) Ops(_ uint64, ops []wire.Op) {
	for i := range ops {
		switch ops[i].Kind {
		case wire.KindPing:
			s.conn.Queue([]byte("PONG\r\n"))
		case wire.KindPub:
			s.conn.Queue(bytes.Clone(ops[i].Payload))
		}
	}
	s.conn.Flush()
}

// guarded returns the client's side of a connection that the guard protects.
func guarded(t *testing.T, g *Guard) (*net.TCPConn, *speaker) {
	t.Helper()
	c, client, _ := pair(t, time.Minute)
	s := &speaker{recorder: recorder{closed: make(chan struct{})}, conn: c, handshake: make(chan Handshake, 1), refused: make(chan wire.Failure, 1)}
	c.handler = s
	c.Protect(g)
	if !g.Waits() {
		s.say()
	}
	go c.Serve()
	return client, s
}

func expect(t *testing.T, r io.Reader, text string) {
	t.Helper()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != text {
		t.Fatalf("got %q, %v; want %q", got, err, text)
	}
}

func write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

// TestClientsAreProtectedAsTheGuardSays has clients that begin, that wait for INFO, and that stay plain.
func TestClientsAreProtectedAsTheGuardSays(t *testing.T) {
	server, client := certificates(t)
	const begins, waits, plain, mute = "begins", "waits", "plain", "mute"
	for name, c := range map[string]struct {
		guard   *Guard
		client  string
		first   bool
		secured bool
	}{
		"required":             {&Guard{}, waits, false, true},
		"first":                {&Guard{First: true}, begins, true, true},
		"fallback, begins":     {&Guard{First: true, Fallback: time.Minute}, begins, true, true},
		"fallback, waits":      {&Guard{First: true, Fallback: time.Millisecond}, waits, false, true},
		"optional, taken":      {&Guard{Optional: true}, waits, false, true},
		"optional, not taken":  {&Guard{Optional: true}, plain, false, false},
		"optional, mute":       {&Guard{Optional: true, Timeout: time.Millisecond}, mute, false, false},
		"all, begins":          {&Guard{Optional: true, First: true, Fallback: time.Minute}, begins, true, true},
		"all, plain":           {&Guard{Optional: true, First: true, Fallback: time.Millisecond}, plain, false, false},
		"optional, first only": {&Guard{Optional: true, First: true}, begins, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.guard.Config = server; c.guard.Timeout == 0 {
				c.guard.Timeout = time.Minute
			}
			sock, s := guarded(t, c.guard)
			var conn net.Conn = sock
			if c.client != begins {
				expect(t, conn, infoLine)
			}
			if c.client == mute {
				<-s.handshake
			}
			if c.secured {
				conn = tls.Client(sock, client)
			}
			if c.client != begins {
				write(t, conn, "PING\r\n")
			} else {
				if err := conn.(*tls.Conn).Handshake(); err != nil {
					t.Fatal(err)
				}
				expect(t, conn, infoLine)
				write(t, conn, "PING\r\n")
			}
			expect(t, conn, "PONG\r\n")
			if c.client == mute {
				return
			}
			h := <-s.handshake
			if (h.State != nil) != c.secured || h.First != c.first || h.Err != nil {
				t.Errorf("settled as %+v", h)
			}
			if c.secured && (len(h.State.VerifiedChains) == 0 || !h.State.HandshakeComplete) {
				t.Errorf("state %+v", h.State)
			}
			sock.Close()
			<-s.closed
		})
	}
}

// TestHandshakesThatFailEndTheConnection has clients that are late, garbled, strangers, or gone.
func TestHandshakesThatFailEndTheConnection(t *testing.T) {
	server, client := certificates(t)
	_, stranger := certificates(t)
	stranger.RootCAs = client.RootCAs
	for name, c := range map[string]struct {
		timeout time.Duration
		act     func(sock *net.TCPConn)
		right   func(error) bool
	}{
		"late": {time.Millisecond, func(*net.TCPConn) {}, func(err error) bool {
			var late net.Error
			return errors.As(err, &late) && late.Timeout()
		}},
		"garbled": {time.Minute, func(sock *net.TCPConn) { _, _ = io.WriteString(sock, "CONNECT {}\r\nPING\r\n") }, func(err error) bool {
			var garbled tls.RecordHeaderError
			return errors.As(err, &garbled)
		}},
		"stranger": {time.Minute, func(sock *net.TCPConn) { _ = tls.Client(sock, stranger).Handshake() }, func(err error) bool {
			var refused *tls.CertificateVerificationError
			return errors.As(err, &refused)
		}},
		"gone": {time.Minute, func(sock *net.TCPConn) { sock.Close() }, func(err error) bool { return errors.Is(err, io.EOF) }},
	} {
		t.Run(name, func(t *testing.T) {
			sock, s := guarded(t, &Guard{Config: server, Timeout: c.timeout})
			expect(t, sock, infoLine)
			c.act(sock)
			if h := <-s.handshake; h.State != nil || !c.right(h.Err) {
				t.Errorf("settled as %+v", h)
			}
			<-s.closed
			if s.reasons[0] != wire.TLSHandshakeFailure {
				t.Errorf("closed: %v", s.reasons[0])
			}
		})
	}
}

// TestHandshakesAreThrottled lets one of two through within a second.
func TestHandshakesAreThrottled(t *testing.T) {
	server, client := certificates(t)
	g := &Guard{Config: server, Timeout: time.Minute, PerSecond: 1}
	g.second, g.begun = time.Now().Add(time.Hour), 0 // the second does not end
	sock, s := guarded(t, g)
	expect(t, sock, infoLine)
	if err := tls.Client(sock, client).Handshake(); err != nil {
		t.Fatal(err)
	}
	if h := <-s.handshake; h.State == nil {
		t.Fatalf("settled as %+v", h)
	}
	sock, s = guarded(t, g)
	expect(t, sock, infoLine)
	if f := <-s.refused; f != wire.FailureThrottled || f.Reason() != wire.MaxConnectionsExceeded {
		t.Errorf("refused: %v", f)
	}
	_ = sock.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := sock.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection goes on: %v", err)
	}
	if g.admit(g.second.Add(time.Second)); g.begun != 1 {
		t.Errorf("%d handshakes in a new second", g.begun)
	}
}

// TestMuchGoesThroughProtectedConnections sends more than sockets hold, both ways at once, and expects every byte in order.
func TestMuchGoesThroughProtectedConnections(t *testing.T) {
	server, client := certificates(t)
	sock, s := guarded(t, &Guard{Config: server, Timeout: time.Minute})
	expect(t, sock, infoLine)
	conn := tls.Client(sock, client)
	const count, size = 64, 300_000
	payload := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i%26)}, size) }
	sent := make(chan error, 1)
	go func() {
		for i := range count {
			if _, err := conn.Write(append(append([]byte("PUB x 300000\r\n"), payload(i)...), "\r\n"...)); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	got := make([]byte, size)
	for i := range count {
		if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, payload(i)) {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	s.conn.Close(wire.ServerShutdown, false)
	if _, err := conn.Read(got); err != io.EOF {
		t.Errorf("the end is not announced: %v", err)
	}
	<-s.closed
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := len(infoLine) + count*size; s.written != want || s.reasons[0] != wire.ServerShutdown {
		t.Errorf("%d bytes written, want %d; closed: %v", s.written, want, s.reasons)
	}
}
