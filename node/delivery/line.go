package delivery

import (
	"slices"

	"weir/model/command"
	"weir/model/consumer"
	"weir/model/jsapi"
	"weir/spec/assert"
)

// line is one consumer as its leader serves it.
type line struct {
	key          key
	stream, name string
	config       *jsapi.ConsumerConfig
	// waiting are the pull requests that may still be assigned messages.
	waiting queue
	// push is set for push consumers only.
	push *push
	// pace slows the line down.
	pace pace
	// out are the messages and statuses on their way out.
	out outgoing
	// proposals are the Delivers that are under way, InFlightMax at most. While there are any requests do not expire:
	// they may bring messages for them.
	proposals []proposal
	// returns are Release commands that were refused. Bounded as out is: messages that are not sent are not proposed for.
	returns []command.Command
	// sentStream is the sequence of the message that was sent last.
	sentStream uint64

	// active is when a client last showed interest, delivered when a message was last sent.
	active, delivered int64
	// armed is the deadline in the heap that counts; 0 for none.
	armed int64
	// retryAt is when proposals may be made again after one was refused; 0 when they may be made.
	retryAt int64
	// heldUntil is when a client that did not keep up is looked at again, 0 when nothing waits for that; unchecked is how
	// many bytes have been sent since the last look.
	heldUntil int64
	unchecked int
	// overdue says that requests may have expired while a proposal was under way.
	overdue bool
	// marked says that the line is in the list of those that may propose.
	marked, closed bool
}

// proposal is a Deliver that was proposed and not yet applied.
type proposal struct {
	token uint64
	// count is how many more messages it may bring.
	count int
	// exclusive is the only request that it serves, nil when it serves whoever is next. It is alone under way.
	exclusive *request
}

// proposed returns the proposal with the token, nil when it is not under way.
func (l *line) proposed(token uint64) *proposal {
	for i := range l.proposals {
		if l.proposals[i].token == token {
			return &l.proposals[i]
		}
	}
	return nil
}

// withdraw forgets the proposal with the token.
func (l *line) withdraw(token uint64) {
	l.proposals = slices.DeleteFunc(l.proposals, func(p proposal) bool { return p.token == token })
}

// promised is how many messages the proposals under way may bring.
func (l *line) promised() int {
	total := 0
	for i := range l.proposals {
		total += l.proposals[i].count
	}
	return total
}

// exclusive returns the request that has a proposal of its own under way, or nil.
func (l *line) exclusive() *request {
	if len(l.proposals) == 0 {
		return nil
	}
	return l.proposals[0].exclusive
}

// pump proposes a Deliver when somebody waits for messages and there are some.
func (d *Desk) pump(l *line) {
	switch {
	case len(l.proposals) == InFlightMax || l.exclusive() != nil:
		return
	case l.pace.waitUntil > d.now:
		return
	case l.overdue || l.retryAt != 0 || l.out.len() > OutgoingMax || !d.giveBackRest(l):
		return
	}
	state := d.world.Consumer(l.key.group, l.key.id)
	if state == nil {
		return
	}
	if l.push != nil {
		d.pumpPush(l, state)
		return
	}
	d.pumpPull(l, state)
}

// propose proposes a Deliver of so many messages and bytes.
func (d *Desk) propose(l *line, exclusive *request, count, maxBytes int) {
	d.lastToken++
	token := d.lastToken
	count = min(count, DeliverBatchMax)
	assert.True(exclusive == nil || len(l.proposals) == 0, "a request with its own Deliver is served alone")
	l.proposals = append(l.proposals, proposal{token: token, count: count, exclusive: exclusive})
	d.command = command.Command{Kind: command.Deliver, Consumer: l.key.id, Token: token, Count: uint64(count),
		MaxBytes: uint64(maxBytes)}
	if !d.world.Propose(l.key.group, &d.command) {
		d.retryLater(l, token)
	}
}

// retryLater gives a proposal of the line up and tries again after a while.
func (d *Desk) retryLater(l *line, token uint64) {
	l.withdraw(token)
	l.retryAt = d.now + RetryNanos
	d.arm(l, l.retryAt)
}

