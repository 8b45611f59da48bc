// Package workload is the clients of a simulation: they carry out a plan's operations as bytes of the real protocol and
// write down what they see.
//
// A client is sequential: one operation at a time, on one connection, redialling when it is lost. An operation without
// an answer has an unknown outcome, and the client goes on under a new number. The package promises that an outcome is
// "rejected" only for answers that a server can give solely after deciding. It judges nothing.
package workload

import (
	"fmt"
	"strings"

	"weir/linearizability/history"
	"weir/sim/plan"
	"weir/sim/trace"
	"weir/sim/world"
)

// Bounds in virtual nanoseconds.
const (
	second = 1_000_000_000
	// answerMax is how long a client waits for an answer before it gives the operation up.
	answerMax = 4 * second
	// redialMin is how long it waits before it dials again.
	redialMin = second / 100
)

// Observations are what the clients saw.
type Observations struct {
	// History holds the operations on streams.
	History history.History
	// Deliveries and Acks are what pull consumers did, in the order of their times.
	Deliveries []Delivery
	Acks       []Ack
	// Wrong are answers that clients with a stream of their own knew to be wrong.
	Wrong []Wrong
	// Updates are the changes of descriptions, in the order of their calls, Descriptions what was read of them.
	Updates      []Update
	Descriptions []Description
	// Watches are the watches that were established.
	Watches []*Watch
	// Finals are the read-backs of the streams, by the index of the stream; nil when the stream was not available.
	Finals []*Final
	// Bytes are the most bytes that the state of a stream ever said, by the index of the stream.
	Bytes []uint64
	// Mirrors are the read-backs of the mirrors, by index; nil when one was not available.
	Mirrors []*MirrorFinal
	// Rebirths are what became of the plan's rebirths, by index.
	Rebirths []*Reborn
	// Consumers are the last states of the plan's consumers, by index; nil when not available. States are those that
	// clients saw on the way.
	Consumers []*ConsumerState
	States    []ConsumerState
}

// Final is the read-back of a stream.
type Final struct {
	history.Final
	// At is when the read-back began.
	At int64
	// First and Count are the first sequence and the number of messages that its state said.
	First, Count uint64
	// Unread are the sequences that were not answered because bytes at rest are damaged.
	Unread []uint64
	// Down says that the server refused to serve the stream, and why.
	Down string
}

// Delivery is one message that reached a client through a consumer.
type Delivery struct {
	// At is when it reached the client, Asked when the client asked for it.
	At, Asked int64
	// Consumer is the index of the consumer.
	Consumer int
	// StreamSeq, ConsumerSeq, Count and Pending are what the reply subject says.
	StreamSeq, ConsumerSeq, Count, Pending uint64
	// Time is the server's timestamp of the message.
	Time int64
	// Value is the ID of the publish that wrote it.
	Value uint64
	// Subject is where it was published.
	Subject string
	// Boot is the incarnation of the node that delivered it.
	Boot int
}

// Wrong is an answer that contradicts what the only client of a stream did.
type Wrong struct {
	// At is when it came, Detail what it was.
	At     int64
	Detail string
}

// AckKind is what a client answered to a delivery.
type AckKind uint8

// The closed set of answers.
const (
	Acked AckKind = iota
	Nacked
	Ended
	// Progressed asks for more time.
	Progressed
)

// Ack is the answer to a delivery.
type Ack struct {
	// Kind is what was answered.
	Kind AckKind
	// Consumer and Delivery are indexes: of the consumer, and of the delivery in Observations.Deliveries.
	Consumer, Delivery int
	// Call and Return bound the interval; Return is history.Never without a confirmation.
	Call, Return int64
	// WaitNanos is for how long the message must not come again once the answer is recorded; 0 says nothing.
	WaitNanos int64
}

// Ends reports whether the answer ends the delivery of the message for good.
func (a *Ack) Ends() bool { return a.Kind == Acked || a.Kind == Ended }

// Watch is one ordered push consumer on one connection.
type Watch struct {
	// Stream is the index of the stream, Filter the filter subject.
	Stream int
	Filter string
	// Call is when it was asked for, Created when that was confirmed, Ended when its connection or the run ended.
	Call, Created, Ended int64
	// Initial is the number of messages pending at its creation.
	Initial uint64
	// All says that it began with everything stored, otherwise with the last message of each subject.
	All bool
	// Seen are its deliveries in order.
	Seen []Delivery

	heard int64 // when anything came last
}

// ConsumerState is what CONSUMER.INFO said.
type ConsumerState struct {
	// Consumer is the index of the consumer; Call and Return are when it was asked for and answered.
	Consumer                int
	Call, Return            int64
	Delivered, AckFloor     SeqPair
	AckPending, Redelivered uint64
	Pending                 uint64
}

// SeqPair is a position in consumer and stream sequences.
type SeqPair struct {
	Consumer uint64 `json:"consumer_seq"`
	Stream   uint64 `json:"stream_seq"`
}

// Workload drives the clients of one run.
type Workload struct {
	Observations
	plan    *plan.Plan
	world   *world.World
	trace   *trace.Trace
	clients []*client // the last one is the administrator
	system  *client   // the operator of a cluster; nil for a single server
	ids     uint64
	numbers int // client numbers of the history
	calls   map[uint64]*call
	tokens  uint64

	// newest is, per stream, the newest sequence that any client has seen, and per subject likewise.
	newest        []uint64
	newestSubject map[string]uint64
	replicas      []int // per stream, how many it was asked to have last
	ready         bool  // streams and consumers exist
	steady        bool  // faults are over: consumers acknowledge everything
}

