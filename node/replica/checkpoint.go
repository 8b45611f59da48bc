package replica

import (
	"fmt"

	"weir/disk/checkpoint"
	"weir/node/event"
	"weir/spec/assert"
)

// snapshot is a checkpoint as others are told of it.
type snapshot struct {
	mark    checkpoint.Mark
	members []Member
	put     bool // its update has the members
}

// Snapshot takes the sections that changed since the last Snapshot, as they are at the applied index, and the members if
// they have changed. The caller saves them and calls SnapshotSaved or SnapshotFailed before it takes the next.
func (r *Replica) Snapshot() checkpoint.Update {
	mark := r.Applied()
	u := checkpoint.Update{Index: mark.Index, Term: mark.Term}
	var data []byte
	for _, id := range r.machine.DirtySections(nil) {
		start := len(data)
		var ok bool
		if data, ok = r.machine.AppendSection(data, id); !ok {
			assert.True(len(data) == start, "a section that is gone has no bytes", id)
			u.Delete = append(u.Delete, id)
			continue
		}
		u.Put = append(u.Put, checkpoint.Section{ID: id, Data: data[start:len(data):len(data)]})
	}
	r.machine.MarkClean()
	r.taken = snapshot{mark: mark, members: r.members, put: r.membersDirty}
	if r.membersDirty {
		u.Put = append(u.Put, checkpoint.Section{ID: event.MembersSection, Data: AppendMembers(nil, r.members)})
		r.membersDirty = false
	}
	r.takenBytes, r.unsavedBytes = r.unsavedBytes, 0
	r.tail.drop(&r.config)
	r.tail.cut = false
	return u
}

// SnapshotSaved notes that the last Snapshot is durable: followers may be told of it.
func (r *Replica) SnapshotSaved() {
	if r.taken.mark.Index > 0 {
		r.taken.put = false
		r.saved, r.taken = r.taken, snapshot{}
	}
}

// SnapshotFailed takes back a Snapshot whose update did not become durable.
func (r *Replica) SnapshotFailed(u checkpoint.Update) {
	ids := append([]uint64(nil), u.Delete...)
	for i := range u.Put {
		if id := u.Put[i].ID; id != event.MembersSection {
			ids = append(ids, id)
		}
	}
	r.membersDirty = r.membersDirty || r.taken.put
	r.taken = snapshot{}
	r.machine.MarkDirty(ids)
	r.tail.drop(&r.config)
	r.unsavedBytes += r.takenBytes
	r.takenBytes = 0
}

func raftPanic(v ...any) {
	assert.Unreachable("raft: " + fmt.Sprint(v...))
}

func raftPanicf(format string, v ...any) {
	assert.Unreachable("raft: " + fmt.Sprintf(format, v...))
}
