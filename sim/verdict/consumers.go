package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"weir/linearizability/history"
	"weir/linearizability/models"
	"weir/sim/plan"
	"weir/sim/workload"
	"weir/sim/world"
)

var sprintf = fmt.Sprintf

// observed is what was seen of one consumer.
type observed struct {
	plan    *plan.Plan
	all     *workload.Observations
	index   int
	spec    *plan.Consumer
	filter  string
	removes bool
	// deliveries are by consumer sequence: the order in which the server recorded them.
	deliveries []delivery
	found      []Finding
}

// delivery is a delivery with its answer, if the client gave one.
type delivery struct {
	*workload.Delivery
	ack *workload.Ack
}

// consumer judges one consumer.
func consumer(p *plan.Plan, all *workload.Observations, index int) []Finding {
	spec := &p.Consumers[index]
	stream := &p.Streams[spec.Stream]
	o := &observed{plan: p, all: all, index: index, spec: spec, filter: stream.Prefix + ".>", removes: removes(p, all, spec.Stream)}
	if spec.Key >= 0 {
		o.filter = stream.Subject(spec.Key)
	}
	acks := map[int]*workload.Ack{}
	for i := range all.Acks {
		if a := &all.Acks[i]; a.Consumer == index {
			acks[a.Delivery] = a
		}
	}
	for i := range all.Deliveries {
		if d := &all.Deliveries[i]; d.Consumer == index {
			o.deliveries = append(o.deliveries, delivery{d, acks[i]})
		}
	}
	slices.SortStableFunc(o.deliveries, func(a, b delivery) int { return cmp.Compare(a.ConsumerSeq, b.ConsumerSeq) })
	o.contents()
	o.order()
	o.answered()
	o.postponed()
	o.outstanding()
	o.states()
	o.complete()
	return o.found
}

func (o *observed) fail(class string, at int64, format string, args ...any) {
	o.found = append(o.found, Finding{Class: class, At: at, Detail: o.spec.Name + ": " + sprintf(format, args...)})
}

// contents: no message is invented, changed, or of a subject that the consumer does not want.
func (o *observed) contents() {
	known := writers(o.plan, o.all, o.spec.Stream)
	for _, d := range o.deliveries {
		if id, ok := known[d.StreamSeq]; d.Value == 0 || ok && id != d.Value {
			o.fail("consumer-invented", d.At, "sequence %d was delivered with value #%d, it holds #%d", d.StreamSeq, d.Value, id)
		}
		if !models.Covers(o.filter, d.Subject) {
			o.fail("consumer-invented", d.At, "sequence %d on %s does not match the filter %s", d.StreamSeq, d.Subject, o.filter)
		}
	}
}

// order: every delivery has a number of its own; first deliveries are in stream order; the count of a message grows with
// each delivery and never exceeds max_deliver. A delivery that reached nobody is taken back and made again, with the same
// count and a new number; so a first delivery may come late for each number that no client ever saw.
func (o *observed) order() {
	first, late := uint64(0), uint64(0)
	counts := map[uint64]uint64{}
	for i, d := range o.deliveries {
		if i > 0 && d.ConsumerSeq == o.deliveries[i-1].ConsumerSeq {
			o.fail("consumer-order", d.At, "consumer sequence %d was delivered twice, for stream sequences %d and %d",
				d.ConsumerSeq, o.deliveries[i-1].StreamSeq, d.StreamSeq)
		}
		if d.Count <= counts[d.StreamSeq] {
			o.fail("consumer-count", d.At, "delivery %d of sequence %d came after delivery %d", d.Count, d.StreamSeq, counts[d.StreamSeq])
		}
		counts[d.StreamSeq] = d.Count
		if d.Count == 1 {
			if d.StreamSeq < first {
				late++
			}
			if unseen := d.ConsumerSeq - uint64(i+1); d.StreamSeq < first && late > unseen {
				o.fail("consumer-order", d.At, "first delivery of sequence %d came after that of %d", d.StreamSeq, first)
			}
			first = max(first, d.StreamSeq)
		}
		if o.spec.MaxDeliver > 0 && d.Count > uint64(o.spec.MaxDeliver) {
			o.fail("consumer-max-deliver", d.At, "sequence %d was delivered %d times, max_deliver is %d",
				d.StreamSeq, d.Count, o.spec.MaxDeliver)
		}
	}
}

// answered: after a confirmed acknowledgement no request that was made later brings the message again, and the n-th
// delivery of a message does not come before n-1 ack waits have passed since it was stored, unless it was refused.
func (o *observed) answered() {
	confirmed := map[uint64]int64{}
	refused := map[uint64]bool{}
	for _, d := range o.deliveries {
		if d.ack == nil {
			continue
		}
		if d.ack.Kind == workload.Nacked {
			refused[d.StreamSeq] = true
		} else if d.ack.Ends() && d.ack.Return != history.Never {
			if at, twice := confirmed[d.StreamSeq]; !twice || d.ack.Return < at {
				confirmed[d.StreamSeq] = d.ack.Return
			}
		}
	}
	steady := o.steady()
	for _, d := range o.deliveries {
		if at, ok := confirmed[d.StreamSeq]; ok && d.Asked > at {
			o.fail("consumer-redelivered", d.At, "sequence %d was acknowledged, confirmed at %d, and delivered to a request of %d",
				d.StreamSeq, at, d.Asked)
		}
		earliest := d.Time - world.Epoch + o.waits(d.Count-1)
		if steady && !refused[d.StreamSeq] && d.At < earliest {
			o.fail("consumer-early", d.At, "delivery %d of sequence %d, stored at %d, came before its ack waits of %d ms",
				d.Count, d.StreamSeq, d.Time-world.Epoch, o.waits(d.Count-1)/1_000_000)
		}
	}
}

