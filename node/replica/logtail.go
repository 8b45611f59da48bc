package replica

import (
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"weir/disk/wal"
	"weir/spec/assert"
)

// Bounds of the entries that are kept in memory, after they are applied, for followers that lag behind.
const (
	// LogTailBytesDefault is the default of Config.LogTailBytes, the bound of one group.
	LogTailBytesDefault = 16 << 20
	// LogTailsBytesMax bounds those of all groups of a node; beyond it a group keeps a part only.
	LogTailsBytesMax = 256 << 20

	followerShare  = 4  // a follower keeps this part of what a leader keeps: it may lead soon
	crowdedShare   = 16 // each group keeps this part when all groups together have too much
	installingMore = 8  // times as much is kept while a follower installs a snapshot, so that it need not do so again
)

// logTail is the part of the group's log that Raft may still ask for, in memory: the entries that are durable and not
// yet applied, and as many applied ones as followers need. It implements raft.Storage.
//
// Invariant: entries[head+i] has index first+i, and snapTerm is the term of the entry at first-1.
type logTail struct {
	replica  *Replica
	load     *Load
	hard     wal.HardState
	first    uint64
	snapTerm uint64
	entries  []*pb.Entry
	head     int
	bytes    int // of the entries

	appliedIndex, appliedTerm uint64
}

func newLogTail(config *Config, hard wal.HardState) *logTail {
	l := &logTail{
		load:     config.Load,
		hard:     hard,
		first:    config.Snapshot.Index + 1,
		snapTerm: config.Snapshot.Term,

		appliedIndex: config.Snapshot.Index,
		appliedTerm:  config.Snapshot.Term,
	}
	if detached(config) {
		return l
	}
	for _, e := range config.Log.Entries {
		if e.Index < l.first {
			continue
		}
		assert.True(e.Index == l.end(), "recovered entries have no gap", e.Index, l.first)
		l.append([]*pb.Entry{{
			Term: new(e.Term), Index: new(e.Index), Type: pb.EntryType(e.Type).Enum(), Data: e.Data}})
	}
	return l
}

// detached reports whether the log is another one than that which the checkpoint stands for: a process ended between the
// installation of a snapshot and the append that makes the log begin with it. What such a log holds behind the
// checkpoint was never committed.
func detached(config *Config) bool {
	log, mark := &config.Log, config.Snapshot
	if mark.Index <= log.Compact {
		return false
	}
	if n := len(log.Entries); n == 0 || log.Entries[n-1].Index < mark.Index {
		return true
	}
	assert.True(log.Entries[0].Index <= mark.Index, "the log goes on from its compaction mark", log.Entries[0].Index, mark.Index)
	return log.Entries[mark.Index-log.Entries[0].Index].Term != mark.Term
}

// end is the index behind the newest entry.
func (l *logTail) end() uint64 { return l.first + uint64(len(l.entries)-l.head) }

// append adds durable entries, replacing a conflicting suffix.
func (l *logTail) append(entries []*pb.Entry) {
	if len(entries) == 0 {
		return
	}
	at := entries[0].GetIndex()
	assert.True(at >= l.first && at <= l.end(), "appended entries have no gap", at, l.first)
	keep := l.head + int(at-l.first)
	bytes := 0
	for _, e := range l.entries[keep:] {
		bytes -= len(e.GetData()) + entryOverheadBytes
	}
	for _, e := range entries {
		bytes += len(e.GetData()) + entryOverheadBytes
	}
	l.count(bytes)
	clear(l.entries[keep:])
	l.entries = append(l.entries[:keep], entries...)
}

func (l *logTail) count(bytes int) {
	l.bytes += bytes
	l.load.logBytes += bytes
}

// trim forgets the entries up to and including index.
func (l *logTail) trim(index uint64) {
	if index < l.first {
		return
	}
	n := int(min(index-l.first+1, l.end()-l.first))
	if n == 0 {
		return
	}
	gone := l.entries[l.head : l.head+n]
	l.snapTerm = gone[n-1].GetTerm()
	bytes := 0
	for _, e := range gone {
		bytes -= len(e.GetData()) + entryOverheadBytes
	}
	l.count(bytes)
	clear(gone)
	l.first += uint64(n)
	l.head += n
	if 2*l.head >= len(l.entries) {
		rest := copy(l.entries, l.entries[l.head:])
		clear(l.entries[max(rest, l.head):])
		l.entries, l.head = l.entries[:rest], 0
	}
}

// restore makes the log begin behind a snapshot.
func (l *logTail) restore(s *pb.Snapshot) {
	l.count(-l.bytes)
	l.first = s.GetMetadata().GetIndex() + 1
	l.snapTerm = s.GetMetadata().GetTerm()
	l.entries, l.head = nil, 0
}

// release lets go of everything.
func (l *logTail) release() {
	l.count(-l.bytes)
	l.entries, l.head = nil, 0
}

