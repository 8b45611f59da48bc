package bench

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	payloadSize  = 128
	inFlight     = 500
	clients      = 16
	streamName   = "BENCH"
	subject      = "bench.data"
	ackMax       = 30 * time.Second // how long one acknowledgement may take
	warmupParts  = 5                // a fifth of the span is run before the measurement starts
	lagMax       = 1 << 16          // messages that the subscriber may be behind the publisher
	lagCheckEach = 1 << 10
)

var payload = make([]byte, payloadSize)

// timed runs do for a warm-up, then for the span, and returns the figure of the second run.
func (t *trial) timed(name string, do func(until time.Time) (int, error)) (sample, error) {
	if _, err := do(time.Now().Add(t.Span / warmupParts)); err != nil {
		return nil, err
	}
	return t.once(name, func() (int, error) { return do(time.Now().Add(t.Span)) })
}

// once times a run that counts its own operations.
func (t *trial) once(name string, do func() (int, error)) (sample, error) {
	cpu, begin := t.cpu(), time.Now()
	n, err := do()
	if err != nil {
		return nil, err
	}
	took := time.Since(begin)
	cpu = t.cpu() - cpu
	return sample{{
		work: name, unit: "op/s",
		value: float64(n) / took.Seconds(),
		cpu:   cpu.Seconds() * 1e6 / float64(max(n, 1)),
	}}, nil
}

// window publishes asynchronously and keeps the acknowledgements that are due, at most inFlight of them.
type window struct {
	js      jetstream.JetStream
	futures [inFlight]jetstream.PubAckFuture
	sent    int
	waited  int
}

func (w *window) publish(subject string) error {
	if w.sent-w.waited == inFlight {
		if err := w.wait(); err != nil {
			return err
		}
	}
	future, err := w.js.PublishAsync(subject, payload)
	if err != nil {
		return err
	}
	w.futures[w.sent%inFlight] = future
	w.sent++
	return nil
}

// wait takes the oldest acknowledgement.
func (w *window) wait() error {
	future := w.futures[w.waited%inFlight]
	w.waited++
	select {
	case <-future.Ok():
		return nil
	case err := <-future.Err():
		return err
	case <-time.After(ackMax):
		return fmt.Errorf("no acknowledgement within %v", ackMax)
	}
}

func (w *window) drain() error {
	for w.waited < w.sent {
		if err := w.wait(); err != nil {
			return err
		}
	}
	return nil
}

func drivePublishAsync(t *trial) (sample, error) {
	if err := t.stream(); err != nil {
		return nil, err
	}
	js, err := t.jetStream()
	if err != nil {
		return nil, err
	}
	return t.timed(publishAsync, func(until time.Time) (int, error) {
		w := &window{js: js}
		for time.Now().Before(until) {
			if err := w.publish(subject); err != nil {
				return 0, err
			}
		}
		return w.sent, w.drain()
	})
}

// drivePublishSync1 is followed by what the disk does at the same time without a server, when it is Weir's turn.
func drivePublishSync1(t *trial) (sample, error) {
	s, err := publishSync(t, publishSync1, 1)
	if err != nil || t.server != t.servers[weirColumn] || t.Replicas > 1 {
		return s, err
	}
	grown, err := loopAppend(t.dir, t.Span)
	if err != nil {
		return s, err
	}
	filled, err := loopFilled(t.dir, t.Span)
	return append(s, figure{work: bareAppend, unit: "op/s", value: grown}, figure{work: bareFilled, unit: "op/s", value: filled}), err
}

func drivePublishSync16(t *trial) (sample, error) { return publishSync(t, publishSync16, clients) }

// publishSync lets n clients publish, each waiting for its acknowledgement, each on its own connection.
func publishSync(t *trial, name string, n int) (sample, error) {
	if err := t.stream(); err != nil {
		return nil, err
	}
	publishers := make([]jetstream.JetStream, n)
	for i := range publishers {
		js, err := t.jetStream()
		if err != nil {
			return nil, err
		}
		publishers[i] = js
	}
	return t.timed(name, func(until time.Time) (int, error) {
		var total atomic.Int64
		errs := make([]error, n)
		var wait sync.WaitGroup
		for i, js := range publishers {
			wait.Go(func() {
				for time.Now().Before(until) {
					if _, err := js.Publish(t.ctx, subject, payload); err != nil {
						errs[i] = fmt.Errorf("publish: %w", err)
						return
					}
					total.Add(1)
				}
			})
		}
		wait.Wait()
		return int(total.Load()), errors.Join(errs...)
	})
}

func driveCore0(t *trial) (sample, error) {
	nc, err := t.connect()
	if err != nil {
		return nil, err
	}
	return t.timed(core0, func(until time.Time) (int, error) {
		n, err := publishCore(nc, until, nil)
		return n, errors.Join(err, nc.FlushTimeout(ackMax))
	})
}

// driveCore1 counts a message once the subscriber, on another connection, has it.
func driveCore1(t *trial) (sample, error) {
	publisher, err := t.connect()
	if err != nil {
		return nil, err
	}
	subscriber, err := t.connect()
	if err != nil {
		return nil, err
	}
	var got atomic.Int64
	sub, err := subscriber.Subscribe(subject, func(*nats.Msg) { got.Add(1) })
	if err != nil {
		return nil, err
	}
	if err := errors.Join(sub.SetPendingLimits(-1, -1), subscriber.Flush()); err != nil {
		return nil, err
	}
	return t.timed(core1, func(until time.Time) (int, error) {
		got.Store(0)
		n, err := publishCore(publisher, until, &got)
		if err != nil {
			return 0, err
		}
		if err := publisher.FlushTimeout(ackMax); err != nil {
			return 0, err
		}
		for limit := time.Now().Add(ackMax); got.Load() < int64(n); time.Sleep(pollEach) {
			if time.Now().After(limit) {
				return 0, fmt.Errorf("%d of %d messages arrived", got.Load(), n)
			}
		}
		return n, nil
	})
}

// publishCore publishes until the time is over; it does not run away from a subscriber that counts in got.
func publishCore(nc *nats.Conn, until time.Time, got *atomic.Int64) (int, error) {
	n := 0
	for ; n%lagCheckEach != 0 || time.Now().Before(until); n++ {
		if got != nil && n%lagCheckEach == 0 {
			for int64(n)-got.Load() > lagMax && time.Now().Before(until) {
				time.Sleep(pollEach / 10)
			}
		}
		if err := nc.Publish(subject, payload); err != nil {
			return n, err
		}
	}
	return n, nil
}
