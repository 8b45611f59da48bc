package engine

import (
	"slices"

	"weir/disk/wal"
	"weir/node/event"
	"weir/node/replica"
	"weir/transport/peerwire"
)

// restAfterTicks is how many ticks a group has nothing to do before it rests: it then costs neither ticks nor messages.
const restAfterTicks = 20

// ticking is the groups that Raft ticks drive: those with several members that do not rest.
type ticking struct {
	awake      []*group
	awakeSpare []*group
	ticks      uint64
}

// tickNanos is the time between two ticks.
func (e *Engine) tickNanos() int64 {
	if n := e.config.Cluster.TickNanos; n != 0 {
		return n
	}
	return TickNanosDefault
}

func (e *Engine) electionTicks() int {
	if n := e.config.Cluster.ElectionTicks; n != 0 {
		return n
	}
	return ElectionTicksDefault
}

// leaseNanos is how long a leader may answer reads after the beginning of a round; 0 without leases. A follower elects
// nobody else for an election timeout, less a tick, as it counts it: what is left is for clocks of different rates.
func (e *Engine) leaseNanos() int64 {
	if !e.config.JetStream.ReadLease || !e.clustered() {
		return 0
	}
	return int64(e.electionTicks()-1) * e.tickNanos() / 5 * 4
}

// leasesAgreed reports whether no server that is there has leases off.
func (e *Engine) leasesAgreed() bool {
	return !slices.ContainsFunc(e.peers, func(p *peer) bool { return p.hello.JetStream && !p.hello.ReadLease })
}

// armTicks sets the timer of the next tick.
func (e *Engine) armTicks() {
	if e.clustered() && e.desk != nil {
		e.timers.push(timer{at: e.now.Mono + e.tickNanos(), kind: tickTimer})
	}
}

// awaken has a group ticked again. One that has come to rest since the last tick is still among those that are ticked, and
// wakes up all the same.
func (e *Engine) awaken(g *group) {
	if g.replica == nil || !e.clustered() {
		return
	}
	if !g.awake {
		g.awake = true
		e.awake = append(e.awake, g)
	}
	g.replica.Wake(e)
}

// tick drives elections, heartbeats, membership and the look-out for silent servers.
func (e *Engine) tick() {
	e.ticks++
	e.listen()
	awake := e.awake
	e.awake = e.awakeSpare[:0]
	for _, g := range awake {
		g.awake = false
		if e.groups[g.id] != g || g.replica == nil {
			continue
		}
		g.replica.Tick(e)
		e.askLeader(g)
		e.campaign(g)
		if g.replica == nil {
			continue
		}
		e.reconcile(g)
		if !e.rests(g) {
			if !g.awake {
				g.awake = true
				e.awake = append(e.awake, g)
			}
		}
	}
	clear(awake)
	e.awakeSpare = awake[:0]
	e.balance()
	e.foundOrJoin()
	e.inviteServers()
	e.rejoinCatalog()
	e.replaceFenced()
	e.repairs()
	e.becomeCurrent()
	e.releaseReplies()
	e.tickTransfers()
	e.armTicks()
}

// rests reports whether the group rests from now on. Its leader decides that, when all members have all and nothing is
// under way for a while, and tells them; a group without anybody to tell never ticks.
func (e *Engine) rests(g *group) bool {
	if g.replica.Quiesced() {
		return true
	}
	if !g.leads() || e.unreconciled(g) {
		return false
	}
	if len(g.replica.Members()) == 1 {
		return true // there is nobody to tell
	}
	if e.now.Mono-g.lastActive < restAfterTicks*e.tickNanos() || !g.replica.CanQuiesce() {
		return false
	}
	g.replica.Quiesce(e)
	return g.replica.Quiesced()
}

// listen pings the other servers and notices those that say nothing any more.
func (e *Engine) listen() {
	patience := int64(e.electionTicks()) * e.tickNanos()
	for _, p := range e.peers {
		e.sendFrame(p.id, &peerwire.Frame{Kind: peerwire.Ping, Token: e.ticks})
		if !p.silent && e.now.Mono-p.heard > patience {
			p.silent = true
			e.wakeLedBy(p.id)
		}
	}
}

// hear notes that something came from a server.
func (e *Engine) hear(p *peer) {
	p.heard, p.silent = e.now.Mono, false
}

// wakeLedBy has the groups ticked that rest and have a member on the server: they may need another leader, or have to
// notice that it is gone.
func (e *Engine) wakeLedBy(id event.ServerID) {
	for _, g := range e.order {
		if slices.ContainsFunc(g.replica.Members(), func(m replica.Member) bool { return event.ServerID(m.Server) == id }) {
			e.awaken(g)
		}
	}
}

// addBeat adds a heartbeat, or the answer to one, to those of the step for a server.
func (e *Engine) addBeat(to event.ServerID, b *replica.Beat) {
	p := e.peerOf[to]
	if p == nil {
		return
	}
	e.toPeer(to)
	p.beats = replica.AppendBeat(p.beats, b)
}

// flushBeats joins the heartbeats of the step for each server in one frame.
func (e *Engine) flushBeats() {
	for _, p := range e.peersOut {
		if len(p.beats) > 0 {
			p.frames = peerwire.Append(p.frames, &peerwire.Frame{Kind: peerwire.Beat, Payload: p.beats})
			p.beats = p.beats[:0]
		}
	}
}

// beatsFrom takes heartbeats of many groups.
func (e *Engine) beatsFrom(p *peer, payload []byte) error {
	payload = append([]byte(nil), payload...) // contexts of heartbeats are kept
	var b replica.Beat
	for len(payload) > 0 {
		var err error
		if payload, err = replica.NextBeat(payload, &b); err != nil {
			return err
		}
		g := e.groups[wal.GroupID(b.Group)]
		if g == nil || g.replica == nil || e.standsStill(g) || b.To != g.replica.ID() {
			continue
		}
		g.replica.ReceiveBeat(uint64(p.id), &b, e)
		e.noteForgotten(g)
		if !g.replica.Quiesced() {
			e.awaken(g)
		}
	}
	return nil
}
