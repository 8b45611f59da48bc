package engine

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"weir/disk/wal"
	"weir/node/event"
	"weir/node/replica"
	"weir/transport/peerwire"
)

// Send implements replica.Sink: a message of Raft goes to the server of the member. Heartbeats of the step travel together.
func (e *Engine) Send(r *replica.Replica, to replica.Member, m *pb.Message) {
	server := event.ServerID(to.Server)
	if b, ok := replica.BeatOf(r, m); ok {
		e.addBeat(server, &b)
		return
	}
	if e.peerOf[server] == nil {
		r.Unreachable(to.ID)
		if m.GetType() == pb.MsgSnap {
			r.SnapshotDone(to.ID, false)
		}
		return
	}
	if m.GetType() == pb.MsgSnap {
		e.snapshotSent(r, to)
	}
	if !e.holdCommit(r, to, m) {
		e.sendMessage(r, to, m)
	}
}

// sendMessage sends a message of Raft to the server of a member.
func (e *Engine) sendMessage(r *replica.Replica, to replica.Member, m *pb.Message) {
	e.body = replica.AppendMessage(e.body[:0], m)
	e.sendFrame(event.ServerID(to.Server), &peerwire.Frame{Kind: peerwire.Raft, Group: uint64(r.Group()), Payload: e.body})
}

// Role implements replica.Sink.
func (e *Engine) Role(r *replica.Replica) {
	g := e.groups[r.Group()]
	if g == nil || g.replica != r {
		return
	}
	if !r.IsLeader() {
		e.lostLead(g)
	}
	if m, ok := r.Member(r.Leader()); ok && event.ServerID(m.Server) != e.config.Server {
		e.noteLeader(g, event.ServerID(m.Server), r.Term())
	}
	if e.config.Roles != nil {
		e.config.Roles(r)
	}
}

// Members implements replica.Sink.
func (e *Engine) Members(r *replica.Replica) {
	if g := e.groups[r.Group()]; g != nil && g.replica == r {
		e.awaken(g)
		if r.Dirty() {
			e.markDirty(g)
		}
	}
}

// Woke implements replica.Sink.
func (e *Engine) Woke(r *replica.Replica) {
	if g := e.groups[r.Group()]; g != nil && g.replica == r {
		e.awaken(g)
	}
}

// raftMessage takes a message of Raft from another server.
func (e *Engine) raftMessage(p *peer, f *peerwire.Frame) error {
	g := e.groups[wal.GroupID(f.Group)]
	if g == nil || g.replica == nil || e.standsStill(g) {
		return nil // a group that this server does not have, or not yet
	}
	m, err := replica.ParseMessage(f.Payload)
	if err != nil {
		return err
	}
	if m.GetTo() != g.replica.ID() || !e.takesEntries(m) {
		return nil // for a replica that this server had before, or as if it had been lost
	}
	if g.replica.Receive(uint64(p.id), m, e) {
		e.snapshotOffered(g, p.id, m)
	}
	if g.replica.Dirty() {
		e.markDirty(g)
	}
	if !g.replica.Quiesced() {
		e.awaken(g)
	}
	return nil
}
