package route

import (
	"slices"

	"weir/node/event"
	"weir/spec/assert"
)

// Mesh carries an account's messages and interest to the other servers of the cluster. Its methods change no table.
type Mesh interface {
	// Announce says that the interest of this server is different from now on.
	Announce(i *Interest)
	// Forward sends a message to another server. What it is given is valid during the call only. It reports false when the
	// message is dropped instead.
	Forward(to event.ServerID, out *Outgoing) bool
}

// Interest is what a server has of subscriptions to one pattern outside of any group, or of members of one queue group
// with one pattern.
type Interest struct {
	// Pattern is a valid subject; Queue is the group, empty outside of any.
	Pattern, Queue string
	// Count is how many members there are; 0: none any more. Outside of groups it is 1 for any number.
	Count uint64
	// Behind says that none of their clients keeps up with what it is sent.
	Behind bool
	// Slow says that one of their clients is about to be closed because it does not keep up.
	Slow bool
	// First says that a message goes there rather than to the members of the group at servers that do not say so.
	First bool
}

// Lag is how well the client of a subscription keeps up with what it is sent.
type Lag uint8

// The lags, each worse than the one before.
const (
	KeepsUp Lag = iota
	Behind
	Slow
)

// Outgoing is a message for another server, which does not pass it on.
type Outgoing struct {
	// To is the subject routed to.
	To []byte
	// Plain says that the matching subscriptions outside of groups get it.
	Plain bool
	// Queues are the groups of which one member there gets it.
	Queues [][]byte
	// Slow says that a client there that may get it is about to be closed because it does not keep up.
	Slow bool
	// Message is the message.
	Message *Message
}

// Peer is another server that has matching subscriptions.
type Peer struct {
	// ID is the server.
	ID event.ServerID
	// Plain says that subscriptions outside of groups are among them.
	Plain bool

	// queues are the groups of which a member there gets the message that is being routed; slow says that the client of one
	// may be about to be closed.
	queues [][]byte
	slow   bool
}

