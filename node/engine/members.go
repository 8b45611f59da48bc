package engine

import (
	"slices"

	"weir/model/command"
	"weir/model/meta"
	"weir/node/event"
	"weir/node/replica"
	"weir/transport/peerwire"
)

// The catalog says which servers should hold a group; the group's own log says which do. The leader of the group brings
// the second to the first, one change of membership at a time: a new replica learns, votes once it has caught up, and
// replicas that are no longer wanted leave last. Then the catalog is told, and the servers that left drop their files.

// wantedMembers appends the members that a group should have.
func (e *Engine) wantedMembers(g *group, dst []replica.Member) []replica.Member {
	if g == e.meta {
		for _, s := range e.catalog.Servers() {
			dst = append(dst, replica.Member{ID: s.Replica, Server: s.ID})
		}
		return e.leavingServers(dst)
	}
	for _, r := range g.entry.Replicas {
		dst = append(dst, replica.Member{ID: r.ID, Server: r.Server})
	}
	return dst
}

// leavingServers appends the members of the catalog on servers that were removed, are there, and still have streams. Who
// leads a stream moves it by the catalog: a server that hears nothing of it any more would keep what only it has. One that was
// removed while it was down, and comes back with the only replica of a stream, is told of the catalog again without a vote.
func (e *Engine) leavingServers(dst []replica.Member) []replica.Member {
	for _, m := range e.meta.replica.Members() {
		s := e.catalog.Server(m.Server)
		if s != nil && s.Removed && s.Replica == m.ID && !m.Learner && e.online(event.ServerID(s.ID)) && e.catalog.Holds(s.ID) {
			dst = append(dst, m)
		}
	}
	for _, id := range e.catalog.Removed() {
		p, s := e.peerOf[event.ServerID(id)], e.catalog.Server(id)
		if p != nil && p.hello.Catalog == e.founder && p.hello.Replica == s.Replica && !hasMember(dst, s.Replica) && e.catalog.Holds(id) {
			dst = append(dst, replica.Member{ID: s.Replica, Server: id, Learner: true})
		}
	}
	return dst
}

// unreconciled reports whether the group's members are not what the catalog wants, as far as this server knows.
func (e *Engine) unreconciled(g *group) bool {
	if g != e.meta && !g.entry.IsSettled() {
		return true
	}
	want := e.wantedMembers(g, e.wantedSpare[:0])
	e.wantedSpare = want
	have := g.replica.Members()
	if len(have) != len(want) {
		return true
	}
	for _, m := range have {
		if m.Learner || !hasMember(want, m.ID) {
			return true
		}
	}
	return false
}

func hasMember(members []replica.Member, id uint64) bool {
	return slices.ContainsFunc(members, func(m replica.Member) bool { return m.ID == id })
}

// reconcile takes one step, if this server leads the group. What the catalog wants is read behind a barrier: a leader that
// has just started may know an older catalog than the one that it acted on before, and must not bring members back that
// others have been told to have left.
func (e *Engine) reconcile(g *group) {
	if !e.mayReconcile(g) || g.reconciling || e.meta.replica == nil {
		return
	}
	if g == e.meta {
		e.reconcileNow(g)
		return
	}
	own := g.replica
	g.reconciling = true
	e.meta.replica.Read(func(ok bool) {
		g.reconciling = false
		if ok && e.groups[g.id] == g && g.replica == own && e.mayReconcile(g) {
			e.reconcileNow(g)
		}
	})
	if e.meta.replica.Dirty() {
		e.markDirty(e.meta)
	}
}

// mayReconcile reports whether this server leads the group, can change it, and has something to change.
func (e *Engine) mayReconcile(g *group) bool {
	return g.leads() && g.damaged == nil && e.full == nil && e.failure == nil && e.unreconciled(g)
}

