package engine

import (
	"weir/disk/msgstore"
	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/node/replica"
)

// Applied implements replica.Sink: it carries out what one applied entry asks of this node. Effects are handled in
// their order, so that an acknowledgement never overtakes what it acknowledges.
func (e *Engine) Applied(r *replica.Replica, batch *replica.Batch, effects *effect.List) {
	g := e.groups[r.Group()]
	e.noteAppended(g, r.LastEntryBytes())
	// Entries of an earlier run may carry times that the wall clock, set back since, has not reached.
	e.wall = max(e.wall, r.Machine().LastTime())
	if e.config.Observe != nil {
		e.config.Observe(g.id, r.Machine().Applied(), r.Machine().Digest)
	}
	if g.id == metaGroup {
		e.catalogApplied(effects)
		e.resolve(g, batch, effects)
		e.noteDigest(g)
		if r.Serving() {
			e.served(g)
		}
		return
	}
	stored, changed := false, false
	for i := range effects.Effects {
		f := &effects.Effects[i]
		switch f.Kind {
		case effect.Store:
			stored = true
			g.index.Append(msgstore.Msg{Seq: f.Seq, Time: f.Time, Subject: f.Subject, Header: f.Header, Payload: f.Payload})
			e.touch(g)
		case effect.Forget:
			changed = true
			if f.Flag {
				e.erase(g, f.Seq, f.N)
			}
			g.index.ForgetRange(f.Seq, f.N)
			e.touch(g)
		case effect.Result:
			if batch != nil {
				e.answer(g, batch, f)
			}
		case effect.StreamUpdated:
			changed = true
			e.capture(g)
			e.leadMirror(g)
		default:
			e.deliverable(g, batch != nil && !batch.Late(), f)
		}
	}
	if stored && len(g.questions) > 0 {
		e.copiesCameUp(g)
	}
	if changed {
		e.mirrorChanged(g)
	}
	e.noteDigest(g)
	if batch != nil {
		g.ticking = false // a Tick that was proposed was in this batch at the latest
	}
	if g.leads() {
		e.served(g)
		e.armGroup(g)
	}
}

// touch notes that the group's index may have something to write.
func (e *Engine) touch(g *group) {
	if !g.touched {
		g.touched = true
		e.touched = append(e.touched, g)
	}
}

// resolve answers the callers of an entry of the catalog.
func (e *Engine) resolve(g *group, batch *replica.Batch, effects *effect.List) {
	if batch == nil {
		return
	}
	for i := range effects.Effects {
		if f := &effects.Effects[i]; f.Kind == effect.Result {
			e.answer(g, batch, f)
		}
	}
}

// answer tells the origin of a command what became of it.
func (e *Engine) answer(g *group, batch *replica.Batch, result *effect.Effect) {
	origin := batch.Origin(result.Cmd)
	if origin.Done != nil {
		origin.Done(result)
		return
	}
	reply := batch.Reply(result.Cmd)
	if len(reply) == 0 || g.stream == nil || g.stream.Config().NoAck {
		return
	}
	if result.Err != nil {
		e.pubAckError(g, reply, result.Err)
		return
	}
	e.scratch = jsapi.AppendPubAck(e.scratch[:0], jsapi.PubAck{
		Stream: g.entry.Name, Domain: e.config.JetStream.Domain, Seq: result.Seq, Duplicate: result.Flag,
	})
	g.account.send(reply, nil, e.scratch)
}

// Undone implements replica.Sink: whoever publishes learns that nobody took the message, and may send it again.
func (e *Engine) Undone(r *replica.Replica, batch *replica.Batch) {
	g := e.groups[r.Group()]
	if g == nil || g.account == nil {
		return
	}
	for i := range batch.Len() {
		e.nobody(g.account, string(batch.Reply(int32(i))))
	}
}

// bereave answers those who wait for the results of commands to a stream that has ended meanwhile. Publishes learn that no
// stream takes them, once no server can serve the stream any more: until then another one might bring them about, and show
// them to somebody.
func (e *Engine) bereave(g *group, waiting []*replica.Batch) {
	var replies []string
	for _, b := range waiting {
		for i := range b.Len() {
			if reply := b.Reply(int32(i)); len(reply) > 0 {
				replies = append(replies, string(reply))
			}
		}
	}
	if len(replies) == 0 {
		return
	}
	e.api.Ended(g.entry, e.catalog.Applied(), func(missing []uint64) {
		if len(missing) > 0 {
			return
		}
		for _, reply := range replies {
			e.nobody(g.account, reply)
		}
	})
}

// endMemoryConsumers ends the consumers that were asked to be kept in memory, when the process that had them in memory is
// gone and no other replica had: clients look out for that, and make them anew.
func (e *Engine) endMemoryConsumers(g *group) {
	for _, c := range g.stream.Consumers() {
		if c.Config().MemoryStorage {
			g.replica.Propose(&command.Command{Kind: command.DeleteConsumer, Name: []byte(c.Name()), Consumer: c.ID()}, nil)
			e.markDirty(g)
		}
	}
}

// served runs what waited for this server to serve the group as its leader.
func (e *Engine) served(g *group) {
	if g.started {
		return
	}
	g.started, g.ledSince = true, e.now.Mono
	e.leadHome(g, 1)
	e.noteLeader(g, e.config.Server, g.replica.Term())
	e.announce(g)
	if len(g.replica.Members()) > 1 {
		e.api.LeaderElected(uint64(g.id))
	}
	if g.id == metaGroup {
		return
	}
	e.followCatalog(g)
	if !e.clustered() {
		e.endMemoryConsumers(g)
	}
	e.desk.StreamLed(e.now.Mono, uint64(g.id))
	e.leadMirror(g)
}

// lostLead tells who waits at this server that it leads the group no more.
func (e *Engine) lostLead(g *group) {
	if !g.started {
		return
	}
	if g.replica != nil && g.replica.Leader() == 0 && !e.hasQuorum(g) {
		e.api.QuorumLost(uint64(g.id))
	}
	e.leadHome(g, -1)
	g.started, g.ticking, g.following = false, false, 0
	if g.leader == e.config.Server {
		g.leader = 0
	}
	if g.id != metaGroup {
		e.leaveMirror(g)
		e.endQuestions(g)
		if !e.config.Plant.DeskKeepsLead {
			e.desk.StreamLost(e.now.Mono, uint64(g.id))
		}
	}
}
