package oracle

import (
	"fmt"
	"math"
	"slices"

	"weir/model/effect"
	"weir/model/jsapi"
)

// Deliver hands out up to count messages of up to maxBytes in all (0: any): those that are due again first, in ascending
// order, then new ones as long as max_ack_pending allows. It says why it stopped.
func (c *Consumer) Deliver(now int64, count int, maxBytes uint64) ([]Handoff, effect.Stop) {
	var out []Handoff
	left := uint64(math.MaxUint64)
	if maxBytes > 0 {
		left = maxBytes
	}
	for len(out) < count {
		h, stop := c.next()
		if stop != effect.StopCount {
			return out, stop
		}
		if h.Seq >= c.cursor {
			// Looking is passing: what the filters did not select up to here, later filters do not bring back.
			c.cursor = h.Seq
		}
		size := c.sizeOf(h)
		if size > left {
			return out, effect.StopBytes
		}
		left -= size
		c.handOut(now, h)
		out = append(out, h)
	}
	return out, effect.StopCount
}

// next is what would be handed out next; StopCount means that there is something.
func (c *Consumer) next() (Handoff, effect.Stop) {
	left := c.undelivered()
	h := Handoff{ConsumerSeq: c.Delivered.Consumer + 1, Pending: uint64(len(left))}
	for _, p := range c.Pending {
		if p.Queued {
			h.Seq, h.Deliveries = p.Seq, p.Deliveries+1
			return h, effect.StopCount
		}
	}
	if len(left) == 0 {
		return h, effect.StopEmpty
	}
	if c.Config.AckPolicy != jsapi.AckNone && c.Config.MaxAckPending > 0 && len(c.Pending) >= c.Config.MaxAckPending {
		return h, effect.StopPending
	}
	h.Seq, h.Deliveries = left[0].Seq, 1
	h.Pending--
	return h, effect.StopCount
}

// sizeOf is what a delivery counts against max_bytes: subject, ack reply, header and payload.
func (c *Consumer) sizeOf(h Handoff) uint64 {
	m := c.stream.at(h.Seq)
	reply := fmt.Sprintf("$JS.ACK.%s.%s.%d.%d.%d.%d.%d", c.stream.Config.Name, c.Name, h.Deliveries, h.Seq, h.ConsumerSeq,
		m.Time, h.Pending)
	return uint64(len(m.Subject) + len(reply) + len(m.Header) + len(m.Payload))
}

func (c *Consumer) handOut(now int64, h Handoff) {
	c.Delivered.Consumer++
	if p := c.find(h.Seq); p != nil {
		p.Deliveries++
		p.Queued, p.Delayed, p.Last, p.Due = false, false, now, c.dueAt(now, p.Deliveries)
		return
	}
	c.Delivered.Stream = h.Seq
	c.chosen = slices.DeleteFunc(c.chosen, func(seq uint64) bool { return seq == h.Seq })
	c.cursor = max(c.cursor, h.Seq+1)
	if c.Config.AckPolicy == jsapi.AckNone {
		c.Floor = c.Delivered
		return
	}
	c.Pending = append(c.Pending, Pending{Seq: h.Seq, First: h.ConsumerSeq, Deliveries: 1, Last: now, Due: c.dueAt(now, 1)})
}

// Release takes back the latest delivery of a message, which reached nobody. The deliveries before it may be too many
// nevertheless: max_deliver may have been lowered since.
func (c *Consumer) Release(seq, deliveries uint64) {
	p := c.find(seq)
	if p == nil || p.Deliveries != deliveries || deliveries == 0 {
		return
	}
	p.Deliveries--
	c.again(seq)
}

// dueAt is when a message is due again after its nth delivery.
func (c *Consumer) dueAt(now int64, deliveries uint64) int64 {
	wait := int64(c.Config.AckWait)
	if n := len(c.Config.BackOff); n > 0 {
		wait = int64(c.Config.BackOff[min(max(int(deliveries), 1), n)-1])
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
	p.Queued, p.Delayed = true, false
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
		p.Queued, p.Delayed, p.Due = false, true, now+delay
		return
	}
	if !p.Queued {
		c.again(seq)
	}
}

// Progress restarts the ack wait of a pending message that is not due.
func (c *Consumer) Progress(now int64, seq uint64) {
	if p := c.find(seq); p != nil && !p.Queued {
		p.Delayed, p.Last, p.Due = false, now, c.dueAt(now, p.Deliveries)
	}
}
