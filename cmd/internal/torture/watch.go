package torture

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"weir/sim/workload"
)

// watch is one look at a whole stream in order: a watch of the bucket, or an ordered consumer of the main stream.
type watch struct {
	mu    sync.Mutex
	name  string
	of    *target
	from  uint64 // it begins at this sequence; 0 when it begins with the newest message of each subject
	seen  []workload.Delivery
	ended bool // nobody looks at it any more
}

// newest is the sequence of the last update.
func (w *watch) newest() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.seen) == 0 {
		return 0
	}
	return w.seen[len(w.seen)-1].StreamSeq
}

// see writes down what was shown.
func (w *watch) see(d *workload.Delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, *d)
}

// end says that nobody looks any more.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

// watchLife is how long a watch lasts on average until the client begins another one.
const watchLife = 40 * time.Second

// watcher watches the bucket, one watch after the other. The last one goes on until until is done, which is after the
// load has ended.
func (c *client) watcher(ctx, until context.Context) {
	for until.Err() == nil {
		if c.connect() != nil {
			return
		}
		limit, cancel := context.WithTimeout(until, answerMax)
		kv, err := c.js.KeyValue(limit, bucketName)
		cancel()
		if err != nil {
			c.think()
			continue
		}
		w := &watch{name: c.name, of: &bucket}
		watcher, err := kv.WatchAll(until)
		if err != nil {
			c.think()
			continue
		}
		c.run.log.watch(w)
		c.look(ctx, until, w, watcher)
		w.end()
	}
}

// look writes down what a watch shows until its life, or everything, ends.
func (c *client) look(ctx, until context.Context, w *watch, from jetstream.KeyWatcher) {
	// Its connection may be gone, and then there is nothing to stop.
	defer func() { _ = from.Stop() }()
	life := time.NewTimer(watchLife/2 + time.Duration(c.rng.Int64N(int64(watchLife))))
	defer life.Stop()
	for {
		select {
		case <-until.Done():
			return
		case <-life.C:
			if ctx.Err() == nil {
				return
			}
		case e, open := <-from.Updates():
			if !open {
				return
			}
			if e == nil {
				continue // everything that was there at the beginning has been shown
			}
			c.run.log.watched()
			w.see(&workload.Delivery{
				At: c.run.log.now(), StreamSeq: e.Revision(), Value: valueOf(e.Value(), ""), Subject: bucket.prefix + "." + e.Key(),
			})
		}
	}
}

// follower reads the main stream in order by ordered consumers, each from where the one before ended, or from the
// beginning. The last one goes on until until is done.
func (c *client) follower(ctx, until context.Context, t *target) {
	next := uint64(1)
	for until.Err() == nil {
		if c.connect() != nil {
			return
		}
		if c.rng.IntN(4) == 0 {
			next = 1
		}
		limit, cancel := context.WithTimeout(until, answerMax)
		from, err := c.js.OrderedConsumer(limit, t.name, jetstream.OrderedConsumerConfig{
			DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: next,
		})
		cancel()
		if err != nil {
			c.think()
			continue
		}
		messages, err := from.Messages()
		if err != nil {
			c.think()
			continue
		}
		w := &watch{name: c.name, of: t, from: next}
		c.run.log.watch(w)
		c.follow(ctx, until, w, messages)
		w.end()
		next = max(next, w.newest()+1)
	}
}

// follow writes down what an ordered consumer brings until its life, or everything, ends.
func (c *client) follow(ctx, until context.Context, w *watch, messages jetstream.MessagesContext) {
	over := make(chan struct{})
	defer close(over)
	life := watchLife/2 + time.Duration(c.rng.Int64N(int64(watchLife)))
	go func() {
		defer messages.Stop()
		select {
		case <-over:
			return
		case <-until.Done():
			return
		case <-time.After(life):
		}
		select {
		case <-ctx.Done(): // the last one goes on
			select {
			case <-over:
			case <-until.Done():
			}
		default:
		}
	}()
	for {
		m, err := messages.Next()
		if err != nil {
			return // stopped, or not to be had any more
		}
		meta, err := m.Metadata()
		if err != nil {
			c.run.wrong("%s: a delivery has the reply subject %q", c.name, m.Reply())
			return
		}
		c.run.log.watched()
		w.see(&workload.Delivery{
			At: c.run.log.now(), StreamSeq: meta.Sequence.Stream, Value: valueOf(m.Data(), m.Headers().Get(valueHeader)),
			Subject: m.Subject(),
		})
	}
}
