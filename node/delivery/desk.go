// Package delivery is what the leader of a stream knows about the clients of its consumers and may forget at any time:
// waiting pull requests, bound push subscriptions, flow control, heartbeats and inactivity (ADR-13, ADR-15).
//
// It promises that a request never gets more messages than it asked for, nor more bytes; that what a client is sent was
// recorded as delivered before; that the messages of a consumer leave in the order in which they were handed out, also
// when some have to be read from a disk first; that a message which reached nobody is given back; and that everybody who
// waits is told in the words of the reference server why nothing more will come.
//
// It decides nothing that lasts: it proposes Deliver, Release and DeleteConsumer commands and carries out the Handoff
// effects that come back. It reads no clock: times are nanoseconds of one clock that never steps. It does not know how
// messages travel, nor who may see them.
//
// A Desk is driven by its owner: requests by Pull, effects by Apply, interest by Interest, ends of reads by Fetched, time
// by Tick. Each may send at once. Proposals are made by Flush only, so that whatever comes together in one step is
// proposed together; the owner calls it at the end of a step.
package delivery

import (
	"slices"

	"weir/model/command"
	"weir/model/consumer"
	"weir/spec/assert"
)

const (
	// DeliverBatchMax bounds the messages of one Deliver.
	DeliverBatchMax = 512
	// InFlightMax bounds the Delivers of one consumer that are proposed and not yet applied.
	InFlightMax = 2
	// OutgoingMax bounds the messages of one consumer that wait to be sent: beyond it nothing more is proposed.
	OutgoingMax = 256
	// FetchesMax bounds the reads under way for one consumer.
	FetchesMax = 16
	// RetryNanos is how long a refused proposal waits for the next attempt.
	RetryNanos = 50_000_000
	// CongestedNanos is how long messages wait for a client that has to take what was sent to it before.
	CongestedNanos = 20_000_000
	// UncheckedBytesMax is how much a consumer sends before it looks again whether its clients keep up.
	UncheckedBytesMax = 64 << 10
	// WaitingDefaultMax bounds the waiting requests of a consumer whose configuration does not.
	WaitingDefaultMax = 512
)

// Stored is the bytes of a stored message.
type Stored struct {
	// Subject, Header and Payload are as they were stored; nobody changes them.
	Subject, Header, Payload []byte
}

// Message is what is sent to clients.
type Message struct {
	// Subject is what clients see, Reply the ack reply subject or that of a flow control request.
	Subject, Reply []byte
	// Header is a header block, empty without one; Payload is the body.
	Header, Payload []byte
}

// Presence says what became of a Fetch.
type Presence uint8

const (
	// Here: the bytes were in memory.
	Here Presence = iota
	// Coming: they are being read; Fetched follows with the ticket.
	Coming
	// Missing: the message is gone.
	Missing
)

// World is what a Desk needs of its node.
type World interface {
	// Consumer returns the applied state of a consumer, for reading; nil when there is none.
	Consumer(group, id uint64) *consumer.State
	// Consumers returns the states of all consumers of a stream, in an order that depends on the stream alone.
	Consumers(group uint64) []*consumer.State
	// Fetch gets the bytes of a message. What it returns is valid until the next call of any method.
	Fetch(group, seq, ticket uint64) (Stored, Presence)
	// Propose adds a command to the next entry of the group, which keeps nothing of c, and reports whether it could. When
	// the outcome of a Deliver can not be known any more, Dropped follows.
	Propose(group uint64, c *command.Command) bool
	// HasInterest reports whether anybody listens on the subject.
	HasInterest(group uint64, subject []byte) bool
	// Congested reports whether those who listen on the subject, all of them, should get nothing more for a moment, because
	// too much waits to be sent to them.
	Congested(group uint64, subject []byte) bool
	// Send publishes m to the subject and returns how many subscriptions took it. Nothing of m is kept.
	Send(group uint64, subject []byte, m *Message) int
	// Watch asks for calls of Interest when the interest in a literal subject changes: of plain subscriptions, or of one
	// queue group. It replaces the watch that the consumer had and returns the present interest; an empty subject ends it.
	Watch(group, id uint64, subject, queue string) bool
	// Random is a number that nobody can guess.
	Random() uint64
}

// Config is the fixed part of a Desk.
type Config struct {
	// Boot distinguishes this run of the process from all earlier ones of the same data.
	Boot uint64
}

// key names a consumer in one map.
type key struct{ group, id uint64 }

// Desk serves the consumers of the streams that are led here. It is not safe for concurrent use.
type Desk struct {
	world   World
	groups  map[uint64]*led
	lines   map[key]*line
	last    *line // the line of the last lookup
	timers  timers
	ready   []*line // those that may have something to propose, each once
	tickets map[uint64]*line
	flows   map[string]*line // by the reply subject of the flow control request that waits for its answer

	uncheckedMax int // UncheckedBytesMax but for tests

	lastToken, lastTicket uint64
	now                   int64 // of the call that runs

	// sending counts the messages that are being sent; postponed are the requests that arrived out of them.
	sending   int
	postponed []postponed

	spare   []*request
	command command.Command
	message Message
	reply   []byte
	header  []byte
}

// led is one stream that is led here, with its lines in order of their consumers.
type led struct{ lines []*line }

