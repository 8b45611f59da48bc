package replica

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"

	"weir/disk/wal"
	"weir/model/fields"
	"weir/spec/assert"
)

// Member is a replica of a group.
type Member struct {
	// ID is the Raft id in the group; never 0, never used twice in the group.
	ID uint64
	// Server is the id of the server that it is on.
	Server uint64
	// Learner says that it gets the log and has no vote.
	Learner bool
}

// MembersMax bounds the members of a group, those included that are about to leave.
const MembersMax = 64

// ErrMembers says that bytes are no members.
var ErrMembers = errors.New("malformed members of a group")

// AppendMembers appends members, ascending by id: the form in which a checkpoint and a snapshot hold them.
func AppendMembers(dst []byte, members []Member) []byte {
	assert.True(len(members) <= MembersMax, "a group has a bounded number of members", uint64(len(members)))
	dst = binary.AppendUvarint(dst, uint64(len(members)))
	for i := range members {
		assert.True(i == 0 || members[i-1].ID < members[i].ID, "members are ordered by id", members[i].ID)
		dst = appendMember(dst, &members[i])
	}
	return dst
}

func appendMember(dst []byte, m *Member) []byte {
	dst = binary.AppendUvarint(dst, m.ID)
	dst = binary.AppendUvarint(dst, m.Server)
	if m.Learner {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// ParseMembers reads what AppendMembers wrote, and nothing else. The error wraps ErrMembers.
func ParseMembers(data []byte) ([]Member, error) {
	r := reader{fields.NewReader(data)}
	n := r.Uvarint()
	if n > MembersMax {
		return nil, fmt.Errorf("%w: %d members", ErrMembers, n)
	}
	members := make([]Member, 0, n)
	for range n {
		m := r.member()
		if k := len(members); k > 0 && members[k-1].ID >= m.ID {
			r.Fail()
		}
		members = append(members, m)
	}
	if !r.Done() {
		return nil, fmt.Errorf("%w: %d bytes", ErrMembers, len(data))
	}
	return members, nil
}

func (r *reader) member() Member {
	m := Member{ID: r.Uvarint(), Server: r.Uvarint()}
	flag := r.Byte()
	if m.ID == 0 || m.ID >= idMax || flag > 1 {
		r.Fail()
	}
	m.Learner = flag == 1
	return m
}

// ChangeKind is what a change does to the membership.
type ChangeKind uint8

// The closed set of changes. The values are part of the log.
const (
	// AddLearner adds the member, without a vote.
	AddLearner ChangeKind = 1
	// Promote gives a learner a vote.
	Promote ChangeKind = 2
	// Remove removes the member.
	Remove ChangeKind = 3
)

// Change is one change of the membership.
type Change struct {
	Kind   ChangeKind
	Member Member
}

// Why a change of the membership is refused.
var (
	ErrNotLeader = errors.New("this replica does not lead its group")
	// ErrChangePending also says that a learner does not have the change before.
	ErrChangePending = errors.New("the change of the membership before is not applied yet")
	ErrChange        = errors.New("the membership can not be changed like that")
)

// Members are the members of the group as of the applied index, ascending by id. The slice is not changed any more.
func (r *Replica) Members() []Member { return r.members }

// Member is the member with the Raft id.
func (r *Replica) Member(id uint64) (Member, bool) {
	for i := range r.members {
		if r.members[i].ID == id {
			return r.members[i], true
		}
	}
	return Member{}, false
}

// MembersSettled reports whether this leader, and a majority of the voters, know the membership even if they restart: what
// was removed may end now. Before that the others could wait for its vote.
func (r *Replica) MembersSettled() bool {
	if !r.Serving() || r.unsettled > 0 || r.changing != 0 || r.plantServes() {
		return false
	}
	have := 0
	r.node.WithProgress(func(_ uint64, typ raft.ProgressType, p tracker.Progress) {
		// An append to a log becomes durable together with the commit index that came with it. That of this entry is
		// above the change of the membership.
		if typ == raft.ProgressTypePeer && p.Match >= r.settledBy {
			have++
		}
	})
	return have > r.voters()/2 || r.config.Plant.SettleEarly
}

// ChangeMembers proposes a change of the membership; Sink.Members tells when it is applied. Changes are made one at a
// time (Raft thesis, section 4.1). The error is ErrNotLeader, ErrChangePending, or wraps ErrChange.
func (r *Replica) ChangeMembers(c Change, sink Sink) error {
	switch {
	case !r.Serving() || r.plantServes():
		return ErrNotLeader
	case r.changing != 0 && !r.config.Plant.TwoChanges:
		return ErrChangePending
	}
	if err := r.checkChange(c); err != nil {
		return err
	}
	r.Wake(sink)
	kind := pb.ConfChangeAddNode
	switch {
	case c.Kind == AddLearner && !r.config.Plant.LearnerVotes:
		kind = pb.ConfChangeAddLearnerNode
	case c.Kind == Remove:
		kind = pb.ConfChangeRemoveNode
	}
	context := appendMember([]byte{byte(c.Kind)}, &c.Member)
	changing := r.changing
	r.changing = r.last + 1
	if err := r.node.ProposeConfChange(&pb.ConfChangeV2{
		Changes: []*pb.ConfChangeSingle{{Type: kind.Enum(), NodeId: new(c.Member.ID)}}, Context: context,
	}); err != nil {
		r.changing = changing
		return ErrChangePending // leadership is about to move
	}
	r.Advance(sink)
	return nil
}

// checkChange refuses what does not fit the members, or leaves no voter.
func (r *Replica) checkChange(c Change) error {
	m, known := r.Member(c.Member.ID)
	voters := r.voters()
	switch {
	case r.config.Volatile:
		return fmt.Errorf("%w: the log of the group is kept in memory", ErrChange)
	case c.Kind == AddLearner && (known || c.Member.ID == 0 || c.Member.ID >= idMax || len(r.members) >= MembersMax):
		return fmt.Errorf("%w: %d can not be added to %d members", ErrChange, c.Member.ID, len(r.members))
	case c.Kind == Promote && (!known || !m.Learner):
		return fmt.Errorf("%w: %d is no learner", ErrChange, c.Member.ID)
	case c.Kind == Promote && !r.knowsMembers(c.Member.ID) && !r.config.Plant.PromoteUnaware:
		return ErrChangePending
	case c.Kind == Remove && (!known || !m.Learner && voters == 1):
		return fmt.Errorf("%w: %d is no member, or the only voter", ErrChange, c.Member.ID)
	}
	return nil
}

// knowsMembers reports whether a member has the newest change of the members in its log. A learner that the group had removed
// before may not know yet that it is one again: as a voter it would tell candidates that they can do without it.
func (r *Replica) knowsMembers(id uint64) bool {
	p, ok := r.Progress(id)
	return ok && p.Match >= r.membersIndex
}

func (r *Replica) voters() int {
	n := 0
	for i := range r.members {
		if !r.members[i].Learner {
			n++
		}
	}
	return n
}

// applyChange applies an entry of the log that changes the membership.
func (r *Replica) applyChange(e *pb.Entry, sink Sink) {
	cc, change, err := parseChange(e.GetData())
	if err != nil {
		assert.Unreachable("a committed change of the membership can not be read", e.GetIndex())
	}
	kind, m := change.Kind, change.Member
	if kind != Remove || !r.config.Plant.RemovedStillCounts {
		r.node.ApplyConfChange(cc)
	}
	members := slices.DeleteFunc(slices.Clone(r.members), func(o Member) bool { return o.ID == m.ID })
	if kind != Remove {
		m.Learner = kind == AddLearner
		at, _ := slices.BinarySearchFunc(members, m.ID, func(o Member, id uint64) int { return cmp.Compare(o.ID, id) })
		members = slices.Insert(members, at, m)
	}
	r.membersIndex = e.GetIndex()
	r.setMembers(members)
	r.membersDirty = true
	r.settle(sink)
	sink.Members(r)
}

// ParseChange reads the change of the membership that an entry of the log makes. The error wraps ErrMembers.
func ParseChange(data []byte) (Change, error) {
	_, c, err := parseChange(data)
	return c, err
}

func parseChange(data []byte) (*pb.ConfChangeV2, Change, error) {
	cc := new(pb.ConfChangeV2)
	if err := proto.Unmarshal(data, cc); err != nil {
		return nil, Change{}, fmt.Errorf("%w: a change in %d bytes: %w", ErrMembers, len(data), err)
	}
	in := reader{fields.NewReader(cc.GetContext())}
	c := Change{Kind: ChangeKind(in.Byte()), Member: in.member()}
	if in.Failed() || c.Kind < AddLearner || c.Kind > Remove {
		return nil, Change{}, fmt.Errorf("%w: a change of kind %d in %d bytes", ErrMembers, c.Kind, len(data))
	}
	return cc, c, nil
}

// noteChanges notes a change of the membership in what the log gets.
func (r *Replica) noteChanges(entries []*pb.Entry) {
	if entries[0].GetIndex() <= r.changing {
		r.changing = 0 // replaced, by another leader
	}
	for _, e := range entries {
		if e.GetType() != pb.EntryNormal {
			r.changing = e.GetIndex()
		}
	}
}

// advise tells a candidate that is the only voter of the group, and does not know, that this replica was removed. The
// candidate would wait for its vote, which is refused if this log is longer: the end of a log of which the candidate
// alone decides what is committed. The message is an append of nothing behind an entry that is known to be committed;
// only a candidate that has this entry takes it.
func (r *Replica) advise(m *pb.Message, sink Sink) {
	if m.GetType() != pb.MsgPreVote && m.GetType() != pb.MsgVote || r.raftApplied == 0 || r.leader {
		return
	}
	voter, ok := r.Member(m.GetFrom())
	if _, member := r.Member(r.config.ID); member || !ok || voter.Learner || r.voters() != 1 {
		return
	}
	term, err := r.log.Term(r.raftApplied)
	if err != nil {
		return
	}
	r.send(&pb.Message{Type: pb.MsgApp.Enum(), To: m.From, From: new(r.config.ID), Term: new(r.term),
		Index: new(r.raftApplied), LogTerm: new(term), Commit: new(r.raftApplied)}, sink)
}

// settle makes the commit index durable, which is lazy otherwise: the last member of a shrunken group would, after a
// restart, wait for the votes of those that left. A leader appends an entry that brings it to the others.
func (r *Replica) settle(sink Sink) {
	if r.leader {
		r.settledBy = r.last + 1
		if err := r.node.Propose(nil); err != nil {
			assert.True(r.rounds, "the only voter takes every proposal", r.term) // leadership moves, and settles it anew
		}
	}
	ticket := sink.Persist(wal.Write{Group: r.config.Group, HasHardState: true, HardState: r.hard, Meta: r.takeMeta()})
	r.inFlight = append(r.inFlight, appendInFlight{ticket: ticket, settles: true})
	r.unsettled++
}

// Commitment is a write that makes durable that what is applied here was committed, which is lazy otherwise. It belongs
// into the same append as something that must not outlive a restart which has forgotten the commit.
func (r *Replica) Commitment() wal.Write {
	r.hard.Commit = max(r.hard.Commit, r.Applied().Index)
	return wal.Write{Group: r.config.Group, HasHardState: true, HardState: r.hard, Meta: r.takeMeta()}
}

func (r *Replica) setMembers(members []Member) {
	r.members = members
	self, ok := r.Member(r.config.ID)
	r.rounds = !ok || self.Learner || r.voters() > 1
	r.sole = ok && len(members) == 1
	r.strangers = slices.DeleteFunc(r.strangers, func(s Member) bool {
		_, known := r.Member(s.ID)
		return known
	})
	if r.rounds {
		r.askAgain()
	}
}

// confState is the members in Raft's form.
func confState(members []Member) *pb.ConfState {
	cs := &pb.ConfState{}
	for _, m := range members {
		if m.Learner {
			cs.Learners = append(cs.Learners, m.ID)
		} else {
			cs.Voters = append(cs.Voters, m.ID)
		}
	}
	return cs
}
