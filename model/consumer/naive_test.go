package consumer

import (
	"math"
	"slices"

	"weir/model/effect"
	"weir/model/jsapi"
)

// naiveEntry is a pending message of the naive twin.
type naiveEntry struct {
	seq, cseq      uint64
	last, deadline int64
	deliveries     uint64
	queued, nacked bool
}

// naive is the consumer that is too simple to be wrong: slices, full scans, and no derived state at all.
type naive struct {
	log       *fakeLog
	config    *jsapi.ConsumerConfig
	cursor    uint64
	skip      []uint64
	delivered Position
	floor     Position
	pending   []naiveEntry
	out       []effect.Effect
}

func newNaive(config *jsapi.ConsumerConfig, log *fakeLog) *naive {
	n := &naive{log: log, config: config}
	filters := config.Filters()
	switch config.DeliverPolicy {
	case jsapi.DeliverAll:
		n.cursor = log.First()
	case jsapi.DeliverNew:
		n.cursor = log.last + 1
	case jsapi.DeliverLast:
		n.cursor = log.last
		if len(filters) > 0 {
			n.cursor = log.LastMatch(filters)
		}
	case jsapi.DeliverByStartSequence:
		n.cursor = config.OptStartSeq
	case jsapi.DeliverByStartTime:
		n.cursor = log.SeqAtTime(int64(*config.OptStartTime))
	case jsapi.DeliverLastPerSubject:
		n.skip = log.LastSeqs(filters)
		n.cursor = log.last + 1
	}
	n.cursor = max(n.cursor, log.First())
	start := n.cursor - 1
	if len(n.skip) > 0 {
		start = n.skip[0] - 1
	}
	n.delivered.Stream, n.floor.Stream = start, start
	return n
}

// reset reports to which sequence the consumer went back, and whether it may.
func (n *naive) reset(seq uint64) (uint64, bool) {
	policy := n.config.DeliverPolicy
	switch {
	case seq == 0:
		seq = n.floor.Stream + 1
	case policy == jsapi.DeliverByStartSequence && seq >= n.config.OptStartSeq, policy == jsapi.DeliverAll:
	case policy == jsapi.DeliverByStartTime && seq >= n.log.SeqAtTime(int64(*n.config.OptStartTime)):
	default:
		return 0, false
	}
	if policy == jsapi.DeliverLastPerSubject {
		for _, e := range n.pending {
			if n.log.Matches(n.config.Filters(), e.seq) {
				n.skip = append(n.skip, e.seq)
			}
		}
		slices.Sort(n.skip)
	} else {
		n.cursor = max(seq, n.log.First())
	}
	n.pending = nil
	n.delivered, n.floor = Position{Stream: seq - 1}, Position{Stream: seq - 1}
	return seq, true
}

func (n *naive) numPending() uint64 {
	return uint64(len(n.skip)) + n.log.Count(n.config.Filters(), n.cursor)
}

func (n *naive) full() bool {
	return n.config.AckPolicy != jsapi.AckNone && n.config.MaxAckPending > 0 && len(n.pending) >= n.config.MaxAckPending
}

func (n *naive) queued() int {
	return slices.IndexFunc(n.pending, func(e naiveEntry) bool { return e.queued })
}

func (n *naive) deliverable() bool { return n.queued() >= 0 || n.numPending() > 0 && !n.full() }

func (n *naive) wait(now int64, deliveries uint64) int64 {
	d := int64(n.config.AckWait)
	if b := n.config.BackOff; len(b) > 0 {
		d = int64(b[min(max(int(deliveries), 1), len(b))-1])
	}
	if d <= 0 {
		return math.MaxInt64
	}
	return now + d
}

func (n *naive) emit(e effect.Effect) { n.out = append(n.out, e) }

// hand emits a handoff unless it does not fit into what is left of the bytes.
func (n *naive) hand(seq, deliveries, left uint64, req Request) (uint64, bool) {
	m := n.log.find(seq)
	pending := n.numPending()
	if deliveries == 1 && !slices.ContainsFunc(n.pending, func(e naiveEntry) bool { return e.seq == seq }) {
		pending--
	}
	reply := jsapi.AppendAckReply(nil, &jsapi.AckReply{Stream: "S", Consumer: "C", Delivered: deliveries, StreamSeq: seq,
		ConsumerSeq: n.delivered.Consumer + 1, TimeNanos: m.time, Pending: pending})
	size := uint64(len(reply) + len(m.subject) + m.size)
	if req.MaxBytes > 0 && size > left {
		return left, false
	}
	n.delivered.Consumer++
	n.emit(effect.Effect{Kind: effect.Handoff, Consumer: 7, Token: req.Token, Seq: seq, ConsumerSeq: n.delivered.Consumer,
		Deliveries: deliveries, N: pending, Time: m.time})
	return left - size, true
}

