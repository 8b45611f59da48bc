package delivery

import (
	"weir/model/command"
	"weir/model/header"
	"weir/model/jsapi"
	"weir/spec/assert"
)

// itemPhase is how far the bytes of an outgoing message have come.
type itemPhase uint8

const (
	// itemNew: they have not been asked for.
	itemNew itemPhase = iota
	// itemReading: they are being read.
	itemReading
	// itemRead: they are in stored.
	itemRead
	// itemMissing: the message is gone.
	itemMissing
)

// item is one message or status on its way out.
type item struct {
	// request is whom it is for, nil for the subject of a push consumer.
	request *request
	// status is what to say, statusNone for a message.
	status status
	phase  itemPhase
	// ticket is that of the read, stored what it brought.
	ticket uint64
	stored Stored
	// The handoff: which message, in which delivery, how many are left, when it was stored.
	streamSeq, consumerSeq, deliveries, pending uint64
	timeNanos                                   int64
}

// outgoing is the first-in first-out queue of what leaves to the clients of one consumer.
type outgoing struct {
	items   []item
	head    int
	reading int
}

func (o *outgoing) len() int { return len(o.items) - o.head }

func (o *outgoing) push(it item) {
	if o.head > 0 && len(o.items) == cap(o.items) {
		n := copy(o.items, o.items[o.head:])
		clear(o.items[n:])
		o.items, o.head = o.items[:n], 0
	}
	o.items = append(o.items, it)
}

func (o *outgoing) pop() {
	o.items[o.head] = item{}
	o.head++
	if o.head == len(o.items) {
		o.reset()
	}
}

func (o *outgoing) reset() {
	clear(o.items)
	o.items, o.head = o.items[:0], 0
}

// firstMessage returns the first message that is not sent yet, or nil.
func (o *outgoing) firstMessage() *item {
	for i := o.head; i < len(o.items); i++ {
		if o.items[i].status == statusNone {
			return &o.items[i]
		}
	}
	return nil
}

// hold makes the line wait when whoever gets the next message has too much to read already: a client that asked for more
// than its connection holds gets it at the rate at which it reads.
func (d *Desk) hold(l *line, it *item) bool {
	if l.unchecked < d.uncheckedMax {
		return false
	}
	var to []byte
	switch {
	case it.request != nil:
		to = it.request.inbox
	case l.push != nil:
		to = l.push.subject
	}
	if !d.world.Congested(l.key.group, to) {
		l.unchecked = 0
		return false
	}
	l.heldUntil = after(d.now, CongestedNanos)
	d.arm(l, l.heldUntil)
	return true
}

// drain sends what is at the head of the queue until something has to be read first, or a client does not keep up.
func (d *Desk) drain(l *line) {
	l.heldUntil = 0
	for !l.closed && l.out.len() > 0 {
		it := &l.out.items[l.out.head]
		if it.status != statusNone {
			d.sendStatus(l, it.request, it.status)
			d.recycle(it.request)
			l.out.pop()
			continue
		}
		if d.hold(l, it) {
			return
		}
		if it.phase != itemReading && d.overtaken(l, it) {
			it.phase = itemMissing
		}
		switch it.phase {
		case itemNew:
			if !d.fetch(l, it) {
				d.readAhead(l)
				return
			}
		case itemReading:
			d.readAhead(l)
			return
		case itemRead:
			d.deliver(l, it, it.stored)
		case itemMissing:
			d.credit(l, it)
		default:
			assert.Unreachable("phase of an outgoing message", uint64(it.phase))
		}
		if !l.closed {
			l.out.pop()
		}
	}
	d.mark(l)
}

// overtaken reports whether a redelivery is no longer due: the message was acknowledged while its bytes were read or the
// line was held. What was confirmed must not come again.
func (d *Desk) overtaken(l *line, it *item) bool {
	if it.deliveries <= 1 {
		return false // Nobody has seen the message, so nobody can have answered it.
	}
	state := d.world.Consumer(l.key.group, l.key.id)
	return state == nil || !state.Outstanding(it.streamSeq, it.deliveries)
}

// fetch gets the bytes of the message at the head and sends it, and reports false when they have to be read first.
func (d *Desk) fetch(l *line, it *item) bool {
	d.lastTicket++
	stored, there := d.world.Fetch(l.key.group, it.streamSeq, d.lastTicket)
	switch there {
	case Here:
		d.deliver(l, it, stored)
	case Missing:
		d.credit(l, it)
	case Coming:
		d.reading(l, it)
		return false
	default:
		assert.Unreachable("presence of a message", uint64(there))
	}
	return true
}

func (d *Desk) reading(l *line, it *item) {
	it.phase, it.ticket = itemReading, d.lastTicket
	d.tickets[it.ticket] = l
	l.out.reading++
}

// readAhead starts to read the messages behind the one that the queue waits for.
func (d *Desk) readAhead(l *line) {
	for i := l.out.head + 1; i < len(l.out.items) && l.out.reading < FetchesMax && i < l.out.head+FetchesMax; i++ {
		it := &l.out.items[i]
		if it.status != statusNone || it.phase != itemNew {
			continue
		}
		d.lastTicket++
		_, there := d.world.Fetch(l.key.group, it.streamSeq, d.lastTicket)
		switch there {
		case Here: // It is got again when its turn comes: its bytes are valid until the next call only.
		case Missing:
			it.phase = itemMissing
		case Coming:
			d.reading(l, it)
		default:
			assert.Unreachable("presence of a message", uint64(there))
		}
	}
}

