package replica

import (
	pb "go.etcd.io/raft/v3/raftpb"
)

// What a leader has proposed is not lost with its leadership: the next leader may have it and commit it, or another entry
// takes its place in the log. This replica finds out when it applies the one or the other, and whoever waits is told then.
// What was not proposed is in no log, and is known to be undone at once.

// lateElections is after how many election timeouts nobody is expected to wait any more.
const lateElections = 10

// Late reports whether the term in which the batch was proposed has ended: the replica does not act as the leader on it.
func (b *Batch) Late() bool { return b.term != 0 }

// depose ends the term of this leader for those who wait: what was proposed waits on, what was not is undone.
func (r *Replica) depose(sink Sink) {
	if r.open != nil {
		r.close()
	}
	waiting, proposed := r.waiting, r.proposed
	r.waiting, r.proposed = nil, 0
	for _, b := range waiting[:proposed] {
		b.term = r.ledTerm
		r.late = append(r.late, b)
		r.lateTicks = 0
	}
	for _, b := range waiting[proposed:] {
		r.undo(b, sink)
	}
}

func (r *Replica) undo(b *Batch, sink Sink) {
	r.load(-b.bytes())
	sink.Undone(r, b)
	b.forget()
	r.recycle(b)
}

// resolveLate finds the batch of an earlier term of this leader that an entry carries. An entry of a later term ends the
// wait for those of earlier ones: terms do not go back in a log, so that they are in none that counts.
func (r *Replica) resolveLate(e *pb.Entry, sink Sink) *Batch {
	for len(r.late) > 0 && r.late[0].term < e.GetTerm() {
		r.undo(r.takeLate(), sink)
	}
	if len(r.late) == 0 || r.late[0].term != e.GetTerm() || !carries(e, r.late[0]) {
		return nil
	}
	b := r.takeLate()
	r.load(-b.bytes())
	return b
}

func (r *Replica) takeLate() *Batch {
	b := r.late[0]
	n := copy(r.late, r.late[1:])
	r.late[n] = nil
	r.late = r.late[:n]
	return b
}

// tickLate gives up what has waited for too long.
func (r *Replica) tickLate() {
	if len(r.late) == 0 {
		return
	}
	if r.lateTicks++; r.lateTicks > lateElections*r.config.ElectionTicks {
		r.forgetLate()
	}
}

// forgetLate tells those who wait for batches of earlier terms that the outcome will never be known here. It returns the
// batches.
func (r *Replica) forgetLate() []*Batch {
	late := r.late
	r.late = nil
	for _, b := range late {
		r.load(-b.bytes())
		b.forget()
	}
	return late
}
