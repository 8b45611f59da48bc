package engine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"weir/disk/checkpoint"
	"weir/disk/wal"
	"weir/model/command"
	"weir/model/effect"
	"weir/model/meta"
	"weir/model/stream"
	"weir/node/event"
	"weir/node/replica"
	"weir/spec/assert"
)

// openMeta starts the catalog from what was recovered, or founds that of a server alone. A server of a cluster without
// catalog waits until it is founded or joined.
func (e *Engine) openMeta() error {
	found := e.recoveredOf(metaGroup)
	delete(e.recovered, metaGroup)
	e.meta, e.catalog = &group{id: metaGroup}, e.newCatalog()
	e.groups[metaGroup] = e.meta
	e.metaReplica = e.random.Uint64()>>1 | 1
	switch {
	case found != nil && found.Damage != nil && !e.clustered():
		return fmt.Errorf("the catalog of streams is damaged, restore the data directory from a copy: %w", found.Damage)
	case found != nil && found.Damage != nil:
		// Its replica may have promised what it no longer knows: another one takes its place.
		e.logf(event.Error, "The catalog of streams is damaged here, it is fetched from the other servers: "+found.Damage.Error())
		e.metaDamaged = true
		return nil
	case found == nil && e.clustered() && (e.config.Cluster.Expected > 1 || len(e.recovered) > 0):
		return nil
	case found == nil && len(e.recovered) > 0:
		return errors.New("the log holds streams and no catalog of them, restore the data directory from a copy")
	case found == nil:
		birth := metaBirth{Founder: e.config.Server, Replica: e.metaReplica}
		birth.Members = []replica.Member{{ID: birth.Replica, Server: uint64(e.config.Server)}}
		return e.startMeta(&birth, nil)
	}
	var birth metaBirth
	if err := json.Unmarshal(found.Log.Meta, &birth); err != nil {
		return fmt.Errorf("description of the catalog in the log: %w", err)
	}
	return e.startMeta(&birth, found)
}

// startMeta starts this server's replica of the catalog.
func (e *Engine) startMeta(birth *metaBirth, found *event.Group) error {
	initial, err := json.Marshal(birth)
	if err != nil {
		return err
	}
	if e.metaMembers, err = json.Marshal(birth.Members); err != nil {
		return err
	}
	if e.metaDamaged {
		e.endLog(metaGroup)
		e.metaDamaged = false
	}
	e.founder, e.metaReplica, e.metaServers = birth.Founder, birth.Replica, birth.Servers
	start := starting{machine: e.catalog, found: found, initial: initial, id: birth.Replica, members: birth.Members}
	if err := e.startGroup(e.meta, &start); err != nil {
		return fmt.Errorf("the catalog of streams can not be loaded: %w", err)
	}
	return nil
}

// starting is what a replica starts from.
type starting struct {
	machine replica.Machine
	found   *event.Group
	initial []byte
	id      uint64
	members []replica.Member
	// mark is how far the machine has come already, and term the newest term that is known, of a replica that takes the
	// place of another while the server runs.
	mark checkpoint.Mark
	term uint64
}

// startGroup restores the machine from the group's checkpoint and starts its replica on the group's log.
func (e *Engine) startGroup(g *group, s *starting) error {
	slices.SortFunc(s.members, func(a, b replica.Member) int { return cmp.Compare(a.ID, b.ID) })
	config := replica.Config{
		Group: g.id, ID: s.id, Members: s.members, Machine: s.machine, Meta: s.initial, Boot: e.config.Boot, Load: &e.load,
		Volatile:      g.entry != nil && e.volatile(g.entry),
		ElectionTicks: e.electionTicks(), LogTailBytes: e.config.Cluster.LogTailBytes, Plant: e.config.Plant.Replica,
		LeaseNanos: e.leaseNanos(), Leases: e.leasesAgreed, Asked: e.config.Reads,
		Wanted: func(*replica.Replica) { e.wantSave(g) },
	}
	if pin := e.config.Pin; pin != nil {
		config.Pin = func(term uint64, role replica.Role) int { return pin(g.id, term, uint8(role)) }
	}
	if s.mark.Index > 0 {
		config.Log, config.Snapshot = s.goesOn()
	}
	if s.found != nil {
		config.Log = s.found.Log
		config.Meta = nil
		mark, members, err := restore(s.machine, &s.found.Checkpoint)
		if err != nil {
			return err
		}
		if members != nil {
			config.Members = members
		}
		config.Snapshot = mark
		if err := g.complete(); err != nil && !e.config.Plant.DamageIsEnd {
			return err
		}
	}
	r, err := replica.New(config)
	if err != nil {
		return err
	}
	g.replica = r
	e.wall = max(e.wall, s.machine.LastTime())
	e.groups[g.id] = g
	e.order = append(e.order, g)
	if l, ok := e.early[g.id]; ok {
		delete(e.early, g.id)
		e.noteLeader(g, l.server, l.term)
	}
	if g.id == metaGroup && s.mark.Index == 0 {
		e.openStreams()
	}
	r.Start(e)
	e.awaken(g)
	return nil
}

