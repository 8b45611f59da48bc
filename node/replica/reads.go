package replica

import (
	"encoding/binary"
	"slices"

	"go.etcd.io/raft/v3"

	"weir/node/event"
)

// read waits until everything that was proposed before it is applied, and everything that was committed before it.
type read struct {
	after uint64 // token of the last batch to wait for
	round uint64 // the first in which the read index was asked for; 0: not yet
	// index is what has to be applied, once it is confirmed.
	index     uint64
	confirmed bool
	unleased  bool // a lease does not answer it
	ticks     int  // since the read was asked
	done      func(ok bool)
}

// asking is what a replica knows about reads. With several voters a read takes a round: the leader's commit index, and
// the word of a quorum that it led after the read was asked (Raft thesis, section 6.4). One round serves all reads that
// came before it.
type asking struct {
	reads   []read // in the order in which they were asked and are answered
	unasked int    // of them without a round
	again   bool   // some of those with one need another
	round   uint64 // newest; never used twice on a replica, as answers may be very late

	asked event.Time // when the newest round began
}

// ReadsMax bounds the reads of one group that may wait.
const ReadsMax = 10_000

// Read calls done with true once this replica's state is at least as new as everything acknowledged, by anyone, and
// everything proposed here before the call; that may be at once. It calls done with false when it cannot know. Followers
// can read as well: they ask the leader, and give up after a while.
func (r *Replica) Read(done func(ok bool)) { r.await(read{done: done}) }

// Consult is Read for one who asks whether a majority is there: no lease answers it.
func (r *Replica) Consult(done func(ok bool)) { r.await(read{done: done, unleased: true}) }

func (r *Replica) await(rd read) {
	done := rd.done
	if r.config.Asked != nil {
		done = r.watched(done)
	}
	if !r.rounds && r.serving && len(r.reads) == 0 && len(r.waiting) == 0 && r.open == nil {
		done(true)
		return
	}
	if len(r.reads) >= ReadsMax || r.rounds && r.broken != nil {
		done(false)
		return
	}
	rd.after, rd.done = r.token, done
	r.reads = append(r.reads, rd)
	r.unasked++
}

// watched is done, of which the simulator hears.
func (r *Replica) watched(done func(ok bool)) func(ok bool) {
	answered := r.config.Asked(r)
	return func(ok bool) {
		if ok {
			answered()
		}
		done(ok)
	}
}

// mustAsk reports whether reads wait for a round that can begin.
func (r *Replica) mustAsk() bool {
	return (r.unasked > 0 || r.again) && r.rounds && (r.leader || r.leaderID != 0)
}

// ask begins a round for all reads without one.
func (r *Replica) ask(now event.Time, sink Sink) bool {
	if !r.mustAsk() {
		return false
	}
	r.Wake(sink)
	if r.leased(now) && !slices.ContainsFunc(r.reads, func(rd read) bool { return rd.unleased }) {
		r.confirmAll(r.commit)
		r.runReads()
		return true
	}
	r.begin(now, sink)
	return true
}

// begin begins a round. A time that has passed since does no harm: a lease counts from it.
func (r *Replica) begin(now event.Time, sink Sink) {
	if r.leader && r.readUnasked() {
		return
	}
	r.round++
	r.asked, r.lease.asked = now, r.leaseClock(now)
	for i := range r.reads {
		if r.reads[i].round == 0 && !r.reads[i].confirmed {
			r.reads[i].round = r.round
		}
	}
	r.unasked, r.again = 0, false
	r.node.ReadIndex(binary.LittleEndian.AppendUint64(nil, r.round))
	r.Advance(sink)
}

// confirm takes the answer to a round. Reads of earlier rounds, whose answers may be lost, were asked before it too.
func (r *Replica) confirm(state *raft.ReadState) {
	if len(state.RequestCtx) != 8 {
		return
	}
	round := binary.LittleEndian.Uint64(state.RequestCtx)
	for i := range r.reads {
		rd := &r.reads[i]
		if !rd.confirmed && rd.round != 0 && rd.round <= round {
			rd.confirmed, rd.index = true, state.Index
		}
	}
	r.extendLease(round)
}

// confirmAll lets every read that waits be answered at the index.
func (r *Replica) confirmAll(index uint64) {
	for i := range r.reads {
		if !r.reads[i].confirmed {
			r.reads[i].confirmed, r.reads[i].index = true, index
		}
	}
	r.unasked, r.again = 0, false
}

// askAgain has a further round begun for the reads that wait for one, as theirs may be lost. The answer to any round since
// a read was asked will do: rounds may take longer than the time after which they are repeated.
func (r *Replica) askAgain() {
	for i := range r.reads {
		if rd := &r.reads[i]; !rd.confirmed && rd.round != 0 {
			r.again = true
			return
		}
	}
}

// tickReads lets a follower ask again what may be lost, and give up what it has asked for too long. A leader's rounds
// ride with its heartbeats, and end with its leadership.
func (r *Replica) tickReads(sink Sink) {
	if len(r.reads) == 0 {
		return
	}
	if r.leader {
		r.askLate(sink)
		return
	}
	stale := 0
	for i := range r.reads {
		r.reads[i].ticks++
		if stale == i && r.reads[i].ticks > 2*r.config.ElectionTicks {
			stale++
		}
	}
	r.answer(stale, false)
	r.askAgain()
	r.askLate(sink)
}

// askLate is ask for one who does not know the time, but only when the last round began: no lease may be judged by that. A
// server that was paused for long would find its lease valid.
func (r *Replica) askLate(sink Sink) {
	if r.mustAsk() {
		r.Wake(sink)
		r.begin(r.asked, sink)
	}
}

// AnswerReads answers the reads that wait for what was proposed before them, without that: it can not be appended at the
// moment. It is for a leader whose log has no room, and what it answers is as new as everything acknowledged.
func (r *Replica) AnswerReads() {
	if !r.serving {
		return
	}
	for i := range r.reads {
		r.reads[i].after = 0
	}
	r.runReads()
}

// runReads answers the reads whose turn has come.
func (r *Replica) runReads() {
	if len(r.reads) == 0 || r.leader && !r.serving || !r.leader && !r.rounds {
		return
	}
	applied := r.token
	if len(r.waiting) > 0 {
		applied = r.waiting[0].token - 1
	} else if r.open != nil {
		applied = r.open.token - 1
	}
	n := 0
	for n < len(r.reads) {
		rd := &r.reads[n]
		if rd.after > applied || r.rounds && (!rd.confirmed || rd.index > r.machine.Applied()) {
			break
		}
		n++
	}
	r.answer(n, true)
}

// answer answers the oldest n reads.
func (r *Replica) answer(n int, ok bool) {
	if n == 0 {
		return
	}
	due := append([]read(nil), r.reads[:n]...)
	rest := copy(r.reads, r.reads[n:])
	clear(r.reads[rest:])
	r.reads = r.reads[:rest]
	for i := range due {
		if due[i].round == 0 && !due[i].confirmed {
			r.unasked--
		}
	}
	for i := range due {
		due[i].done(ok)
	}
}

// failReads tells everybody who waits for a read that it can not be answered here.
func (r *Replica) failReads() { r.answer(len(r.reads), false) }
