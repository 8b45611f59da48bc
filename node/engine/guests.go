package engine

import (
	"cmp"
	"maps"
	"slices"

	"weir/node/event"
	"weir/node/route"
	"weir/spec/assert"
	"weir/transport/peerwire"
)

// A server without JetStream has neither streams nor an API, and still its clients are to reach both. The servers that have
// JetStream announce to it what they take of messages that arise at a client: as members of one queue group, so that one of
// them gets each message, which handles it as if it had arisen there. The leader of a stream comes before the others, so that
// a publisher's messages keep their order and what a client subscribes to is known before it has to be answered there;
// without a leader another one answers, and says so. Nothing of that is kept while there is no such server.

// guesting is the servers without JetStream, and what is announced to them.
type guesting struct {
	guests []event.ServerID // in the order of their sessions
	homes  map[homeKey]home // nil without guests
}

// homeKey is what is announced: a pattern in an account.
type homeKey struct{ account, pattern string }

func (k homeKey) compare(o homeKey) int {
	return cmp.Or(cmp.Compare(k.account, o.account), cmp.Compare(k.pattern, o.pattern))
}

// home counts subscriptions at home to one pattern, and those of them whose stream is led here. Invariant: leads <= count.
type home struct{ count, leads int }

func (h home) shown(k homeKey) route.Interest {
	return route.Interest{Pattern: k.pattern, Queue: route.HomeGroup, Count: uint64(min(h.count, 1)), First: h.leads > 0}
}

// welcome announces to a server without JetStream what this one takes.
func (e *Engine) welcome(p *peer) {
	if e.desk == nil || p.hello.JetStream {
		return
	}
	if e.homes == nil {
		e.homes = map[homeKey]home{}
		e.countHomes()
	}
	e.guests = append(e.guests, p.id)
	for _, k := range slices.SortedFunc(maps.Keys(e.homes), homeKey.compare) {
		shown := e.homes[k].shown(k)
		m := accountMesh{engine: e, account: []byte(k.account)}
		m.announce(p.id, &shown)
	}
}

// takeLeave ends what welcome began.
func (e *Engine) takeLeave(id event.ServerID) {
	e.guests = slices.DeleteFunc(e.guests, func(guest event.ServerID) bool { return guest == id })
	if len(e.guests) == 0 {
		e.homes = nil
	}
}

// countHomes counts what this server takes now.
func (e *Engine) countHomes() {
	for _, a := range e.accounts {
		for _, pattern := range e.ownSubjects(a) {
			e.changeHome(a, pattern, home{count: 1})
		}
	}
	for _, entry := range e.catalog.All() {
		g := e.groups[groupID(entry.Group)]
		if g == nil {
			continue
		}
		for _, sub := range g.captures {
			e.changeHome(g.account, sub.Pattern, home{count: 1})
		}
		if g.started {
			e.leadHome(g, 1)
		}
	}
}

// changeHome counts subscriptions at home in, or out, and tells the servers without JetStream what is different by that.
func (e *Engine) changeHome(a *account, pattern string, by home) {
	if e.homes == nil {
		return
	}
	k := homeKey{a.name, pattern}
	before := e.homes[k]
	after := home{before.count + by.count, before.leads + by.leads}
	assert.True(after.leads >= 0 && after.leads <= after.count, "0 <= led here <= taken", uint64(after.leads), uint64(after.count))
	e.homes[k] = after
	if after.count == 0 {
		delete(e.homes, k)
	}
	shown := after.shown(k)
	if shown == before.shown(k) {
		return
	}
	m := accountMesh{engine: e, account: []byte(a.name)}
	for _, guest := range e.guests {
		m.announce(guest, &shown)
	}
}

// leadHome counts what is for the leader of a stream, when this server begins to lead it (1) or ends (-1).
func (e *Engine) leadHome(g *group, by int) {
	if e.homes == nil || g.account == nil || g.entry == nil {
		return
	}
	for _, sub := range g.captures {
		e.changeHome(g.account, sub.Pattern, home{leads: by})
	}
	for _, s := range leaderSubjects {
		e.changeHome(g.account, s.before+g.entry.Name+s.after, home{by, by})
	}
}

// leaderSubjects are the subjects of JetStream itself about one stream, around its name.
var leaderSubjects = [...]struct{ before, after string }{
	{"$JS.API.STREAM.*.", ""}, {"$JS.API.STREAM.*.*.", ""}, {"$JS.API.DIRECT.GET.", ""}, {"$JS.API.DIRECT.GET.", ".>"},
	{"$JS.API.CONSUMER.*.", ""}, {"$JS.API.CONSUMER.*.", ".>"}, {"$JS.API.CONSUMER.*.*.", ".>"},
	{"$JS.ACK.", ".>"}, {"$JS.FC.", ".>"},
}

// takeHome handles a message that arose at a server without JetStream as if it had arisen here, if it is for this server.
// When nobody takes it, whoever waits for an answer learns that.
func (e *Engine) takeHome(a *account, f *peerwire.Frame) {
	if !slices.ContainsFunc(f.Queues, func(queue []byte) bool { return string(queue) == route.HomeGroup }) {
		return
	}
	if a.routes.RouteHome(f.Subject, &e.routed) == 0 && len(f.Reply) > 0 {
		a.send(f.Reply, []byte(noResponders), nil)
	}
}
