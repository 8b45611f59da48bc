package delivery

import (
	"bytes"

	"weir/model/consumer"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/spec/assert"
)

const (
	// windowStart and windowMax bound, in bytes, what a push consumer with flow control sends ahead of the client's
	// answers, at first and after many answers.
	windowStart = windowMax / 16
	windowMax   = 32 << 20
)

// push is the state of a push consumer.
type push struct {
	subject []byte
	group   string
	// active says that there is interest on the subject; without it nothing is sent.
	active bool
	// idleSince is when interest ended.
	idleSince int64
	// heartbeatAt is when the next heartbeat is due; 0 for none.
	heartbeatAt int64

	// window is how many bytes may be unanswered, unanswered how many are.
	window, unanswered int
	// flow is the reply subject of the flow control request that waits for its answer, empty when none does; the answer
	// will answer for flowBytes.
	flow      []byte
	flowBytes int
	// single says that the next message did not fit into what was left of the window: it is to be sent alone.
	single bool
}

// configurePush makes the line follow the deliver subject of its configuration.
func (d *Desk) configurePush(l *line) {
	if p := l.push; p != nil && string(p.subject) == l.config.DeliverSubject && p.group == l.config.DeliverGroup {
		return
	}
	d.forgetFlow(l)
	l.push = &push{
		subject: []byte(l.config.DeliverSubject), group: l.config.DeliverGroup, window: windowStart, idleSince: d.now,
	}
	active := d.world.Watch(l.key.group, l.key.id, l.config.DeliverSubject, l.config.DeliverGroup)
	d.setActive(l, active)
}

// Interest reports that the interest in the deliver subject of a push consumer has come or gone.
func (d *Desk) Interest(now int64, group, id uint64, interested bool) {
	d.now = now
	l := d.find(group, id)
	if l == nil || l.push == nil || l.push.active == interested {
		return
	}
	d.setActive(l, interested)
	d.rearm(l)
}

func (d *Desk) setActive(l *line, active bool) {
	p := l.push
	p.active, p.idleSince, p.heartbeatAt = active, d.now, 0
	if active && l.config.IdleHeartbeat > 0 {
		p.heartbeatAt = after(d.now, int64(l.config.IdleHeartbeat))
	}
	d.mark(l)
}

// pumpPush proposes a Deliver of what fits into the window. As in the reference server a message that exceeds it is sent
// when the window is not yet used up, which lets any message through.
func (d *Desk) pumpPush(l *line, state *consumer.State) {
	p := l.push
	if !p.active || !state.Deliverable() {
		return
	}
	if l.config.FlowControl && len(l.proposals) > 0 {
		return // How much of the window is left is known once its messages are sent.
	}
	if promised := l.promised(); promised > 0 && uint64(promised) >= state.NumPending()+uint64(state.NumQueued()) {
		return
	}
	allowed, ok := d.bytesAllowed(l)
	count := d.replaying(l, state, DeliverBatchMax)
	if !ok || count == 0 {
		return
	}
	if l.config.FlowControl {
		left := p.window - p.unanswered
		if left < 0 {
			return
		}
		// A window that is exactly used up lets one more message through.
		if left = max(left, 1); allowed == 0 || left < allowed {
			allowed = left
		}
	}
	if p.single {
		count, allowed = 1, 0
	}
	d.propose(l, nil, count, allowed)
}

// judgeStop draws the conclusion from a Deliver that could not fit its first message: if the window and the rate allow as
// much as they ever will, the next message is sent alone, whatever its size; else it waits for the rate.
func (d *Desk) judgeStop(l *line, e *effect.Effect) {
	l.push.single = false
	if e.Stop != effect.StopBytes || e.N > 0 {
		return
	}
	l.push.single = !d.waitForBytes(l)
}

// sentPush keeps account of a message that was sent to a push consumer.
func (d *Desk) sentPush(l *line, size int) {
	p := l.push
	if l.config.IdleHeartbeat > 0 {
		p.heartbeatAt = after(d.now, int64(l.config.IdleHeartbeat))
	}
	l.pace.pay(d.now, size)
	if !l.config.FlowControl {
		return
	}
	p.unanswered += size
	switch {
	case len(p.flow) == 0 && p.unanswered > p.window/2:
		d.requestFlow(l)
	case len(p.flow) > 0 && p.unanswered-p.flowBytes >= p.window:
		p.flowBytes += size
	}
}

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// requestFlow asks the client to answer once it has worked through what was sent before.
func (d *Desk) requestFlow(l *line) {
	p := l.push
	p.flow = append(append(append(p.flow[:0], "$JS.FC."...), l.stream...), '.')
	p.flow = append(append(p.flow, l.name...), '.')
	for n, i := d.world.Random(), 0; i < 4; i++ {
		p.flow = append(p.flow, base62[n%uint64(len(base62))])
		n /= uint64(len(base62))
	}
	p.flowBytes = p.unanswered
	d.flows[string(p.flow)] = l
	d.header = append(append(d.header[:0], statusPrefix...), jsapi.StatusFlowControl...)
	d.header = append(d.header, "\r\n\r\n"...)
	d.message = Message{Subject: p.subject, Reply: p.flow, Header: d.header}
	d.send(l.key.group, p.subject)
}

// FlowControl takes the answer to a flow control request: a message on its reply subject. Only the latest request of a
// consumer counts; for others it returns false.
func (d *Desk) FlowControl(now int64, subject []byte) bool {
	d.now = now
	l := d.flows[string(subject)]
	if l == nil {
		return false
	}
	delete(d.flows, string(subject))
	p := l.push
	assert.True(bytes.Equal(p.flow, subject), "a consumer waits for one answer", l.key.group, l.key.id)
	p.window = min(2*p.window, windowMax)
	p.unanswered = max(p.unanswered-p.flowBytes, 0)
	p.flow, p.flowBytes = p.flow[:0], 0
	d.mark(l)
	return true
}

// forgetFlow stops waiting for an answer.
func (d *Desk) forgetFlow(l *line) {
	if l.push != nil && len(l.push.flow) > 0 {
		delete(d.flows, string(l.push.flow))
	}
}

// beatPush sends the heartbeat of an idle push consumer when it is due.
func (d *Desk) beatPush(l *line) {
	p := l.push
	if p.heartbeatAt == 0 || d.now < p.heartbeatAt {
		return
	}
	p.heartbeatAt = after(d.now, int64(l.config.IdleHeartbeat))
	d.sendHeartbeat(l, p.subject, p.flow)
}
