package replica

import (
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"weir/node/event"
)

// What the faults of Plant do. Nothing here runs in production.

// voteEarly sends votes that would have to wait for the disk, and returns the other responses.
func (r *Replica) voteEarly(responses []*pb.Message, sink Sink) []*pb.Message {
	return slices.DeleteFunc(responses, func(m *pb.Message) bool {
		early := m.GetType() == pb.MsgVoteResp && m.GetTo() != r.config.ID
		if early {
			r.send(m, sink)
		}
		return early
	})
}

// plantAppend is what is sent instead of an append to a follower.
func (r *Replica) plantAppend(m *pb.Message) *pb.Message {
	n := len(m.Entries)
	switch {
	case r.config.Plant.SkipCatchUpEntry && n > 2 && m.Entries[n/2].GetType() == pb.EntryNormal:
		entries := slices.Clone(m.Entries)
		e := entries[n/2]
		entries[n/2] = &pb.Entry{Term: e.Term, Index: e.Index, Type: e.Type}
		return withEntries(m, entries)
	case r.holdTicks > 0 && n > 0:
		// The entries of the leader's own term, which would make the commit right, come later.
		end := slices.IndexFunc(m.Entries, func(e *pb.Entry) bool { return e.GetTerm() == r.term })
		if end >= 0 {
			return withEntries(m, m.Entries[:end])
		}
	}
	return m
}

func withEntries(m *pb.Message, entries []*pb.Entry) *pb.Message {
	return &pb.Message{Type: m.Type, To: m.To, From: m.From, Term: m.Term, LogTerm: m.LogTerm, Index: m.Index,
		Commit: m.Commit, Entries: entries}
}

// holdElections is for how many election timeouts a leader holds back the entries of its own term.
const holdElections = 2

// holdOwnTerm lets a new leader first send what it took over from others and is not committed.
func (r *Replica) holdOwnTerm() {
	if r.config.Plant.CommitEarlierTerm && r.last > r.commit {
		r.holdTicks = holdElections * r.config.ElectionTicks
	}
}

// commitByCounting commits what a majority has, whatever its term.
func (r *Replica) commitByCounting() {
	if !r.leader {
		return
	}
	var match []uint64
	r.node.WithProgress(func(_ uint64, typ raft.ProgressType, p tracker.Progress) {
		if typ == raft.ProgressTypePeer {
			match = append(match, p.Match)
		}
	})
	slices.Sort(match)
	index := match[(len(match)-1)/2]
	if term, err := r.log.Term(index); err == nil && term < r.term && index > r.commit {
		*commitIndex(r.node) = index
	}
}

// closeGap moves entries behind a gap to the end of the log.
func (r *Replica) closeGap(m *pb.Message) {
	if m.GetType() != pb.MsgApp || m.GetIndex() <= r.last || len(m.Entries) == 0 || m.GetTerm() < r.term {
		return
	}
	term, err := r.log.Term(r.last)
	if err != nil {
		return
	}
	m.Index, m.LogTerm = new(r.last), new(term)
	for i, e := range m.Entries {
		e.Index = new(r.last + 1 + uint64(i))
	}
	m.Commit = new(min(m.GetCommit(), r.last+uint64(len(m.Entries))))
}

// readUnasked answers, as far as the leader alone knows, the reads that wait for a round. It reports whether it did.
func (r *Replica) readUnasked() bool {
	p := &r.config.Plant
	switch {
	case p.ReadOldLeader:
		r.confirmAll(0)
	case r.plantServes():
		r.confirmAll(r.commit)
	case p.ReadWithoutQuorum:
		r.confirmAll(r.commit)
	default:
		return false
	}
	r.runReads()
	return true
}

// plantServes reports whether this leader answers reads too early: it knows of no commit in its own term.
func (r *Replica) plantServes() bool {
	if !r.config.Plant.ReadBeforeTerm || !r.leader || r.config.Group == catalogGroup {
		return false
	}
	term, err := r.log.Term(r.commit)
	return err == nil && term < r.term
}

// catalogGroup is the group of the catalog. A leader that serves it too early does more than to answer reads.
const catalogGroup = 1

// leaseClock is the clock that a lease is measured by.
func (r *Replica) leaseClock(now event.Time) int64 {
	if r.config.Plant.LeaseJump {
		return now.Wall
	}
	return now.Mono
}