// reconcileNow takes one step towards what the catalog wants.
func (e *Engine) reconcileNow(g *group) {
	want := e.wantedMembers(g, nil)
	if g == e.meta && len(want) == 0 {
		return // the catalog knows no server yet
	}
	have := g.replica.Members()
	if e.removeUseless(g, have, want) {
		return
	}
	voting := 0
	for _, w := range want {
		at := slices.IndexFunc(have, func(m replica.Member) bool { return m.ID == w.ID })
		switch {
		case at < 0:
			if g == e.meta && e.peerOf[event.ServerID(w.Server)] == nil && event.ServerID(w.Server) != e.config.Server {
				continue // it joins when it is there
			}
			w.Learner = true
			e.changeMembers(g, replica.Change{Kind: replica.AddLearner, Member: w})
			return
		case have[at].Learner && w.Learner:
			voting++ // it only hears
		case have[at].Learner:
			if g == e.meta && e.forming(have, want) {
				continue
			}
			if e.caughtUp(g, w.ID) {
				e.changeMembers(g, replica.Change{Kind: replica.Promote, Member: w})
				return
			}
		default:
			voting++
		}
	}
	if voting < len(want) && !e.hopeless(g, want, have) {
		return // the others leave once the new ones vote
	}
	for _, m := range have {
		if hasMember(want, m.ID) {
			continue
		}
		if m.ID == g.replica.ID() {
			e.handOver(g, want)
			return
		}
		e.changeMembers(g, replica.Change{Kind: replica.Remove, Member: m})
		return
	}
	if g != e.meta && !g.entry.IsSettled() && voting == len(want) && g.replica.MembersSettled() {
		e.settlePlacement(g)
	}
}

// removeUseless proposes the removal of a member that does nothing for the group any more: a learner that is not wanted, as
// its server has begun another replica or has left; or a voter that is not wanted and not there. A voter that is gone counts
// against the others: with it and with the one that takes its place one more loss would end the group.
func (e *Engine) removeUseless(g *group, have, want []replica.Member) bool {
	for _, m := range have {
		if hasMember(want, m.ID) || m.ID == g.replica.ID() {
			continue
		}
		replaced := slices.ContainsFunc(want, func(w replica.Member) bool { return w.Server == m.Server })
		if m.Learner || replaced || !e.online(event.ServerID(m.Server)) {
			e.changeMembers(g, replica.Change{Kind: replica.Remove, Member: m})
			return true
		}
	}
	return false
}

// forming reports whether a catalog that has been founded still waits for servers: until all that found it together have
// caught up its founder alone decides, so that the loss of one server does not end it.
func (e *Engine) forming(have, want []replica.Member) bool {
	if e.catalog.Formed() {
		return false
	}
	voters := 0
	for _, m := range have {
		if !m.Learner {
			voters++
		} else if !e.caughtUp(e.meta, m.ID) {
			return len(want) <= e.founders() && voters <= 1
		}
	}
	return voters <= 1 && len(want) < e.founders()
}

// formed reports whether as many servers hold the catalog as were to found it, or did once: before that nothing is decided
// by it, as one disk would be all that remembers.
func (e *Engine) formed() bool {
	return !e.clustered() || e.meta.replica != nil && e.catalog.Formed()
}

// form has it noted that the catalog is formed, once it is.
func (e *Engine) form() {
	if e.formed() || e.forms > e.now.Mono || e.refusesProposals(e.meta) != nil || e.catalog.Registrations() < uint64(e.founders()) {
		return
	}
	voters := 0
	for _, m := range e.meta.replica.Members() {
		if !m.Learner {
			voters++
		}
	}
	if voters < min(e.founders(), len(e.catalog.Servers())) {
		return
	}
	e.forms = e.now.Mono + retryNanos
	c := meta.Form()
	e.meta.replica.Propose(&c, nil)
	e.markDirty(e.meta)
}

// caughtUpEntries is how many entries a learner may lack when it becomes a voter.
const caughtUpEntries = 16

