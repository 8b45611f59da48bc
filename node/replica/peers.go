package replica

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// strangersMax bounds the senders that are remembered although they are no members: a candidate or leader that joined
// with an entry that this replica has not got yet.
const strangersMax = 16

// Progress is what a leader knows about a member.
type Progress struct {
	// Match is the index up to which the member's log is known to be the leader's, Next that of the next entry to send.
	Match, Next uint64
	// Active says that the member has answered within an election timeout.
	Active bool
	// State is how the member is brought up to date.
	State ProgressState
}

// ProgressState is how a leader brings a member up to date.
type ProgressState uint8

// The closed set of states.
const (
	// Probing looks for the index at which the logs meet.
	Probing ProgressState = iota
	// Replicating sends entries as they come.
	Replicating
	// Installing waits for the member to install a snapshot.
	Installing
)

// Progress is what the leader knows about a member; false when this replica does not lead or there is no such member.
func (r *Replica) Progress(id uint64) (Progress, bool) {
	var found Progress
	ok := false
	if r.IsLeader() {
		r.node.WithProgress(func(other uint64, _ raft.ProgressType, p tracker.Progress) {
			if other == id {
				found, ok = progressOf(&p), true
			}
		})
	}
	return found, ok
}

func progressOf(p *tracker.Progress) Progress {
	state := Probing
	switch p.State {
	case tracker.StateReplicate:
		state = Replicating
	case tracker.StateSnapshot:
		state = Installing
	}
	return Progress{Match: p.Match, Next: p.Next, Active: p.RecentActive, State: state}
}

// Tick tells the replica that a heartbeat interval has passed. It does nothing in a group of one member, nor while the
// replica is quiesced.
func (r *Replica) Tick(sink Sink) {
	if r.broken != nil || r.quiesced || r.sole {
		return
	}
	r.tick()
	r.tickReads(sink)
	r.tickLate()
	r.Advance(sink)
	r.holdTicks = max(r.holdTicks-1, 0)
	if r.leader {
		r.tickSnapshots()
		r.trim()
	}
}

func (r *Replica) tick() {
	if r.lease.started <= r.config.ElectionTicks {
		r.lease.started++
	}
	if r.pin != nil {
		role := Follower
		switch {
		case r.leader:
			role = Leader
		case r.leaderID == 0:
			role = Candidate
		}
		*r.pin = r.config.Pin(r.term, role)
	}
	r.node.Tick()
}

// Receive takes a message that the server sent for this replica; the replica keeps it. It returns true for a message
// about a snapshot that has to be fetched first: nothing has happened yet, and the message is to be given to Install.
func (r *Replica) Receive(server uint64, m *pb.Message, sink Sink) (fetch bool) {
	if r.promised(m) {
		return false
	}
	if r.broken != nil || m.GetTo() != r.config.ID || m.GetFrom() == r.config.ID {
		return false
	}
	if m.GetType() == pb.MsgSnap {
		mark, _, err := SnapshotOf(m)
		if err != nil || r.Takes(mark.Index) {
			return err == nil && m.GetTerm() >= r.term
		}
	}
	r.step(server, m, sink)
	return false
}

// step gives Raft a message of another replica.
func (r *Replica) step(server uint64, m *pb.Message, sink Sink) {
	r.meet(m.GetFrom(), server)
	if m.GetType() == pb.MsgHeartbeat && r.forgot(m, m.GetCommit()) {
		return
	}
	if m.GetType() == pb.MsgReadIndex && r.leader && !r.serving {
		return // a leader that is the only voter would answer at once, by a commit index that may be old; they ask again
	}
	if r.wakes(m) {
		r.Wake(sink)
	}
	if r.refusesOwnWord(m) {
		return
	}
	if r.config.Plant.AcceptGap {
		r.closeGap(m)
	}
	if err := r.node.Step(m); err != nil {
		return // from a member that is none any more
	}
	if r.config.Plant.CommitEarlierTerm && m.GetType() == pb.MsgAppResp {
		r.commitByCounting()
	}
	r.Advance(sink)
	r.advise(m, sink)
}

// ErrForgotten says that the log lacks what this replica had acknowledged to a leader. A vote may be gone with it: the
// replica must not go on under its id.
var ErrForgotten = errors.New("the log lacks entries that were acknowledged")

