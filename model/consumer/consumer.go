// Package consumer is the replicated state of one consumer of a stream: where it stands, what it has handed out and not
// got back, and what is due to be handed out again (ADR-13, ADR-15, ADR-42 of the NATS architecture).
//
// It promises that equal operations on equal streams give equal states, effects and bytes; that a message which the
// consumer has yet to deliver is never passed over, whatever is deleted, purged or rolled up; that max_deliver is never
// exceeded; and that an acknowledged message is never handed out again. Every operation costs O(log pending), apart from
// those that name their own cost.
//
// It does not know who asks for messages, nor how they travel: requests, interest, heartbeats and flow control are the
// soft state of the leader. It reads no clock: the time of the batch is the only time there is. It does not validate
// configurations; those have been normalised.
package consumer

import (
	"math"

	"weir/model/effect"
	"weir/model/jsapi"
	"weir/spec/assert"
)

const (
	// DeliverMax bounds the messages that one Deliver hands out.
	DeliverMax = 1024
	// ScanMax bounds the messages that one Deliver examines in search of matches.
	ScanMax = 16384
	// TickMax bounds the deadlines that one Tick acts on; the others follow in the next.
	TickMax = 4096
)

// never is the deadline of what has none.
const never = math.MaxInt64

// Batch is the surroundings of an operation: what the batch of commands that it belongs to says.
type Batch struct {
	// Time is the leader's timestamp in unix nanoseconds; it never decreases from one batch to the next.
	Time int64
	// Index identifies the batch. It grows from batch to batch.
	Index uint64
	// Cmd is the ordinal of the command in its batch.
	Cmd int32
	// Out takes the effects.
	Out *effect.List
}

// Plant switches deliberate faults on, for checking that the checkers find them. The zero value has none.
type Plant struct {
	// AckFloorAhead moves the ack floor over every delivered message as soon as any of them is acknowledged.
	AckFloorAhead bool
	// PurgeMovesCursor moves the cursor behind each message that a purge removes, over those before it that stay.
	PurgeMovesCursor bool
}

// Options are what is the same for all consumers of a stream.
type Options struct {
	// Stream is the name of the stream.
	Stream string
	// OnePerSubject says that the stream keeps one message per subject, which makes last_per_subject the same as all.
	OnePerSubject bool
	// Plant holds deliberate faults.
	Plant Plant
}

// Position is a place in the two sequences of a consumer.
type Position struct {
	// Consumer counts deliveries; Stream is a sequence of the stream.
	Consumer, Stream uint64
	// Last is the time of the last activity in unix nanoseconds, 0 when there was none.
	Last int64
}

// State is the state of one consumer.
type State struct {
	id      uint64
	name    string
	created int64
	config  *jsapi.ConsumerConfig
	options Options
	log     Log
	rules   rules

	// cursor is the next sequence of the stream to look at for new messages.
	// Invariant: every message at or after cursor that matches is undelivered.
	cursor uint64
	// skip holds the messages below cursor that last_per_subject selected and that are undelivered.
	skip skipList
	// delivered is the highest consumer sequence and the highest stream sequence handed out.
	delivered Position
	// floor: everything at or below it is done with. Invariant: floor <= delivered in both sequences.
	floor Position
	// pending is what was handed out and is not done with; always empty when no acks are expected.
	pending pendingSet
	// numPending counts the matching messages at or after cursor, and those of skip.
	numPending uint64

	// woken is the index of the last batch that emitted Wake. Soft: it is not part of the state.
	woken uint64
	// changed says that the state differs from the one last written. Soft.
	changed bool
}

// Params name a new consumer.
type Params struct {
	// ID is the incarnation, never reused.
	ID uint64
	// Name is the name among the consumers of the stream.
	Name string
	// Config is normalised; the State keeps it and nobody changes it.
	Config *jsapi.ConsumerConfig
	// Options are those of the stream.
	Options Options
}

// New makes a consumer that starts where its deliver policy says. created is the time of the batch in unix nanoseconds.
// The cost is that of counting what matches and, for last_per_subject, of listing it.
func New(p Params, log Log, created int64) *State {
	s := &State{
		id: p.ID, name: p.Name, created: created, config: p.Config, options: p.Options, log: log,
		rules: deriveRules(p.Config), changed: true,
	}
	s.start()
	return s
}

