package engine

import (
	"cmp"
	"fmt"
	"slices"

	"weir/model/subject"
	"weir/node/event"
	"weir/node/route"
	"weir/spec/assert"
	"weir/transport/peerwire"
)

// InterestMax bounds the different interests of one other server, over all accounts.
const InterestMax = 1 << 20

// interests is who else in the cluster takes messages: the other servers with a session.
type interests struct {
	neighbours []*neighbour // in the order of their ids
	// together says that there has been one, so that clients are told where to connect.
	together bool
	routing  route.Outgoing // what came from a neighbour and is on its way to subscriptions
	routed   route.Message  // of routing
}

// neighbour is another server with which there is a session.
type neighbour struct {
	id event.ServerID
	// urls are where clients reach it, webURLs where they do by WebSocket.
	urls, webURLs []string
	// count is how many different interests it has, over all accounts. Invariant: at most InterestMax.
	count int
	// overflowed says that the operator was told that it has more.
	overflowed bool
	flow
}

// accountMesh connects the subscriptions of an account with those of other servers.
type accountMesh struct {
	engine *Engine
	// account is the name.
	account []byte
}

var _ route.Mesh = (*accountMesh)(nil)

// join makes an account part of the cluster, before it has subscriptions. A server without a cluster has no neighbours
// and needs not count.
func (e *Engine) join(a *account) {
	if e.config.Cluster.Name != "" {
		a.routes.Join(&accountMesh{engine: e, account: []byte(a.name)})
	}
}

// Announce implements route.Mesh. It goes out at once, so that it precedes every message that a neighbour may answer.
func (m *accountMesh) Announce(i *route.Interest) {
	for _, n := range m.engine.neighbours {
		m.announce(n.id, i)
	}
}

func (m *accountMesh) announce(to event.ServerID, i *route.Interest) {
	frames := m.engine.toPeer(to)
	*frames = peerwire.Append(*frames, &peerwire.Frame{
		Kind: peerwire.Interest, Account: m.account, Subject: []byte(i.Pattern), Queue: []byte(i.Queue), Count: i.Count,
		Flag: i.Behind, Offset: marks(i),
	})
}

// The bits of what a frame says of an interest: it has a slow client, it comes first.
const (
	slowInterest  = 1
	firstInterest = 2
)

func marks(i *route.Interest) (bits uint64) {
	if i.Slow {
		bits |= slowInterest
	}
	if i.First {
		bits |= firstInterest
	}
	return bits
}

// interestPeerUp begins to share interest with a server: it learns everything that this one has.
func (e *Engine) interestPeerUp(peer event.ServerID, hello *peerwire.Hello) {
	at, known := e.findNeighbour(peer)
	assert.True(!known, "a session begins after the last one ended", uint64(peer))
	e.neighbours = slices.Insert(e.neighbours, at, &neighbour{
		id: peer, urls: slices.Clone(hello.ClientURLs), webURLs: slices.Clone(hello.WebURLs),
	})
	e.together = true
	for _, a := range e.accounts {
		m := accountMesh{engine: e, account: []byte(a.name)}
		a.routes.Announced(func(i *route.Interest) { m.announce(peer, i) })
	}
	e.advertise()
}

// interestPeerDown forgets the interest of a server whose session ended.
func (e *Engine) interestPeerDown(peer event.ServerID) {
	at, known := e.findNeighbour(peer)
	if !known {
		return
	}
	count := e.neighbours[at].count
	e.neighbours = slices.Delete(e.neighbours, at, at+1)
	for _, a := range e.accounts {
		count -= a.routes.DropPeer(peer)
	}
	assert.True(count == 0, "interests of a neighbour are those of all accounts", uint64(peer))
	e.advertise()
}

// interestFrame takes what a neighbour says of its interest. Interest beyond InterestMax is not remembered: to end the
// session would not make it less, and streams need the session. Accounts that this server does not have are none of its
// business: nobody publishes in them here.
func (e *Engine) interestFrame(peer event.ServerID, f *peerwire.Frame) error {
	at, known := e.findNeighbour(peer)
	if !known {
		return nil // the session is ending
	}
	if !subject.Valid(f.Subject) {
		return fmt.Errorf("%w: interest in an invalid subject of %d bytes", peerwire.ErrMalformed, len(f.Subject))
	}
	a := e.accountNamed[string(f.Account)]
	if a == nil {
		return nil
	}
	n := e.neighbours[at]
	if f.Count > 0 && n.count >= InterestMax {
		if !n.overflowed {
			n.overflowed = true
			e.logf(event.Error, fmt.Sprintf("Server %s has more than %d different subscriptions, some get no messages from here",
				peer.Short(), n.count))
		}
		return nil
	}
	n.count += a.routes.SetInterest(peer, &route.Interest{
		Pattern: string(f.Subject), Queue: string(f.Queue), Count: f.Count, Behind: f.Flag, Slow: f.Offset&slowInterest != 0,
		First: f.Offset&firstInterest != 0,
	})
	return nil
}

func (e *Engine) findNeighbour(peer event.ServerID) (at int, known bool) {
	return slices.BinarySearchFunc(e.neighbours, peer, func(n *neighbour, id event.ServerID) int { return cmp.Compare(n.id, id) })
}

// neighbour is a server with which there is a session, or nil.
func (e *Engine) neighbour(peer event.ServerID) *neighbour {
	if at, known := e.findNeighbour(peer); known {
		return e.neighbours[at]
	}
	return nil
}

// advertise tells clients where else they can connect when that has changed. A server that does not tell others where
// clients reach it does not tell clients of others either.
func (e *Engine) advertise() {
	urls, web := e.clientConfig.Info.ConnectURLs, e.clientConfig.WebURLs
	e.tellURLs()
	if slices.Equal(urls, e.clientConfig.Info.ConnectURLs) && slices.Equal(web, e.clientConfig.WebURLs) {
		return
	}
	for _, id := range e.clientIDs() {
		e.sessions[id].session.SendInfo()
	}
}

// tellURLs has clients told where they can connect.
func (e *Engine) tellURLs() {
	k := &e.config.Cluster
	e.clientConfig.Info.ConnectURLs = e.connectURLs(k.ClientURLs, func(n *neighbour) []string { return n.urls })
	e.clientConfig.WebURLs = e.connectURLs(k.WebURLs, func(n *neighbour) []string { return n.webURLs })
}

// connectURLs are the addresses of all servers that clients may connect to: this one's first, unless it wants to get rid
// of them, then those of the others, sorted.
func (e *Engine) connectURLs(own []string, of func(*neighbour) []string) []string {
	if !e.together || len(own) == 0 {
		return nil
	}
	var urls []string
	for _, n := range e.neighbours {
		urls = append(urls, of(n)...)
	}
	slices.Sort(urls)
	urls = slices.Compact(urls)
	if e.clientConfig.Info.LameDuck {
		return urls
	}
	others := slices.DeleteFunc(urls, func(url string) bool { return slices.Contains(own, url) })
	return append(slices.Clone(own), others...)
}
