package verdict

import (
	"weir/linearizability/history"
	"weir/sim/workload"
)

// steady says that the servers' clocks tell the true time.
func (o *observed) steady() bool { return !stepsClock(o.plan) && !o.plan.Drifts() }

// waits is how long a message that nobody answers waits after its first n deliveries together.
func (o *observed) waits(n uint64) (nanos int64) {
	backoff := o.spec.BackoffMillis
	if len(backoff) == 0 {
		return int64(n) * o.spec.AckWaitMillis * 1_000_000
	}
	for i := range int64(n) {
		nanos += backoff[min(i, int64(len(backoff)-1))] * 1_000_000
	}
	return nanos
}

// postponed: after a confirmed refusal with a delay, or a confirmed request for more time, no request that was made later
// brings the message before that time has passed. Only a delivery whose successor is known counts: one that reached nobody
// is taken back, and its message is due at once.
func (o *observed) postponed() {
	if !o.steady() || len(o.spec.BackoffMillis) > 0 {
		return
	}
	latest := map[uint64]int64{} // when the last answer to a message was confirmed, Never for one without
	for i, d := range o.deliveries {
		if d.ack == nil {
			continue
		}
		before, answered := latest[d.StreamSeq]
		latest[d.StreamSeq] = max(before, d.ack.Return)
		if d.ack.WaitNanos == 0 || d.ack.Return == history.Never || answered && before > d.ack.Call {
			continue // an answer to an earlier delivery may have come after this one
		}
		if d.ack.Kind == workload.Progressed && d.ack.Return >= d.Asked+d.ack.WaitNanos {
			continue // it may have been due already
		}
		next := i + 1
		for next < len(o.deliveries) && o.deliveries[next].StreamSeq != d.StreamSeq {
			next++
		}
		if next == len(o.deliveries) {
			continue
		}
		n := &o.deliveries[next]
		known := n.ConsumerSeq-d.ConsumerSeq == uint64(next-i)
		if known && n.Asked > d.ack.Return && n.At < d.ack.Call+d.ack.WaitNanos {
			o.fail("consumer-early", n.At, "sequence %d was to wait for %d ms from %d on, which was confirmed", d.StreamSeq,
				d.ack.WaitNanos/1_000_000, d.ack.Call)
		}
	}
}
