package replica

import (
	"encoding/binary"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"weir/disk/wal"
	"weir/model/fields"
)

// Beat is a heartbeat of a group, or the answer to one. Those of many groups travel together, one after the other.
type Beat struct {
	// Group is the group.
	Group wal.GroupID
	// Response says that it is an answer, Quiesce that the group rests from now on.
	Response, Quiesce bool
	// From and To are Raft ids, Term is the sender's, Commit what the receiver may commit.
	From, To, Term, Commit uint64
	// Acked, when it is not 0, is what the receiver has acknowledged behind Commit.
	Acked uint64
	// Context is Raft's: eight bytes, or none.
	Context []byte
}

// Flags of an encoded beat.
const (
	beatQuiesces = 1
	beatResponds = 2
	beatContext  = 4
	beatAcked    = 8
)

// BeatOf returns the beat that stands for a message of the replica; false when it is no heartbeat.
func BeatOf(r *Replica, m *pb.Message) (Beat, bool) {
	response := m.GetType() == pb.MsgHeartbeatResp
	if !response && m.GetType() != pb.MsgHeartbeat {
		return Beat{}, false
	}
	return Beat{
		Group: r.config.Group, Response: response, Quiesce: r.quiesced && r.leader && !response,
		From: m.GetFrom(), To: m.GetTo(), Term: m.GetTerm(), Commit: m.GetCommit(), Context: m.GetContext(), Acked: r.ackedBehind(m),
	}, true
}

// ackedBehind is what the receiver of a heartbeat has acknowledged behind the commit index that it names; 0: nothing. Where
// everything is committed that index says it.
func (r *Replica) ackedBehind(m *pb.Message) uint64 {
	if m.GetType() != pb.MsgHeartbeat || r.commit == r.last {
		return 0
	}
	if p, ok := r.Progress(m.GetTo()); ok && p.Match > m.GetCommit() {
		return p.Match
	}
	return 0
}

func (b *Beat) message() *pb.Message {
	kind := pb.MsgHeartbeat
	if b.Response {
		kind = pb.MsgHeartbeatResp
	}
	m := &pb.Message{Type: kind.Enum(), From: new(b.From), To: new(b.To), Term: new(b.Term), Commit: new(b.Commit)}
	if len(b.Context) > 0 {
		m.Context = append([]byte(nil), b.Context...)
	}
	return m
}

// AppendBeat appends a beat: flags (a byte), group, from, to, term, commit (uvarints), what is acknowledged behind that, and the
// context, if there are any.
func AppendBeat(dst []byte, b *Beat) []byte {
	flags := byte(0)
	if b.Quiesce {
		flags |= beatQuiesces
	}
	if b.Response {
		flags |= beatResponds
	}
	if len(b.Context) == 8 {
		flags |= beatContext
	}
	if b.Acked != 0 {
		flags |= beatAcked
	}
	dst = append(dst, flags)
	for _, n := range [...]uint64{uint64(b.Group), b.From, b.To, b.Term, b.Commit} {
		dst = binary.AppendUvarint(dst, n)
	}
	if b.Acked != 0 {
		dst = binary.AppendUvarint(dst, b.Acked)
	}
	if flags&beatContext != 0 {
		dst = append(dst, b.Context...)
	}
	return dst
}

// NextBeat reads the first beat of data, which is not empty, into b, and returns what follows. The context is a part of
// data. The error wraps ErrMessage.
func NextBeat(data []byte, b *Beat) ([]byte, error) {
	r := reader{fields.NewReader(data)}
	flags := r.Byte()
	*b = Beat{Quiesce: flags&beatQuiesces != 0, Response: flags&beatResponds != 0}
	b.Group = wal.GroupID(r.Uvarint())
	for _, n := range [...]*uint64{&b.From, &b.To, &b.Term, &b.Commit} {
		*n = r.Uvarint()
	}
	if flags&beatAcked != 0 {
		b.Acked = r.Uvarint()
	}
	if flags&beatContext != 0 {
		b.Context = r.Take(8)
	}
	bad := flags&^(beatQuiesces|beatResponds|beatContext|beatAcked) != 0 || b.From == 0 || b.From >= idMax || b.To == 0 || b.To >= idMax ||
		b.Term == 0
	if r.Failed() || bad {
		return nil, fmt.Errorf("%w: a heartbeat in %d bytes", ErrMessage, len(data))
	}
	return r.Rest(), nil
}
