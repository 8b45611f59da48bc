package oracle

import (
	"slices"

	"weir/model/effect"
	"weir/model/jsapi"
)

// Consumer is a consumer of a stream. The fields are open to comparison, not to change.
type Consumer struct {
	Name   string
	Config *jsapi.ConsumerConfig
	// Delivered is the highest consumer and stream sequence handed out.
	Delivered Position
	// Floor is the position at or below which everything is done with.
	Floor Position
	// Pending are the messages handed out and not done with, ascending by stream sequence.
	Pending []Pending
	// Exceeded are the stream sequences that reached max_deliver, in order of the events.
	Exceeded []uint64

	stream *Stream
	// cursor is the next stream sequence to look at for new messages.
	cursor uint64
	// chosen are the undelivered messages below cursor that last_per_subject selected.
	chosen []uint64
}

// Position is a place in the sequences of a consumer and of its stream.
type Position struct{ Consumer, Stream uint64 }

// Pending is a message that was handed out.
type Pending struct {
	// Seq is the stream sequence, First the consumer sequence of the first delivery.
	Seq, First uint64
	// Deliveries counts the deliveries.
	Deliveries uint64
	// Last is the time of the last delivery or sign of progress.
	Last int64
	// Due is when it is due again; Queued says that it is due, Delayed that Due is what a negative acknowledgement asked for.
	Due             int64
	Queued, Delayed bool
}

// Handoff is one delivered message.
type Handoff struct {
	Seq, ConsumerSeq, Deliveries uint64
	// Pending is num_pending after this delivery.
	Pending uint64
}

// AddConsumer creates a consumer where its deliver policy says. The config is normalised.
func (s *Stream) AddConsumer(name string, config *jsapi.ConsumerConfig) *Consumer {
	c := &Consumer{Name: name, Config: config, stream: s}
	start := c.startSeq()
	if start < s.First {
		start = s.First
	}
	if start == 0 {
		start = 1
	}
	c.cursor = start
	if config.DeliverPolicy == jsapi.DeliverLastPerSubject && s.Config.MaxMsgsPerSubject != 1 {
		c.chosen = c.lastOfEach()
		c.cursor = s.Last + 1
		start = c.cursor
		if len(c.chosen) > 0 {
			start = c.chosen[0]
		}
	}
	c.Delivered.Stream, c.Floor.Stream = start-1, start-1
	s.Consumers = append(s.Consumers, c)
	return c
}

// Consumer returns the consumer of the name, nil when there is none.
func (s *Stream) Consumer(name string) *Consumer {
	for _, c := range s.Consumers {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// DeleteConsumer removes the consumer of the name and reports whether there was one.
func (s *Stream) DeleteConsumer(name string) bool {
	before := len(s.Consumers)
	s.Consumers = slices.DeleteFunc(s.Consumers, func(c *Consumer) bool { return c.Name == name })
	return len(s.Consumers) < before
}

// startSeq is where the deliver policy points; it may lie before the first message.
func (c *Consumer) startSeq() uint64 {
	s := c.stream
	switch c.Config.DeliverPolicy {
	case jsapi.DeliverNew:
		return s.Last + 1
	case jsapi.DeliverByStartSequence:
		return c.Config.OptStartSeq
	case jsapi.DeliverByStartTime:
		return s.SeqAtTime(int64(*c.Config.OptStartTime))
	case jsapi.DeliverLast:
		last := uint64(0)
		for _, m := range s.Messages {
			if matchesAny(m.Subject, c.Config.Filters()) {
				last = m.Seq
			}
		}
		if len(c.Config.Filters()) == 0 {
			return max(s.Last, last)
		}
		return last
	default:
		return s.First
	}
}

// lastOfEach are the last messages of all subjects that the filters select, ascending.
func (c *Consumer) lastOfEach() []uint64 {
	var last []uint64
	for i, m := range c.stream.Messages {
		later := slices.ContainsFunc(c.stream.Messages[i+1:], func(l Message) bool { return l.Subject == m.Subject })
		if !later && matchesAny(m.Subject, c.Config.Filters()) {
			last = append(last, m.Seq)
		}
	}
	return last
}

// undelivered are the messages still to be handed out for the first time, ascending.
func (c *Consumer) undelivered() []Message {
	var left []Message
	for _, m := range c.stream.Messages {
		ahead := m.Seq >= c.cursor && matchesAny(m.Subject, c.Config.Filters())
		if ahead || slices.Contains(c.chosen, m.Seq) {
			left = append(left, m)
		}
	}
	return left
}

// NumPending is the number of messages still to be handed out for the first time.
func (c *Consumer) NumPending() uint64 { return uint64(len(c.undelivered())) }

// NumRedelivered is the number of pending messages that were handed out more than once.
func (c *Consumer) NumRedelivered() int {
	n := 0
	for _, p := range c.Pending {
		if p.Deliveries > 1 && c.Config.MaxDeliver != 1 {
			n++
		}
	}
	return n
}

// UpdateConfig replaces the configuration; the position stays. Running ack waits are those of the new configuration.
// Pending messages that the filters no longer select, or that had their last delivery, end when they are due.
func (c *Consumer) UpdateConfig(config *jsapi.ConsumerConfig) {
	rewaited := config.AckWait != c.Config.AckWait || !slices.Equal(config.BackOff, c.Config.BackOff)
	c.Config = config
	c.chosen = slices.DeleteFunc(c.chosen, func(seq uint64) bool {
		return !matchesAny(c.stream.at(seq).Subject, config.Filters())
	})
	for _, p := range slices.Clone(c.Pending) {
		if p.Queued {
			c.again(p.Seq)
		} else if rewaited && !p.Delayed {
			c.find(p.Seq).Due = c.dueAt(p.Last, p.Deliveries)
		}
	}
}

// vanished hears that a message left the stream: its delivery ends.
func (c *Consumer) vanished(seq uint64) {
	c.chosen = slices.DeleteFunc(c.chosen, func(chosen uint64) bool { return chosen == seq })
	c.finish(seq)
}

// purgedTo hears that everything below first was removed in one go. The positions move up.
func (c *Consumer) purgedTo(first uint64) {
	c.chosen = slices.DeleteFunc(c.chosen, func(seq uint64) bool { return seq < first })
	for len(c.Pending) > 0 && c.Pending[0].Seq < first {
		c.Floor.Consumer = max(c.Floor.Consumer, c.Pending[0].First)
		c.Pending = c.Pending[1:]
	}
	c.cursor = max(c.cursor, first)
	if len(c.chosen) == 0 {
		c.Delivered.Stream = max(c.Delivered.Stream, first-1)
	}
	c.Floor.Stream = min(max(c.Floor.Stream, first-1), c.Delivered.Stream)
	if len(c.Pending) == 0 {
		c.Floor = c.Delivered
	}
}

// Deadline is the earliest time at which a Tick has something to do, 0 when there is none.
func (s *Stream) Deadline() int64 {
	earliest := int64(0)
	consider := func(at int64) {
		if earliest == 0 || at < earliest {
			earliest = at
		}
	}
	if s.Config.MaxAge > 0 && len(s.Messages) > 0 {
		consider(s.Messages[0].Time + int64(s.Config.MaxAge))
	}
	for _, c := range s.Consumers {
		for _, p := range c.Pending {
			if !p.Queued {
				consider(p.Due)
			}
		}
	}
	return earliest
}

// Deliverable says whether a Deliver would hand out something.
func (c *Consumer) Deliverable() bool {
	_, stop := c.next()
	return stop == effect.StopCount
}
