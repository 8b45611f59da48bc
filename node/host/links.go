package host

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weir/node/event"
	"weir/transport/peerwire"
	"weir/transport/tcp"
)

// Cluster is what a host needs to know of the other servers of a cluster. The name of the cluster and what introduces
// this server are in the configuration of the engine.
type Cluster struct {
	// Listen is the address for other servers, "host:port"; port 0 takes any free one.
	Listen string
	// Advertise is where others reach this server instead, "host:port".
	Advertise string
	// NoAdvertise keeps the addresses for clients from other servers.
	NoAdvertise bool
	// Routes are the servers to connect to; from them it learns of the others.
	Routes []Route
	// User and Password are what other servers have to know; "" admits all.
	User, Password string
	// Timeout bounds a handshake; 0 means TimeoutDefault.
	Timeout time.Duration
	// WriteDeadline bounds a write to another server; 0 takes that for clients.
	WriteDeadline time.Duration
	// ServerTLS and ClientTLS protect what is accepted and what is dialed; nil without TLS.
	ServerTLS, ClientTLS *tls.Config
	// Retries bounds how often in a row a server is dialed that was learned from others; 0 does not.
	Retries int
}

// Route is a server to connect to.
type Route struct {
	// Address is "host:port".
	Address string
	// User and Password introduce this server there; without them those of the engine's configuration do.
	User, Password string
}

// The times and bounds of connections between servers.
const (
	// TimeoutDefault bounds a handshake.
	TimeoutDefault = 2 * time.Second
	// RedialMin and RedialMax bound the time between two attempts to reach a server, which grows and is jittered.
	RedialMin = 100 * time.Millisecond
	RedialMax = 2 * time.Second
	// SettleTime is how old a session has to be before another connection of the same two processes may replace it.
	SettleTime = 2 * time.Second
	// SignEach is how often each server shows that it is there, and SilenceMax how long a session lasts without that: the
	// kernel would notice a broken path minutes later, and a healed one as well.
	SignEach   = time.Second
	SilenceMax = 5 * time.Second
	// HandshakesMax bounds the connections that are accepted and not yet sessions.
	HandshakesMax = 64
	// LearnedMax bounds the addresses that are learned from other servers, and addressBytesMax each of them.
	LearnedMax      = 1024
	addressBytesMax = 512
)

// links are the connections with other servers.
type links struct {
	host    *Host
	options atomic.Pointer[Cluster] // a reload puts another one here
	// step brings inputs to the node; Host.mu is held and released. hello introduces this server.
	step     func(inlineBytes int, in ...event.Input)
	hello    func() peerwire.Hello
	listener net.Listener
	boot     uint64
	reports  reports
	// shown are the sessions for who looks at them without waiting for the node.
	shown   atomic.Pointer[[]*session]
	running sync.WaitGroup // of goroutines
	context context.Context
	cancel  context.CancelFunc
	pending chan struct{} // holds an element for each handshake of an accepted connection

	// The rest is guarded by Host.mu.
	sessions map[event.ServerID]*session
	routes   map[string]*route // by address
	touched  []*tcp.PeerConn   // to be flushed after the lock is released
	number   uint64            // of the newest session that this server decided on
	changed  chan struct{}     // closed, and made anew, when sessions change
}

// session is a session with another server.
type session struct {
	conn      *tcp.PeerConn
	hello     *peerwire.Hello
	boot      uint64 // of the other process
	number    uint64
	rid       event.ConnID // what operators know it by
	started   time.Time
	solicited bool // this server dialed
	route     *route
}

// name is how log lines begin that are about the session.
func (s *session) name() string { return fmt.Sprintf("%s - rid:%d", s.conn.Address(), s.rid) }

// openLinks opens the listener for other servers. The engine's configuration gets what follows from its port.
func (h *Host) openLinks() error {
	o := h.options.Cluster
	if o == nil {
		return nil
	}
	l := &links{
		host: h, step: h.stepLocked, hello: h.hello, boot: h.options.Node.Engine.Boot, pending: make(chan struct{}, HandshakesMax),
		sessions: map[event.ServerID]*session{}, routes: map[string]*route{}, changed: make(chan struct{}),
		number: uint64(h.started.UnixNano()),
	}
	l.options.Store(o.completed(h.options.WriteDeadline))
	l.context, l.cancel = context.WithCancel(context.Background())
	var err error
	if l.listener, err = net.Listen("tcp", o.Listen); err != nil {
		return fmt.Errorf("listen for other servers on %s: %w", o.Listen, err)
	}
	c := &h.options.Node.Engine.Cluster
	if c.Address = o.Advertise; c.Address == "" {
		c.Address = reachable(o.Listen, l.listener.Addr())
	}
	if len(c.ClientURLs) == 0 && !o.NoAdvertise {
		c.ClientURLs = clientURLs(h.options.Listen, h.options.Node.Engine.Port)
	}
	h.links = l
	return nil
}

