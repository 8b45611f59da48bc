package engine

import (
	"encoding/binary"
	"fmt"

	"weir/disk/wal"
	"weir/node/event"
	"weir/transport/peerwire"
)

// Who leads a group is known from the group's own replica, and from what other servers say when they begin to serve.
// Both carry the term; the newest counts. A server that is told nothing knows no leader, and says so to clients.

// leads reports whether this server serves the group as its leader.
// A server of a cluster serves no stream before its catalog has been current once since it started: the stream may have
// been deleted meanwhile, and another one of the name may be there.
func (g *group) leads() bool {
	return g.replica != nil && g.replica.Serving() && (g.opened == nil || *g.opened)
}

// noteLeader notes that a server leads a group in a term.
func (e *Engine) noteLeader(g *group, leader event.ServerID, term uint64) {
	if term < g.leaderTerm {
		return
	}
	g.leader, g.leaderTerm = leader, term
	if leader != 0 && e.leaderFound != nil {
		e.leaderFound(g.id)
	}
}

// forgetLeader forgets a server as the leader of whatever it led.
func (e *Engine) forgetLeader(id event.ServerID) {
	if e.meta != nil && e.meta.leader == id {
		e.meta.leader = 0
	}
	if e.desk == nil {
		return
	}
	for _, entry := range e.catalog.All() {
		if g := e.groups[wal.GroupID(entry.Group)]; g != nil && g.leader == id {
			g.leader = 0
		}
	}
	for _, g := range e.order {
		e.succeed(g, id)
	}
}

// announceLed tells a server which groups this one leads.
func (e *Engine) announceLed(to event.ServerID) {
	e.body = e.body[:0]
	for _, g := range e.order {
		if g.leads() {
			e.body = appendLead(e.body, g)
		}
	}
	if len(e.body) > 0 {
		e.sendFrame(to, &peerwire.Frame{Kind: peerwire.Lead, Payload: e.body})
	}
}

// announce tells all servers that this one begins to lead a group.
func (e *Engine) announce(g *group) {
	e.body = appendLead(e.body[:0], g)
	for _, p := range e.peers {
		e.sendFrame(p.id, &peerwire.Frame{Kind: peerwire.Lead, Payload: e.body})
	}
}

func appendLead(dst []byte, g *group) []byte {
	dst = binary.AppendUvarint(dst, uint64(g.id))
	return binary.AppendUvarint(dst, g.replica.Term())
}

// peerLeads notes which groups another server leads. A group that the catalog has not brought here yet is remembered
// until it does.
func (e *Engine) peerLeads(p *peer, payload []byte) error {
	for len(payload) > 0 {
		id, n := binary.Uvarint(payload)
		if n <= 0 {
			return fmt.Errorf("%w: groups that are led", peerwire.ErrMalformed)
		}
		term, m := binary.Uvarint(payload[n:])
		if m <= 0 {
			return fmt.Errorf("%w: groups that are led", peerwire.ErrMalformed)
		}
		payload = payload[n+m:]
		if g := e.groups[wal.GroupID(id)]; g != nil {
			e.noteLeader(g, p.id, term)
		} else if len(e.early) < earlyMax {
			e.early[wal.GroupID(id)] = lead{p.id, term}
		}
	}
	return nil
}

// lead is a leader in a term.
type lead struct {
	server event.ServerID
	term   uint64
}

// earlyMax bounds the groups whose leader is known before the group is.
const earlyMax = 100_000

// leaderOf is the server that leads a group: this one only while it serves it. When nobody is known to lead it is one
// that may know, and 0 without any.
func (e *Engine) leaderOf(id wal.GroupID) event.ServerID {
	g := e.groups[id]
	if g == nil {
		return 0
	}
	if g.leads() {
		return e.config.Server
	}
	if g.leader != 0 && g.leader != e.config.Server && e.peerOf[g.leader] != nil {
		return g.leader
	}
	if g.replica != nil {
		if m, ok := g.replica.Member(g.replica.Leader()); ok && e.peerOf[event.ServerID(m.Server)] != nil {
			return event.ServerID(m.Server)
		}
	}
	return 0
}

// mayKnow is a server that may know who leads a group which has no known leader.
func (e *Engine) mayKnow(g *group) event.ServerID {
	if g.entry == nil {
		return 0
	}
	for _, r := range g.entry.Replicas {
		if e.peerOf[event.ServerID(r.Server)] != nil {
			return event.ServerID(r.Server)
		}
	}
	return 0
}

// online reports whether a server can be reached.
func (e *Engine) online(id event.ServerID) bool { return id == e.config.Server || e.peerOf[id] != nil }

// bornTicks is how many ticks the first leader of a new group is looked for at once, instead of after a silence.
const bornTicks = 20

// askLeader has a replica that hears nothing of a leader ask the one that its server says it is, once in an election timeout:
// a replica that has just started hears so what it is thought to have, before it stands for election.
func (e *Engine) askLeader(g *group) {
	if (e.ticks+uint64(g.id))%uint64(e.electionTicks()) == 0 && g.leader != 0 && g.leader != e.config.Server && !e.removed {
		g.replica.AskLeader(uint64(g.leader), e)
	}
}

// campaign has the preferred member of a new group stand for election as long as the group has had no leader: the others
// may learn of the group a little later.
func (e *Engine) campaign(g *group) {
	if g.born == 0 || g.replica == nil {
		return
	}
	if e.ticks-g.born > bornTicks || g.replica.Leader() != 0 || g.replica.Applied().Index > 0 {
		g.born = 0
		return
	}
	g.replica.Campaign(e)
}

// succeed looks for new leaders of the groups that a server led whose session ended: a process that is gone is noticed at
// once, and need not be waited for. The member with the first id among the others stands; if it does not win, the usual
// silence decides.
func (e *Engine) succeed(g *group, gone event.ServerID) {
	r := g.replica
	leader, ok := r.Member(r.Leader())
	if !ok || event.ServerID(leader.Server) != gone {
		return
	}
	e.awaken(g)
	r.ForgetLeader(e)
	for _, m := range r.Members() {
		if m.Learner || m.ID == leader.ID || !e.online(event.ServerID(m.Server)) {
			continue
		}
		if m.ID == r.ID() {
			r.Campaign(e)
		}
		return
	}
}
