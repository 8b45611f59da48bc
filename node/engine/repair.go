package engine

import (
	"errors"
	"fmt"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"weir/disk/wal"
	"weir/node/event"
	"weir/node/replica"
	"weir/spec/assert"
)

// A replica whose message blocks, or whose checkpoint, are found damaged while it runs still has its log and its vote, and
// its state in memory: it goes on as a member of its group. It only does not lead, and fetches what is damaged from the
// leader: a snapshot of which it takes the parts that are not whole here, put in the place of what it has. A stream that
// has no other replica goes on too, with what can be read, and says so.

// foundIfDamage acts on the failure of a disk operation of a group if it tells of damage.
func (e *Engine) foundIfDamage(g *group, err error) {
	if (errors.Is(err, wal.ErrCorrupt) || errors.Is(err, event.ErrHalfInstalled)) && e.groups[g.id] == g && g.replica != nil {
		e.foundDamage(g, err)
	}
}

// foundDamage acts on bytes at rest that are not what was written.
func (e *Engine) foundDamage(g *group, err error) {
	if g.readFailed == nil || g.ailing == nil {
		e.logf(event.Error, fmt.Sprintf("Data of %s is damaged on the disk: %v", e.describe(g), err))
	}
	g.readFailed = err
	if e.clustered() && e.hasOthers(g) {
		e.ail(g, err)
	}
}

// ail has what this server has of a group fetched from the leader.
func (e *Engine) ail(g *group, why error) {
	g.readFailed = why
	if g.ailing == nil {
		g.ailing = why
		e.ailing = append(e.ailing, g)
		e.repairs()
	}
}

// hasOthers reports whether other servers have what this one has of the group.
func (e *Engine) hasOthers(g *group) bool {
	if g == e.meta {
		members := g.replica.Members()
		return len(members) > 1 || !hasMember(members, g.replica.ID()) // one that still learns who they are
	}
	return g.entry != nil && len(g.entry.Replicas) > 1
}

// repairs goes on with the replicas that have damaged data.
func (e *Engine) repairs() {
	n := 0
	for _, g := range e.ailing {
		if e.groups[g.id] != g || g.replica == nil || g.ailing == nil {
			g.ailing = nil
			continue
		}
		e.ailing[n] = g
		n++
		e.repair(g)
	}
	clear(e.ailing[n:])
	e.ailing = e.ailing[:n]
}

// repair hands over what the replica leads, or begins to fetch what it lacks from who leads.
func (e *Engine) repair(g *group) {
	if g.leads() {
		e.handOver(g, g.replica.Members())
		return
	}
	if g.dispute == disputed {
		if !e.isSpared(g) {
			e.disputes() // who was asked may not have come as far, or is gone
		}
		return
	}
	leader, ok := g.replica.Member(g.replica.Leader())
	if !ok || leader.ID == g.replica.ID() || e.isSpared(g) || e.peerOf[event.ServerID(leader.Server)] == nil || len(e.receivings) >= ReceivingsMax ||
		slices.ContainsFunc(e.receivings, func(r *receiving) bool { return r.group == g }) {
		return
	}
	r := &receiving{group: g, replica: g.replica, from: event.ServerID(leader.Server), repair: true}
	e.receivings = append(e.receivings, r)
	e.askManifest(r)
}

// mayInstall reports whether the snapshot that is there takes the place of what the replica has.
func (e *Engine) mayInstall(r *receiving) bool {
	if !r.repair {
		return r.group.replica.Takes(r.manifest.Index)
	}
	replica := r.group.replica
	leader, ok := replica.Member(replica.Leader())
	if !ok || replica.IsLeader() || replica.Broken() != nil || r.manifest.Index < replica.Commit() {
		return false // entries that are committed and on their way to the disk would be applied before it is there
	}
	r.offer = &pb.Message{
		Type: pb.MsgSnap.Enum(), To: new(replica.ID()), From: new(leader.ID), Term: new(replica.Term()),
	}
	return true
}

// mayHold reports whether a snapshot that is to mend the replica, and older than what that has, is worth another attempt
// for which the replica stands still: under load it is never new enough otherwise.
func (e *Engine) mayHold(r *receiving) bool {
	return r.repair && !r.held && !r.group.replica.IsLeader() && r.group.replica.Broken() == nil
}

// standsStill reports whether messages are kept from the replica of the group, as a snapshot is about to take the place of its
// state.
func (e *Engine) standsStill(g *group) bool {
	return g.installing || slices.ContainsFunc(e.receivings, func(r *receiving) bool { return r.group == g && r.held })
}

// adopt has the replica go on from the state that was installed. It reports false when that contradicts its own: a stream's
// replica is stopped then, the catalog keeps its own until others have said that it is wrong.
func (e *Engine) adopt(g *group, r *receiving, done *replica.Installation) bool {
	old := g.replica.Machine()
	switch {
	case !r.repair || done.Mark.Index != old.Applied():
		taken := g.replica.Install(done, e)
		assert.True(taken || g.replica.Broken() != nil, "a snapshot that was installed is newer than the state",
			done.Mark.Index, old.Applied())
	case done.Machine.Digest() == old.Digest() || g.dispute == outvoted:
		g.replica.Swap(done)
		e.appendOnly(wal.Write{Group: g.id, Compact: done.Mark.Index})
	case g == e.meta:
		e.disputes()
		return false
	default:
		e.fence(g, fmt.Errorf("its state at entry %d differs from the leader's", done.Mark.Index))
		return false
	}
	if g == e.meta {
		g.dispute, e.digests = noDispute, digestRing{} // those of the state before
	}
	if r.repair || g == e.meta && g.ailing != nil { // the catalog has no blocks that may be damaged still
		g.ailing, g.readFailed = nil, nil
		e.logf(event.Info, fmt.Sprintf("Data of %s is whole again", e.describe(g)))
	}
	return true
}

// installFailed handles an installation that did not come to its end. One that failed behind the switch leaves neither the
// old state nor the new one to be used on the disk, and the blocks of a stream belong to neither: its replica stops, and
// another one begins anew. The catalog is all in memory, and its log has what it promised: it goes on until what is on the
// disk is whole.
func (e *Engine) installFailed(r *receiving, err error) {
	r.installing, r.group.installing = false, false
	switch {
	case !errors.Is(err, event.ErrHalfInstalled):
		e.failReceiving(r, err)
	case r.group == e.meta:
		e.foundDamage(r.group, err)
		e.failReceiving(r, err)
	default:
		e.receivings = slices.DeleteFunc(e.receivings, func(o *receiving) bool { return o == r })
		e.fence(r.group, err)
	}
}
