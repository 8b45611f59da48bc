package oracle

import (
	"slices"

	"weir/model/jsapi"
)

// Deliver hands out up to count messages: those that are due again first, in ascending order, then new ones as long as
// max_ack_pending allows.
func (c *Consumer) Deliver(now int64, count int) []Handoff {
	var out []Handoff
	for len(out) < count {
		h, ok := c.deliverOne(now)
		if !ok {
			break
		}
		out = append(out, h)
	}
	return out
}

func (c *Consumer) deliverOne(now int64) (Handoff, bool) {
	for i := range c.Pending {
		p := &c.Pending[i]
		if !p.Queued {
			continue
		}
		p.Deliveries++
		p.Queued, p.Due = false, c.dueAt(now, p.Deliveries)
		c.Delivered.Consumer++
		return Handoff{p.Seq, c.Delivered.Consumer, p.Deliveries, c.NumPending()}, true
	}
	acks := c.Config.AckPolicy != jsapi.AckNone
	if acks && c.Config.MaxAckPending > 0 && len(c.Pending) >= c.Config.MaxAckPending {
		return Handoff{}, false
	}
	left := c.undelivered()
	if len(left) == 0 {
		return Handoff{}, false
	}
	m := left[0]
	c.chosen = slices.DeleteFunc(c.chosen, func(seq uint64) bool { return seq == m.Seq })
	c.cursor = max(c.cursor, m.Seq+1)
	c.Delivered.Consumer++
	c.Delivered.Stream = m.Seq
	if acks {
		c.Pending = append(c.Pending, Pending{Seq: m.Seq, First: c.Delivered.Consumer, Deliveries: 1, Due: c.dueAt(now, 1)})
	} else {
		c.Floor = c.Delivered
	}
	return Handoff{m.Seq, c.Delivered.Consumer, 1, uint64(len(left) - 1)}, true
}

// dueAt is when a message is due again after its nth delivery.
func (c *Consumer) dueAt(now int64, deliveries uint64) int64 {
	wait := int64(c.Config.AckWait)
	if n := len(c.Config.BackOff); n > 0 {
		wait = int64(c.Config.BackOff[min(int(deliveries), n)-1])
	}
	return now + wait
}

// tick ends the ack waits and delays that have passed.
func (c *Consumer) tick(now int64) {
	for _, p := range slices.Clone(c.Pending) {
		if !p.Queued && p.Due <= now {
			c.again(p.Seq)
		}
	}
}

// again makes a pending message due, or ends it when it had its last delivery or is no longer selected.
func (c *Consumer) again(seq uint64) {
	p := c.find(seq)
	if c.Config.MaxDeliver > 0 && p.Deliveries >= uint64(c.Config.MaxDeliver) {
		c.Exceeded = append(c.Exceeded, seq)
		c.finish(seq)
		return
	}
	if !matchesAny(c.stream.at(seq).Subject, c.Config.Filters()) {
		c.finish(seq)
		return
	}
	p.Queued = true
}

func (c *Consumer) find(seq uint64) *Pending {
	for i := range c.Pending {
		if c.Pending[i].Seq == seq {
			return &c.Pending[i]
		}
	}
	return nil
}

// finish ends a delivery. The ack floor moves when nothing is pending any more, and when the lowest delivery ended.
func (c *Consumer) finish(seq uint64) {
	i := slices.IndexFunc(c.Pending, func(p Pending) bool { return p.Seq == seq })
	if i < 0 {
		return
	}
	c.Pending = slices.Delete(c.Pending, i, i+1)
	if len(c.Pending) == 0 {
		c.Floor = c.Delivered
	} else if i == 0 {
		c.Floor.Consumer = max(c.Floor.Consumer, c.Pending[0].First-1)
		c.Floor.Stream = max(c.Floor.Stream, c.Pending[0].Seq-1)
	}
}

// Ack ends the delivery of the message, with ack policy all of every message up to it. Term is the same. It reports
// whether the client gets an answer.
func (c *Consumer) Ack(seq uint64) (answered bool) {
	if c.Config.AckPolicy == jsapi.AckNone || !c.handedOut(seq) {
		return false
	}
	if c.Config.AckPolicy == jsapi.AckExplicit {
		c.finish(seq)
		return true
	}
	if seq <= c.Floor.Stream {
		return true
	}
	for len(c.Pending) > 0 && c.Pending[0].Seq <= seq {
		c.Floor.Consumer = max(c.Floor.Consumer, c.Pending[0].First)
		c.Pending = c.Pending[1:]
	}
	c.Floor.Stream = min(seq, c.Delivered.Stream)
	if len(c.Pending) == 0 {
		c.Floor = c.Delivered
	}
	return true
}

// handedOut says whether the message may have been delivered.
func (c *Consumer) handedOut(seq uint64) bool {
	if len(c.chosen) > 0 {
		return seq <= c.Delivered.Stream
	}
	return seq < c.cursor
}

// Nak makes a pending message due again, after a delay in nanoseconds when that is positive. The consumer sequence that
// it names must be one that is neither done with nor in the future.
func (c *Consumer) Nak(now int64, seq, consumerSeq uint64, delay int64) {
	p := c.find(seq)
	if p == nil || consumerSeq <= c.Floor.Consumer || consumerSeq > c.Delivered.Consumer {
		return
	}
	if delay > 0 {
		p.Queued, p.Due = false, now+delay
		return
	}
	if !p.Queued {
		c.again(seq)
	}
}

// Progress restarts the ack wait of a pending message that is not due.
func (c *Consumer) Progress(now int64, seq uint64) {
	if p := c.find(seq); p != nil && !p.Queued {
		p.Due = c.dueAt(now, p.Deliveries)
	}
}
