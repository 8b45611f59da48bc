package delivery

import (
	"weir/model/consumer"
	"weir/model/jsapi"
)

// PullRequest is a message that asks for messages of a consumer.
type PullRequest struct {
	// Group and Consumer identify the consumer.
	Group, Consumer uint64
	// Reply is where messages go. Without one the request is ignored.
	Reply string
	// Body is the body of CONSUMER.MSG.NEXT, or what follows +NXT in an acknowledgement. Nothing is kept of it.
	Body []byte
}

// Pull takes a pull request.
func (d *Desk) Pull(now int64, r PullRequest) {
	d.now = now
	l := d.find(r.Group, r.Consumer)
	if l == nil || r.Reply == "" {
		return
	}
	if d.sending > 0 {
		d.postponed = append(d.postponed, postponed{l.key, r.Reply, string(r.Body)})
		return
	}
	if refusal := d.admit(l, r.Reply, r.Body); refusal != "" {
		d.sendText(r.Group, []byte(r.Reply), refusal)
	}
}

// postponed is a pull request that arrived out of a message that was being sent.
type postponed struct {
	key         key
	reply, body string
}

// admit queues a request, or returns the status that refuses it.
func (d *Desk) admit(l *line, reply string, body []byte) (refusal string) {
	if l.config.Push() {
		return statuses[statusPushBased].text
	}
	parsed, refusal := jsapi.ParsePull(body)
	if refusal == "" {
		refusal = parsed.Check(l.config)
	}
	if refusal != "" {
		return refusal
	}
	l.active = d.now
	if parsed.NoWait {
		if s := d.refuseNoWait(l, &parsed); s != statusNone {
			return statuses[s].text
		}
	}
	r := d.claim(reply)
	r.left, r.bytesLeft, r.bounded, r.noWait = parsed.Batch, parsed.MaxBytes, parsed.MaxBytes > 0, parsed.NoWait
	if parsed.Expires < 0 {
		d.end(l, r, statusRequestTimeout)
		return ""
	}
	if d.full(l) {
		d.recycle(r)
		if parsed.IdleHeartbeat > 0 {
			return "" // The client notices the missing heartbeats. An answer would make it ask again at once.
		}
		return statuses[statusMaxWaiting].text
	}
	if parsed.Expires > 0 {
		r.expiresAt = after(d.now, int64(parsed.Expires))
	}
	if parsed.IdleHeartbeat > 0 {
		r.heartbeatNanos = int64(parsed.IdleHeartbeat)
		r.heartbeatAt = after(d.now, r.heartbeatNanos)
	}
	l.waiting.push(r)
	d.arm(l, r.expiresAt)
	d.arm(l, r.heartbeatAt)
	d.mark(l)
	return ""
}

// refuseNoWait holds a request that does not want to wait against what there is to deliver and who waits before it.
func (d *Desk) refuseNoWait(l *line, r *jsapi.PullRequest) status {
	state := d.world.Consumer(l.key.group, l.key.id)
	if state == nil {
		return statusConsumerDeleted
	}
	pending := state.NumPending() + uint64(state.NumQueued())
	if pending == 0 {
		if r.Expires == 0 {
			return statusNoMessages
		}
		return statusNone
	}
	d.dropUninterested(l, l.waiting.len())
	wanted := uint64(0)
	for _, w := range l.waiting.all() {
		wanted += uint64(w.left)
	}
	if pending < wanted {
		return statusRequestsPending
	}
	return statusNone
}

// full reports whether the consumer has as many waiting requests as it may have, after forgetting those that are over.
func (d *Desk) full(l *line) bool {
	most := l.config.MaxWaiting
	if most <= 0 {
		most = WaitingDefaultMax
	}
	if l.waiting.len() < most {
		return false
	}
	if len(l.proposals) == 0 {
		d.expire(l)
	}
	d.dropUninterested(l, l.waiting.len())
	return l.waiting.len() >= most
}

