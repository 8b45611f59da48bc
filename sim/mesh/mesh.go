// Package mesh is the network between the servers of a simulated cluster: sessions that come up and break, frames that
// are delayed, lost, repeated, reordered or late, and links that are cut in one direction or both.
//
// It models what package transport/tcp and a bad network do together. Within a session ordered frames arrive in order and
// without gaps until it breaks; each end learns at a time of its own that a session began or broke. Frames of Raft's
// class (peerwire.Kind.Datagram) may in addition be lost, repeated, reordered, or come so late that the sender or the
// session no longer exist. The package promises that every draw is keyed by content. It knows nothing of what the frames
// say, and it runs no events: the owner of virtual time hands each one back to Handle.
package mesh

import (
	"weir/sim/keyed"
	"weir/sim/sched"
	"weir/spec/assert"
	"weir/transport/peerwire"
)

// The kinds of events of a mesh. Deliver, Opened and Broken concern the process in Event.Node: the owner may hold them
// back while it is paused. The others concern the network alone.
const (
	// KindFirst is the lowest kind; lower ones belong to the owner of the queue.
	KindFirst uint8 = 64 + iota
	// Connect: the pair N tries to begin a session.
	Connect
	// Opened: the end Node of session Conn learns that it began.
	Opened
	// Broken: the end Node of session Conn learns that it broke.
	Broken
	// Deliver: frames of session Conn reach Node.
	Deliver
	// Suspect: session Conn breaks for the end Node unless the links have been whole since N.
	Suspect
)

// Host is the world that a mesh belongs to.
type Host interface {
	// Now is the virtual time in nanoseconds.
	Now() int64
	// Push schedules an event for Handle.
	Push(e sched.Event)
	// Running is the incarnation of a server's process, never 0 and never used again; 0 when it does not run.
	Running(node int) uint32
	// Hello is how a server that runs introduces itself at present.
	Hello(node int) *peerwire.Hello
	// Up, Down and Frames bring to a running server that a session with a peer began or broke, and what it brought. The
	// bytes are valid during the call.
	Up(node int, peer *peerwire.Hello)
	Down(node int, peer peerwire.ServerID)
	Frames(node int, peer peerwire.ServerID, frames []byte)
}

// Config holds the knobs of a mesh.
type Config struct {
	// Nodes is the number of servers.
	Nodes int
	// LatencyMinNanos and LatencyMeanNanos shape the delay of a frame: a minimum and an exponential part.
	LatencyMinNanos, LatencyMeanNanos int64
	// LossPerMille and DupPerMille are how often a datagram is lost or comes twice.
	LossPerMille, DupPerMille uint64
	// LatePerMille is how often a datagram comes later than anybody expects, LateMeanNanos by how much.
	LatePerMille  uint64
	LateMeanNanos int64
	// ResetPerMille is how often an ordered frame is lost, and its session with it.
	ResetPerMille uint64
	// Ordered keeps datagrams in order with everything else, as one connection does.
	Ordered bool
}

// Times in nanoseconds.
const (
	millisecond = 1_000_000
	second      = 1000 * millisecond
	// dialMin and dialMean shape the time until a server dials again.
	dialMin, dialMean = 20 * millisecond, 200 * millisecond
	// suspectMin and suspectMean shape the time until an end gives up a session on which nothing passes.
	suspectMin, suspectMean = 200 * millisecond, 2 * second
)

// link is one direction between two servers.
type link struct {
	cuts    int   // faults that block it
	holds   int   // those of them that let no session break
	whole   int64 // since when it has not been cut, if it is not
	factors []int64
	loss    []uint64
	held    []heldFrames // what waits for the link to be whole again
}

type heldFrames struct {
	parcel
	datagram bool
}

// end is one end of a session.
type end struct {
	node  int
	gen   uint32          // incarnation of its process
	hello *peerwire.Hello // of this end
	state endState
	last  int64 // arrival of the newest ordered frames at this end
	up    int64 // when this end learns of the session
}

