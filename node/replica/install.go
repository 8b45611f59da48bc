package replica

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"weir/disk/checkpoint"
	"weir/disk/wal"
	"weir/spec/assert"
)

// A follower that lags behind what the leader's log still holds gets a snapshot. Raft's message says only which one: the
// newest durable checkpoint, and the members in it. The owner of the follower fetches the content from the owner of the
// leader, makes it durable, and calls Install.

// Installation is a snapshot that has become durable here.
type Installation struct {
	// Machine is restored from it.
	Machine Machine
	// Mark is its index and term, Members its members.
	Mark    checkpoint.Mark
	Members []Member
	// Server is who sent Message, which told of the snapshot, or of one that is not newer than this.
	Server  uint64
	Message *pb.Message
}

// SnapshotOf says which snapshot a message about one tells of. The error wraps ErrMembers.
func SnapshotOf(m *pb.Message) (checkpoint.Mark, []Member, error) {
	s := m.GetSnapshot()
	members, err := ParseMembers(s.GetData())
	if err != nil {
		return checkpoint.Mark{}, nil, fmt.Errorf("snapshot from %d: %w", m.GetFrom(), err)
	}
	return checkpoint.Mark{Index: s.GetMetadata().GetIndex(), Term: s.GetMetadata().GetTerm()}, members, nil
}

// Takes reports whether a snapshot at the index brings what the log will not: the owner asks before it makes a snapshot
// the state of the group, and from then on keeps messages from the replica until Install.
func (r *Replica) Takes(index uint64) bool {
	return r.broken == nil && !r.leader && index > r.commit && index > r.machine.Applied()
}

// Install replaces the state machine by that of a snapshot, and what the log holds up to there. It returns false, and
// leaves the machine as it is, when that is as new as the snapshot. What it calls back already sees the new machine.
func (r *Replica) Install(s *Installation, sink Sink) bool {
	if r.broken != nil {
		return false
	}
	newer := s.Mark.Index > r.machine.Applied()
	if newer {
		assert.True(s.Machine.Applied() == s.Mark.Index, "the machine is that of the snapshot", s.Machine.Applied(), s.Mark.Index)
		r.machine = s.Machine
		r.forgetLate() // what they wait for may be in the snapshot
		r.log.noteTerm(s.Mark.Index, s.Mark.Term)
		r.tail.drop(&r.config)
		r.tail.cut = false
		r.unsavedBytes, r.takenBytes = 0, 0
		r.taken, r.saved = snapshot{}, snapshot{mark: s.Mark, members: s.Members}
	}
	m := &pb.Message{Type: pb.MsgSnap.Enum(), To: new(r.config.ID), From: s.Message.From, Term: s.Message.Term,
		Snapshot: snapshotMessage(&snapshot{mark: s.Mark, members: s.Members})}
	r.step(s.Server, m, sink)
	return newer
}

// snapshotMessage tells of a snapshot, in Raft's form.
func snapshotMessage(s *snapshot) *pb.Snapshot {
	return &pb.Snapshot{
		Data: AppendMembers(nil, s.members),
		Metadata: &pb.SnapshotMetadata{
			Index: new(s.mark.Index), Term: new(s.mark.Term), ConfState: confState(s.members)},
	}
}

// restored makes an append the beginning of a log behind a snapshot, as Raft took the snapshot for the log. The machine
// may be ahead of that, if Raft did not take the snapshot that it came with, which was of an earlier leader.
func (r *Replica) restored(m *pb.Message, w *wal.Write, sink Sink) {
	index := m.Snapshot.GetMetadata().GetIndex()
	assert.True(r.machine.Applied() >= index, "the machine has what the snapshot has", r.machine.Applied(), index)
	members, err := ParseMembers(m.Snapshot.GetData())
	if err != nil {
		assert.Unreachable("Raft took a snapshot without members", index)
	}
	*w = r.resetTo(index)
	if len(m.Entries) == 0 {
		r.last = index
	}
	r.raftApplied = index
	r.membersIndex = index
	r.setMembers(members)
	r.membersDirty = false
	sink.Members(r)
}

// resetTo is a write that makes the log begin behind the index of a checkpoint.
func (r *Replica) resetTo(index uint64) wal.Write {
	w := wal.Write{Group: r.config.Group, HasHardState: true, HardState: r.hard, Reset: true, Compact: index, Meta: r.kept}
	if w.Meta == nil {
		w.Meta = []byte{}
	}
	r.meta = nil
	return w
}

// Swap puts the machine of a snapshot of the applied index in the place of the one that stands there: what that refers to at
// rest was damaged, or it is not what the log leads to.
func (r *Replica) Swap(s *Installation) {
	assert.True(s.Mark.Index == r.machine.Applied(), "the state that takes the place of another is that of the same entry",
		s.Mark.Index, r.machine.Applied())
	r.machine = s.Machine
	r.tail.drop(&r.config)
	r.tail.cut = false
	r.unsavedBytes, r.takenBytes = 0, 0
}
