// Package route knows which subscriptions of one account receive a message, and hands it to them.
//
// It promises that a message goes once to each matching plain subscription and to one member of each queue group whose
// name matches (whatever patterns its members use), that results depend on the operations and the given random numbers
// alone, and that routing to a subject seen before allocates nothing. It also tells when a watched subject gains or
// loses interest.
//
// In a cluster a table also holds the interest of other servers, and hands each of them a message at most once: for its
// subscriptions outside of groups, and for one member of each group that has no member here which takes it. What comes
// from another server reaches subscriptions of this one only.
//
// It knows neither permissions nor the protocol: what a receiver does with a message, and whether it takes it, is the
// receiver's business.
package route

import (
	"slices"

	"weir/model/subject"
	"weir/node/event"
	"weir/spec/assert"
)

// Message is what is routed. Receivers only read it and keep nothing of it.
type Message struct {
	// From is the publishing connection, 0 when the server itself publishes.
	From event.ConnID
	// Subject is what receivers see as the subject. It may differ from the subject routed to: a stream's message is
	// delivered under the subject that it was stored with.
	Subject []byte
	// Reply is the reply subject; empty without one.
	Reply []byte
	// Header is the header block with its final blank line; empty without one.
	Header []byte
	// Payload is the body.
	Payload []byte
	// Routed says that the message came from another server.
	Routed bool
}

// Receiver takes messages for subscriptions: a client's session, or a part of the server.
type Receiver interface {
	// Deliver hands over a message for sub. It reports false when the subscription did not get it (own message without
	// echo, permission, end of the subscription); a queue group then tries its next member. Deliver may subscribe,
	// unsubscribe and route.
	Deliver(sub *Sub, m *Message) bool
}

// Sub is a subscription. The fields above the line are set by the creator and do not change while it is in a table.
type Sub struct {
	// Conn is the client connection, 0 for a subscription of the server itself.
	Conn event.ConnID
	// Receiver gets the messages.
	Receiver Receiver
	// Pattern is what is subscribed to, a valid subject.
	Pattern string
	// Queue is the queue group; empty for a plain subscription.
	Queue string
	// Sid is the client's name for the subscription, or nil.
	Sid []byte
	// Handler tells subscriptions of one server part apart; route does not look at it.
	Handler uint64
	// Home says that only messages which arise at this server reach the subscription, and that others do not learn of it.
	Home bool

	// Delivered counts the messages that the receiver took. The receiver keeps it.
	Delivered uint64
	// Max is the count of messages at which the receiver ends the subscription, 0 without one. The receiver keeps it.
	Max uint64
	// Slot is for the receiver's own bookkeeping.
	Slot int

	// table is where the subscription is, nil outside of any.
	table *Table
	// remote is set when this is the interest of another server. Then there is no receiver.
	remote *remote
	// lag is how well its client keeps up.
	lag Lag
}

// Lag is how well its client was said to keep up.
func (s *Sub) Lag() Lag { return s.lag }

// Active reports whether the subscription is in a table.
func (s *Sub) Active() bool { return s.table != nil }

// Group is the members of one queue group that match a subject.
type Group struct {
	// Name is the queue group.
	Name string
	// Members are its matching subscriptions, in a stable order.
	Members []*Sub
	// Remotes are the matching interests of other servers.
	Remotes []*Sub
}

// Result is what matches one subject. It belongs to the table and is valid until the table is used again.
type Result struct {
	// Plain are the matching subscriptions outside of any group.
	Plain []*Sub
	// Groups are the matching queue groups, each once.
	Groups []Group
	// Peers are the other servers with interest, each once.
	Peers []Peer
	// Remotes are the matching interests of other servers outside of any group.
	Remotes []*Sub
}

// Empty reports whether nothing matches.
func (r *Result) Empty() bool { return len(r.Plain)+len(r.Groups)+len(r.Peers) == 0 }

// Random is where choices between members of a queue group come from.
type Random interface {
	Uint64() uint64
}

// Table holds the subscriptions of one account. It is not safe for concurrent use.
type Table struct {
	random  Random
	subs    *subject.Sublist[*Sub]
	cache   cache
	watches watches
	mesh    mesh
	// scratch are results for lookups made while results of the cache are in use, one per depth of Route.
	scratch []*Result
	depth   int
	matched []*Sub
	stats   Stats
}

// Stats counts what a table did, for monitoring.
type Stats struct {
	// Inserts, Removes and Matches count operations; Hits are matches answered from the cache.
	Inserts, Removes, Matches, Hits uint64
}

// NewTable returns an empty table. Random decides between members of queue groups.
func NewTable(random Random) *Table {
	return &Table{random: random, subs: subject.NewSublist[*Sub]()}
}

// Len returns the number of subscriptions.
func (t *Table) Len() int { return t.subs.Len() }

// Stats returns the counts so far.
func (t *Table) Stats() Stats { return t.stats }

// Subscribe adds a subscription. Its pattern is valid and it is in no table.
func (t *Table) Subscribe(s *Sub) {
	assert.True(s.table == nil, "a subscription is in one table at most")
	assert.True(s.Receiver != nil, "a subscription has a receiver")
	t.insert(s)
}

func (t *Table) insert(s *Sub) {
	s.table = t
	t.subs.Insert(s.Pattern, s)
	t.stats.Inserts++
	t.cache.invalidate(s.Pattern)
	t.watches.changed(s, 1)
	t.mesh.change(s, 1, KeepsUp)
}

// Unsubscribe removes a subscription that is in this table. It gets no message from now on.
func (t *Table) Unsubscribe(s *Sub) {
	assert.True(s.table == t, "a subscription leaves the table that it is in")
	t.remove(s)
}

