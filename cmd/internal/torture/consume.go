package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"weir/sim/plan"
	"weir/sim/workload"
)

// consumers are the durable pull consumers of the run, as the judge of the simulator wants them. Their stream is the
// first one of a plan.
var consumers = []plan.Consumer{
	{Name: "ALL", Key: -1, AckWaitMillis: 4000, MaxDeliver: -1, MaxAckPending: 400, VanishPerMille: 20, NakPerMille: 30, TermPerMille: 10},
	{Name: "ONE", Key: 3, AckWaitMillis: 2000, MaxDeliver: -1, MaxAckPending: 20, VanishPerMille: 100, NakPerMille: 100, TermPerMille: 20},
}

// fetchMax is the largest batch, fetchWait the longest wait of a pull. A client that is bound to one server gathers what
// comes within hoardWait and keeps it for up to hoardMax: less than the ack wait, and about as long as a leader that is cut
// off believes in itself.
const (
	fetchMax  = 100
	fetchWait = 1500 * time.Millisecond
	hoardWait = 300 * time.Millisecond
	hoardMax  = 1200 * time.Millisecond
)

// statesPer is the mean number of pulls until a client asks for the state of its consumer.
const statesPer = 25

// consumerConfig is the configuration of a consumer of the plan.
func consumerConfig(s *plan.Consumer) jetstream.ConsumerConfig {
	config := jetstream.ConsumerConfig{
		Durable: s.Name, AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Duration(s.AckWaitMillis) * time.Millisecond,
		MaxDeliver: s.MaxDeliver, MaxAckPending: s.MaxAckPending, DeliverPolicy: jetstream.DeliverAllPolicy,
	}
	if s.Key >= 0 {
		config.FilterSubject = fmt.Sprintf("%s.k%d", mainPrefix, s.Key)
	}
	return config
}

// consumer pulls and answers until the load ends, then pulls and acknowledges everything until until is done.
func (c *client) consumer(ctx, until context.Context, index int) {
	var from jetstream.Consumer
	for until.Err() == nil {
		if from == nil {
			limit, cancel := context.WithTimeout(until, answerMax)
			bound, err := c.js.Consumer(limit, mainStream, consumers[index].Name)
			cancel()
			if err != nil {
				if errors.Is(err, jetstream.ErrConsumerNotFound) {
					c.run.wrong("%s: the consumer %s is not there", c.name, consumers[index].Name)
				}
				c.think()
				if c.refresh(true) != nil {
					return
				}
				continue
			}
			from = bound
		}
		before := c.nc
		good := c.pull(from, index, ctx.Err() != nil)
		if c.rng.IntN(statesPer) == 0 {
			c.consumerState(index)
		}
		if c.refresh(!good) != nil {
			return
		}
		if c.nc != before {
			from = nil
		}
	}
}

// pull fetches some messages and answers each. steady acknowledges all of them.
func (c *client) pull(from jetstream.Consumer, index int, steady bool) bool {
	asked := c.run.log.now()
	var batch jetstream.MessageBatch
	var err error
	if c.rng.IntN(4) == 0 {
		batch, err = from.FetchNoWait(1 + c.rng.IntN(fetchMax))
	} else {
		wait := fetchWait
		if c.pinned {
			wait = hoardWait
		}
		batch, err = from.Fetch(1+c.rng.IntN(fetchMax), jetstream.FetchMaxWait(wait))
	}
	if err != nil {
		c.think()
		return false
	}
	good := true
	var held []holding
	for m := range batch.Messages() {
		meta, err := m.Metadata()
		if err != nil {
			c.run.wrong("%s: a delivery has the reply subject %q", c.name, m.Reply())
			continue
		}
		d := c.run.log.delivered(workload.Delivery{
			At: c.run.log.now(), Asked: asked, Consumer: index, StreamSeq: meta.Sequence.Stream, ConsumerSeq: meta.Sequence.Consumer,
			Count: meta.NumDelivered, Pending: meta.NumPending, Time: meta.Timestamp.UnixNano(),
			Value: valueOf(m.Data(), m.Headers().Get(valueHeader)), Subject: m.Subject(),
		})
		h := holding{m, workload.Ack{Consumer: index, Delivery: d}}
		if c.pinned {
			held = append(held, h)
			continue
		}
		good = c.answer(h, steady) && good
	}
	return c.answerAll(held, steady) && good && batch.Error() == nil
}

// holding is a delivery and the answer to it.
type holding struct {
	m jetstream.Msg
	a workload.Ack
}

// answerAll answers deliveries all at once, after a while. So a leader that is cut off together with the client is still
// asked to confirm what it can not have a majority for.
func (c *client) answerAll(held []holding, steady bool) bool {
	if len(held) == 0 {
		return true
	}
	if !steady {
		time.Sleep(time.Duration(c.rng.Int64N(int64(hoardMax))))
	}
	var all sync.WaitGroup
	var failed atomic.Bool
	for _, h := range held {
		one := &client{run: c.run, rng: rand.New(rand.NewPCG(c.rng.Uint64(), 0))}
		all.Go(func() {
			if !one.answer(h, steady) {
				failed.Store(true)
			}
		})
	}
	all.Wait()
	return !failed.Load()
}

// answer answers a delivery, or does not.
func (c *client) answer(h holding, steady bool) bool {
	m, a := h.m, h.a
	spec, roll := &consumers[a.Consumer], uint64(c.rng.IntN(1000))
	switch {
	case steady:
	case roll < spec.VanishPerMille:
		return true
	case roll < spec.VanishPerMille+spec.NakPerMille:
		a.Kind = workload.Nacked
		index := c.run.log.acking(a)
		var err error
		if c.rng.IntN(2) == 0 {
			err = m.NakWithDelay(time.Duration(c.rng.IntN(400)) * time.Millisecond)
		} else {
			err = m.Nak()
		}
		c.run.log.acked(index, false)
		return err == nil
	case roll < spec.VanishPerMille+spec.NakPerMille+spec.TermPerMille:
		a.Kind = workload.Ended
		index := c.run.log.acking(a)
		err := m.Term()
		c.run.log.acked(index, false)
		return err == nil
	case roll%5 == 0:
		index := c.run.log.acking(a)
		err := m.Ack()
		c.run.log.acked(index, false)
		return err == nil
	}
	index := c.run.log.acking(a)
	ctx, cancel := c.limit()
	defer cancel()
	err := m.DoubleAck(ctx)
	c.run.log.acked(index, err == nil)
	return err == nil
}

// consumerState asks for the state of a consumer and writes it down.
func (c *client) consumerState(index int) (*jetstream.ConsumerInfo, bool) {
	call := c.run.log.now()
	var info jetstream.ConsumerInfo
	if c.ask("CONSUMER.INFO."+mainStream+"."+consumers[index].Name, nil, &info) != nil {
		return nil, false
	}
	c.run.log.state(workload.ConsumerState{
		Consumer: index, Call: call, Return: c.run.log.now(),
		Delivered:  workload.SeqPair{Consumer: info.Delivered.Consumer, Stream: info.Delivered.Stream},
		AckFloor:   workload.SeqPair{Consumer: info.AckFloor.Consumer, Stream: info.AckFloor.Stream},
		AckPending: uint64(info.NumAckPending), Redelivered: uint64(info.NumRedelivered), Pending: info.NumPending,
	})
	return &info, true
}