// complete compares the machine that a checkpoint restored with the index of messages from the same checkpoint.
func (g *group) complete() error {
	if g.index == nil {
		return nil
	}
	if counted, found := g.stream.State().Msgs, g.index.Live(); counted != found {
		return fmt.Errorf("the checkpoint counts %d messages, its blocks hold %d: %w", counted, found, checkpoint.ErrCorrupt)
	}
	return nil
}

// restore loads the sections of a checkpoint into a fresh machine. It returns the members of the group if the checkpoint
// knows of other ones than the first.
func restore(machine replica.Machine, state *checkpoint.State) (checkpoint.Mark, []replica.Member, error) {
	if state.Index == 0 {
		return checkpoint.Mark{}, nil, nil
	}
	var members []replica.Member
	for i := range state.Sections {
		section := &state.Sections[i]
		if section.ID >= event.IndexSections {
			continue
		}
		var err error
		if section.ID == event.MembersSection {
			members, err = replica.ParseMembers(section.Data)
		} else {
			err = machine.RestoreSection(section.ID, section.Data)
		}
		if err != nil {
			return checkpoint.Mark{}, nil, fmt.Errorf("section %d of the checkpoint at index %d: %w", section.ID, state.Index, err)
		}
	}
	if err := machine.Restored(); err != nil {
		return checkpoint.Mark{}, nil, fmt.Errorf("checkpoint at index %d: %w", state.Index, err)
	}
	machine.MarkClean()
	return checkpoint.Mark{Index: state.Index, Term: state.Term}, members, nil
}

// openStreams opens the streams that the catalog knows from its checkpoint; the others come as its log is applied.
func (e *Engine) openStreams() {
	for _, entry := range e.catalog.All() {
		e.openStream(entry)
	}
}

// becomeCurrent ends, once the catalog is known to be as new as that of its leader, the groups that this server has and
// should not have: streams that were deleted, or moved away, while it was down.
func (e *Engine) becomeCurrent() {
	if e.opened || e.asking || e.meta == nil || e.meta.replica == nil {
		return
	}
	e.asking = true
	if e.config.Plant.DropByOldCatalog {
		e.endUnknown()
	}
	e.meta.replica.Read(func(ok bool) {
		e.asking = false
		if !ok || e.opened || e.replacing {
			return
		}
		e.endUnknown()
		e.opened = true
		for _, g := range slices.Clone(e.order) {
			if g.id != metaGroup && g.leads() {
				e.served(g)
				e.armGroup(g)
			}
		}
	})
	if e.meta.replica.Dirty() {
		e.markDirty(e.meta)
	}
}

// endUnknown ends what was found on the disk and the catalog does not name.
func (e *Engine) endUnknown() {
	for _, id := range slices.Sorted(maps.Keys(e.recovered)) {
		e.endLog(id)
	}
	e.recovered = nil
}

// openStream makes a stream of the catalog known here, and starts its replica if this server is to have one.
func (e *Engine) openStream(entry *meta.Stream) {
	g := &group{id: wal.GroupID(entry.Group), entry: entry, account: e.accountNamed[entry.Account]}
	if e.clustered() && !e.config.Plant.ServeByOldCatalog {
		g.opened = &e.opened
	}
	e.groups[g.id] = g
	e.byName[streamKey{entry.Account, entry.Name}] = g
	if l, ok := e.early[g.id]; ok { // also of one whose replica here does not start
		delete(e.early, g.id)
		e.noteLeader(g, l.server, l.term)
	}
	if _, ok := entry.On(uint64(e.config.Server)); ok || len(entry.Replicas) == 0 {
		e.startHere(g)
		return
	}
	if g.account != nil {
		e.capture(g)
	}
}

