package route

import (
	"weir/node/event"
	"weir/spec/assert"
)

// Mesh carries an account's messages and interest to the other servers of the cluster. Its methods change no table.
type Mesh interface {
	// Announce says that this server now has count subscriptions to the pattern outside of any group, or members of the
	// queue group with the pattern; 0: none any more. Without a group only the change from and to 0 is announced.
	Announce(pattern, queue string, count uint64)
	// Forward sends a message to another server. What it is given is valid during the call only.
	Forward(to event.ServerID, out *Outgoing)
}

// Outgoing is a message for another server, which does not pass it on.
type Outgoing struct {
	// To is the subject routed to.
	To []byte
	// Plain says that the matching subscriptions outside of groups get it.
	Plain bool
	// Queues are the groups of which one member there gets it.
	Queues [][]byte
	// Message is the message.
	Message *Message
}

// Peer is another server that has matching subscriptions.
type Peer struct {
	// ID is the server.
	ID event.ServerID
	// Plain says that subscriptions outside of groups are among them.
	Plain bool

	// queues are the groups of which a member there gets the message that is being routed.
	queues [][]byte
}

// remote is what a subscription stands for that is the interest of another server: all its subscriptions to one pattern,
// or all its members of a queue group with one pattern.
type remote struct {
	peer event.ServerID
	// queue is the group's name.
	queue []byte
	// count is how many subscriptions it stands for, never 0.
	count uint64
}

// interestKey tells interests of one server apart.
type interestKey struct{ pattern, queue string }

// peerInterest is the interest of one other server.
type peerInterest struct {
	id    event.ServerID
	byKey map[interestKey]*Sub
	// subs are the same; the Slot of each is its index. Their order depends on the operations alone.
	subs []*Sub
}

// announced is an interest of this server that others know.
type announced struct {
	interestKey
	count uint64
}

// mesh is what a table has of a cluster; without one it is empty and costs nothing.
type mesh struct {
	Mesh
	peers []*peerInterest // in the order of their first interest
	// local are the interests of this server, at[key] the index of each.
	local []announced
	at    map[interestKey]int
	// missed are groups without a local member that took the message, of all depths of Route.
	missed   []int
	outgoing Outgoing
}

// Join makes the table part of a cluster, before it has subscriptions.
func (t *Table) Join(m Mesh) {
	assert.True(t.subs.Len() == 0, "a table joins a cluster while it is empty", uint64(t.subs.Len()))
	t.mesh.Mesh, t.mesh.at = m, map[interestKey]int{}
}

// SetInterest says how many subscriptions another server has to the pattern outside of any group, or how many members of
// the queue group with the pattern; 0: none any more. It returns by how much the number of different interests of the
// server grew: 1, 0 or -1. The pattern is a valid subject.
func (t *Table) SetInterest(peer event.ServerID, pattern, queue string, count uint64) int {
	p := t.peer(peer)
	s := p.byKey[interestKey{pattern, queue}]
	switch {
	case s == nil && count == 0:
		return 0
	case s == nil:
		s = &Sub{Pattern: pattern, Queue: queue, Slot: len(p.subs)}
		s.remote = &remote{peer: peer, queue: []byte(queue), count: count}
		p.byKey[interestKey{pattern, queue}] = s
		p.subs = append(p.subs, s)
		t.insert(s)
		return 1
	case count == 0:
		t.removeInterest(p, s)
		return -1
	default:
		s.remote.count = count
		return 0
	}
}

// DropPeer forgets the interest of another server, and returns how many different interests it had.
func (t *Table) DropPeer(peer event.ServerID) int {
	for i, p := range t.mesh.peers {
		if p.id != peer {
			continue
		}
		dropped := len(p.subs)
		for len(p.subs) > 0 {
			t.removeInterest(p, p.subs[len(p.subs)-1])
		}
		last := len(t.mesh.peers) - 1
		copy(t.mesh.peers[i:], t.mesh.peers[i+1:])
		t.mesh.peers[last] = nil
		t.mesh.peers = t.mesh.peers[:last]
		return dropped
	}
	return 0
}

// Announced calls yield with each interest of this server that others have to know, in an order that depends on the
// operations alone.
func (t *Table) Announced(yield func(pattern, queue string, count uint64)) {
	for i := range t.mesh.local {
		yield(t.mesh.local[i].pattern, t.mesh.local[i].queue, t.mesh.local[i].count)
	}
}

func (t *Table) peer(id event.ServerID) *peerInterest {
	for _, p := range t.mesh.peers {
		if p.id == id {
			return p
		}
	}
	p := &peerInterest{id: id, byKey: map[interestKey]*Sub{}}
	t.mesh.peers = append(t.mesh.peers, p)
	return p
}

