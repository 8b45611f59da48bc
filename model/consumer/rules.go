package consumer

import "weir/model/jsapi"

// rules is what a configuration says, in the form in which the operations use it.
type rules struct {
	filters       []string
	ack           jsapi.AckPolicy
	ackWaitNanos  int64
	backoffNanos  []int64
	maxDeliver    uint64 // 0: no limit
	maxAckPending int    // 0: no limit
	samplePercent uint64
}

func deriveRules(c *jsapi.ConsumerConfig) rules {
	r := rules{
		filters:       c.Filters(),
		ack:           c.AckPolicy,
		ackWaitNanos:  int64(c.AckWait),
		samplePercent: uint64(c.SamplePercent()),
	}
	for _, d := range c.BackOff {
		r.backoffNanos = append(r.backoffNanos, int64(d))
	}
	if c.MaxDeliver > 0 {
		r.maxDeliver = uint64(c.MaxDeliver)
	}
	if c.MaxAckPending > 0 && c.AckPolicy != jsapi.AckNone {
		r.maxAckPending = c.MaxAckPending
	}
	return r
}

// deadline is when a message that was delivered for the deliveries-th time at now is due again: after the ack wait, or
// after the back-off of that delivery, the last one standing for all that follow.
func (r *rules) deadline(now int64, deliveries uint64) int64 {
	wait := r.ackWaitNanos
	if n := uint64(len(r.backoffNanos)); n > 0 {
		wait = r.backoffNanos[min(max(deliveries, 1), n)-1]
	}
	if wait <= 0 {
		return never
	}
	return addNanos(now, wait)
}

// exhausted reports whether a message with that many deliveries must not be delivered again.
func (r *rules) exhausted(deliveries uint64) bool {
	return r.maxDeliver > 0 && deliveries >= r.maxDeliver
}

// addNanos is now+wait, never when that is beyond the range of time.
func addNanos(now, wait int64) int64 {
	if wait > never-max(now, 0) {
		return never
	}
	return now + wait
}