// recoveredOf returns what storage found of a group, nil for one that is new here.
func (e *Engine) recoveredOf(id wal.GroupID) *event.Group {
	found := e.recovered[id]
	if found == nil && e.config.Hidden != nil && !e.opened {
		return &event.Group{ID: id, NextBlock: 1, Damage: e.config.Hidden}
	}
	return found
}

// startHere starts this server's replica of a stream from what was recovered.
func (e *Engine) startHere(g *group) {
	found := e.recoveredOf(g.id)
	if e.ahead(g.entry, found) {
		// The catalog is still an old one here, and says so again once it has learned of the replica whose log this is. To
		// begin with the one that it knows would end that log, and with it what the replica has promised.
		if g.account != nil {
			e.capture(g)
		}
		return
	}
	delete(e.recovered, g.id)
	if e.volatile(g.entry) {
		found = nil
	}
	if err := e.startStream(g, found); err != nil {
		if e.clustered() && g.account != nil && g.account.limits != nil {
			e.fence(g, err)
			return
		}
		g.damaged = err
		e.logf(event.Error, fmt.Sprintf("Stream '%s > %s' is not available, its data is left as it is: %v",
			g.entry.Account, g.entry.Name, err))
	}
}

// ahead reports whether a log is that of a later replica than the one which the catalog's entry has here. The ids of replicas
// ascend.
func (e *Engine) ahead(entry *meta.Stream, found *event.Group) bool {
	mine, here := entry.On(uint64(e.config.Server))
	if !here || found == nil || len(found.Log.Meta) == 0 {
		return false
	}
	var b birth
	return json.Unmarshal(found.Log.Meta, &b) == nil && b.Created == entry.Created && b.Replica > mine.ID
}

func (e *Engine) startStream(g *group, found *event.Group) error {
	switch {
	case g.account == nil || g.account.limits == nil:
		return errors.New("its account has no JetStream in the configuration")
	case found != nil && found.Damage != nil:
		return found.Damage
	}
	first, err := e.birthOf(g.entry, found)
	if err != nil {
		return err
	}
	if found != nil && first.stale {
		// What is left of a replica that the group has given up.
		e.endLog(g.id)
		found = nil
	}
	g.stream = stream.New(e.streamOptions(g.entry, first.config, first.version))
	g.index = e.newIndex(g.entry)
	if found != nil {
		g.index.Restore(found.NextBlock, found.Blocks)
	}
	start := starting{machine: g.stream, found: found, initial: first.data, id: first.replica, members: first.members}
	if err := e.startGroup(g, &start); err != nil {
		return err
	}
	e.capture(g)
	return nil
}

// groupChanged follows a change of a stream in the catalog. Later commands of the same entry have been applied too: a stream
// may be gone before it is begun.
func (e *Engine) groupChanged(f *effect.Effect) {
	g, entry := e.groups[wal.GroupID(f.Group)], e.catalog.ByGroup(f.Group)
	switch {
	case f.Kind == effect.GroupDeleted:
		if g != nil {
			e.endStream(g)
		}
	case entry == nil:
	case f.Kind == effect.GroupCreated:
		e.openStream(entry)
		e.born(e.groups[wal.GroupID(f.Group)])
		e.mirrorsOf(entry)
	case f.Kind == effect.GroupUpdated:
		g.entry = entry
		e.followCatalog(g)
		if g.replica == nil && g.account != nil && g.damaged == nil {
			e.capture(g)
		}
	default:
		e.placed(g, entry)
	}
}

// catalogApplied carries out what an entry of the catalog asks of the groups.
func (e *Engine) catalogApplied(effects *effect.List) {
	for i := range effects.Effects {
		f := &effects.Effects[i]
		switch f.Kind {
		case effect.GroupCreated, effect.GroupUpdated, effect.GroupPlaced, effect.GroupSettled, effect.GroupDeleted:
			e.groupChanged(f)
		case effect.ServerRegistered:
			e.awaken(e.meta)
		case effect.ServerRemoved:
			e.awaken(e.meta)
			if event.ServerID(f.N) == e.config.Server {
				e.noteRemoved()
			}
			if s := e.catalog.Server(f.N); s != nil && e.meta.leads() {
				e.api.ServerRemoved(s.Name, event.ServerID(s.ID).Short())
			}
		}
	}
	e.becomeCurrent()
}