type endState uint8

const (
	opening endState = iota
	open
	broken
)

// session is one connection between two servers.
type session struct {
	id   uint64
	ends [2]end
	dead bool // nothing more is delivered, the ends learn of it in their own time
}

func (s *session) side(node int) *end {
	if s.ends[0].node == node {
		return &s.ends[0]
	}
	assert.True(s.ends[1].node == node, "the session is one of the node's", uint64(node))
	return &s.ends[1]
}

func (s *session) other(node int) *end {
	if s.ends[0].node == node {
		return &s.ends[1]
	}
	return &s.ends[0]
}

// Mesh is the network between servers. It is not safe for concurrent use.
type Mesh struct {
	config   Config
	key      keyed.Key
	host     Host
	sessions map[uint64]*session
	next     uint64
	links    []link   // by from*Nodes+to
	current  []uint64 // by node*Nodes+peer: the session that the node has with the peer, 0: none
	dialing  []bool   // by lower*Nodes+higher: a Connect is under way
	dials    uint64
	calm     bool
}

// New returns a mesh whose servers do not run yet.
func New(config Config, key keyed.Key, host Host) *Mesh {
	pairs := config.Nodes * config.Nodes
	return &Mesh{
		config: config, key: key, host: host, sessions: map[uint64]*session{},
		links: make([]link, pairs), current: make([]uint64, pairs), dialing: make([]bool, pairs),
	}
}

func (m *Mesh) at(from, to int) int { return from*m.config.Nodes + to }

func (m *Mesh) link(from, to int) *link { return &m.links[m.at(from, to)] }

// Calm ends loss, repetition and lateness from now on; cuts are the owner's to end.
func (m *Mesh) Calm() { m.calm = true }

// Boot says that a server runs from now on: it seeks sessions with all others.
func (m *Mesh) Boot(node int) {
	for peer := range m.config.Nodes {
		if peer != node {
			m.dial(node, peer, m.host.Now()+1)
		}
	}
}

// Ended says that the process of a server is gone. Its peers learn of it sooner or later.
func (m *Mesh) Ended(node int) {
	for peer := range m.config.Nodes {
		if id := m.current[m.at(node, peer)]; id != 0 {
			s := m.sessions[id]
			s.side(node).state = broken
			m.current[m.at(node, peer)] = 0
			m.kill(s, "ended")
		}
	}
}

// Reset breaks all sessions of a server.
func (m *Mesh) Reset(node int) {
	for peer := range m.config.Nodes {
		if id := m.current[m.at(node, peer)]; id != 0 {
			m.kill(m.sessions[id], "reset")
		}
	}
}

// End breaks the session of a server with another one.
func (m *Mesh) End(node, peer int) {
	if id := m.current[m.at(node, peer)]; id != 0 {
		m.kill(m.sessions[id], "ended")
	}
}

// dial has a pair try for a session at a time, unless it does already.
func (m *Mesh) dial(a, b int, at int64) {
	a, b = min(a, b), max(a, b)
	if m.dialing[m.at(a, b)] {
		return
	}
	m.dialing[m.at(a, b)] = true
	m.host.Push(sched.Event{At: at, Kind: Connect, N: uint64(m.at(a, b))})
}

// again has a pair try for a session after a pause.
func (m *Mesh) again(a, b int) {
	m.dials++
	pause := dialMin + m.key.Exp(dialMean, "dial", uint64(min(a, b)), uint64(max(a, b)), uint64(m.host.Now())>>20)
	m.dial(a, b, m.host.Now()+pause)
}

