package replica

import (
	"encoding/binary"
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"weir/model/fields"
	"weir/spec/assert"
)

// ErrMessage says that bytes are no message of Raft that travels between servers.
var ErrMessage = errors.New("malformed message of Raft")

// Flags of an encoded message.
const (
	flagReject   = 1
	flagSnapshot = 2
)

// entryBytesMin is the least that an entry takes: type, term, index and length.
const entryBytesMin = 4

// travels reports whether messages of the type go from server to server.
func travels(t pb.MessageType) bool {
	switch t {
	case pb.MsgApp, pb.MsgAppResp, pb.MsgVote, pb.MsgVoteResp, pb.MsgSnap, pb.MsgHeartbeat, pb.MsgHeartbeatResp,
		pb.MsgTimeoutNow, pb.MsgReadIndex, pb.MsgReadIndexResp, pb.MsgPreVote, pb.MsgPreVoteResp:
		return true
	}
	return false
}

// AppendMessage appends a message that Sink.Send was given:
//
//	type, flags (a byte each); to, from, term, log term, index, commit, reject hint; context; entries; with
//	flagSnapshot the index and term of the snapshot, its voters, its learners and its data
//
// Numbers are uvarints; bytes and lists come behind their length. An entry is type (a byte), term, index and data.
func AppendMessage(dst []byte, m *pb.Message) []byte {
	assert.True(travels(m.GetType()), "the message is one that travels", uint64(m.GetType()))
	flags := byte(0)
	if m.GetReject() {
		flags |= flagReject
	}
	if m.Snapshot != nil {
		flags |= flagSnapshot
	}
	dst = append(dst, byte(m.GetType()), flags)
	for _, n := range [...]uint64{m.GetTo(), m.GetFrom(), m.GetTerm(), m.GetLogTerm(), m.GetIndex(), m.GetCommit(), m.GetRejectHint()} {
		dst = binary.AppendUvarint(dst, n)
	}
	dst = appendBytes(dst, m.GetContext())
	dst = binary.AppendUvarint(dst, uint64(len(m.Entries)))
	for _, e := range m.Entries {
		dst = append(dst, byte(e.GetType()))
		dst = binary.AppendUvarint(dst, e.GetTerm())
		dst = binary.AppendUvarint(dst, e.GetIndex())
		dst = appendBytes(dst, e.GetData())
	}
	if s := m.Snapshot; s != nil {
		dst = binary.AppendUvarint(dst, s.GetMetadata().GetIndex())
		dst = binary.AppendUvarint(dst, s.GetMetadata().GetTerm())
		dst = appendIDs(dst, s.GetMetadata().GetConfState().GetVoters())
		dst = appendIDs(dst, s.GetMetadata().GetConfState().GetLearners())
		dst = appendBytes(dst, s.GetData())
	}
	return dst
}

// MessageBytes is about the size that AppendMessage needs.
func MessageBytes(m *pb.Message) int {
	n := 128 + len(m.GetContext())
	for _, e := range m.Entries {
		n += len(e.GetData()) + entryOverheadBytes
	}
	return n
}

func appendBytes(dst, data []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(data))), data...)
}

func appendIDs(dst []byte, ids []uint64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(ids)))
	for _, id := range ids {
		dst = binary.AppendUvarint(dst, id)
	}
	return dst
}

// ParseMessage reads what AppendMessage wrote, and nothing else. It copies what it keeps. The error wraps ErrMessage.
func ParseMessage(data []byte) (*pb.Message, error) {
	r := reader{fields.NewReader(data)}
	kind, flags := pb.MessageType(r.Byte()), r.Byte()
	if !travels(kind) || flags&^(flagReject|flagSnapshot) != 0 || (flags&flagSnapshot != 0) != (kind == pb.MsgSnap) {
		return nil, fmt.Errorf("%w: type %d, flags %d", ErrMessage, kind, flags)
	}
	m := &pb.Message{Type: kind.Enum(), Reject: new(flags&flagReject != 0)}
	for _, field := range [...]**uint64{&m.To, &m.From, &m.Term, &m.LogTerm, &m.Index, &m.Commit, &m.RejectHint} {
		*field = new(r.Uvarint())
	}
	m.Context = r.copied()
	n := r.Uvarint()
	if n > uint64(r.Len()/entryBytesMin) {
		r.Fail()
		n = 0
	}
	if n > 0 {
		m.Entries = make([]*pb.Entry, n)
	}
	for i := range m.Entries {
		m.Entries[i] = r.entry()
	}
	if kind == pb.MsgSnap {
		m.Snapshot = r.snapshot()
	}
	if id := m.GetFrom(); !r.Done() || id == 0 || id >= idMax || m.GetTo() == 0 || m.GetTo() >= idMax {
		return nil, fmt.Errorf("%w: type %d of %d bytes from %d", ErrMessage, kind, len(data), id)
	}
	return m, consistent(m)
}

// consistent refuses what Raft takes for granted about a message.
func consistent(m *pb.Message) error {
	entries := m.Entries
	switch m.GetType() {
	case pb.MsgApp:
		for i, e := range entries {
			if e.GetIndex() != m.GetIndex()+1+uint64(i) || e.GetTerm() > m.GetTerm() {
				return fmt.Errorf("%w: entry %d of term %d behind %d", ErrMessage, e.GetIndex(), e.GetTerm(), m.GetIndex()+uint64(i))
			}
		}
	case pb.MsgReadIndex, pb.MsgReadIndexResp:
		if len(entries) != 1 {
			return fmt.Errorf("%w: a read of %d entries", ErrMessage, len(entries))
		}
	case pb.MsgHeartbeat, pb.MsgHeartbeatResp:
		if n := len(m.GetContext()); n != 0 && n != 8 {
			return fmt.Errorf("%w: a heartbeat with a context of %d bytes", ErrMessage, n)
		}
	}
	return nil
}

// boxed is an entry with its numbers, in one piece of memory.
type boxed struct {
	entry       pb.Entry
	term, index uint64
	kind        pb.EntryType
}

func (r *reader) entry() *pb.Entry {
	b := &boxed{kind: pb.EntryType(r.Byte()), term: r.Uvarint(), index: r.Uvarint()}
	if b.kind != pb.EntryNormal && b.kind != pb.EntryConfChangeV2 {
		r.Fail()
	}
	b.entry.Type, b.entry.Term, b.entry.Index, b.entry.Data = &b.kind, &b.term, &b.index, r.copied()
	return &b.entry
}

func (r *reader) snapshot() *pb.Snapshot {
	meta := &pb.SnapshotMetadata{Index: new(r.Uvarint()), Term: new(r.Uvarint())}
	meta.ConfState = &pb.ConfState{Voters: r.ids(), Learners: r.ids()}
	return &pb.Snapshot{Metadata: meta, Data: r.copied()}
}

// reader reads the parts of the forms of this package; after a failure it returns zero values.
type reader struct{ fields.Reader }

// copied returns a copy; nil for no bytes.
func (r *reader) copied() []byte { return append([]byte(nil), r.Bytes()...) }

func (r *reader) ids() []uint64 {
	n := r.Uvarint()
	if n > MembersMax {
		r.Fail()
		return nil
	}
	var ids []uint64
	for range n {
		ids = append(ids, r.Uvarint())
	}
	return ids
}