// born has a new group led by the server that the catalog prefers.
func (e *Engine) born(g *group) {
	if !e.clustered() || g.replica == nil || len(g.entry.Replicas) < 2 || event.ServerID(g.entry.Replicas[0].Server) != e.config.Server {
		return
	}
	g.born = max(e.ticks, 1)
	e.campaign(g)
}

// placed follows a change of where a stream's replicas are: this server begins one, goes on, or gives up what the group has
// already removed.
func (e *Engine) placed(g *group, entry *meta.Stream) {
	g.entry = entry
	mine, here := entry.On(uint64(e.config.Server))
	switch {
	case g.replica != nil && (!here || g.replica.ID() != mine.ID):
		e.giveUp(g)
		g.damaged = nil
		if here {
			e.startHere(g)
		} else if g.account != nil {
			e.capture(g)
		}
	case g.replica == nil && here:
		if g.damaged != nil && !e.opened {
			// The catalog may still be an old one here, and a damaged log does not say whose it is: maybe that of this one.
			g.damagedID = mine.ID
		}
		if g.damaged != nil && mine.ID == g.damagedID {
			return // it waits for another replica
		}
		if g.damaged != nil {
			e.endLog(g.id)
			g.damaged = nil
		}
		e.startHere(g)
	default:
		e.awaken(g)
	}
}

// giveUp ends this server's replica of a stream that others hold on to, and removes its files.
func (e *Engine) giveUp(g *group) {
	e.release(g)
	e.lostLead(g)
	for _, r := range slices.Clone(e.receivings) {
		if r.group == g {
			e.endReceiving(r)
		}
	}
	e.endReplica(g)
	g.replica, g.stream, g.index = nil, nil, nil
	g.saving, g.moved, g.firstUnsaved, g.rewriting = false, false, 0, false
	e.endLog(g.id)
}

// followCatalog proposes the catalog's configuration to a stream that has an older one.
func (e *Engine) followCatalog(g *group) {
	if g.damaged != nil || !g.leads() || g.stream.ConfigVersion() >= g.entry.Version || g.following >= g.entry.Version {
		return
	}
	g.following = g.entry.Version
	g.replica.Propose(&command.Command{Kind: command.PutStream, Config: g.entry.JSON, Version: g.entry.Version}, nil)
	e.markDirty(g)
}

// endStream ends a stream whose deletion is committed.
func (e *Engine) endStream(g *group) {
	if g.leads() {
		e.api.StreamEnded(g.entry, g.stream)
	}
	e.forgetLeadership(g.id)
	key := streamKey{g.entry.Account, g.entry.Name}
	if e.byName[key] == g {
		delete(e.byName, key)
	}
	e.release(g)
	if g.started {
		e.leadHome(g, -1)
		g.started = false
	}
	e.leaveMirror(g)
	e.endQuestions(g)
	if g.replica != nil {
		e.desk.StreamDeleted(e.now.Mono, uint64(g.id)) // while the group can still be sent for
	}
	delete(e.groups, g.id)
	if g.replica == nil && g.damaged == nil {
		return
	}
	waiting := e.endReplica(g)
	e.endLog(g.id)
	e.bereave(g, waiting)
}

// endReplica takes the replica of a group out of everything that drives it. It returns what was under way.
func (e *Engine) endReplica(g *group) []*replica.Batch {
	if g.replica == nil {
		return nil
	}
	waiting := g.replica.Retire()
	delete(e.spared, g.id)
	e.cached -= g.cached
	e.unwritten -= g.unwritten
	g.cached, g.unwritten = 0, 0
	e.order = slices.DeleteFunc(e.order, func(other *group) bool { return other == g })
	return waiting
}

// endLog ends a group in the log and removes its files.
func (e *Engine) endLog(id wal.GroupID) {
	assert.True(id != metaGroup || e.metaDamaged, "the catalog never ends, unless others have it")
	if id != metaGroup && e.meta.replica != nil && !e.config.Plant.EndForgotten {
		// What the catalog says is known after a restart too, or the group would begin anew there, empty and forgetful of
		// its votes, until the catalog has caught up.
		e.appendOnly(e.meta.replica.Commitment())
	}
	e.appendOnly(wal.Write{Group: id, Drop: true})
	e.ending[id] = e.writesTicket
	e.drops = append(e.drops, event.Op{Kind: event.Drop, Ticket: e.ticket(), Group: id})
}
