package torture

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir/linearizability/history"
)

// The stream that most of the load goes to.
const (
	mainStream = "T"
	mainPrefix = "t"
	mainKeys   = 40
)

// Bounds of publishing.
const (
	// triesMax bounds how often a message with an id is sent again after an unknown outcome.
	triesMax = 4
	// burstMax is the largest number of messages in flight of one asynchronous client.
	burstMax = 32
	// probeMax is how long a probe waits, probeEvery the time between probes.
	probeMax   = time.Second
	probeEvery = 50 * time.Millisecond
)

// target is a stream to work on.
type target struct {
	name, prefix string
	keys         int
}

func (t *target) subject(key int) string { return fmt.Sprintf("%s.k%d", t.prefix, key) }

// draft is a publish before it is sent, so that it can be sent again.
type draft struct {
	record  history.Record
	padding int
}

// draw makes up a publish.
func (c *client) draw(t *target) draft {
	d := draft{record: history.Record{Kind: history.Publish, Stream: t.name, Subject: t.subject(c.rng.IntN(t.keys))}}
	if c.rng.IntN(4) != 0 {
		d.record.MsgID = fmt.Sprintf("%s-%s-%x", t.name, c.name, c.rng.Uint64())
	}
	delta := int64(0)
	if c.rng.IntN(4) == 0 {
		delta = c.rng.Int64N(5) - 2
	}
	switch c.rng.IntN(8) {
	case 0:
		d.record.ExpectLast = expected(c.run.log.last(t.name, ""), delta)
	case 1, 2:
		d.record.ExpectSubject = expected(c.run.log.last(t.name, d.record.Subject), delta)
	}
	if d.padding = c.rng.IntN(200); c.rng.IntN(30) == 0 {
		d.padding = c.rng.IntN(len(filler))
	}
	return d
}

// expected is the expectation of a sequence delta away from the newest one seen.
func expected(newest uint64, delta int64) history.Expected {
	return history.Expected{Set: true, Seq: uint64(max(0, int64(newest)+delta))}
}

// message writes the call down and makes the message.
func (c *client) message(d *draft) (int, *nats.Msg) {
	d.record.Client = c.number
	pos, id := c.run.log.begin(d.record)
	m := nats.NewMsg(d.record.Subject)
	m.Data = value(id, d.padding)
	if d.record.MsgID != "" {
		m.Header.Set(nats.MsgIdHdr, d.record.MsgID)
	}
	if d.record.ExpectLast.Set {
		m.Header.Set(nats.ExpectedLastSeqHdr, fmt.Sprint(d.record.ExpectLast.Seq))
	}
	if d.record.ExpectSubject.Set {
		m.Header.Set(nats.ExpectedLastSubjSeqHdr, fmt.Sprint(d.record.ExpectSubject.Seq))
	}
	return pos, m
}

// publish publishes one message, again and again under the same id while the outcome is unknown. It reports whether it
// is known in the end.
func (c *client) publish(t *target) bool {
	d := c.draw(t)
	for range triesMax {
		pos, m := c.message(&d)
		ctx, cancel := c.limit()
		ack, err := c.js.PublishMsg(ctx, m)
		cancel()
		if c.published(pos, ack, err) {
			return true
		}
		if d.record.MsgID == "" {
			return false
		}
		if err := c.refresh(true); err != nil {
			return false
		}
	}
	return false
}

// burst publishes several messages at once and waits for all answers.
func (c *client) burst(t *target) bool {
	type sent struct {
		pos    int
		future jetstream.PubAckFuture
	}
	var all []sent
	for range 1 + c.rng.IntN(burstMax) {
		d := c.draw(t)
		c.number = c.run.log.number() // each is a client of its own, since they overlap
		pos, m := c.message(&d)
		future, err := c.js.PublishMsgAsync(m)
		if err != nil {
			c.unknown(pos)
			continue
		}
		all = append(all, sent{pos, future})
	}
	limit := time.After(answerMax)
	good := true
	for _, s := range all {
		select {
		case ack := <-s.future.Ok():
			c.published(s.pos, ack, nil)
		case err := <-s.future.Err():
			good = c.published(s.pos, nil, err) && good
		case <-limit:
			// Whatever is not answered by now never will be: the connection is given up.
			c.unknown(s.pos)
			limit, good = closed, false
		}
	}
	if !good {
		_ = c.connect() // what is wrong with it shows at its next use
	}
	return good
}

// closed is a time that has passed.
var closed = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

// publisher publishes until the load ends.
func (c *client) publisher(ctx context.Context, t *target) {
	for ctx.Err() == nil {
		good := false
		if c.rng.IntN(12) == 0 {
			good = c.burst(t)
		} else {
			good = c.publish(t)
		}
		if c.refresh(!good) != nil {
			return
		}
		c.think()
	}
}

// prober publishes through one server at a steady pace, so that outages are measured closely.
func (c *client) prober(ctx context.Context, t *target) {
	c.pinned = true
	if c.connect() != nil {
		return
	}
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		<-tick.C
		if !c.nc.IsConnected() {
			continue
		}
		d := draft{record: history.Record{Kind: history.Publish, Stream: t.name, Subject: t.prefix + ".probe-" + c.name}}
		pos, m := c.message(&d)
		limit, cancel := context.WithTimeout(context.Background(), probeMax)
		ack, err := c.js.PublishMsg(limit, m, jetstream.WithRetryAttempts(0))
		cancel()
		c.published(pos, ack, err)
	}
}

// outages measures how long nothing could be published.
type outages struct {
	mu      sync.Mutex
	last    int64 // the last success
	quorum  bool  // a majority of the servers is able to work
	since   int64 // since then
	cause   string
	excused bool          // a stream may be unavailable although a majority works
	beat    int64         // when this process was last seen running
	stalled time.Duration // how long it did not
	longest int64
	during  string
	byKind  map[string]int64
}

func newOutages() *outages { return &outages{byKind: map[string]int64{}} }

// success notes that something was published at the time.
func (o *outages) success(at int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.close(at)
	o.last = max(o.last, at)
}

// close takes the time from the last success until at as an outage. The lock is held.
func (o *outages) close(at int64) {
	late := o.beat != 0 && time.Duration(at-o.beat) > pulseMax
	if !o.quorum || o.excused || o.last == 0 || late {
		return
	}
	gap := at - max(o.last, o.since)
	o.byKind[o.cause] = max(o.byKind[o.cause], gap)
	if gap > o.longest {
		o.longest, o.during = gap, o.cause
	}
}

// change notes that a fault of a kind begins or has ended, and whether a majority is able to work from now on.
func (o *outages) change(at int64, quorum bool, cause string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.close(at)
	if quorum != o.quorum || o.cause != cause {
		o.since = at
	}
	o.quorum, o.cause = quorum, cause
}

// excuse notes that from now on an outage is nobody's fault, or is again.
func (o *outages) excuse(at int64, on bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.close(at)
	o.excused, o.since = on, at
}

// alive notes that this process runs, and that it did not for the time before that if that is long: then what is measured
// from the last success on says nothing.
func (o *outages) alive(at int64, gap time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.beat = at
	if gap > pulseMax {
		o.stalled += gap
		o.since = at
	}
}

// errNoAnswer says that a read had no answer that decides.
var errNoAnswer = errors.New("no answer")
