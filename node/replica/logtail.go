package replica

import (
	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"weir/disk/wal"
	"weir/spec/assert"
)

// logTail is the part of the group's log that Raft may still ask for, in memory: the entries that are durable and not
// yet applied. It implements raft.Storage.
//
// Invariant: entries[i] has index first+i, and snapTerm is the term of the entry at first-1.
type logTail struct {
	hard     wal.HardState
	voters   []uint64
	first    uint64
	snapTerm uint64
	entries  []*pb.Entry

	appliedIndex, appliedTerm uint64
}

func newLogTail(config Config) *logTail {
	l := &logTail{
		hard:     config.Log.HardState,
		voters:   config.Voters,
		first:    config.Snapshot.Index + 1,
		snapTerm: config.Snapshot.Term,

		appliedIndex: config.Snapshot.Index,
		appliedTerm:  config.Snapshot.Term,
	}
	for _, e := range config.Log.Entries {
		if e.Index < l.first {
			continue
		}
		assert.True(e.Index == l.first+uint64(len(l.entries)), "recovered entries have no gap", e.Index, l.first)
		l.entries = append(l.entries, &pb.Entry{
			Term: new(e.Term), Index: new(e.Index), Type: pb.EntryType(e.Type).Enum(), Data: e.Data})
	}
	return l
}

// append adds durable entries, replacing a conflicting suffix.
func (l *logTail) append(entries []*pb.Entry) {
	if len(entries) == 0 {
		return
	}
	at := entries[0].GetIndex()
	assert.True(at >= l.first && at <= l.first+uint64(len(l.entries)), "appended entries have no gap", at, l.first)
	l.entries = append(l.entries[:at-l.first:at-l.first], entries...)
}

// trim forgets the entries up to and including index: a group of one never sends them to anyone.
func (l *logTail) trim(index uint64) {
	if index < l.first {
		return
	}
	n := min(index-l.first+1, uint64(len(l.entries)))
	if n == 0 {
		return
	}
	l.snapTerm = l.entries[n-1].GetTerm()
	l.first += n
	rest := copy(l.entries, l.entries[n:])
	clear(l.entries[rest:])
	l.entries = l.entries[:rest]
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
	return hard, &pb.ConfState{Voters: l.voters}, nil
}

// Entries returns the entries in [lo, hi), at least one and otherwise at most maxSize bytes.
func (l *logTail) Entries(lo, hi, maxSize uint64) ([]*pb.Entry, error) {
	if lo < l.first {
		return nil, raft.ErrCompacted
	}
	end := l.first + uint64(len(l.entries))
	assert.True(hi <= end, "entries asked for exist", hi, end)
	part := l.entries[lo-l.first : hi-l.first]
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
	if index >= l.first+uint64(len(l.entries)) {
		return 0, raft.ErrUnavailable
	}
	return l.entries[index-l.first].GetTerm(), nil
}

// LastIndex returns the index of the newest entry.
func (l *logTail) LastIndex() (uint64, error) { return l.first + uint64(len(l.entries)) - 1, nil }

// FirstIndex returns the index of the oldest entry.
func (l *logTail) FirstIndex() (uint64, error) { return l.first, nil }

// Snapshot is never available: a group of one has no follower to bring up to date.
func (l *logTail) Snapshot() (*pb.Snapshot, error) {
	return nil, raft.ErrSnapshotTemporarilyUnavailable
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