func (n *naive) deliver(now int64, req Request) {
	left, count, ok := req.MaxBytes, uint64(0), true
	stop := effect.StopCount
	for ; count < req.Count; count++ {
		if i := n.queued(); i >= 0 {
			e := &n.pending[i]
			if left, ok = n.hand(e.seq, e.deliveries+1, left, req); !ok {
				stop = effect.StopBytes
				break
			}
			e.deliveries++
			e.queued, e.nacked, e.last, e.deadline = false, false, now, n.wait(now, e.deliveries)
			continue
		}
		if n.numPending() == 0 {
			stop = effect.StopEmpty
			break
		}
		if n.full() {
			stop = effect.StopPending
			break
		}
		if left, ok = n.deliverNew(now, left, req); !ok {
			stop = effect.StopBytes
			break
		}
	}
	if count > 0 {
		n.delivered.Last = now
	}
	n.emit(effect.Effect{Kind: effect.Delivered, Consumer: 7, Token: req.Token, N: count, Stop: stop})
	n.result(true)
}

func (n *naive) deliverNew(now int64, left uint64, req Request) (uint64, bool) {
	skipping := len(n.skip) > 0
	seq := uint64(0)
	if skipping {
		seq = n.skip[0]
	} else {
		seq, _ = n.log.Next(n.config.Filters(), n.cursor, math.MaxInt)
		n.cursor = seq // what is skipped stays skipped, even when the filters change later
	}
	left, ok := n.hand(seq, 1, left, req)
	if !ok {
		return left, false
	}
	if skipping {
		n.skip = n.skip[1:]
	} else {
		n.cursor = seq + 1
	}
	n.delivered.Stream = seq
	if n.config.AckPolicy == jsapi.AckNone {
		n.floor.Consumer, n.floor.Stream = n.delivered.Consumer, seq
		return left, true
	}
	n.pending = append(n.pending, naiveEntry{seq: seq, cseq: n.delivered.Consumer, last: now, deadline: n.wait(now, 1), deliveries: 1})
	return left, true
}

func (n *naive) result(flag bool) {
	n.emit(effect.Effect{Kind: effect.Result, Consumer: 7, Flag: flag})
}

func (n *naive) find(seq uint64) int {
	return slices.IndexFunc(n.pending, func(e naiveEntry) bool { return e.seq == seq })
}

func (n *naive) finish(i int) {
	n.pending = slices.Delete(n.pending, i, i+1)
	switch {
	case len(n.pending) == 0:
		n.floor.Consumer, n.floor.Stream = n.delivered.Consumer, n.delivered.Stream
	case i == 0:
		n.floor.Consumer, n.floor.Stream = n.pending[0].cseq-1, n.pending[0].seq-1
	}
}

func (n *naive) settle(now int64, d Delivery) bool {
	known := d.StreamSeq < n.cursor
	if len(n.skip) > 0 {
		known = d.StreamSeq <= n.delivered.Stream
	}
	if n.config.AckPolicy == jsapi.AckNone || !known {
		return false
	}
	if n.config.AckPolicy == jsapi.AckExplicit {
		n.floor.Last = now
		if i := n.find(d.StreamSeq); i >= 0 {
			n.finish(i)
		}
		return true
	}
	if d.StreamSeq <= n.floor.Stream {
		return true
	}
	n.floor.Last = now
	for len(n.pending) > 0 && n.pending[0].seq <= d.StreamSeq {
		n.floor.Consumer = n.pending[0].cseq
		n.pending = n.pending[1:]
	}
	n.floor.Stream = min(d.StreamSeq, n.delivered.Stream)
	if len(n.pending) == 0 {
		n.floor.Consumer, n.floor.Stream = n.delivered.Consumer, n.delivered.Stream
	}
	return true
}