// outstanding: there are never more than max_ack_pending messages delivered and not answered. Where messages may have
// been removed or given up, the clients cannot know how many still count.
func (o *observed) outstanding() {
	if o.removes || o.spec.MaxDeliver > 0 {
		return
	}
	type edge struct {
		at    int64
		seq   uint64
		taken bool
	}
	var edges []edge
	answered := map[uint64]int64{}
	for _, d := range o.deliveries {
		edges = append(edges, edge{d.At, d.StreamSeq, true})
		if d.ack != nil && d.ack.Ends() {
			if at, twice := answered[d.StreamSeq]; !twice || d.ack.Call < at {
				answered[d.StreamSeq] = d.ack.Call
			}
		}
	}
	for _, d := range o.deliveries {
		if at, ok := answered[d.StreamSeq]; ok {
			edges = append(edges, edge{at, d.StreamSeq, false})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
	})
	open := map[uint64]bool{}
	for _, e := range edges {
		at, ok := answered[e.seq]
		if e.taken && (!ok || at > e.at) {
			open[e.seq] = true
		} else {
			delete(open, e.seq)
		}
		if len(open) > o.spec.MaxAckPending {
			o.fail("consumer-max-ack-pending", e.at, "%d messages are outstanding, max_ack_pending is %d",
				len(open), o.spec.MaxAckPending)
			return
		}
	}
}

// states: the ack floor never reaches a message that was delivered and not answered, neither it nor the delivered
// position goes back, and num_ack_pending keeps to max_ack_pending.
func (o *observed) states() {
	answered := map[uint64]int64{}
	for _, d := range o.deliveries {
		if d.ack == nil || !d.ack.Ends() {
			continue
		}
		if at, twice := answered[d.StreamSeq]; !twice || d.ack.Call < at {
			answered[d.StreamSeq] = d.ack.Call
		}
	}
	var before *workload.ConsumerState
	for i := range o.all.States {
		s := &o.all.States[i]
		if s.Consumer != o.index {
			continue
		}
		if s.AckFloor.Stream > s.Delivered.Stream || s.AckFloor.Consumer > s.Delivered.Consumer {
			o.fail("consumer-floor", s.Return, "ack floor %v is beyond delivered %v", s.AckFloor, s.Delivered)
		}
		if s.AckPending > uint64(o.spec.MaxAckPending) {
			o.fail("consumer-max-ack-pending", s.Return, "num_ack_pending is %d, max_ack_pending is %d", s.AckPending, o.spec.MaxAckPending)
		}
		if before != nil && before.Return < s.Call &&
			(s.AckFloor.Stream < before.AckFloor.Stream || s.Delivered.Stream < before.Delivered.Stream) {
			o.fail("consumer-floor", s.Return, "floor and delivered %v %v came after %v %v",
				s.AckFloor, s.Delivered, before.AckFloor, before.Delivered)
		}
		before = s
		if o.removes || o.spec.MaxDeliver > 0 {
			continue // The message may have been removed or given up.
		}
		for _, d := range o.deliveries {
			if at, ok := answered[d.StreamSeq]; d.StreamSeq <= s.AckFloor.Stream && (!ok || at > s.Return) {
				o.fail("consumer-floor", s.Return, "ack floor %v passed sequence %d, which nobody had acknowledged", s.AckFloor, d.StreamSeq)
				break
			}
		}
	}
}

// complete: in the end every message that is stored and wanted was delivered and answered, unless it was given up after
// max_deliver; and the consumer says so itself.
func (o *observed) complete() {
	final, state := o.all.Finals[o.spec.Stream], o.all.Consumers[o.index]
	if final == nil || final.Down != "" || len(final.Unread) > 0 || state == nil {
		return
	}
	if o.spec.MaxDeliver > 0 {
		return
	}
	delivered, answered := map[uint64]bool{}, map[uint64]bool{}
	for _, d := range o.deliveries {
		delivered[d.StreamSeq] = true
		if d.ack != nil && d.ack.Ends() {
			answered[d.StreamSeq] = true
		}
	}
	for i := range final.Messages {
		m := &final.Messages[i]
		switch {
		case !models.Covers(o.filter, m.Subject):
		case !delivered[m.Seq]:
			o.fail("consumer-lost", 0, "sequence %d is stored and was never delivered", m.Seq)
			return
		case !answered[m.Seq]:
			o.fail("consumer-lost", 0, "sequence %d counts as acknowledged, but nobody acknowledged it", m.Seq)
			return
		}
	}
}
