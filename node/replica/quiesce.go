package replica

import (
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// A group at rest is quiesced: no replica of it ticks, and no heartbeats are sent. The leader says so in its last
// heartbeat. From then on somebody else has to notice that its server is gone: the owner, who wakes the groups that are
// led there. Whatever a group has to do wakes it as well, and the owner learns of that, as it has to tick it again: what a
// leader sends when it wakes may be lost, and so may the answers.

// wakeContext marks a heartbeat response that wakes the leader. For Raft it acknowledges no read.
var wakeContext = make([]byte, 8)

// Quiesced reports whether the replica rests.
func (r *Replica) Quiesced() bool { return r.quiesced }

// CanQuiesce reports whether the replica leads a group in which nothing is under way and everybody has everything.
func (r *Replica) CanQuiesce() bool {
	if !r.Serving() || r.sole || r.quiesced || !r.Idle() || r.changing != 0 ||
		r.commit != r.last || r.raftApplied != r.last || r.node.BasicStatus().LeadTransferee != raft.None {
		return false
	}
	ready := true
	r.node.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		if id != r.config.ID && (p.Match != r.last || p.State != tracker.StateReplicate || !p.RecentActive) {
			ready = false
		}
	})
	return ready
}

// Quiesce lets the group rest. The heartbeats that it sends say so: a leader that is quiesced sends no others.
func (r *Replica) Quiesce(sink Sink) {
	if r.CanQuiesce() {
		r.quiesced = true
		r.tick()
		r.Advance(sink)
	}
}

// Wake ends the rest. A leader sends heartbeats at once; a follower wakes its leader, to hear whether it is there.
func (r *Replica) Wake(sink Sink) {
	if !r.quiesced {
		return
	}
	r.quiesced = false
	sink.Woke(r)
	if r.leader {
		r.tick()
		r.Advance(sink)
		return
	}
	r.wakeLeader(sink)
}

func (r *Replica) wakeLeader(sink Sink) {
	if r.leaderID != 0 && r.broken == nil {
		r.wake(r.leaderID, sink)
	}
}

func (r *Replica) wake(id uint64, sink Sink) {
	term := max(r.term, 1) // a new replica knows of none, and there is no leader of a lower one
	r.send(&pb.Message{Type: pb.MsgHeartbeatResp.Enum(), To: new(id), From: new(r.config.ID), Term: new(term), Context: wakeContext}, sink)
}

// AskLeader lets a replica that has heard of no leader ask for a heartbeat where its owner knows the leader to be. A leader
// that rests would not say anything of itself, and one that may not vote would not ask.
func (r *Replica) AskLeader(server uint64, sink Sink) {
	if r.leaderID != 0 || r.broken != nil {
		return
	}
	for i := range r.members {
		if m := &r.members[i]; m.Server == server && m.ID != r.config.ID {
			r.wake(m.ID, sink)
			return
		}
	}
}

// wakes reports whether a message ends the rest. What was under way when it began does not: heartbeats that say nothing
// new, and the answers to them.
func (r *Replica) wakes(m *pb.Message) bool {
	if !r.quiesced {
		return false
	}
	switch m.GetType() {
	case pb.MsgHeartbeat:
		return m.GetTerm() > r.term || m.GetTerm() == r.term && (len(m.GetContext()) > 0 || m.GetCommit() > r.commit)
	case pb.MsgHeartbeatResp:
		return m.GetTerm() > r.term || len(m.GetContext()) > 0
	case pb.MsgAppResp:
		return m.GetTerm() > r.term || m.GetReject()
	default:
		return true
	}
}

// ReceiveBeat takes a heartbeat, or the answer to one, that the server sent. When it ends the leader's activity, the
// follower rests too, if its log is what the leader thinks that it is; else it tells the leader.
func (r *Replica) ReceiveBeat(server uint64, b *Beat, sink Sink) {
	m := b.message()
	if r.broken != nil || m.GetTo() != r.config.ID || m.GetFrom() == r.config.ID {
		return
	}
	if !b.Response && r.forgot(m, max(b.Acked, b.Commit)) {
		return
	}
	r.step(server, m, sink)
	if r.broken != nil {
		return
	}
	if !b.Quiesce || b.Response || r.leader || r.leaderID != b.From || b.Term != r.term {
		return
	}
	if b.Commit == r.last && r.raftApplied == r.last && r.Idle() {
		r.quiesced = true
		return
	}
	r.wakeLeader(sink)
}