// caughtUp reports whether a learner has what the group has, so that its vote does not hold the group up.
func (e *Engine) caughtUp(g *group, id uint64) bool {
	p, ok := g.replica.Progress(id)
	return ok && p.Active && p.State == replica.Replicating && p.Match+caughtUpEntries >= g.replica.Commit()
}

// hopeless reports whether members that are not wanted leave although not all wanted ones vote: a server of the catalog
// was replaced or removed, and the ones that vote are a majority of what is wanted.
func (e *Engine) hopeless(g *group, want, have []replica.Member) bool {
	voting := 0
	for _, m := range have {
		if !m.Learner && hasMember(want, m.ID) {
			voting++
		}
	}
	return g == e.meta && voting > len(want)/2
}

// goesOnWithout reports whether the group still has a majority that is there when the member has left it. A voter whose
// session is broken for a moment may be one that the group needs, because another one is gone for good.
func (e *Engine) goesOnWithout(g *group, leaving replica.Member) bool {
	voters, there := 0, 0
	for _, m := range g.replica.Members() {
		if m.Learner || m.ID == leaving.ID {
			continue
		}
		voters++
		if p, _ := g.replica.Progress(m.ID); m.ID == g.replica.ID() || p.Active && e.online(event.ServerID(m.Server)) {
			there++
		}
	}
	return there > voters/2
}

func (e *Engine) changeMembers(g *group, c replica.Change) {
	if c.Kind == replica.Remove && !c.Member.Learner && !e.goesOnWithout(g, c.Member) {
		return // tried again at a later tick
	}
	// A change that is refused, because another is under way, is proposed again at a later tick.
	_ = g.replica.ChangeMembers(c, e)
}

// handOver gives the leadership of a group to a member that stays.
func (e *Engine) handOver(g *group, want []replica.Member) {
	if to := e.successor(g, want, 0); to != 0 {
		g.replica.Transfer(to, e)
	}
}

// successor is the voter among the members that is most up to date and whose server has a session; 0 without one. With
// preferred, it is that server or nobody.
func (e *Engine) successor(g *group, among []replica.Member, preferred event.ServerID) uint64 {
	var best, bestMatch uint64
	for _, m := range among {
		server := event.ServerID(m.Server)
		own, ok := g.replica.Member(m.ID)
		if !ok || own.Learner || m.ID == g.replica.ID() || e.peerOf[server] == nil || preferred != 0 && server != preferred {
			continue
		}
		progress, _ := g.replica.Progress(m.ID)
		if progress.Active && (best == 0 || progress.Match > bestMatch) {
			best, bestMatch = m.ID, progress.Match
		}
	}
	return best
}

// settlePlacement tells the catalog that the group has the members that it should have.
func (e *Engine) settlePlacement(g *group) {
	if g.settling == g.entry.Placement && e.now.Mono < g.settlingUntil {
		return
	}
	g.settling, g.settlingUntil = g.entry.Placement, e.now.Mono+retryNanos
	c := meta.Settled(g.entry.Group, g.entry.Placement)
	e.proposeMeta(&c)
}

// proposeMeta proposes a command to the catalog, wherever it is led. Nobody waits: who needs the change looks again.
func (e *Engine) proposeMeta(c *command.Command) {
	if e.meta.leads() {
		if e.refusesProposals(e.meta) == nil {
			e.meta.replica.Propose(c, nil)
			e.markDirty(e.meta)
		}
		return
	}
	if to := e.leaderOf(metaGroup); to != 0 && to != e.config.Server {
		e.sendFrame(to, &peerwire.Frame{Kind: peerwire.Propose, Group: uint64(metaGroup), Payload: command.Append(nil, c)})
	}
}

// proposeFor proposes a command of another server to the catalog, if that is led here.
func (e *Engine) proposeFor(f *peerwire.Frame) error {
	c, err := command.Parse(f.Payload)
	if err != nil {
		return err
	}
	if e.meta != nil && e.meta.leads() && e.refusesProposals(e.meta) == nil {
		e.meta.replica.Propose(&c, nil)
		e.markDirty(e.meta)
	}
	return nil
}