// Fetched takes the end of a read. The bytes become the Desk's; not ok means that the message is gone or can not be read.
func (d *Desk) Fetched(now int64, ticket uint64, stored Stored, ok bool) {
	d.now = now
	l := d.tickets[ticket]
	if l == nil {
		return
	}
	delete(d.tickets, ticket)
	l.out.reading--
	for i := l.out.head; i < len(l.out.items); i++ {
		it := &l.out.items[i]
		if it.phase != itemReading || it.ticket != ticket {
			continue
		}
		it.phase, it.stored = itemRead, stored
		if !ok {
			it.phase = itemMissing
		}
		break
	}
	d.drain(l)
}

// deliver sends one message, to another request when the one it was meant for has nobody listening.
func (d *Desk) deliver(l *line, it *item, stored Stored) {
	d.reply = jsapi.AppendAckReply(d.reply[:0], &jsapi.AckReply{
		Stream: l.stream, Consumer: l.name, Delivered: it.deliveries, StreamSeq: it.streamSeq,
		ConsumerSeq: it.consumerSeq, TimeNanos: it.timeNanos, Pending: it.pending,
	})
	if l.config.HeadersOnly {
		d.header = appendHeadersOnly(d.header[:0], stored.Header, len(stored.Payload))
		stored.Header, stored.Payload = d.header, nil
	}
	d.message = Message{Subject: stored.Subject, Reply: d.reply, Header: stored.Header, Payload: stored.Payload}
	size := len(stored.Subject) + len(d.reply) + len(stored.Header) + len(stored.Payload)
	l.sentStream, l.delivered = it.streamSeq, d.now
	l.unchecked += size
	if it.request == nil {
		if d.send(l.key.group, l.push.subject) > 0 {
			d.sentPush(l, size)
		}
		return
	}
	for it.request != nil {
		r := it.request
		if !r.lost && d.send(l.key.group, r.inbox) > 0 {
			d.sentPull(l, r, size)
			return
		}
		d.forsake(l, r)
		it.request = d.another(l)
	}
	d.giveBack(l, it)
}

// send sends the message in d.message. Requests that arrive out of it wait, because they use the same memory.
func (d *Desk) send(group uint64, to []byte) int {
	d.sending++
	taken := d.world.Send(group, to, &d.message)
	d.sending--
	return taken
}

// forsake takes a message away from a request that nobody listens for, and ends the request.
func (d *Desk) forsake(l *line, r *request) {
	r.unsent--
	if !r.lost {
		r.lost = true
		l.remove(r)
	}
}

// another returns the next request that can take the message of one that is gone. Those with a bound of bytes are passed
// over: the message was not measured for them.
func (d *Desk) another(l *line) *request {
	r := l.nextUnbounded()
	if r == nil {
		return nil
	}
	r.left--
	r.unsent++
	r.got = true
	if r.left > 0 {
		l.waiting.push(r)
	}
	return r
}

// giveBack has a message that reached nobody delivered again with the same delivery count.
func (d *Desk) giveBack(l *line, it *item) {
	if l.config.AckPolicy == jsapi.AckNone {
		return
	}
	d.command = command.Command{Kind: command.Release, Consumer: l.key.id, StreamSeq: it.streamSeq,
		ConsumerSeq: it.consumerSeq, Deliveries: it.deliveries}
	if len(l.returns) == 0 && d.world.Propose(l.key.group, &d.command) {
		return
	}
	l.returns = append(l.returns, d.command)
	l.retryAt = after(d.now, RetryNanos)
	d.arm(l, l.retryAt)
}

// giveBackRest proposes what could not be given back when it should have been, and reports false when some is left.
func (d *Desk) giveBackRest(l *line) bool {
	for i := range l.returns {
		if !d.world.Propose(l.key.group, &l.returns[i]) {
			l.returns = append(l.returns[:0], l.returns[i:]...)
			l.retryAt = after(d.now, RetryNanos)
			d.arm(l, l.retryAt)
			return false
		}
	}
	l.returns = l.returns[:0]
	return true
}

// credit gives a request its turn back for a message that is gone.
func (d *Desk) credit(l *line, it *item) {
	r := it.request
	if r == nil {
		return
	}
	r.unsent--
	if r.ended || r.lost {
		return
	}
	r.left++
	if r.left == 1 {
		l.waiting.push(r)
	}
	d.rearm(l)
}

// sentPull keeps account of a message that was sent to a request, and ends the request when it has got everything.
func (d *Desk) sentPull(l *line, r *request, size int) {
	r.unsent--
	if r.heartbeatNanos > 0 {
		r.heartbeatAt = after(d.now, r.heartbeatNanos)
	}
	if r.bounded {
		r.bytesLeft = max(r.bytesLeft-size, 0)
		if r.bytesLeft == 0 && r.left > 0 {
			r.left = 0
			l.remove(r)
		}
	}
	if r.left > 0 || r.unsent > 0 || r.ended {
		return
	}
	r.ended = true
	if r.bounded && r.bytesLeft > 0 {
		d.sendStatus(l, r, statusBatchCompleted)
	}
	if l.exclusive() != r {
		d.recycle(r)
	}
}

// appendHeadersOnly appends a header block with the size of the payload that it stands for.
func appendHeadersOnly(dst, block []byte, payloadBytes int) []byte {
	if len(block) == 0 {
		dst = header.AppendStart(dst)
	} else {
		dst = append(dst, block[:len(block)-len("\r\n")]...)
	}
	dst = header.AppendUintField(dst, header.MsgSize, uint64(payloadBytes))
	return header.AppendEnd(dst)
}