// completed is a copy with what is left to defaults.
func (c *Cluster) completed(writeDeadline time.Duration) *Cluster {
	whole := *c
	if whole.Timeout <= 0 {
		whole.Timeout = TimeoutDefault
	}
	if whole.WriteDeadline <= 0 {
		whole.WriteDeadline = writeDeadline
	}
	return &whole
}

// reachable is the address that others are told: without a host when the server listens on all of them, which they
// complete with the one that they see.
func reachable(listen string, bound net.Addr) string {
	host, _, err := net.SplitHostPort(listen)
	port := bound.(*net.TCPAddr).Port
	if err != nil || host == "" || net.ParseIP(host).IsUnspecified() {
		host = ""
	}
	return net.JoinHostPort(host, fmt.Sprint(port))
}

// closeLinks closes the listener for other servers of a host that did not start.
func (h *Host) closeLinks() error {
	if h.links == nil {
		return nil
	}
	h.links.cancel()
	return h.links.listener.Close()
}

// ClusterAddr is the address on which other servers are accepted; nil without cluster.
func (h *Host) ClusterAddr() net.Addr {
	if h.links == nil {
		return nil
	}
	return h.links.listener.Addr()
}

// start accepts other servers and dials them.
func (l *links) start() {
	if l == nil {
		return
	}
	l.running.Add(2)
	go l.accept()
	go l.showSigns()
	l.host.mu.Lock()
	defer l.host.mu.Unlock()
	for _, r := range l.options.Load().Routes {
		l.addRoute(&route{Route: r, configured: true})
	}
}

// stop ends all sessions once what is queued for them is written. The engine is not told: it has ended.
func (l *links) stop() {
	if l == nil {
		return
	}
	l.cancel()
	_ = l.listener.Close()
	l.host.mu.Lock()
	var conns []*tcp.PeerConn
	for _, s := range l.sessions {
		conns = append(conns, s.conn)
	}
	l.host.mu.Unlock()
	for _, c := range conns {
		c.Finish(errEnding)
	}
	l.running.Wait()
}

func (l *links) accept() {
	defer l.running.Done()
	failing := false
	for {
		sock, err := l.listener.Accept()
		if err != nil {
			if l.context.Err() != nil {
				return
			}
			if !failing {
				l.host.options.Log.Error("Accept of a route failed, trying again: " + err.Error())
			}
			failing = true
			l.sleep(RedialMin)
			continue
		}
		if failing {
			failing = false
			l.host.options.Log.Info("Routes are accepted again")
		}
		select {
		case l.pending <- struct{}{}:
			l.running.Add(1)
			go l.accepted(sock.(*net.TCPConn))
		default:
			// Nothing was promised to it; a server tries again.
			_ = sock.Close()
		}
	}
}

// showSigns shows the other servers that this one is there.
func (l *links) showSigns() {
	defer l.running.Done()
	for l.sleep(SignEach) {
		l.host.mu.Lock()
		conns := make([]*tcp.PeerConn, 0, len(l.sessions))
		for _, s := range l.sessions {
			s.conn.Queue(peerwire.Append(nil, &peerwire.Frame{Kind: peerwire.Known}))
			conns = append(conns, s.conn)
		}
		l.host.mu.Unlock()
		for _, c := range conns {
			c.Flush()
		}
	}
}

// sleep waits, and reports whether the server goes on.
func (l *links) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.context.Done():
		return false
	}
}

// takeTouched returns the connections to be flushed once Host.mu, which is held, is released.
func (l *links) takeTouched() []*tcp.PeerConn {
	if l == nil {
		return nil
	}
	touched := l.touched
	l.touched = nil
	return touched
}

func (l *links) peerOptions(tls *tls.Config) tcp.PeerOptions {
	o := l.options.Load()
	return tcp.PeerOptions{
		TLS: tls, Timeout: o.Timeout, WriteDeadline: o.WriteDeadline, Silence: SilenceMax,
		Release: l.host.release,
	}
}

// reports keeps servers that try in vain again and again from filling the log.
type reports struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// The bounds of what is not repeated.
const (
	reportEach  = time.Minute
	reportsKept = 1024
)

// error logs a line as an error if it is new, else for those who debug.
func (l *links) error(line string) {
	r := &l.reports
	now := time.Now()
	r.mu.Lock()
	seen := now.Sub(r.last[line]) < reportEach
	if !seen {
		if r.last == nil || len(r.last) >= reportsKept {
			r.last = map[string]time.Time{}
		}
		r.last[line] = now
	}
	r.mu.Unlock()
	level := slog.LevelError
	if seen {
		level = slog.LevelDebug
	}
	l.host.options.Log.Log(context.Background(), level, line)
}

// complete gives an address without host the host that a connection has.
func complete(address string, seen net.Addr) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	if host == "" {
		host, _, _ = net.SplitHostPort(seen.String())
	}
	return net.JoinHostPort(strings.ToLower(host), port)
}