// patience is how long a client of the plan waits for an answer.
func (l *Workload) patience() int64 {
	if l.plan.AnswerMillis == 0 || !l.ready || l.steady {
		return answerMax
	}
	return l.plan.AnswerMillis * 1_000_000
}

// New returns the workload of a plan.
func New(p *plan.Plan, w *world.World, tr *trace.Trace) *Workload {
	l := &Workload{
		plan: p, world: w, trace: tr, calls: map[uint64]*call{},
		newest: make([]uint64, len(p.Streams)), newestSubject: map[string]uint64{},
	}
	l.Finals, l.Bytes = make([]*Final, len(p.Streams)), make([]uint64, len(p.Streams))
	l.Mirrors = make([]*MirrorFinal, len(p.Mirrors))
	for i := range p.Streams {
		l.replicas = append(l.replicas, max(p.Streams[i].Replicas, 1))
	}
	l.Consumers = make([]*ConsumerState, len(p.Consumers))
	for i := range p.Clients + 1 {
		c := &client{load: l, index: i}
		l.clients = append(l.clients, c)
	}
	if w.Machines() > 1 {
		l.system = &client{load: l, index: len(l.clients) - 1}
		l.clients = append(l.clients[:l.system.index:l.system.index], l.system, &client{load: l, index: len(l.clients)})
	}
	for i := range p.Ops {
		c := l.clients[p.Ops[i].Client]
		c.ops = append(c.ops, i)
	}
	return l
}

// Start dials for everybody and lets the administrator create what the plan asks for.
func (l *Workload) Start() {
	for _, c := range l.clients {
		l.numbers++
		c.number = l.numbers
		c.dial()
	}
	l.admin().whenReady(func() { l.createStream(0) })
}

func (l *Workload) admin() *client { return l.clients[len(l.clients)-1] }

// Done reports whether every client has carried out its operations.
func (l *Workload) Done() bool {
	if !l.ready {
		return false
	}
	for _, c := range l.clients[:l.plan.Clients] {
		if c.busy || len(c.ops) > 0 {
			return false
		}
	}
	return true
}

// Waiting describes the clients that are not done.
func (l *Workload) Waiting() string {
	text := ""
	for _, c := range l.clients[:l.plan.Clients] {
		if c.busy || len(c.ops) > 0 {
			text += fmt.Sprintf(" client %d (connected %v, %d operations left)", c.index, c.connected, len(c.ops))
		}
	}
	if !l.ready {
		text += " set-up is not complete"
	}
	return text
}

// CaughtUp says that every watch whose connection lives has been brought the newest message that the read-back found for
// it.
func (l *Workload) CaughtUp() bool {
	for _, c := range l.clients {
		for _, w := range c.watches {
			if w.Created != 0 && c.link.Alive() && w.newest() < l.newestFor(w) {
				return false
			}
		}
	}
	return true
}

// newest is the sequence of the watch's last delivery.
func (w *Watch) newest() uint64 {
	if len(w.Seen) == 0 {
		return 0
	}
	return w.Seen[len(w.Seen)-1].StreamSeq
}

// newestFor is the newest stored sequence that a watch wants.
func (l *Workload) newestFor(w *Watch) uint64 {
	final := l.Finals[w.Stream]
	if final == nil {
		return 0
	}
	for i := len(final.Messages) - 1; i >= 0; i-- {
		if m := &final.Messages[i]; w.Filter == m.Subject || strings.HasSuffix(w.Filter, ".>") {
			return m.Seq
		}
	}
	return 0
}

// Close ends the watches of connections that are dead without their client having noticed.
func (l *Workload) Close() {
	for _, c := range l.clients {
		if c.link.Alive() {
			continue
		}
		for _, w := range c.watches {
			w.Ended = l.world.Now()
		}
	}
}

// Settle says that faults are over: from now on everything delivered is acknowledged and confirmed.
func (l *Workload) Settle() { l.steady = true }

// Receive implements world.Clients.
func (l *Workload) Receive(link *world.Link, data []byte) {
	if c := l.clients[link.Client]; c.link == link {
		c.receive(data)
	}
}

// Lost implements world.Clients.
func (l *Workload) Lost(link *world.Link) {
	if c := l.clients[link.Client]; c.link == link {
		c.lost()
	}
}

// The meanings of a timer's token, in its highest byte.
const (
	timerCall uint64 = iota << 56
	timerNext
	timerDial
	timerHandshake
	timerMask = 0xff << 56
)

// Timer implements world.Clients.
func (l *Workload) Timer(owner, token uint64) {
	c := l.clients[owner]
	switch token & timerMask {
	case timerCall:
		c.timedOut(token)
	case timerNext:
		c.next()
	case timerDial:
		c.dial()
	case timerHandshake:
		if !c.connected && c.dials == token&^timerMask {
			l.world.Hangup(c.link)
			c.lost()
		}
	}
}

// see notes a sequence that a client was told.
func (l *Workload) see(stream int, subject string, seq uint64) {
	l.newest[stream] = max(l.newest[stream], seq)
	if subject != "" {
		l.newestSubject[subject] = max(l.newestSubject[subject], seq)
	}
}