// trim forgets entries that are applied and that no follower needs, or for which there is no room.
func (r *Replica) trim() {
	if r.sole {
		r.log.trim(r.raftApplied)
		return
	}
	most := r.config.LogTailBytes
	if most == 0 {
		most = LogTailBytesDefault
	}
	if r.config.Load.logBytes > LogTailsBytesMax {
		most /= crowdedShare
	}
	upTo, installing := uint64(0), false
	if r.leader {
		upTo = r.raftApplied
		r.node.WithProgress(func(_ uint64, _ raft.ProgressType, p tracker.Progress) {
			upTo = min(upTo, p.Match)
			installing = installing || p.RecentActive && p.Match+1 < r.log.first
		})
	} else {
		most /= followerShare
	}
	if installing {
		most *= installingMore
	}
	r.log.trim(upTo)
	r.log.trimTo(most, r.raftApplied)
}

// trimTo forgets the oldest entries up to and including index until what is left has the size.
func (l *logTail) trimTo(bytes int, index uint64) {
	over := l.bytes - bytes
	at := l.first - 1
	for i := l.head; over > 0 && i < len(l.entries); i++ {
		over -= len(l.entries[i].GetData()) + entryOverheadBytes
		at++
	}
	l.trim(min(at, index))
}

// noteTerm remembers the term of the newest applied entry, which may be trimmed before a checkpoint needs it.
func (l *logTail) noteTerm(index, term uint64) { l.appliedIndex, l.appliedTerm = index, term }

func (l *logTail) termOf(index uint64) uint64 {
	assert.True(index == l.appliedIndex, "the term of the applied index is asked for", index, l.appliedIndex)
	return l.appliedTerm
}

// InitialState returns what the log and the configuration of the group say at the start.
func (l *logTail) InitialState() (*pb.HardState, *pb.ConfState, error) {
	hard := &pb.HardState{Term: new(l.hard.Term), Vote: new(l.hard.Vote), Commit: new(l.hard.Commit)}
	return hard, confState(l.replica.config.Members), nil
}

// Entries returns the entries in [lo, hi), at least one and otherwise at most maxSize bytes.
func (l *logTail) Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error) {
	if lo < l.first {
		return nil, raft.ErrCompacted
	}
	assert.True(hi <= l.end(), "entries asked for exist", hi, l.end())
	part := l.entries[l.head+int(lo-l.first) : l.head+int(hi-l.first)]
	size := uint64(0)
	for i, e := range part {
		size += uint64(len(e.GetData())) + entryOverheadBytes
		if size > maxSize && i > 0 {
			part = part[:i]
			break
		}
	}
	return append([]*pb.Entry(nil), part...), nil
}

// Term returns the term of the entry at index.
func (l *logTail) Term(index uint64) (uint64, error) {
	if index == l.first-1 {
		return l.snapTerm, nil
	}
	if index < l.first {
		return 0, raft.ErrCompacted
	}
	if index >= l.end() {
		return 0, raft.ErrUnavailable
	}
	return l.entries[l.head+int(index-l.first)].GetTerm(), nil
}

// LastIndex returns the index of the newest entry.
func (l *logTail) LastIndex() (uint64, error) { return l.end() - 1, nil }

// FirstIndex returns the index of the oldest entry.
func (l *logTail) FirstIndex() (uint64, error) { return l.first, nil }

// Snapshot returns which snapshot a follower is to fetch: the newest durable checkpoint. It has to be one that the log
// goes on from, and that has all members, as a follower refuses a snapshot in which it is no member.
func (l *logTail) Snapshot() (*pb.Snapshot, error) {
	r := l.replica
	saved := &r.saved
	if saved.mark.Index == 0 || saved.mark.Index < max(l.first-1, r.membersIndex) {
		if r.config.Wanted != nil {
			r.config.Wanted(r)
		}
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return snapshotMessage(saved), nil
}

// quiet is a raft.Logger that says nothing and turns Raft's own assertions into ours.
type quiet struct{}

func (quiet) Debug(...any)            {}
func (quiet) Debugf(string, ...any)   {}
func (quiet) Error(...any)            {}
func (quiet) Errorf(string, ...any)   {}
func (quiet) Info(...any)             {}
func (quiet) Infof(string, ...any)    {}
func (quiet) Warning(...any)          {}
func (quiet) Warningf(string, ...any) {}

func (quiet) Fatal(v ...any)                 { raftPanic(v...) }
func (quiet) Fatalf(format string, v ...any) { raftPanicf(format, v...) }
func (quiet) Panic(v ...any)                 { raftPanic(v...) }
func (quiet) Panicf(format string, v ...any) { raftPanicf(format, v...) }

// Holds reports whether the log has the entry, durable or under way: what a candidate's word about its log covers.
func (r *Replica) Holds(index, term uint64) bool {
	for i := len(r.inFlight) - 1; i >= 0; i-- {
		entries := r.inFlight[i].entries
		if n := len(entries); n > 0 && entries[0].GetIndex() <= index {
			return index <= entries[n-1].GetIndex() && entries[index-entries[0].GetIndex()].GetTerm() == term
		}
	}
	found, err := r.log.Term(index)
	return err == nil && found == term || index < r.log.first
}