// pumpPull proposes a Deliver for the requests that wait. One for all of them suffices: the messages are dealt out when
// they come, one to each request in turn. A request with a bound of bytes needs one of its own.
func (d *Desk) pumpPull(l *line, state *consumer.State) {
	available := uint64(state.NumQueued())
	if !state.AtMaxAckPending() {
		available += state.NumPending()
	}
	if available == 0 {
		if nothingLeft(state) && len(l.proposals) == 0 {
			d.endNoWait(l)
		}
		return
	}
	promised := l.promised()
	if uint64(promised) >= available {
		return
	}
	d.dropUninterested(l, int(min(available, DeliverBatchMax)))
	if l.waiting.len() == 0 {
		return
	}
	if head := l.waiting.all()[0]; head.bounded {
		if head.unsent > 0 || promised > 0 {
			return // Its turn, and how many bytes are left, is known once these are sent, which pumps again.
		}
		count := 1
		if l.waiting.len() == 1 {
			count = head.left
		}
		if count = d.replaying(l, state, count); count > 0 {
			d.propose(l, head, count, head.bytesLeft)
		}
		return
	}
	if count := d.replaying(l, state, d.sharedCount(l, promised)); count > 0 {
		d.propose(l, nil, count, 0)
	}
}

// sharedCount is how many messages the requests at the head of the queue can take, beside those that are promised, before
// one with a bound of bytes has its turn.
func (d *Desk) sharedCount(l *line, promised int) int {
	most := DeliverBatchMax + promised
	total := 0
	all := l.waiting.all()
	for i, r := range all[:min(len(all), most)] { // each can take one at least
		if r.bounded {
			return i - promised
		}
		total = min(total+r.left, most)
	}
	return total - promised
}

// assign deals the next message of a proposal out to a request, nil when there is none to take it.
func (d *Desk) assign(l *line, p *proposal) *request {
	r := p.exclusive
	switch {
	case r != nil && (r.ended || r.lost || r.left == 0):
		return nil
	case r != nil:
		l.remove(r)
	default:
		r = l.nextUnbounded()
		if r == nil {
			return nil
		}
	}
	r.left--
	r.unsent++
	r.got = true
	if r.left > 0 {
		l.waiting.push(r)
	}
	return r
}

// nextUnbounded takes the first request without a bound of bytes out of the queue.
func (l *line) nextUnbounded() *request {
	for i, r := range l.waiting.all() {
		if r.bounded {
			continue
		}
		if i == 0 {
			return l.waiting.pop()
		}
		l.remove(r)
		return r
	}
	return nil
}

func (l *line) remove(r *request) {
	if l.waiting.len() > 0 && l.waiting.all()[0] == r {
		l.waiting.pop()
		return
	}
	l.waiting.filter(func(o *request) bool { return o != r })
}

// end tells a request, which is not queued, that nothing more will come. The status follows the messages that are on
// their way.
func (d *Desk) end(l *line, r *request, s status) {
	r.ended = true
	if l.out.len() == 0 {
		d.sendStatus(l, r, s)
		d.recycle(r)
		return
	}
	l.out.push(item{request: r, status: s})
}

// expire ends the requests whose time is over.
func (d *Desk) expire(l *line) {
	l.waiting.filter(func(r *request) bool {
		if r.expiresAt == 0 || d.now < r.expiresAt {
			return true
		}
		l.active = max(l.active, r.expiresAt)
		d.end(l, r, statusRequestTimeout)
		return false
	})
}

// endNoWait ends the requests that do not want to wait for more: those without a time, and those that got something.
func (d *Desk) endNoWait(l *line) {
	l.waiting.filter(func(r *request) bool {
		if !r.noWait || r.expiresAt != 0 && !r.got {
			return true
		}
		l.active = d.now
		d.end(l, r, statusNoMessages)
		return false
	})
}

// dropUninterested forgets those among the first n requests that nobody listens for any more.
func (d *Desk) dropUninterested(l *line, n int) {
	all := l.waiting.all()
	n = min(n, len(all))
	lost := false
	for _, r := range all[:n] {
		if !d.world.HasInterest(l.key.group, r.inbox) {
			r.lost, lost = true, true
		}
	}
	if !lost {
		return
	}
	l.waiting.filter(func(r *request) bool {
		if r.lost && r.unsent == 0 && l.exclusive() != r {
			d.recycle(r)
			return false
		}
		return !r.lost
	})
}

// dismiss ends every waiting request at once.
func (d *Desk) dismiss(l *line, s status) {
	l.waiting.filter(func(r *request) bool {
		r.ended = true
		d.sendStatus(l, r, s)
		return false
	})
}

// beatPull sends the heartbeats that are due to idle requests.
func (d *Desk) beatPull(l *line) {
	for _, r := range l.waiting.all() {
		if r.heartbeatAt == 0 || d.now < r.heartbeatAt {
			continue
		}
		r.heartbeatAt = after(d.now, r.heartbeatNanos)
		if d.world.HasInterest(l.key.group, r.inbox) {
			d.sendHeartbeat(l, r.inbox, nil)
		}
	}
}