func (n *naive) due(i int) {
	e := &n.pending[i]
	if n.config.MaxDeliver > 0 && e.deliveries >= uint64(n.config.MaxDeliver) {
		n.emit(effect.Effect{Kind: effect.MaxDeliveries, Consumer: 7, Seq: e.seq, Deliveries: e.deliveries})
		n.finish(i)
		return
	}
	if !n.log.Matches(n.config.Filters(), e.seq) {
		n.finish(i)
		return
	}
	e.queued, e.nacked, e.deadline = true, false, math.MaxInt64
}

func (n *naive) nak(now int64, d Delivery, delay int64) {
	n.result(d.StreamSeq != 0 && n.config.AckPolicy != jsapi.AckNone)
	i := n.find(d.StreamSeq)
	if i < 0 || d.ConsumerSeq <= n.floor.Consumer || d.ConsumerSeq > n.delivered.Consumer {
		return
	}
	n.emit(effect.Effect{Kind: effect.Naked, Consumer: 7, Seq: d.StreamSeq, ConsumerSeq: d.ConsumerSeq, Deliveries: d.Deliveries})
	if delay > 0 {
		n.pending[i].queued, n.pending[i].nacked, n.pending[i].deadline = false, true, now+delay
	} else if !n.pending[i].queued {
		n.due(i)
	}
}

func (n *naive) progress(now int64, d Delivery) {
	n.result(d.StreamSeq != 0 && n.config.AckPolicy != jsapi.AckNone)
	if i := n.find(d.StreamSeq); i >= 0 && !n.pending[i].queued {
		e := &n.pending[i]
		e.last, e.deadline = now, n.wait(now, e.deliveries)
	}
}

func (n *naive) release(d Delivery) {
	n.result(false)
	i := n.find(d.StreamSeq)
	if i < 0 || n.pending[i].deliveries != d.Deliveries || d.Deliveries == 0 {
		return
	}
	n.pending[i].deliveries--
	n.due(i)
}

// nextDue returns the index of the pending message that is due first, or -1.
func (n *naive) nextDue() int {
	best := -1
	for i, e := range n.pending {
		if !e.queued && e.deadline != math.MaxInt64 && (best < 0 || e.deadline < n.pending[best].deadline) {
			best = i
		}
	}
	return best
}

func (n *naive) tick(now int64) {
	for i := n.nextDue(); i >= 0 && n.pending[i].deadline <= now; i = n.nextDue() {
		n.due(i)
	}
}

// removed is called after the message has left the log; matched says whether it was wanted.
func (n *naive) removed(seq uint64, why Removal) {
	if i := slices.Index(n.skip, seq); i >= 0 {
		n.skip = slices.Delete(n.skip, i, i+1)
		return
	}
	if i := n.find(seq); i >= 0 {
		e := n.pending[i]
		n.emit(effect.Effect{Kind: effect.Terminated, Consumer: 7, Seq: seq, ConsumerSeq: e.cseq, Deliveries: e.deliveries,
			Text: why.reason()})
		n.finish(i)
	}
}

func (n *naive) purged(first uint64) {
	n.skip = slices.DeleteFunc(n.skip, func(seq uint64) bool { return seq < first })
	for len(n.pending) > 0 && n.pending[0].seq < first {
		n.floor.Consumer = max(n.floor.Consumer, n.pending[0].cseq)
		n.pending = n.pending[1:]
	}
	n.cursor = max(n.cursor, first)
	if len(n.skip) == 0 {
		n.delivered.Stream = max(n.delivered.Stream, first-1)
	}
	n.floor.Stream = min(max(n.floor.Stream, first-1), n.delivered.Stream)
	if len(n.pending) == 0 {
		n.floor.Consumer, n.floor.Stream = n.delivered.Consumer, n.delivered.Stream
	}
}

func (n *naive) update(config *jsapi.ConsumerConfig) {
	n.config = config
	n.skip = slices.DeleteFunc(n.skip, func(seq uint64) bool { return !n.log.Matches(config.Filters(), seq) })
	for i := 0; i < len(n.pending); i++ {
		e := &n.pending[i]
		if !e.queued && !e.nacked {
			e.deadline = n.wait(e.last, e.deliveries)
		}
		if left := len(n.pending); e.queued {
			if n.due(i); len(n.pending) < left {
				i--
			}
		}
	}
}
