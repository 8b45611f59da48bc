package delivery

import (
	"weir/model/consumer"
	"weir/model/jsapi"
)

const (
	// burstBytes is what a consumer with a rate limit may send at once after a pause: one message of the largest usual
	// size.
	burstBytes = 1 << 20
	// rateMax is the rate in bytes per second from which a limit limits nothing.
	rateMax = 1 << 30
	// paceNanos is how long a consumer that has used up its rate waits at least, so that it sends more than one small
	// message at a time.
	paceNanos = 20_000_000
	// gapMin is the gap between messages, in nanoseconds, below which a replay does not wait.
	gapMin = 1_000_000
)

// pace slows a consumer down: to a rate in bits per second, or to the gaps in which its messages were stored.
type pace struct {
	// waitUntil is when the next Deliver may be proposed; 0 for at once.
	waitUntil int64

	// rate is the limit in bytes per second, 0 without one. paidAt is when the bytes sent so far are paid for; it may be
	// ahead of now by as long as burstBytes take.
	rate, paidAt int64
	// tried is the number of bytes that the last Deliver was allowed.
	tried int64

	// replayTo is the last message that is replayed with the original gaps, 0 without a replay. The message handed out
	// last was stored at storedAt, by the wall clock, and handed out at handedAt.
	replayTo           uint64
	storedAt, handedAt int64
}

// configurePace makes the line follow the limits of its configuration. A replay covers what the stream holds when this
// node begins to serve the consumer.
func (d *Desk) configurePace(l *line, state *consumer.State) {
	l.pace.rate = 0
	if bits := l.config.RateLimitBitsSec; bits > 0 && bits/8 < rateMax {
		l.pace.rate = int64(max(bits/8, 1))
	}
	if l.config.ReplayPolicy == jsapi.ReplayOriginal && l.pace.replayTo == 0 {
		l.pace.replayTo = state.LastSeq()
	}
}

// wait holds the proposals of a line back.
func (d *Desk) wait(l *line, until int64) {
	l.pace.waitUntil = until
	d.arm(l, until)
}

// bytesAllowed is how many bytes the rate limit lets through now, 0 when there is no limit. Without any it holds the line
// back and returns false.
func (d *Desk) bytesAllowed(l *line) (bytes int, ok bool) {
	p := &l.pace
	if p.rate == 0 {
		return 0, true
	}
	if len(l.proposals) > 0 {
		return 0, false // What they will bring is not paid for yet; their end pumps again.
	}
	burstNanos := burstBytes * 1_000_000_000 / p.rate
	free := burstNanos - max(p.paidAt-d.now, 0)
	p.tried = max(free, 0) * p.rate / 1_000_000_000
	if p.tried > 0 {
		return int(p.tried), true
	}
	d.wait(l, p.paidAt-burstNanos+max(1_000_000_000/p.rate, paceNanos))
	return 0, false
}

// waitForBytes holds a line back whose next message exceeds what the rate limit let through, until twice as much is at
// hand or everything is paid for. It reports false when everything is.
func (d *Desk) waitForBytes(l *line) bool {
	p := &l.pace
	if p.rate == 0 || p.paidAt <= d.now {
		return false
	}
	d.wait(l, min(after(d.now, max(p.tried*1_000_000_000/p.rate, paceNanos)), p.paidAt))
	return true
}

// pay keeps account of bytes that were sent.
func (p *pace) pay(now int64, bytes int) {
	if p.rate > 0 {
		p.paidAt = max(p.paidAt, now) + int64(bytes)*1_000_000_000/p.rate
	}
}

// replaying returns how many messages may be proposed now: most when the consumer is not replaying, 1 when the gap before
// the next message is over, 0 when it is not. Redeliveries do not wait.
func (d *Desk) replaying(l *line, state *consumer.State, most int) int {
	p := &l.pace
	if p.replayTo == 0 || state.NumQueued() > 0 {
		return most
	}
	if len(l.proposals) > 0 {
		return 0
	}
	seq, storedAt, ok := state.NextNew()
	if !ok {
		return most
	}
	if seq > p.replayTo {
		p.replayTo = 0
		return most
	}
	gap := storedAt - p.storedAt
	if p.storedAt == 0 || gap < gapMin || d.now >= after(p.handedAt, gap) {
		return 1
	}
	d.wait(l, after(p.handedAt, gap))
	return 0
}