// remote is what a subscription stands for that is the interest of another server: all its subscriptions to one pattern,
// or all its members of a queue group with one pattern.
type remote struct {
	peer event.ServerID
	// queue is the group's name.
	queue []byte
	// count is how many subscriptions it stands for, never 0.
	count uint64
	// behind, slow and first are those of Interest.
	behind, slow, first bool
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

// announced is an interest of this server that others know: how many subscriptions there are, of how many the client does
// not keep up, and of how many of these it is slow.
type announced struct {
	interestKey
	count, behind, slow uint64
}

// shown is what others know of it.
func (a *announced) shown() Interest {
	i := Interest{Pattern: a.pattern, Queue: a.queue, Count: a.count, Behind: a.count > 0 && a.behind == a.count, Slow: a.slow > 0}
	if a.queue == "" {
		i.Count = min(i.Count, 1)
	}
	return i
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
	shown    Interest // what is being announced
}

// Join makes the table part of a cluster, before it has subscriptions.
func (t *Table) Join(m Mesh) {
	assert.True(t.subs.Len() == 0, "a table joins a cluster while it is empty", uint64(t.subs.Len()))
	t.mesh.Mesh, t.mesh.at = m, map[interestKey]int{}
}

// SetInterest says what another server has. It returns by how much the number of different interests of that server grew:
// 1, 0 or -1.
func (t *Table) SetInterest(peer event.ServerID, i *Interest) int {
	p := t.peer(peer)
	key := interestKey{i.Pattern, i.Queue}
	s := p.byKey[key]
	switch {
	case s == nil && i.Count == 0:
		return 0
	case s == nil:
		s = &Sub{Pattern: i.Pattern, Queue: i.Queue, Slot: len(p.subs)}
		s.remote = &remote{peer: peer, queue: []byte(i.Queue), count: i.Count, behind: i.Behind, slow: i.Slow, first: i.First}
		p.byKey[key] = s
		p.subs = append(p.subs, s)
		t.insert(s)
		return 1
	case i.Count == 0:
		t.removeInterest(p, s)
		return -1
	default:
		s.remote.count, s.remote.behind, s.remote.slow, s.remote.first = i.Count, i.Behind, i.Slow, i.First
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
func (t *Table) Announced(yield func(*Interest)) {
	for i := range t.mesh.local {
		shown := t.mesh.local[i].shown()
		yield(&shown)
	}
}

// SetLag says how well the client of a subscription that is in this table keeps up with what it is sent.
func (t *Table) SetLag(s *Sub, lag Lag) {
	assert.True(s.table == t, "a subscription that falls behind is in its table")
	t.mesh.change(s, 0, lag)
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

// change counts a subscription of this server in or out of what the other servers know, and notes its lag.
func (m *mesh) change(s *Sub, subscriptions int, lag Lag) {
	was := s.lag
	s.lag = lag
	if m.Mesh == nil || s.Home || s.remote != nil {
		return
	}
	key := interestKey{s.Pattern, s.Queue}
	at, known := m.at[key]
	if !known {
		assert.True(subscriptions > 0, "a subscription that ends was counted")
		at = len(m.local)
		m.local = append(m.local, announced{interestKey: key})
		m.at[key] = at
	}
	l := &m.local[at]
	before := l.shown()
	l.count += uint64(subscriptions)
	l.behind += one(lag >= Behind) - one(was >= Behind)
	l.slow += one(lag >= Slow) - one(was >= Slow)
	assert.True(l.slow <= l.behind && l.behind <= l.count, "slow <= behind <= subscriptions", l.slow, l.behind, l.count)
	m.shown = l.shown()
	if l.count == 0 {
		m.forget(at)
	}
	if m.shown != before {
		m.Announce(&m.shown)
	}
}

// one counts what is so. Differences wrap around and add up all the same.
func one(so bool) uint64 {
	if so {
		return 1
	}
	return 0
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
		p.slow = p.slow || chosen.remote.slow
	}
	for _, s := range result.Remotes {
		if s.remote.slow {
			result.peerOf(s.remote.peer).slow = true
		}
	}
	t.mesh.missed = t.mesh.missed[:base]
	sent := 0
	for i := range result.Peers {
		p := &result.Peers[i]
		if !p.Plain && len(p.queues) == 0 {
			continue
		}
		t.mesh.outgoing = Outgoing{To: to, Plain: p.Plain, Queues: p.queues, Slow: p.slow, Message: m}
		if t.mesh.Forward(p.ID, &t.mesh.outgoing) {
			sent++
		}
		p.queues, p.slow = p.queues[:0], false
	}
	t.mesh.outgoing = Outgoing{}
	return sent
}

// choose picks one of the interests of other servers in a queue group, each as likely as it has members. Those that come
// first leave nothing to the others.
func (t *Table) choose(remotes []*Sub) *Sub {
	assert.True(len(remotes) > 0, "a member is chosen among some")
	if len(remotes) == 1 {
		return remotes[0]
	}
	total, first := uint64(0), false
	for _, s := range remotes {
		if s.remote.first && !first {
			first, total = true, 0
		}
		if s.remote.first == first {
			total += s.remote.count
		}
	}
	assert.True(total > 0, "interest stands for members")
	left := t.random.Uint64() % total
	for _, s := range remotes {
		if s.remote.first != first {
			continue
		}
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

// HomeGroup is the queue group as which a server announces what its subscriptions at home take, to servers that have none
// for the same: there a message arises that is to be handed to RouteHome of one server. No client can name it.
const HomeGroup = " home"

// RouteHome hands a message that arose at another server to the subscriptions at home, as if it had arisen here. It returns
// how many took it.
func (t *Table) RouteHome(to []byte, m *Message) int {
	result := t.Match(to)
	t.depth++
	taken := 0
	for _, s := range result.Plain {
		if s.Home && s.table != nil && s.Receiver.Deliver(s, m) {
			taken++
		}
	}
	t.depth--
	return taken
}

// KeepsUp reports whether somebody should get more: a matching subscription of this server for which here says so, or one
// of another server for which there says so and that is not behind.
func (r *Result) KeepsUp(here func(*Sub) bool, there func(event.ServerID) bool) bool {
	remote := func(s *Sub) bool { return !s.remote.behind && there(s.remote.peer) }
	if slices.ContainsFunc(r.Plain, here) || slices.ContainsFunc(r.Remotes, remote) {
		return true
	}
	for i := range r.Groups {
		if slices.ContainsFunc(r.Groups[i].Members, here) || slices.ContainsFunc(r.Groups[i].Remotes, remote) {
			return true
		}
	}
	return false
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
