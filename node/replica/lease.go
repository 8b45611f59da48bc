package replica

import (
	pb "go.etcd.io/raft/v3/raftpb"

	"weir/node/event"
)

// A lease lets a leader answer reads without a round: a quorum that answered a round promised with that to elect nobody
// else for an election timeout, counted from when the round began. It is an option (Raft thesis, section 6.4.1), because it
// trusts clocks where everything else does not:
//
//   - the monotone clocks of the servers run at rates that differ by less than a tenth, and do not stand still while a
//     machine is suspended;
//   - every server of the cluster has the option on, so that none forgets its promise earlier.
//
// A step of the wall clock does not matter. A replica that has just started may have promised before: it neither votes nor
// stands for an election timeout. A leader that has handed over, or tried to, has no lease for the rest of its term, as the
// order to the successor may arrive late.

// lease is what a leader knows about its lease.
type lease struct {
	asked   int64 // monotone time at which the newest round began
	until   int64 // monotone time at which the lease ends; 0: none
	revoked uint64
	started int // ticks since the start, up to the election timeout
}

// leased reports whether reads can be answered without a round.
func (r *Replica) leased(now event.Time) bool {
	return r.config.LeaseNanos > 0 && r.leader && r.serving && r.lease.revoked != r.term && r.leaseClock(now) < r.lease.until &&
		(r.config.Leases == nil || r.config.Leases())
}

// Leased reports whether the replica may answer reads without a round. It is for the simulator.
func (r *Replica) Leased(now event.Time) bool { return r.broken == nil && r.leased(now) }

// extendLease notes that a quorum has answered a round.
func (r *Replica) extendLease(round uint64) {
	if r.config.LeaseNanos > 0 && r.leader && round == r.round {
		r.lease.until = r.lease.asked + r.config.LeaseNanos
	}
}

// revokeLease gives up the lease for the rest of the term.
func (r *Replica) revokeLease() { r.lease.revoked, r.lease.until = r.term, 0 }

// bound reports whether this replica, since its start, may still be bound by a promise that it has forgotten.
func (r *Replica) bound() bool {
	return r.config.LeaseNanos > 0 && r.rounds && r.lease.started <= r.config.ElectionTicks
}

// promised reports whether a message asks for a vote that the replica may have promised not to give.
func (r *Replica) promised(m *pb.Message) bool {
	t := m.GetType()
	return (t == pb.MsgVote || t == pb.MsgPreVote || t == pb.MsgTimeoutNow) && r.bound()
}