// forgot stops the replica if a heartbeat proves that the log has lost its end: it names no index that this replica has not
// acknowledged to the leader of the term.
func (r *Replica) forgot(m *pb.Message, acked uint64) bool {
	if m.GetTerm() < r.term || acked <= r.last {
		return false
	}
	if durable, err := r.log.LastIndex(); err != nil || acked <= durable {
		return false
	}
	r.Fail(fmt.Errorf("%w: it ends at %d, the leader has heard of %d", ErrForgotten, r.last, acked))
	return true
}

// refusesOwnWord reports whether a follower refuses to append behind an entry that it has acknowledged: that is an answer of
// long ago, or of a follower that has forgotten, which learns that from the next heartbeat. Raft would try the same again at
// once, and get the same answer, for ever.
func (r *Replica) refusesOwnWord(m *pb.Message) bool {
	if !r.leader || m.GetType() != pb.MsgAppResp || !m.GetReject() || m.GetTerm() != r.term {
		return false
	}
	p, ok := r.Progress(m.GetFrom())
	return ok && m.GetIndex() <= p.Match
}

// meet remembers where a sender is that is no member.
func (r *Replica) meet(id, server uint64) {
	if _, known := r.Member(id); known {
		return
	}
	for i := range r.strangers {
		if r.strangers[i].ID == id {
			r.strangers[i].Server = server
			return
		}
	}
	if len(r.strangers) >= strangersMax {
		r.strangers = append(r.strangers[:0], r.strangers[1:]...)
	}
	r.strangers = append(r.strangers, Member{ID: id, Server: server})
}

// send hands out a message for another replica; without knowing its server it is lost.
func (r *Replica) send(m *pb.Message, sink Sink) {
	to, known := r.Member(m.GetTo())
	for i := range r.strangers {
		if !known && r.strangers[i].ID == m.GetTo() {
			to, known = r.strangers[i], true
		}
	}
	if !known {
		return
	}
	if m.GetType() == pb.MsgApp {
		m = r.plantAppend(m)
	}
	sink.Send(r, to, m)
}

// Campaign lets the replica stand for election without waiting for its timer. With leases one that knows a leader keeps its
// promise to elect nobody else, itself included, until the timer says so.
func (r *Replica) Campaign(sink Sink) {
	if r.broken != nil || r.leader || r.bound() || r.config.LeaseNanos > 0 && r.rounds && r.leaderID != 0 {
		return
	}
	r.Wake(sink)
	if err := r.node.Campaign(); err == nil {
		r.Advance(sink)
	}
}

// Transfer begins to hand leadership over to a voter. Meanwhile, for at most an election timeout, nothing is proposed. It
// returns false when this replica does not lead or the other one can not.
func (r *Replica) Transfer(to uint64, sink Sink) bool {
	m, ok := r.Member(to)
	if !r.IsLeader() || !ok || m.Learner || to == r.config.ID {
		return false
	}
	r.Wake(sink)
	r.revokeLease()
	r.node.TransferLeader(to)
	r.Advance(sink)
	return true
}

// Unreachable tells a leader that messages to the member are lost.
func (r *Replica) Unreachable(id uint64) {
	if r.IsLeader() {
		r.node.ReportUnreachable(id)
	}
}

// SnapshotDone tells a leader that the member has installed the snapshot that it was told of, or will not. It is told of
// one again after a while anyway, as the message may be lost.
func (r *Replica) SnapshotDone(id uint64, ok bool) {
	if !r.IsLeader() {
		return
	}
	status := raft.SnapshotFinish
	if !ok {
		status = raft.SnapshotFailure
	}
	r.node.ReportSnapshot(id, status)
}

// tickSnapshots gives members that were told of a snapshot long ago up to Raft, which sends nothing else to them until it
// hears of the outcome. Raft then finds out what they have and, if need be, tells them of a snapshot again; one that is
// still being fetched goes on.
func (r *Replica) tickSnapshots() {
	r.snapshotTicks++
	if r.snapshotTicks < snapshotElections*r.config.ElectionTicks {
		return
	}
	r.snapshotTicks = 0
	told := r.told[:0]
	r.node.WithProgress(func(id uint64, _ raft.ProgressType, p tracker.Progress) {
		if p.State == tracker.StateSnapshot {
			told = append(told, id)
		}
	})
	for _, id := range told {
		r.node.ReportSnapshot(id, raft.SnapshotFailure)
	}
	r.told = told
}

// snapshotElections is after how many election timeouts a leader repeats what it said about snapshots.
const snapshotElections = 2
