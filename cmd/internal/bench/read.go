package bench

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	consumed   = 40_000 // messages of the consume and fetch works
	fetchBatch = 100
	keys       = 1_000
	bucket     = "BENCH"
	settle     = 500 * time.Millisecond // before memory is read
)

// loaded makes the stream and stores n messages in it.
func (t *trial) loaded(n int) (jetstream.JetStream, error) {
	if err := t.stream(); err != nil {
		return nil, err
	}
	js, err := t.jetStream()
	if err != nil {
		return nil, err
	}
	return js, publishMany(js, n)
}

// publishMany publishes n messages and waits until all are acknowledged.
func publishMany(js jetstream.JetStream, n int) error {
	w := &window{js: js}
	for range n {
		if err := w.publish(subject); err != nil {
			return err
		}
	}
	return w.drain()
}

func (t *trial) consumer(n int) (jetstream.Consumer, error) {
	js, err := t.loaded(n)
	if err != nil {
		return nil, err
	}
	return js.CreateConsumer(t.ctx, streamName, jetstream.ConsumerConfig{
		Durable: "bench", AckPolicy: jetstream.AckExplicitPolicy,
	})
}

// acknowledge acks one message, the last one with a confirmation, so that all acks have been taken.
func (t *trial) acknowledge(m jetstream.Msg, last bool) error {
	if last {
		return m.DoubleAck(t.ctx)
	}
	return m.Ack()
}

func driveConsume(t *trial) (sample, error) {
	consumer, err := t.consumer(consumed)
	if err != nil {
		return nil, err
	}
	return t.once(consume, func() (int, error) {
		messages, err := consumer.Messages()
		if err != nil {
			return 0, err
		}
		defer messages.Stop()
		for n := 1; n <= consumed; n++ {
			m, err := messages.Next(jetstream.NextMaxWait(ackMax))
			if err != nil {
				return 0, fmt.Errorf("message %d: %w", n, err)
			}
			if err := t.acknowledge(m, n == consumed); err != nil {
				return 0, fmt.Errorf("ack of message %d: %w", n, err)
			}
		}
		return consumed, nil
	})
}

func driveFetch(t *trial) (sample, error) {
	consumer, err := t.consumer(consumed)
	if err != nil {
		return nil, err
	}
	return t.once(fetch, func() (int, error) {
		n := 0
		for n < consumed {
			batch, err := consumer.Fetch(fetchBatch, jetstream.FetchMaxWait(ackMax))
			if err != nil {
				return 0, err
			}
			before := n
			for m := range batch.Messages() {
				n++
				if err := t.acknowledge(m, n == consumed); err != nil {
					return 0, err
				}
			}
			if err := batch.Error(); err != nil || n == before {
				return 0, fmt.Errorf("after %d messages a fetch ended empty: %w", n, err)
			}
		}
		return n, nil
	})
}

// bucket makes the one bucket of a work and returns it as a client sees it.
func (t *trial) bucket() (jetstream.KeyValue, jetstream.JetStream, error) {
	maker, err := t.jetStream()
	if err != nil {
		return nil, nil, err
	}
	err = t.patiently(func() error {
		_, err := maker.CreateKeyValue(t.ctx, jetstream.KeyValueConfig{Bucket: bucket, Replicas: t.Replicas})
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if err := t.settled(maker, "KV_"+bucket); err != nil {
		return nil, nil, err
	}
	js, err := t.jetStream()
	if err != nil {
		return nil, nil, err
	}
	kv, err := js.KeyValue(t.ctx, bucket)
	return kv, js, err
}

// driveKVPut lets one client put, each time waiting for the acknowledgement.
func driveKVPut(t *trial) (sample, error) {
	kv, _, err := t.bucket()
	if err != nil {
		return nil, err
	}
	chooser := rand.New(rand.NewPCG(3, 4))
	return t.timed(kvPut, func(until time.Time) (int, error) {
		n := 0
		for ; time.Now().Before(until); n++ {
			if _, err := kv.Put(t.ctx, "key."+strconv.Itoa(chooser.IntN(keys)), payload); err != nil {
				return n, err
			}
		}
		return n, nil
	})
}

func driveKVGet(t *trial) (sample, error) {
	kv, js, err := t.bucket()
	if err != nil {
		return nil, err
	}
	w := &window{js: js}
	for i := range keys {
		if err := w.publish("$KV." + bucket + ".key." + strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	if err := w.drain(); err != nil {
		return nil, err
	}
	chooser := rand.New(rand.NewPCG(1, 2))
	return t.timed(kvGet, func(until time.Time) (int, error) {
		n := 0
		for ; time.Now().Before(until); n++ {
			if _, err := kv.Get(t.ctx, "key."+strconv.Itoa(chooser.IntN(keys))); err != nil {
				return n, err
			}
		}
		return n, nil
	})
}

// driveRestart stores many messages, kills the server, starts it, stops it in order and starts it again. It yields the
// times until the stream answers with all messages, and the memory per message that the last process holds beyond what
// it held when it was empty.
func driveRestart(t *trial) (sample, error) {
	time.Sleep(settle)
	empty := resident(t.nodes[0].cmd.Process.Pid)
	if _, err := t.loaded(t.Stored); err != nil {
		return nil, err
	}
	killed, err := t.restart(syscall.SIGKILL)
	if err != nil {
		return nil, fmt.Errorf("after SIGKILL: %w", err)
	}
	stopped, err := t.restart(syscall.SIGTERM)
	if err != nil {
		return nil, fmt.Errorf("after SIGTERM: %w", err)
	}
	time.Sleep(settle)
	each := float64(max(resident(t.nodes[0].cmd.Process.Pid)-empty, 0)) / float64(t.Stored)
	return sample{
		{work: restartStopped, unit: "ms", value: stopped.Seconds() * 1e3},
		{work: restartKilled, unit: "ms", value: killed.Seconds() * 1e3},
		{work: memory, unit: "B", value: each},
	}, nil
}

// restart ends the server by a signal and returns how long the next process takes to have all messages.
func (t *trial) restart(signal syscall.Signal) (time.Duration, error) {
	n := t.nodes[0]
	for _, nc := range t.conns {
		nc.Close()
	}
	t.conns = nil
	if err := n.end(signal); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := n.spawn(); err != nil {
		return 0, err
	}
	err := n.until(func(js jetstream.JetStream) error {
		stream, err := js.Stream(t.ctx, streamName)
		if err != nil {
			return err
		}
		if n := stream.CachedInfo().State.Msgs; n != uint64(t.Stored) {
			return errors.Join(errLost, fmt.Errorf("%d of %d messages are there", n, t.Stored))
		}
		return nil
	})
	return time.Since(begin), err
}

var errLost = errors.New("acknowledged messages are missing")
