package replica

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"weir/disk/wal"
	"weir/spec/assert"
)

// TailBytesMax bounds the entries that a replica keeps in memory after they are applied, TailsBytesMax those of all
// replicas of a node.
const (
	TailBytesMax  = 16 << 10
	TailsBytesMax = 32 << 20
)

// tail is the applied entries that no checkpoint covers, as long as they are few. A group at rest that has written
// little since its last checkpoint can have them appended to the log again, which costs much less than a checkpoint and
// sets free the segments that they were in.
type tail struct {
	entries []wal.Entry
	bytes   int
	cut     bool // entries are missing, until the next checkpoint is taken
}

func (t *tail) add(e *pb.Entry, bytes int, c *Config) {
	if t.cut || c.Volatile {
		return
	}
	if t.bytes+bytes > TailBytesMax || c.Load.tailBytes+bytes > TailsBytesMax {
		t.drop(c)
		return
	}
	t.bytes += bytes
	c.Load.tailBytes += bytes
	t.entries = append(t.entries, wal.Entry{Term: e.GetTerm(), Index: e.GetIndex(), Type: uint8(e.GetType()), Data: e.GetData()})
}

// drop lets go of the entries.
func (t *tail) drop(c *Config) {
	c.Load.tailBytes -= t.bytes
	t.entries, t.bytes, t.cut = nil, 0, true
}

// Again returns a write that has the same effect as all that the log holds of the group behind its newest checkpoint,
// which is durable; the log may then forget what it holds. It returns false while anything is under way, or when the
// entries are too large for that.
func (r *Replica) Again() (wal.Write, bool) {
	n := len(r.tail.entries)
	if n == 0 || r.tail.cut || r.broken != nil || r.leader != r.serving || !r.Idle() || r.raftApplied != r.last {
		return wal.Write{}, false
	}
	if last, _ := r.log.LastIndex(); last != r.tail.entries[n-1].Index || last != r.last {
		return wal.Write{}, false
	}
	first := r.tail.entries[0].Index
	assert.True(first+uint64(n)-1 == r.machine.Applied(), "the tail ends with the applied index", first, uint64(n), r.machine.Applied())
	return wal.Write{Group: r.config.Group, Entries: r.tail.entries[:n:n], Compact: first - 1}, true
}
