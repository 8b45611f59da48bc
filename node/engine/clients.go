package engine

import (
	"maps"
	"net/netip"
	"slices"

	"weir/model/jsapi"
	"weir/node/auth"
	"weir/node/event"
	"weir/node/route"
	"weir/node/session"
	"weir/spec/assert"
	"weir/transport/wire"
)

// client is a connection of the engine.
type client struct {
	session *session.Session
	armed   int64 // monotone time of the timer that is set; 0: none
}

// ClosedMax bounds how many closed connections are remembered for monitoring.
const ClosedMax = 10_000

// ClosedSubsMax bounds how many subscriptions of closed connections are remembered; the oldest connections lose theirs,
// but not their number, first.
const ClosedSubsMax = 100_000

// SpareMax bounds the buffers that are kept for the output of sessions, with clients and with other servers.
const SpareMax = 256

// connect greets a new connection.
func (e *Engine) connect(in *event.Input) {
	address, port := in.Text, 0
	if ap, err := netip.ParseAddrPort(in.Text); err == nil {
		address, port = ap.Addr().Unmap().String(), int(ap.Port())
	}
	c := &client{}
	e.sessions[in.Conn] = c
	params := session.Params{ID: in.Conn, Address: address, Port: port, Random: e.random.Uint64(), Start: in.Start, Way: in.Way, Nonce: in.Nonce}
	c.session = session.New(params, &e.clientConfig, (*clientHost)(e))
	e.counters.total++
	if len(e.sessions) > e.config.Limits.Connections {
		c.session.Close(wire.MaxConnectionsExceeded, "maximum connections exceeded")
	}
	e.armClient(in.Conn, c)
}

// operate carries out what a client sent.
func (e *Engine) operate(in *event.Input) {
	c := e.sessions[in.Conn]
	if c == nil {
		return
	}
	for i := range in.Ops {
		c.session.Handle(&in.Ops[i])
	}
	e.armClient(in.Conn, c)
}

func (e *Engine) refuse(in *event.Input) {
	if c := e.sessions[in.Conn]; c != nil {
		c.session.Fail(in.Failure)
	}
}

// disconnect forgets a connection that is gone.
func (e *Engine) disconnect(id event.ConnID, reason wire.Reason) {
	c := e.sessions[id]
	if c == nil {
		return
	}
	c.session.Disconnected(reason)
	e.logClosed(c.session)
	delete(e.sessions, id)
	e.counters.noteClosed(c.session, e.wall)
}

func (e *Engine) flushed(in *event.Input) {
	if c := e.sessions[in.Conn]; c != nil {
		c.session.Flushed(in.N)
	}
}

func (e *Engine) tickClient(id event.ConnID) {
	c := e.sessions[id]
	if c == nil {
		return
	}
	c.armed = 0
	c.session.Tick()
	e.armClient(id, c)
}

// armClient sets the timer of a connection when it has to fire earlier than the one that is set.
func (e *Engine) armClient(id event.ConnID, c *client) {
	at := c.session.Deadline()
	if at == 0 || c.armed != 0 && c.armed <= at {
		return
	}
	c.armed = at
	e.timers.push(timer{at: at, kind: sessionTimer, owner: uint64(id)})
}

// flushClients hands out what the step has for connections.
func (e *Engine) flushClients(out *event.Outputs) {
	e.spare = append(e.spare, out.Spare[:min(len(out.Spare), max(SpareMax-len(e.spare), 0))]...)
	clear(out.Spare)
	out.Spare = out.Spare[:0]
	for i, s := range e.ready {
		out.Conns = append(out.Conns, s.Take())
		e.ready[i] = nil
	}
	e.ready = e.ready[:0]
}

func (e *Engine) lameDuck() {
	e.clientConfig.Info.LameDuck = true
	e.tellURLs()
	for _, id := range e.clientIDs() {
		e.sessions[id].session.LameDuck()
	}
}

// clientIDs are the connections, in order.
func (e *Engine) clientIDs() []event.ConnID { return slices.Sorted(maps.Keys(e.sessions)) }

// ReplayBytesMin is how much of a group's log makes a checkpoint at the end worth while: to replay less at the next start
// takes less time than the syncs of a checkpoint, of which a server with many small streams would make thousands.
const ReplayBytesMin = 64 << 10

// shutdown tells waiting requests that the server ends, and has a checkpoint made where none covers much of the log, so
// that the next start has little to replay.
func (e *Engine) shutdown() {
	if e.desk == nil {
		return
	}
	e.desk.Shutdown(e.now.Mono)
	for _, g := range e.order {
		if g.leads() && len(g.replica.Members()) > 1 {
			e.handOver(g, g.replica.Members())
		}
		if g.durable() && g.replica.UnsavedBytes() >= ReplayBytesMin {
			e.wantSave(g)
		}
	}
}

// clientHost is the engine as the host of sessions.
type clientHost Engine

var _ session.Host = (*clientHost)(nil)

// Now implements session.Host.
func (h *clientHost) Now() event.Time { return h.now }

// Table implements session.Host.
func (h *clientHost) Table(account string) *route.Table {
	a := h.accountNamed[account]
	assert.True(a != nil, "every client is in an account of the server")
	return a.routes
}

// Members implements session.Host.
func (h *clientHost) Members(account string, change int) int {
	a := h.accountNamed[account]
	a.members += change
	assert.True(a.members >= 0, "members of an account >= 0", a.number)
	return a.members
}

// Publish implements session.Host: whoever has interest in the subject gets the message, streams and the API too.
func (h *clientHost) Publish(s *session.Session, m *route.Message) bool {
	return s.Table().Route(m.Subject, m) > 0
}

// Session implements session.Host.
func (h *clientHost) Session(id event.ConnID) *session.Session {
	if c := h.sessions[id]; c != nil {
		return c.session
	}
	return nil
}

// Ready implements session.Host.
func (h *clientHost) Ready(s *session.Session) []byte {
	h.ready = append(h.ready, s)
	return (*Engine)(h).spareBuffer()
}

// spareBuffer is an empty buffer for what leaves; nil is one.
func (e *Engine) spareBuffer() []byte {
	n := len(e.spare)
	if n == 0 {
		return nil
	}
	b := e.spare[n-1]
	e.spare[n-1] = nil
	e.spare = e.spare[:n-1]
	return b[:0]
}

// clientInfo describes a client for audits.
func (e *Engine) clientInfo(c *client) *jsapi.ClientInfo {
	s := c.session
	stats := s.Stats()
	start := jsapi.Time(stats.StartWall)
	connect := s.Connect()
	kind := "nats"
	if s.Way() == auth.WebSocket {
		kind = "websocket"
	}
	return &jsapi.ClientInfo{
		Start: &start, Host: s.Address(), ID: uint64(s.ID()), Account: s.Identity().Account, User: s.Identity().User,
		IssuerKey: s.Identity().Issuer, NameTag: s.Identity().AccountTag, Tags: s.Identity().Tags,
		Name: connect.Name, Lang: connect.Lang, Version: connect.Version, RTT: stats.RoundTripNanos,
		Server: e.config.ServerName, Kind: "Client", ClientType: kind,
	}
}
