// Package effect is what applying commands asks of the world: a closed set of effects, in the order in which they
// arose.
//
// Effects are data. Every replica computes the same effects; which of them a node carries out (replies and deliveries
// only on the leader, storage on all) is decided by the node, never by the state machine.
package effect

import "weir/model/jsapi"

// Kind tells effects apart.
type Kind uint8

// The closed set of effects. The comments name the fields of Effect that each kind uses.
const (
	// Result answers the command at ordinal Cmd: Seq, N, Flag, Consumer, Err.
	// Publish: Seq the sequence, Flag whether it was a duplicate. PutConsumer: Consumer, Flag whether it was created.
	// Purge: N messages removed. Ack, Nak, Progress, Term: Flag whether a reply is due. CreateStream: Group, Flag whether
	// it was created. Commands about servers and placement: Flag whether they changed anything. Every command has exactly
	// one Result, except Tick.
	Result Kind = 1
	// Store keeps the bytes of a message: Seq, Time, Subject, Header, Payload (these alias the entry).
	Store Kind = 2
	// Forget drops the messages with sequences in [Seq, N]; Flag when their bytes are to be overwritten as well.
	Forget Kind = 3
	// Handoff sends one message to a request of a consumer: Consumer, Token, Seq, ConsumerSeq, Deliveries, N (messages
	// that still match after this one), Time (of the message).
	Handoff Kind = 4
	// Delivered ends a Deliver: Consumer, Token, N messages were handed off, Stop says why no more.
	Delivered Kind = 5
	// Wake says that a consumer may have something to deliver that it had not before: Consumer. At most one per
	// consumer and batch.
	Wake Kind = 6
	// ConsumerCreated reports a new consumer: Consumer, Text (name).
	ConsumerCreated Kind = 7
	// ConsumerUpdated reports a changed configuration: Consumer, Text (name).
	ConsumerUpdated Kind = 8
	// ConsumerDeleted reports the end of a consumer: Consumer, Text (name).
	ConsumerDeleted Kind = 9
	// MaxDeliveries reports that a message reached max_deliver: Consumer, Seq, Deliveries.
	MaxDeliveries Kind = 10
	// Terminated reports an ended delivery: Consumer, Seq, ConsumerSeq, Deliveries, Text (reason).
	Terminated Kind = 11
	// Naked reports a negative acknowledgement: Consumer, Seq, ConsumerSeq, Deliveries.
	Naked Kind = 12
	// Acked reports an explicit acknowledgement for ack metrics: Consumer, Seq, ConsumerSeq, Deliveries, N (nanoseconds
	// since the last delivery).
	Acked Kind = 13
	// StreamUpdated reports that the stream's configuration reached version N.
	StreamUpdated Kind = 14

	// GroupCreated asks for the group of a new stream of the catalog: Group.
	GroupCreated Kind = 32
	// GroupUpdated asks for the stream of the group to follow its catalog entry: Group.
	GroupUpdated Kind = 33
	// GroupDeleted asks for the end of a stream's group: Group.
	GroupDeleted Kind = 34
	// GroupPlaced says that the replicas which a stream of the catalog shall have are others than before: Group.
	GroupPlaced Kind = 35
	// GroupSettled says that a stream's former replicas are to end: Group.
	GroupSettled Kind = 36
	// ServerRegistered says that the catalog knows a server, or knows something else of it than before: N (its id).
	ServerRegistered Kind = 37
	// ServerRemoved says that a server belongs to the cluster no longer: N (its id).
	ServerRemoved Kind = 38
)

// Stop is why a Deliver handed out no more messages.
type Stop uint8

// The reasons, in the order in which a state machine looks at them.
const (
	// StopCount: the request's count is reached.
	StopCount Stop = iota
	// StopBytes: the next message does not fit into MaxBytes.
	StopBytes
	// StopEmpty: nothing that matches is left.
	StopEmpty
	// StopPending: max_ack_pending is reached.
	StopPending
	// StopPaused: deliveries of the consumer are paused.
	StopPaused
	// StopGone: the consumer no longer exists.
	StopGone
)

// Effect is one effect, flat: each kind uses the fields that its constant names.
type Effect struct {
	// Kind says which fields count.
	Kind Kind
	// Stop is the reason of Delivered.
	Stop Stop
	// Flag is the yes-or-no part of a Result.
	Flag bool
	// Cmd is the 0-based ordinal of the command in its batch.
	Cmd int32
	// Consumer is the incarnation id of a consumer.
	Consumer uint64
	// Token is the request's token of the Deliver command.
	Token uint64
	// Seq is a stream sequence, ConsumerSeq the sequence of a delivery.
	Seq, ConsumerSeq uint64
	// Deliveries counts how often the message was delivered to the consumer, this delivery included.
	Deliveries uint64
	// N is a number whose meaning the kind gives.
	N uint64
	// Group is the group of a stream in the catalog.
	Group uint64
	// Time is unix nanoseconds.
	Time int64
	// Subject, Header, Payload are the message of a Store; they alias the applied entry.
	Subject, Header, Payload []byte
	// Text is a name or reason.
	Text string
	// Err is the refusal in a Result; nil means that the command took effect.
	Err *jsapi.Error
}

// List collects effects; it is reused from one batch to the next.
type List struct {
	// Effects are in the order in which they arose. They are valid until Reset.
	Effects []Effect
}

// Add appends a zeroed effect of the kind and returns it for filling in. The pointer is valid until the next Add.
func (l *List) Add(kind Kind) *Effect {
	if len(l.Effects) < cap(l.Effects) {
		l.Effects = l.Effects[:len(l.Effects)+1]
		e := &l.Effects[len(l.Effects)-1]
		*e = Effect{Kind: kind}
		return e
	}
	l.Effects = append(l.Effects, Effect{Kind: kind})
	return &l.Effects[len(l.Effects)-1]
}

// Reset empties the list and keeps its memory.
func (l *List) Reset() { l.Effects = l.Effects[:0] }
