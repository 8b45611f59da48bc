package world

import (
	"encoding/json"

	pb "go.etcd.io/raft/v3/raftpb"

	"weir/disk/wal"
	"weir/node/replica"
)

// incarnations tells entries of streams apart whose groups have one number, which only a planted fault gives them: an entry
// must not get into the log of another stream than it was made for.
type incarnations struct {
	of      map[ledgerKey]int64   // when the stream was created that a log is of
	entries map[strayEntry]int64  // when the stream was created that an entry was made for
	appends map[strayAppend]int64 // when the stream was created that a message with entries was made for
}

// strayAppend is a message with entries, wherever it gets to.
type strayAppend struct {
	group wal.GroupID
	sum   uint64
}

// strayEntry is what an entry is wherever it gets to.
type strayEntry struct {
	entryKey
	sum uint64
}

func newIncarnations() incarnations {
	return incarnations{map[ledgerKey]int64{}, map[strayEntry]int64{}, map[strayAppend]int64{}}
}

// foreign checks what is on its way to the log of a hidden group.
func (m *machine) foreign(write *wal.Write) {
	all, key := &m.w.incarnations, ledgerKey{m.index, m.wipes, write.Group}
	if write.Meta != nil {
		var birth struct {
			Created int64 `json:"created"`
		}
		if json.Unmarshal(write.Meta, &birth) == nil {
			all.of[key] = birth.Created
		}
	}
	for i := range write.Entries {
		e := &write.Entries[i]
		if e.Type != 0 || len(e.Data) == 0 {
			continue // what it says may be the same in both
		}
		stray := strayEntry{entryKey{write.Group, e.Index, e.Term}, sumOf(e)}
		if made, known := all.entries[stray]; !known {
			all.entries[stray] = all.of[key]
		} else if made != all.of[key] {
			m.w.violate("entry-astray", "group %d on node %d: entry %d of term %d was made for the stream created at %d, and gets into the log of that created at %d",
				write.Group, m.index, e.Index, e.Term, made, all.of[key])
		}
	}
}

// made notes for which stream a message of a hidden group is made.
func (m *machine) made(group wal.GroupID, data []byte) {
	if pb.MessageType(data[0]) == pb.MsgApp {
		m.w.incarnations.appends[strayAppend{group, sumOfBytes(data)}] = m.w.incarnations.of[ledgerKey{m.index, m.wipes, group}]
	}
}

// mistaken checks a message that arrives for a hidden group: entries must not be offered to a replica of another stream than
// they were made for, if it takes them for those of its own leader.
func (m *machine) mistaken(group wal.GroupID, data []byte) {
	all := &m.w.incarnations
	made, known := all.appends[strayAppend{group, sumOfBytes(data)}]
	of, here := all.of[ledgerKey{m.index, m.wipes, group}]
	if !m.w.hidden(group) || !known || !here || made == of {
		return
	}
	msg, err := replica.ParseMessage(data)
	if err != nil || len(msg.GetEntries()) == 0 {
		return
	}
	m.node.Engine().EachReplica(func(id wal.GroupID, r *replica.Replica) {
		if id == group && r.ID() == msg.GetTo() && msg.GetTerm() >= r.Term() && r.Broken() == nil {
			m.w.violate("entry-astray", "group %d: entries of the stream created at %d are offered to the replica on node %d, which is of that created at %d",
				group, made, m.index, of)
		}
	})
}
