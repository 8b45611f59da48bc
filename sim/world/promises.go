package world

import (
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"weir/disk/wal"
	"weir/model/command"
	"weir/node/replica"
	"weir/transport/peerwire"
)

// promises checks what a server is about to tell others of its disk: a vote that it grants and entries that it acknowledges
// are durable by the simulator's own account.
func (m *machine) promises(frames []byte) {
	m.messages(frames, func(group wal.GroupID, data []byte) {
		if m.w.hidden(group) {
			m.made(group, data)
			return
		}
		m.promise(group, data)
	})
}

// messages gives the messages of Raft in frames, and the groups that they are of, to each.
func (m *machine) messages(frames []byte, each func(group wal.GroupID, data []byte)) {
	var f peerwire.Frame
	for rest := frames; len(rest) > 0; {
		frame, after, err := peerwire.Split(rest)
		if err != nil {
			m.w.violate("malformed-frame", "node %d sends %d bytes that are no frame: %v", m.index, len(rest), err)
			return
		}
		rest = after
		kind := peerwire.KindOf(frame)
		if kind != peerwire.Raft && kind != peerwire.Propose {
			continue
		}
		if err := peerwire.Parse(frame, &f); err != nil {
			m.w.violate("malformed-frame", "node %d sends a frame that can not be read: %v", m.index, err)
			return
		}
		if kind == peerwire.Propose {
			if c, err := command.Parse(f.Payload); err == nil {
				m.proposed(&c)
			}
			continue
		}
		if len(f.Payload) > 0 {
			each(wal.GroupID(f.Group), f.Payload)
		}
	}
}

// promise checks one message of Raft.
func (m *machine) promise(group wal.GroupID, data []byte) {
	kind := pb.MessageType(data[0])
	if kind != pb.MsgVoteResp && kind != pb.MsgAppResp {
		return
	}
	msg, err := replica.ParseMessage(data)
	if err != nil {
		m.w.violate("malformed-frame", "node %d sends a message of group %d that can not be read: %v", m.index, group, err)
		return
	}
	if msg.GetReject() {
		return
	}
	// The step may have ended the replica that it speaks for.
	key := ledgerKey{m.index, m.wipes, group}
	class, text := promised(m.w.ledgers.logs[key], msg)
	if class == "" {
		return
	}
	if gone := m.w.ledgers.dropped[key]; gone != nil {
		if class, _ := promised(gone, msg); class == "" {
			return
		}
	}
	m.w.violate(class, "group %d on node %d: %s", group, m.index, text)
}

// promised holds what a message says against the account of a log: it returns what is broken, "" for nothing.
func promised(l *ledger, msg *pb.Message) (class, text string) {
	if l == nil {
		l = &ledger{}
	}
	hard, index := l.hard, msg.GetIndex()
	if msg.GetType() == pb.MsgVoteResp {
		if hard.Term < msg.GetTerm() || hard.Term == msg.GetTerm() && hard.Vote != msg.GetTo() {
			return "vote-before-durable", fmt.Sprintf("it votes for %d in term %d, on its disk is term %d with a vote for %d",
				msg.GetTo(), msg.GetTerm(), hard.Term, hard.Vote)
		}
		return "", ""
	}
	if hard.Term < msg.GetTerm() {
		return "term-before-durable", fmt.Sprintf("it acknowledges in term %d, on its disk is term %d", msg.GetTerm(), hard.Term)
	}
	if n := len(l.entries); n > 0 && l.entries[n-1].term > msg.GetTerm() {
		return "", "" // a newer leader's entries are on their way over those that it speaks of
	}
	if e := l.at(index); index > l.base && (e == nil || !e.synced) {
		return "acknowledged-before-durable", fmt.Sprintf("it acknowledges entry %d, its log has %d entries behind %d",
			index, len(l.entries), l.base)
	}
	return "", ""
}