func (t *Table) removeInterest(p *peerInterest, s *Sub) {
	last := len(p.subs) - 1
	assert.True(s.Slot <= last && p.subs[s.Slot] == s, "an interest is in its slot", uint64(s.Slot), uint64(last))
	moved := p.subs[last]
	p.subs[s.Slot], p.subs[last] = moved, nil
	moved.Slot = s.Slot
	p.subs = p.subs[:last]
	delete(p.byKey, interestKey{s.Pattern, s.Queue})
	t.remove(s)
}

// count counts a subscription of this server in or out of what the other servers know.
func (m *mesh) count(s *Sub, joined bool) {
	if m.Mesh == nil || s.Home || s.remote != nil {
		return
	}
	key := interestKey{s.Pattern, s.Queue}
	at, known := m.at[key]
	if !known {
		assert.True(joined, "a subscription that ends was counted")
		at = len(m.local)
		m.local = append(m.local, announced{interestKey: key})
		m.at[key] = at
	}
	l := &m.local[at]
	if joined {
		l.count++
	} else {
		l.count--
	}
	count := l.count
	if count == 0 {
		m.forget(at)
	}
	if s.Queue != "" || count == 0 || joined && count == 1 {
		m.Announce(s.Pattern, s.Queue, count)
	}
}

// forget removes the local interest at the index.
func (m *mesh) forget(at int) {
	last := len(m.local) - 1
	delete(m.at, m.local[at].interestKey)
	if at != last {
		m.local[at] = m.local[last]
		m.at[m.local[at].interestKey] = at
	}
	m.local[last] = announced{}
	m.local = m.local[:last]
}

// forward sends the message to other servers: to those with plain subscriptions, and for each group that no local member
// took it for, missed from base on, to one of those with members. It returns to how many.
func (t *Table) forward(result *Result, base int, to []byte, m *Message) int {
	for _, at := range t.mesh.missed[base:] {
		chosen := t.choose(result.Groups[at].Remotes)
		p := result.peerOf(chosen.remote.peer)
		p.queues = append(p.queues, chosen.remote.queue)
	}
	t.mesh.missed = t.mesh.missed[:base]
	sent := 0
	for i := range result.Peers {
		p := &result.Peers[i]
		if !p.Plain && len(p.queues) == 0 {
			continue
		}
		t.mesh.outgoing = Outgoing{To: to, Plain: p.Plain, Queues: p.queues, Message: m}
		t.mesh.Forward(p.ID, &t.mesh.outgoing)
		p.queues = p.queues[:0]
		sent++
	}
	t.mesh.outgoing = Outgoing{}
	return sent
}

// choose picks one of the interests of other servers in a queue group, each as likely as it has members.
func (t *Table) choose(remotes []*Sub) *Sub {
	assert.True(len(remotes) > 0, "a member is chosen among some")
	if len(remotes) == 1 {
		return remotes[0]
	}
	total := uint64(0)
	for _, s := range remotes {
		total += s.remote.count
	}
	assert.True(total > 0, "interest stands for members")
	left := t.random.Uint64() % total
	for _, s := range remotes {
		if left < s.remote.count {
			return s
		}
		left -= s.remote.count
	}
	assert.Unreachable("a number below the total is in no part", left, total)
	return nil
}

// RouteLocal hands a message that came from another server to subscriptions of this one, except those at home: to those
// outside of groups when plain is set, and to one member of each of the groups. It returns how many took it.
func (t *Table) RouteLocal(in *Outgoing) int {
	result := t.Match(in.To)
	t.depth++
	taken := 0
	if in.Plain {
		for _, s := range result.Plain {
			if !s.Home && s.table != nil && s.Receiver.Deliver(s, in.Message) {
				taken++
			}
		}
	}
	for _, queue := range in.Queues {
		for i := range result.Groups {
			if result.Groups[i].Name == string(queue) && t.routeToGroup(result.Groups[i].Members, in.Message) {
				taken++
			}
		}
	}
	t.depth--
	return taken
}

// peerOf returns the part of the result for another server, and makes it when it is missing.
func (r *Result) peerOf(id event.ServerID) *Peer {
	for i := range r.Peers {
		if r.Peers[i].ID == id {
			return &r.Peers[i]
		}
	}
	at := len(r.Peers)
	if at < cap(r.Peers) {
		r.Peers = r.Peers[:at+1]
		r.Peers[at] = Peer{ID: id, queues: r.Peers[at].queues[:0]}
	} else {
		r.Peers = append(r.Peers, Peer{ID: id})
	}
	return &r.Peers[at]
}
