package torture

import (
	"context"
	"errors"
	"fmt"
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
	// resendPer is the mean number of publishes until one is sent again that was sent before, sentMax how many of them a
	// client remembers.
	resendPer = 8
	sentMax   = 2000
	// burstMax is the largest number of messages in flight of one asynchronous client, stormSize that of one in a storm.
	burstMax  = 32
	stormSize = 300
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

// resend is a publish with an id that was sent before, maybe long ago: however it ended then, the id is stored once.
func (c *client) resend(t *target) draft {
	if len(c.sent) == 0 || c.rng.IntN(resendPer) != 0 {
		return c.draw(t)
	}
	d := draft{record: c.sent[c.rng.IntN(len(c.sent))], padding: c.rng.IntN(200)}
	d.record.ExpectLast, d.record.ExpectSubject = history.Expected{}, history.Expected{}
	return d
}

// remember keeps the id for a later resend, instead of another one when there are many.
func (c *client) remember(d *draft) {
	switch {
	case d.record.MsgID == "":
	case len(c.sent) < sentMax:
		c.sent = append(c.sent, d.record)
	default:
		c.sent[c.rng.IntN(sentMax)] = d.record
	}
}

// publish publishes one message, again and again under the same id while the outcome is unknown. It reports whether it
// is known in the end.
func (c *client) publish(t *target) bool {
	d := c.resend(t)
	defer c.remember(&d)
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

// burst publishes so many messages at once and waits for all answers.
func (c *client) burst(t *target, count int) bool {
	type sent struct {
		pos    int
		future jetstream.PubAckFuture
	}
	var all []sent
	for range count {
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
			good = c.burst(t, 1+c.rng.IntN(burstMax))
		} else {
			good = c.publish(t)
		}
		if c.refresh(!good) != nil {
			return
		}
		c.think()
	}
}

// stormer publishes a lot at once whenever somebody asks for it.
func (c *client) stormer(ctx context.Context, t *target) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.run.storm:
			if c.refresh(!c.burst(t, stormSize)) != nil {
				return
			}
		}
	}
}

// errNoAnswer says that a read had no answer that decides.
var errNoAnswer = errors.New("no answer")
