package host

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"

	"weir/node/event"
	"weir/node/monitor"
	"weir/transport/peerwire"
)

var errReplaced = errors.New("another connection of the two servers took its place")

// begin makes a connection the session with its server, in place of the one that there may be, and tells the engine. The
// last greeting of the handshake, when this server is to send it, goes before everything else. Host.mu is held, and
// released.
func (l *links) begin(s *session, last *peerwire.Greeting) error {
	h := l.host
	if err := s.conn.Start(last); err != nil {
		h.mu.Unlock()
		return err
	}
	before := l.sessions[s.hello.ID]
	h.nextID++
	s.rid, s.started = h.nextID, time.Now()
	l.sessions[s.hello.ID] = s
	l.spread(s)
	l.tell()
	inputs := []event.Input{{Kind: event.PeerUp, Peer: s.hello.ID, Hello: s.hello}}
	if before != nil {
		inputs = slices.Insert(inputs, 0, event.Input{Kind: event.PeerDown, Peer: s.hello.ID})
	}
	l.touched = append(l.touched, s.conn)
	h.options.Log.Info(fmt.Sprintf("%s - Route connection created - Remote: %s", s.name(), s.hello.Name))
	l.step(0, inputs...)
	if before != nil {
		before.conn.Close(errReplaced)
	}
	return nil
}

// tell shows a change of the sessions, and wakes whoever waits for one. Host.mu is held.
func (l *links) tell() {
	shown := make([]*session, 0, len(l.sessions))
	for _, s := range l.sessions {
		shown = append(shown, s)
	}
	slices.SortFunc(shown, func(a, b *session) int { return cmp.Compare(a.rid, b.rid) })
	l.shown.Store(&shown)
	close(l.changed)
	l.changed = make(chan struct{})
}

// run brings the frames of a session to the engine until it ends.
func (l *links) run(s *session) {
	h := l.host
	in := make([]event.Input, 1)
	err := s.conn.Run(func(frames []byte) {
		h.mu.Lock()
		if l.sessions[s.hello.ID] != s || h.ended {
			h.mu.Unlock() // what comes after the end of the session is not the engine's
			return
		}
		if frames = l.withoutKnown(frames); len(frames) == 0 {
			h.mu.Unlock()
			return
		}
		in[0] = event.Input{Kind: event.FromPeer, Peer: s.hello.ID, Frames: frames}
		l.step(InlinePeerBytesMax, in...)
	})
	h.options.Log.Info(fmt.Sprintf("%s - Router connection closed: %s - Remote: %s", s.name(), why(err), s.hello.Name))
	h.mu.Lock()
	if l.sessions[s.hello.ID] != s {
		h.mu.Unlock()
		return
	}
	delete(l.sessions, s.hello.ID)
	l.tell()
	if h.ended || l.context.Err() != nil {
		h.mu.Unlock()
		return
	}
	l.step(0, event.Input{Kind: event.PeerDown, Peer: s.hello.ID})
}

// why is the end of a connection in words for operators.
func why(err error) string {
	switch {
	case errors.Is(err, errEnding):
		return "Server Shutdown"
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET):
		return "closed by the other server"
	}
	return err.Error()
}

// errUntrusted is why a session ends whose frames are not what they should be.
var errUntrusted = errors.New("it sent what is not the protocol")

// SendPeers queues frames for other servers; they are flushed after the step. Without a session they are lost, as the
// engine expects.
func (n *network) SendPeers(out []event.PeerOut) {
	if n.links == nil {
		return
	}
	for i := range out {
		if s := n.links.sessions[out[i].To]; s != nil {
			s.conn.Queue(out[i].Frames)
			n.links.touched = append(n.links.touched, s.conn)
			if out[i].Close {
				go s.conn.Close(errUntrusted)
			}
		}
	}
}

// release takes written buffers back for the node.
func (h *Host) release(buffer []byte) {
	if cap(buffer) == 0 || cap(buffer) > SpareBytesMax {
		return
	}
	h.writtenMu.Lock()
	defer h.writtenMu.Unlock()
	if len(h.spare) < SpareMax {
		h.spare = append(h.spare, buffer[:0])
	}
}

// Routes lists the sessions with other servers in the order of their numbers. It does not wait for the node, and so may be
// called by it.
func (h *Host) Routes() []monitor.Route {
	if h.links == nil || h.links.shown.Load() == nil {
		return nil
	}
	shown := *h.links.shown.Load()
	list := make([]monitor.Route, len(shown))
	for i, s := range shown {
		t := s.conn.Traffic()
		ip, port, _ := net.SplitHostPort(s.conn.Address().String())
		number, _ := strconv.Atoi(port)
		list[i] = monitor.Route{
			ID: uint64(s.rid), RemoteID: s.hello.Server, RemoteName: s.hello.Name, IP: ip, Port: number, Solicited: s.solicited,
			Configured: s.route != nil && s.route.configured, StartNanos: s.started.UnixNano(), LastNanos: t.LastNanos,
			InMsgs: t.FramesIn, OutMsgs: t.FramesOut, InBytes: t.BytesIn, OutBytes: t.BytesOut, Pending: t.Pending,
		}
	}
	return list
}

// hello is how the server introduces itself; its password goes only to whom it dials. The lock is held.
func (h *Host) hello() peerwire.Hello { return h.node.Engine().Hello() }

// clientURLs are where clients reach the server: at the host that it listens on, or at all addresses of the machine.
func clientURLs(listen string, port int) []string {
	name, _, err := net.SplitHostPort(listen)
	format := func(host string) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
	if ip := net.ParseIP(name); err == nil && name != "" && (ip == nil || !ip.IsUnspecified()) {
		return []string{format(name)}
	}
	own, err := net.InterfaceAddrs()
	var list []string
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok && err == nil && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			list = append(list, format(n.IP.String()))
		}
	}
	if len(list) == 0 {
		return []string{format("127.0.0.1")}
	}
	return list
}