// ID is the incarnation id.
func (s *State) ID() uint64 { return s.id }

// Name is the name of the consumer.
func (s *State) Name() string { return s.name }

// Stream is the name of the stream.
func (s *State) Stream() string { return s.options.Stream }

// Created is when the consumer was created, unix nanoseconds.
func (s *State) Created() int64 { return s.created }

// Config is the configuration; do not change it.
func (s *State) Config() *jsapi.ConsumerConfig { return s.config }

// Filters are the subject filters, none when every message of the stream is wanted; do not change them.
func (s *State) Filters() []string { return s.rules.filters }

// Delivered is how far the consumer has handed out messages.
func (s *State) Delivered() Position { return s.delivered }

// AckFloor is the position at or below which everything is done with.
func (s *State) AckFloor() Position { return s.floor }

// NumPending is the number of messages that match and were never handed out.
func (s *State) NumPending() uint64 { return s.numPending }

// NumAckPending is the number of messages that were handed out and not done with.
func (s *State) NumAckPending() int { return s.pending.live }

// NumRedelivered is the number of pending messages that were handed out more than once.
func (s *State) NumRedelivered() int {
	if s.rules.maxDeliver == 1 {
		return 0
	}
	return s.pending.redelivered
}

// NumQueued is the number of messages that are due for another delivery.
func (s *State) NumQueued() int { return s.pending.queued }

// Outstanding reports whether the message waits for the answer to exactly this delivery: it was neither answered nor given
// up since, nor handed out again.
func (s *State) Outstanding(seq, deliveries uint64) bool {
	e := s.pending.find(seq)
	return e != nil && uint64(e.deliveries) == deliveries
}

// AtMaxAckPending reports whether new messages wait for acknowledgements.
func (s *State) AtMaxAckPending() bool {
	return s.rules.maxAckPending > 0 && s.pending.live >= s.rules.maxAckPending
}

// Deliverable reports whether a Deliver would hand out something.
func (s *State) Deliverable() bool {
	return s.pending.queued > 0 || s.numPending > 0 && !s.AtMaxAckPending()
}

// NextNew returns the next message that was never handed out and the time at which it was stored, and reports false when
// there is none or it is not found by examining ScanMax messages. It changes nothing.
func (s *State) NextNew() (seq uint64, unixNanos int64, ok bool) {
	if s.numPending == 0 {
		return 0, 0, false
	}
	seq, ok = s.skip.first()
	if !ok {
		seq, ok = s.log.Next(s.rules.filters, s.cursor, ScanMax)
	}
	if !ok {
		return 0, 0, false
	}
	meta, exists := s.log.Meta(seq)
	assert.True(exists, "a message that is found exists", seq)
	return seq, meta.Time, true
}

// LastSeq is the highest sequence of the stream.
func (s *State) LastSeq() uint64 { return s.log.Last() }

// TakeChanged reports whether the state has changed since the last call.
func (s *State) TakeChanged() bool {
	changed := s.changed
	s.changed = false
	return changed
}

// Changed reports whether the state has changed since the last TakeChanged.
func (s *State) Changed() bool { return s.changed }

// wake tells the leader that there is something to deliver where there was nothing before the operation.
func (s *State) wake(b *Batch, before bool) {
	if before || s.woken == b.Index || !s.Deliverable() {
		return
	}
	s.woken = b.Index
	b.Out.Add(effect.Wake).Consumer = s.id
}

// result answers the command of the batch; reply says whether the client is to get an answer.
func (s *State) result(b *Batch, reply bool) {
	e := b.Out.Add(effect.Result)
	e.Cmd, e.Consumer, e.Flag = b.Cmd, s.id, reply
}

// check asserts what must hold after every operation.
func (s *State) check() {
	assert.True(s.floor.Consumer <= s.delivered.Consumer, "ack floor <= delivered (consumer sequence)",
		s.floor.Consumer, s.delivered.Consumer)
	assert.True(s.floor.Stream <= s.delivered.Stream, "ack floor <= delivered (stream sequence)",
		s.floor.Stream, s.delivered.Stream)
}