// Dropped reports that a Deliver will never be applied, or that nobody can tell.
func (d *Desk) Dropped(now int64, group, id, token uint64) {
	d.now = now
	l := d.find(group, id)
	if l == nil || l.proposed(token) == nil {
		return
	}
	d.retryLater(l, token)
	d.settle(l)
}

// settle catches up, once no proposal is under way, with what had to wait for that.
func (d *Desk) settle(l *line) {
	if l.overdue && len(l.proposals) == 0 {
		l.overdue = false
		d.expire(l)
		d.rearm(l)
	}
	d.mark(l)
}

// tick acts on the deadlines of a line that have passed.
func (d *Desk) tick(l *line) {
	if l.retryAt != 0 && d.now >= l.retryAt {
		l.retryAt = 0
		d.mark(l)
	}
	if l.pace.waitUntil != 0 && d.now >= l.pace.waitUntil {
		l.pace.waitUntil = 0
		d.mark(l)
	}
	if l.heldUntil != 0 && d.now >= l.heldUntil {
		d.drain(l)
	}
	if len(l.proposals) > 0 {
		l.overdue = true
	} else {
		d.expire(l)
	}
	if l.push != nil {
		d.beatPush(l)
	} else {
		d.beatPull(l)
	}
	d.retire(l)
	d.rearm(l)
}

// deadline is the earliest time at which tick has something to do; 0 when there is none.
func (d *Desk) deadline(l *line) int64 {
	next := l.retryAt
	at := func(t int64) {
		if t != 0 && (next == 0 || t < next) {
			next = t
		}
	}
	at(l.pace.waitUntil)
	at(l.heldUntil)
	for _, r := range l.waiting.all() {
		if !l.overdue {
			at(r.expiresAt)
		}
		at(r.heartbeatAt)
	}
	if l.push != nil {
		at(l.push.heartbeatAt)
	}
	at(d.idleAt(l))
	return next
}

// idleAt is when the consumer has to be looked at for inactivity; 0 when it never ends by itself.
func (d *Desk) idleAt(l *line) int64 {
	threshold := int64(l.config.InactiveThreshold)
	switch {
	case threshold <= 0 || l.push != nil && l.push.active:
		return 0
	case l.push != nil:
		return after(l.push.idleSince, threshold)
	case l.waiting.len() > 0:
		return after(d.now, threshold)
	}
	return after(l.active, threshold)
}

// retire asks for the end of a consumer that nobody has been interested in for its inactive threshold. Messages that a
// client of a pull consumer may still work on extend it by their ack wait.
func (d *Desk) retire(l *line) {
	threshold := int64(l.config.InactiveThreshold)
	if threshold <= 0 {
		return
	}
	if l.push != nil {
		if l.push.active || d.now < after(l.push.idleSince, threshold) {
			return
		}
		l.push.idleSince = d.now
	} else {
		if d.now < after(l.active, threshold) {
			return
		}
		d.dropUninterested(l, l.waiting.len())
		if l.waiting.len() > 0 {
			return
		}
		state := d.world.Consumer(l.key.group, l.key.id)
		if state != nil && state.NumAckPending() > 0 && d.now < after(after(l.delivered, longestWait(l.config)), threshold) {
			l.active = after(l.delivered, longestWait(l.config))
			return
		}
		l.active = d.now
	}
	d.command = command.Command{Kind: command.DeleteConsumer, Name: []byte(l.name), Consumer: l.key.id}
	d.world.Propose(l.key.group, &d.command)
}

// longestWait is the longest time that the consumer gives a client to acknowledge.
func longestWait(c *jsapi.ConsumerConfig) int64 {
	wait := c.AckWait
	for _, d := range c.BackOff {
		wait = max(wait, d)
	}
	return int64(wait)
}

// after is at+nanos, as late as possible when that is out of range.
func after(at, nanos int64) int64 {
	const never = 1<<63 - 1
	if nanos > never-max(at, 0) {
		return never
	}
	return at + nanos
}

// Active reports that a client of a consumer did something, such as an acknowledgement.
func (d *Desk) Active(now int64, group, id uint64) {
	if l := d.find(group, id); l != nil {
		l.active = now
	}
}

// nothingLeft reports whether a consumer has neither new messages nor redeliveries.
func nothingLeft(state *consumer.State) bool {
	return state.NumPending() == 0 && state.NumQueued() == 0
}