func (t *Table) remove(s *Sub) {
	s.table = nil
	removed := t.subs.Remove(s.Pattern, s)
	assert.True(removed, "a subscription of the table is in its sublist")
	t.stats.Removes++
	t.cache.invalidate(s.Pattern)
	t.watches.changed(s, -1)
	t.mesh.change(s, -1, KeepsUp)
}

// Match returns what matches the subject.
func (t *Table) Match(to []byte) *Result {
	t.stats.Matches++
	family, hit := t.cache.findFamily(to)
	if hit {
		t.stats.Hits++
		return &family.result
	}
	slot, hit := t.cache.find(to)
	if hit {
		t.stats.Hits++
		return &slot.result
	}
	var isFamily bool
	t.matched, isFamily = t.subs.MatchFamily(to, t.matched[:0])
	switch {
	case t.depth == 0 && isFamily && family != nil:
		t.cache.claimFamily(family, to)
		slot = family
	case t.depth == 0 && slot != nil:
		t.cache.claim(slot, to)
	default:
		result := t.spare()
		result.set(t.matched)
		return result
	}
	slot.result.set(t.matched)
	return &slot.result
}

// depthMax bounds how deep receivers may route messages in answer to messages.
const depthMax = 16

// spare returns the result that lookups at the present depth may overwrite.
func (t *Table) spare() *Result {
	assert.True(t.depth <= depthMax, "depth of routing <= depthMax", uint64(t.depth), depthMax)
	for len(t.scratch) <= t.depth {
		t.scratch = append(t.scratch, &Result{})
	}
	return t.scratch[t.depth]
}

// set sorts matching subscriptions into plain ones, groups and other servers, reusing the memory of the earlier result.
func (r *Result) set(matched []*Sub) {
	clear(r.Plain)
	clear(r.Remotes)
	r.Plain, r.Groups, r.Peers, r.Remotes = r.Plain[:0], r.Groups[:0], r.Peers[:0], r.Remotes[:0]
	for _, s := range matched {
		switch {
		case s.remote != nil:
			p := r.peerOf(s.remote.peer)
			if s.Queue == "" {
				p.Plain = true
				r.Remotes = append(r.Remotes, s)
				continue
			}
			g := r.group(s.Queue)
			g.Remotes = append(g.Remotes, s)
		case s.Queue == "":
			r.Plain = append(r.Plain, s)
		default:
			g := r.group(s.Queue)
			g.Members = append(g.Members, s)
		}
	}
}

// group returns the part of the result for a queue group, and makes it when it is missing.
func (r *Result) group(name string) *Group {
	for i := range r.Groups {
		if r.Groups[i].Name == name {
			return &r.Groups[i]
		}
	}
	at := len(r.Groups)
	if at < cap(r.Groups) {
		r.Groups = r.Groups[:at+1]
		g := &r.Groups[at]
		clear(g.Members)
		clear(g.Remotes)
		*g = Group{Name: name, Members: g.Members[:0], Remotes: g.Remotes[:0]}
	} else {
		r.Groups = append(r.Groups, Group{Name: name})
	}
	return &r.Groups[at]
}

// Route hands m to everything that matches the subject to, and returns how many subscriptions and other servers took it.
// Subscriptions that end on the way are left out.
func (t *Table) Route(to []byte, m *Message) int {
	result := t.Match(to)
	if result.Empty() {
		return 0
	}
	t.depth++
	taken, base := 0, len(t.mesh.missed)
	for _, s := range result.Plain {
		if s.table != nil && s.Receiver.Deliver(s, m) {
			taken++
		}
	}
	for i := range result.Groups {
		g := &result.Groups[i]
		if t.routeToGroup(g.Members, m) {
			taken++
		} else if len(g.Remotes) > 0 {
			t.mesh.missed = append(t.mesh.missed, i)
		}
	}
	if len(result.Peers) > 0 {
		taken += t.forward(result, base, to, m)
	}
	t.depth--
	return taken
}

// routeToGroup hands m to one member: the first that takes it, from a random one on.
func (t *Table) routeToGroup(members []*Sub, m *Message) bool {
	start := 0
	if len(members) > 1 {
		start = int(t.random.Uint64() % uint64(len(members)))
	}
	for i := range members {
		at := start + i
		if at >= len(members) {
			at -= len(members)
		}
		if s := members[at]; s.table != nil && s.Receiver.Deliver(s, m) {
			return true
		}
	}
	return false
}

// HasInterest reports whether any subscription matches the subject, here or at another server.
func (t *Table) HasInterest(to []byte) bool { return !t.Match(to).Empty() }

// HasPlainInterest reports whether a subscription outside of any group matches the subject.
func (t *Table) HasPlainInterest(to []byte) bool {
	result := t.Match(to)
	return len(result.Plain) > 0 || slices.ContainsFunc(result.Peers, func(p Peer) bool { return p.Plain })
}

// HasGroupInterest reports whether a member of the queue group matches the subject.
func (t *Table) HasGroupInterest(to []byte, group string) bool {
	result := t.Match(to)
	for i := range result.Groups {
		if result.Groups[i].Name == group {
			return true
		}
	}
	return false
}

// PlainOf returns the first subscription of the connection, outside of any group, that matches the subject; nil without
// one. The notice that nobody received a request goes to it.
func (t *Table) PlainOf(conn event.ConnID, to []byte) *Sub {
	for _, s := range t.Match(to).Plain {
		if s.Conn == conn {
			return s
		}
	}
	return nil
}
