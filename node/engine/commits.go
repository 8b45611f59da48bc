package engine

import (
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"

	"weir/node/replica"
)

// A leader tells its followers of each commit by a message that carries nothing else. In a busy group the next entries
// tell them as well, so such a message waits a little for them: half of all messages between servers are saved. Followers
// apply later by that time, which nobody sees: clients are answered by the leader.

// commitNanos is how long what tells a follower of a commit may wait for entries to the same follower.
const commitNanos = int64(4e6)

// heldCommit is a message that waits.
type heldCommit struct {
	group *group
	to    replica.Member
	m     *pb.Message
	at    int64 // monotone time at which it leaves
}

// committing is the messages that wait, in the order in which they leave.
type committing struct {
	heldCommits []heldCommit
	// commitsAt is when the timer for them fires, 0 without one. It is left alone when what waited leaves with entries: in
	// a busy group that is nearly always so, and a timer of their own for all that wait would step the engine once for each.
	commitsAt int64
}

// holdCommit reports whether the message waits. One that carries entries, or asks what a follower has, takes the place of
// what waits for the same follower.
func (e *Engine) holdCommit(r *replica.Replica, to replica.Member, m *pb.Message) bool {
	g := e.groups[r.Group()]
	if g == nil || g == e.meta || m.GetType() != pb.MsgApp {
		return false
	}
	at := slices.IndexFunc(e.heldCommits, func(h heldCommit) bool { return h.group == g && h.to.ID == to.ID })
	progress, ok := r.Progress(to.ID)
	if len(m.Entries) > 0 || !ok || progress.State != replica.Replicating {
		if at >= 0 {
			e.heldCommits = slices.Delete(e.heldCommits, at, at+1)
		}
		return false
	}
	if at >= 0 {
		e.heldCommits[at].m = m
		return true
	}
	if len(e.heldCommits) >= heldCommitsMax {
		return false
	}
	e.heldCommits = append(e.heldCommits, heldCommit{group: g, to: to, m: m, at: e.now.Mono + commitNanos})
	e.awaitCommits()
	return true
}

// awaitCommits has a timer set for the message that leaves first.
func (e *Engine) awaitCommits() {
	if e.commitsAt == 0 && len(e.heldCommits) > 0 {
		e.commitsAt = e.heldCommits[0].at
		e.timers.push(timer{at: e.commitsAt, kind: commitTimer})
	}
}

// heldCommitsMax bounds the messages that wait, so that it is quick to look for one.
const heldCommitsMax = 64

// releaseCommits sends what has waited long enough.
func (e *Engine) releaseCommits() {
	e.commitsAt = 0
	due := 0
	for due < len(e.heldCommits) && e.heldCommits[due].at <= e.now.Mono {
		due++
	}
	for i := range e.heldCommits[:due] {
		h := &e.heldCommits[i]
		if r := h.group.replica; e.groups[h.group.id] == h.group && r != nil && r.IsLeader() && r.Term() == h.m.GetTerm() {
			e.sendMessage(r, h.to, h.m)
		}
	}
	e.heldCommits = slices.Delete(e.heldCommits, 0, due)
	e.awaitCommits()
}