// NewDesk returns a Desk that serves nobody yet.
func NewDesk(world World, config Config) *Desk {
	return &Desk{
		world: world, groups: make(map[uint64]*led), lines: make(map[key]*line), tickets: make(map[uint64]*line),
		flows: make(map[string]*line), lastToken: config.Boot << 32, uncheckedMax: UncheckedBytesMax,
	}
}

func (d *Desk) find(group, id uint64) *line {
	k := key{group, id}
	if d.last != nil && d.last.key == k {
		return d.last
	}
	l := d.lines[k]
	if l != nil {
		d.last = l
	}
	return l
}

// StreamLed starts to serve the consumers of a stream: this node leads it and has applied everything before its term.
func (d *Desk) StreamLed(now int64, group uint64) {
	d.now = now
	if d.groups[group] != nil {
		return
	}
	d.groups[group] = &led{}
	for _, state := range d.world.Consumers(group) {
		d.open(group, state)
	}
}

// Serves reports whether the consumers of a stream are served here.
func (d *Desk) Serves(group uint64) bool { return d.groups[group] != nil }

// StreamLost stops to serve a stream that is led by another node now. Whoever waits is told.
func (d *Desk) StreamLost(now int64, group uint64) { d.closeStream(now, group, statusLeadershipChange) }

// StreamDeleted stops to serve a stream that is deleted. Whoever waits is told.
func (d *Desk) StreamDeleted(now int64, group uint64) {
	d.closeStream(now, group, statusConsumerDeleted)
}

func (d *Desk) closeStream(now int64, group uint64, why status) {
	d.now = now
	g := d.groups[group]
	if g == nil {
		return
	}
	delete(d.groups, group)
	for _, l := range g.lines {
		d.close(l, why)
	}
}

// Shutdown tells every waiting request that the server ends. The consumers go on to be served.
func (d *Desk) Shutdown(now int64) {
	d.now = now
	ids := make([]uint64, 0, len(d.groups))
	for group := range d.groups { // order-free: sorted below
		ids = append(ids, group)
	}
	slices.Sort(ids)
	for _, group := range ids {
		for _, l := range d.groups[group].lines {
			d.dismiss(l, statusServerShutdown)
		}
	}
}

// Activity returns how many requests wait at a consumer, and whether the deliver subject of a push consumer has interest.
// Requests that nobody listens for are forgotten first.
func (d *Desk) Activity(group, id uint64) (waiting int, bound bool) {
	l := d.find(group, id)
	if l == nil {
		return 0, false
	}
	if l.push != nil {
		return 0, l.push.active
	}
	d.dropUninterested(l, l.waiting.len())
	return l.waiting.len(), false
}

// open makes the line of a consumer.
func (d *Desk) open(group uint64, state *consumer.State) {
	g := d.groups[group]
	k := key{group, state.ID()}
	assert.True(d.lines[k] == nil, "a consumer has one line", group, state.ID())
	l := &line{key: k, stream: state.Stream(), name: state.Name(), active: d.now, delivered: d.now}
	d.lines[k] = l
	g.lines = append(g.lines, l)
	d.configure(l, state)
}

// configure makes the line follow the configuration of its consumer.
func (d *Desk) configure(l *line, state *consumer.State) {
	l.config = state.Config()
	d.configurePace(l, state)
	if l.config.Push() {
		d.configurePush(l)
	}
	d.mark(l)
	d.rearm(l)
}

// close ends a line; whoever waits is told why.
func (d *Desk) close(l *line, why status) {
	d.dismiss(l, why)
	if l.push != nil {
		d.forgetFlow(l)
		d.world.Watch(l.key.group, l.key.id, "", "")
	}
	l.closed = true
	for _, it := range l.out.items[l.out.head:] {
		if it.phase == itemReading {
			delete(d.tickets, it.ticket)
		}
	}
	l.out.reset()
	delete(d.lines, l.key)
	if d.last == l {
		d.last = nil
	}
}

// mark notes that a line may have something to propose.
func (d *Desk) mark(l *line) {
	if !l.marked {
		l.marked = true
		d.ready = append(d.ready, l)
	}
}

// Flush makes the proposals that are due. The owner calls it at the end of each step, before it hands out the entries.
func (d *Desk) Flush(now int64) {
	d.now = now
	due := len(d.postponed)
	for _, p := range d.postponed[:due] {
		d.Pull(now, PullRequest{Group: p.key.group, Consumer: p.key.id, Reply: p.reply, Body: []byte(p.body)})
	}
	d.postponed = append(d.postponed[:0], d.postponed[due:]...)
	for i := 0; i < len(d.ready); i++ {
		l := d.ready[i]
		d.ready[i] = nil
		l.marked = false
		if !l.closed {
			d.pump(l)
		}
	}
	d.ready = d.ready[:0]
}

// Deadline is the time at which the Desk wants a Tick; 0 when it does not.
func (d *Desk) Deadline() int64 { return d.timers.next() }

// Tick acts on the deadlines that have passed.
func (d *Desk) Tick(now int64) {
	d.now = now
	for {
		t, due := d.timers.pop(now)
		if !due {
			return
		}
		if l := d.lines[t.key]; l != nil && l.armed == t.at {
			l.armed = 0
			d.tick(l)
		}
	}
}
