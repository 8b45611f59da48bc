package consumer

import (
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/spec/assert"
)

// Request is what a Deliver serves.
type Request struct {
	// Token comes back in the effects.
	Token uint64
	// Count is the largest number of messages to hand out; DeliverMax bounds it as well.
	Count uint64
	// MaxBytes bounds the bytes to hand out, counted as clients count them: subject, ack reply, header and payload of
	// each message. 0: no bound.
	MaxBytes uint64
}

// delivery is a Deliver that runs.
type delivery struct {
	req   Request
	batch *Batch
	// n messages of bytes in all were handed out.
	n, bytes uint64
	// budget is how many messages may still be examined.
	budget int
}

// Deliver hands out messages to one request: first those that are due again, in ascending order, then new ones. It emits
// a Handoff for each, a Delivered that says why it stopped, and a Result.
//
// StopCount with fewer messages than asked for means that the work of one Deliver is used up and another may find more.
func (s *State) Deliver(b *Batch, req Request) {
	before := s.delivered.Consumer
	d := delivery{req: req, batch: b, budget: ScanMax}
	stop := s.handOut(&d)
	if d.n > 0 {
		s.delivered.Last = b.Time
		s.changed = true
	}
	assert.True(s.delivered.Consumer == before+d.n, "each delivery has its own consumer sequence",
		s.delivered.Consumer, before, d.n)
	e := b.Out.Add(effect.Delivered)
	e.Cmd, e.Consumer, e.Token, e.N, e.Stop = b.Cmd, s.id, req.Token, d.n, stop
	s.result(b, true)
	s.check()
}

// Rehearse adds to out what a Deliver would hand out at a time, in unix nanoseconds, and changes nothing. It costs
// O(pending). Only a planted fault acts on a delivery that is not committed.
func (s *State) Rehearse(now int64, req Request, out *effect.List) {
	twin, err := RestoreState(s.AppendState(nil), s.log, s.options)
	assert.True(err == nil, "a state can be read back", s.id)
	twin.Deliver(&Batch{Time: now, Out: out}, req)
}

func (s *State) handOut(d *delivery) effect.Stop {
	count := min(d.req.Count, DeliverMax)
	for d.n < count {
		if e := s.pending.nextQueued(); e != nil {
			if !s.redeliver(d, e) {
				return effect.StopBytes
			}
			continue
		}
		if s.numPending == 0 {
			return effect.StopEmpty
		}
		if s.AtMaxAckPending() {
			return effect.StopPending
		}
		seq, found := s.nextNew(d)
		if !found {
			return effect.StopCount
		}
		if !s.deliverNew(d, seq) {
			return effect.StopBytes
		}
	}
	return effect.StopCount
}

// redeliver hands out a message again, and reports false when it does not fit.
func (s *State) redeliver(d *delivery, e *entry) bool {
	assert.True(!s.rules.exhausted(uint64(e.deliveries)), "deliveries < max_deliver", uint64(e.deliveries), s.rules.maxDeliver)
	h := handoff{seq: e.seq, deliveries: uint64(e.deliveries) + 1, pending: s.numPending}
	if !s.hand(d, h) {
		return false
	}
	to := *e
	to.deliveries++
	to.phase, to.last = waiting, d.batch.Time
	to.deadline = s.rules.deadline(d.batch.Time, uint64(to.deliveries))
	s.pending.update(e, to)
	return true
}

// nextNew finds the next message that was never handed out. It moves the cursor over what does not match, and reports
// false when it has to give up before it found one.
func (s *State) nextNew(d *delivery) (seq uint64, found bool) {
	if seq, ok := s.skip.first(); ok {
		return seq, true
	}
	if d.budget <= 0 {
		return 0, false
	}
	seq, found = s.log.Next(s.rules.filters, s.cursor, d.budget)
	assert.True(seq >= s.cursor, "search goes on from the cursor", seq, s.cursor)
	d.budget -= int(min(seq-s.cursor, uint64(d.budget))) + 1
	if seq > s.cursor {
		s.cursor = seq
		s.changed = true
	}
	return seq, found
}

// deliverNew hands out a message for the first time, and reports false when it does not fit.
func (s *State) deliverNew(d *delivery, seq uint64) bool {
	assert.True(s.numPending > 0, "a message that is found is counted", seq)
	if !s.hand(d, handoff{seq: seq, deliveries: 1, pending: s.numPending - 1}) {
		return false
	}
	s.numPending--
	if !s.skip.remove(seq) {
		assert.True(seq == s.cursor, "new messages come from the cursor", seq, s.cursor)
		s.cursor = seq + 1
	}
	assert.True(seq > s.delivered.Stream, "new messages ascend", seq, s.delivered.Stream)
	s.delivered.Stream = seq
	if s.rules.ack == jsapi.AckNone {
		s.floor.Consumer, s.floor.Stream = s.delivered.Consumer, seq
		return true
	}
	s.pending.add(entry{
		seq: seq, cseq: s.delivered.Consumer, last: d.batch.Time,
		deadline: s.rules.deadline(d.batch.Time, 1), deliveries: 1,
	})
	return true
}

// handoff is one message about to be handed out.
type handoff struct {
	seq, deliveries, pending uint64
}

// hand takes the next consumer sequence for the message and emits its Handoff, unless it does not fit.
func (s *State) hand(d *delivery, h handoff) bool {
	meta, exists := s.log.Meta(h.seq)
	assert.True(exists, "a message that is handed out exists", h.seq)
	if d.req.MaxBytes > 0 {
		reply := jsapi.AckReply{Delivered: h.deliveries, StreamSeq: h.seq, ConsumerSeq: s.delivered.Consumer + 1,
			TimeNanos: meta.Time, Pending: h.pending}
		size := uint64(meta.SubjectSize + meta.Size + s.replySize(&reply))
		if size > d.req.MaxBytes-d.bytes {
			return false
		}
		d.bytes += size
	}
	s.delivered.Consumer++
	d.n++
	e := d.batch.Out.Add(effect.Handoff)
	e.Cmd, e.Consumer, e.Token, e.Seq, e.ConsumerSeq = d.batch.Cmd, s.id, d.req.Token, h.seq, s.delivered.Consumer
	e.Deliveries, e.N, e.Time = h.deliveries, h.pending, meta.Time
	return true
}

// ackReplyFixed is the length of the parts of an ack reply that do not vary: "$JS.ACK." and six dots.
const ackReplyFixed = len("$JS.ACK.") + 6

// replySize is the length of the ack reply subject of a delivery, in the form that jsapi.AppendAckReply writes.
func (s *State) replySize(r *jsapi.AckReply) int {
	size := ackReplyFixed + len(s.options.Stream) + len(s.name)
	size += digits(r.Delivered) + digits(r.StreamSeq) + digits(r.ConsumerSeq) + digits(r.Pending)
	if r.TimeNanos < 0 {
		return size + 1 + digits(-uint64(r.TimeNanos))
	}
	return size + digits(uint64(r.TimeNanos))
}

func digits(v uint64) int {
	n := 1
	for v >= 10 {
		v /= 10
		n++
	}
	return n
}
