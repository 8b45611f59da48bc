package replica

import (
	"fmt"

	"weir/disk/checkpoint"
	"weir/spec/assert"
)

// Snapshot takes the sections that changed since the last Snapshot, as they are at the applied index. The caller saves
// them; if that fails it calls SnapshotFailed.
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
	r.takenBytes, r.unsavedBytes = r.unsavedBytes, 0
	r.tail.drop(&r.config)
	r.tail.cut = false
	return u
}

// SnapshotFailed takes back a Snapshot whose update did not become durable.
func (r *Replica) SnapshotFailed(u checkpoint.Update) {
	ids := append([]uint64(nil), u.Delete...)
	for i := range u.Put {
		ids = append(ids, u.Put[i].ID)
	}
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