// connect begins a session if the network and both servers are there for it.
func (m *Mesh) connect(pair int) {
	a, b := pair/m.config.Nodes, pair%m.config.Nodes
	m.dialing[pair] = false
	if m.host.Running(a) == 0 || m.host.Running(b) == 0 {
		return // The one that starts later dials.
	}
	mine, theirs := m.current[m.at(a, b)], m.current[m.at(b, a)]
	if mine != 0 && theirs != 0 && !m.sessions[mine].dead && mine == theirs {
		return
	}
	if mine != 0 && theirs != 0 || m.link(a, b).cuts > 0 || m.link(b, a).cuts > 0 {
		m.again(a, b)
		return
	}
	m.next++
	s := &session{id: m.next, ends: [2]end{{node: a}, {node: b}}}
	m.sessions[s.id] = s
	for i := range s.ends {
		e := &s.ends[i]
		e.gen, e.hello = m.host.Running(e.node), m.host.Hello(e.node)
		e.up = m.host.Now() + m.latency(a, b) + m.key.Exp(10*millisecond, "opened", s.id, uint64(e.node))
		m.host.Push(sched.Event{At: e.up, Kind: Opened, Node: uint32(e.node), Conn: s.id})
	}
}

// kill ends a session: nothing passes any more, and each end that has not noticed learns of it in its own time.
func (m *Mesh) kill(s *session, why string) {
	if s.dead {
		return
	}
	s.dead = true
	for i := range s.ends {
		e := &s.ends[i]
		if e.state == broken {
			continue
		}
		delay := m.latency(s.other(e.node).node, e.node)
		if m.key.Chance(300, why, s.id, uint64(e.node)) {
			delay += m.key.Exp(suspectMean, why+" late", s.id, uint64(e.node))
		}
		m.host.Push(sched.Event{At: max(m.host.Now()+delay, e.up+1), Kind: Broken, Node: uint32(e.node), Conn: s.id})
	}
}

// Handle takes an event of the mesh whose time has come.
func (m *Mesh) Handle(e *sched.Event) {
	if e.Kind == Connect {
		m.connect(int(e.N))
		return
	}
	if e.Kind == Deliver {
		m.deliver(e)
		return
	}
	s := m.sessions[e.Conn]
	if s == nil {
		return
	}
	side := s.side(int(e.Node))
	switch e.Kind {
	case Opened:
		m.opened(s, side)
	case Broken:
		m.broken(s, side)
	case Suspect:
		m.suspect(s, side, int64(e.N))
	default:
		assert.Unreachable("kind of event of the mesh", uint64(e.Kind))
	}
}

// same says whether the process that took part in the session still runs.
func (m *Mesh) same(e *end) bool {
	return m.host.Running(e.node) == e.gen
}

func (m *Mesh) opened(s *session, side *end) {
	other := s.other(side.node)
	if side.state != opening || !m.same(side) {
		return
	}
	if old := m.sessions[m.current[m.at(side.node, other.node)]]; old != nil {
		// The new session takes the place of one that this end still believed in.
		m.kill(old, "replaced")
		m.broken(old, old.side(side.node))
	}
	side.state = open
	m.current[m.at(side.node, other.node)] = s.id
	if !m.same(other) {
		m.kill(s, "ended")
	}
	m.host.Up(side.node, other.hello)
}

func (m *Mesh) broken(s *session, side *end) {
	other := s.other(side.node)
	was := side.state
	side.state = broken
	if was != open || !m.same(side) {
		m.forget(s)
		return
	}
	if m.current[m.at(side.node, other.node)] == s.id {
		m.current[m.at(side.node, other.node)] = 0
	}
	m.forget(s)
	m.again(side.node, other.node)
	m.host.Down(side.node, other.hello.ID)
}

// forget drops a session that neither end has any more.
func (m *Mesh) forget(s *session) {
	if s.ends[0].state == broken && s.ends[1].state == broken {
		s.dead = true
		delete(m.sessions, s.id)
	}
}

// Connected says whether both ends of a pair have one and the same session.
func (m *Mesh) Connected(a, b int) bool {
	id := m.current[m.at(a, b)]
	return id != 0 && id == m.current[m.at(b, a)] && !m.sessions[id].dead
}
