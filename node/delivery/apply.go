package delivery

import (
	"slices"

	"weir/model/effect"
)

// Apply carries out an effect that an applied entry of a stream led here had on its consumers; others are ignored. The
// owner passes the effects of an entry in their order, when the state is already that after the entry, and leaves out the
// Handoff and Delivered of entries that another Desk proposed: those may have reached clients.
func (d *Desk) Apply(now int64, group uint64, e *effect.Effect) {
	d.now = now
	switch e.Kind {
	case effect.Handoff:
		d.handoff(group, e)
	case effect.Delivered:
		d.deliverEnded(group, e)
	case effect.Wake:
		if l := d.find(group, e.Consumer); l != nil {
			d.mark(l)
		}
	case effect.ConsumerCreated:
		state := d.world.Consumer(group, e.Consumer)
		if d.groups[group] != nil && state != nil && d.find(group, e.Consumer) == nil {
			d.open(group, state)
		}
	case effect.ConsumerUpdated:
		state := d.world.Consumer(group, e.Consumer)
		if l := d.find(group, e.Consumer); l != nil && state != nil {
			d.configure(l, state)
		}
	case effect.ConsumerDeleted:
		if l := d.find(group, e.Consumer); l != nil {
			g := d.groups[group]
			g.lines = slices.DeleteFunc(g.lines, func(o *line) bool { return o == l })
			d.close(l, statusConsumerDeleted)
		}
	}
}

// handoff deals one message out.
func (d *Desk) handoff(group uint64, e *effect.Effect) {
	l := d.find(group, e.Consumer)
	if l == nil {
		return
	}
	l.pace.storedAt, l.pace.handedAt = e.Time, d.now
	it := item{streamSeq: e.Seq, consumerSeq: e.ConsumerSeq, deliveries: e.Deliveries, pending: e.N, timeNanos: e.Time}
	if l.push == nil {
		if p := l.proposed(e.Token); p != nil {
			p.count--
			it.request = d.assign(l, p)
		}
		if it.request == nil {
			d.giveBack(l, &it)
			return
		}
	}
	l.out.push(it)
	if l.out.len() == 1 {
		d.drain(l)
	}
}

// deliverEnded handles the end of a Deliver: why there are no more messages.
func (d *Desk) deliverEnded(group uint64, e *effect.Effect) {
	l := d.find(group, e.Consumer)
	if l == nil {
		return
	}
	p := l.proposed(e.Token)
	if p == nil {
		return
	}
	r := p.exclusive
	l.withdraw(e.Token)
	if l.push != nil {
		d.judgeStop(l, e)
	}
	if r != nil && e.Stop == effect.StopBytes && !r.ended && !r.lost {
		l.remove(r)
		d.end(l, r, statusSizeExceeded)
	}
	d.settle(l)
}
