package workload

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"weir/sim/world"
	"weir/spec/assert"
	"weir/transport/wire"
)

// client is one sequential client.
type client struct {
	load   *Workload
	index  int
	number int // in the history; new after an unknown outcome

	link      *world.Link
	parser    *wire.Parser
	connected bool // the handshake is complete
	dials     uint64
	waiting   []func() // to be run once connected
	out       []byte
	ops       []int // of the plan, still to be carried out

	busy    bool
	streams map[string]func(*message) // subscriptions beside the inbox, by sid
	pending []uint64                  // calls under way, in order
	watches []*Watch
}

// message is a delivery as a client sees it. Its slices are valid during the call only.
type message struct {
	subject, reply, header, payload []byte
	status                          int
}

// call is a request that waits for its answer.
type call struct {
	client *client
	token  uint64
	delay  bool             // it waits for its time-out and for nothing else
	done   func(m *message) // nil: no answer will come
}

// inbox is the subject that answers of a token are sent to.
func (c *client) inbox(token uint64) string { return fmt.Sprintf("_I.%d.%d", c.index, token) }

func (c *client) dial() {
	c.dials++
	c.parser = wire.NewClientParser(wire.Limits{
		ControlLineBytes: wire.DefaultControlLineBytes, PayloadBytes: wire.DefaultPayloadBytes,
	})
	c.streams = map[string]func(*message){}
	c.link = c.load.world.Dial(c.index, c.server())
	c.load.world.After(c.load.world.Now()+answerMax, uint64(c.index), timerHandshake|c.dials)
}

// homeAgain is how many of 1000 times a client dials the server again that it began with, as clients know them in an order.
const homeAgain = 600

// server is the node that the client dials: at first the clients are spread evenly, later each tries any, most often its
// first one.
func (c *client) server() int {
	nodes := c.load.world.Machines()
	if nodes == 1 || c.dials == 1 || c.load.world.Key().Chance(homeAgain, "home", uint64(c.index), c.dials) {
		return c.index % max(c.load.plan.Nodes, 1)
	}
	return int(c.load.world.Key().Below(uint64(nodes), "server", uint64(c.index), c.dials))
}

// lost forgets the connection and dials again later. What had no answer will get none.
func (c *client) lost() {
	c.connected = false
	c.streams = map[string]func(*message){}
	for _, w := range c.watches {
		w.Ended = c.load.world.Now()
	}
	c.watches = nil
	pending := c.pending
	c.pending = nil
	for _, token := range pending {
		if k := c.load.calls[token]; k != nil {
			c.load.finish(k, nil)
		}
	}
	delay := redialMin + c.load.world.Key().Exp(redialMin, "redial", uint64(c.index), c.dials)
	c.load.world.After(c.load.world.Now()+delay, uint64(c.index), timerDial)
}

// whenReady runs f once the client is connected, at once if it is.
func (c *client) whenReady(f func()) {
	if c.connected {
		f()
		return
	}
	c.waiting = append(c.waiting, f)
}

func (c *client) receive(data []byte) {
	for len(data) > 0 {
		ops, used, err := c.parser.Feed(data, nil)
		data = data[used:]
		link := c.link
		for i := range ops {
			c.handle(&ops[i])
			if c.link != link {
				return
			}
		}
		c.flush()
		if err != nil {
			assert.Unreachable("the server speaks the protocol: " + err.Error())
		}
	}
}

func (c *client) handle(op *wire.Op) {
	switch op.Kind {
	case wire.KindInfo:
		if !c.connected && len(c.out) == 0 {
			c.greet()
		}
	case wire.KindPing:
		c.out = wire.AppendPong(c.out)
	case wire.KindPong:
		if !c.connected {
			c.connected = true
			waiting := c.waiting
			c.waiting = nil
			for _, f := range waiting {
				f()
			}
		}
	case wire.KindMsg:
		c.message(op)
	case wire.KindErr:
		// The connection follows, or the operation gets no answer; both are handled there.
	}
}

// greet is the client's part of the handshake: PONG tells that the subscription stands.
func (c *client) greet() {
	connect := wire.DefaultConnect()
	connect.Verbose, connect.Pedantic, connect.Protocol = false, false, 1
	connect.Headers, connect.NoResponders, connect.Name = true, true, fmt.Sprintf("client-%d", c.index)
	if c == c.load.system {
		connect.User, connect.Password = world.SystemUser, world.SystemUser
	}
	c.out = wire.AppendConnect(c.out, &connect)
	c.out = wire.AppendSub(c.out, fmt.Appendf(nil, "_I.%d.*", c.index), nil, []byte("in"))
	c.out = wire.AppendPing(c.out)
}

// flush sends what has been written.
func (c *client) flush() {
	if len(c.out) > 0 {
		c.load.world.Send(c.link, c.out)
		c.out = c.out[:0]
	}
}

// message hands a delivery to the call or the subscription that waits for it.
func (c *client) message(op *wire.Op) {
	m := &message{subject: op.Subject, reply: op.Reply, header: op.Header, payload: op.Payload, status: status(op.Header)}
	if string(op.Sid) != "in" {
		if f := c.streams[string(op.Sid)]; f != nil {
			f(m)
		}
		return
	}
	at := bytes.LastIndexByte(op.Subject, '.')
	token, err := strconv.ParseUint(string(op.Subject[at+1:]), 10, 64)
	if err != nil {
		return
	}
	if k := c.load.calls[token]; k != nil && k.client == c {
		c.load.finish(k, m)
	}
}

// request publishes with a reply subject and calls done once: with the answer, or with nil when there will be none.
func (c *client) request(r request, done func(m *message)) {
	l := c.load
	l.tokens++
	k := &call{client: c, token: l.tokens, done: done}
	l.calls[k.token] = k
	c.pending = append(c.pending, k.token)
	c.out = wire.AppendPub(c.out, &wire.Msg{
		Subject: []byte(r.subject), Reply: []byte(c.inbox(k.token)), Header: r.header, Payload: r.body,
	})
	c.flush()
	wait := r.wait
	if wait == 0 {
		wait = l.patience()
	}
	l.world.After(l.world.Now()+wait, uint64(c.index), timerCall|k.token)
}

// request is what is asked of the server.
type request struct {
	subject      string
	header, body []byte
	wait         int64 // nanoseconds; 0 means answerMax
}

// finish ends a call.
func (l *Workload) finish(k *call, m *message) {
	delete(l.calls, k.token)
	c := k.client
	if i := slices.Index(c.pending, k.token); i >= 0 {
		c.pending = slices.Delete(c.pending, i, i+1)
	}
	k.done(m)
}

// timedOut ends a call that nobody answered. The connection may be dead without a sign of it, so the client gives it up
// and dials again.
func (c *client) timedOut(token uint64) {
	k := c.load.calls[token]
	if k == nil {
		return
	}
	c.load.finish(k, nil)
	if !k.delay && c.connected {
		c.load.world.Hangup(c.link)
		c.lost()
	}
}

// subscribe opens a subscription of its own, whose messages go to f.
func (c *client) subscribe(sid, subject string, f func(*message)) {
	c.streams[sid] = f
	c.out = wire.AppendSub(c.out, []byte(subject), nil, []byte(sid))
}

func (c *client) unsubscribe(sid string) {
	if c.streams[sid] == nil {
		return
	}
	delete(c.streams, sid)
	c.out = wire.AppendUnsub(c.out, []byte(sid), 0)
	c.flush()
}

// next begins the client's next operation when its time has come.
func (c *client) next() {
	l := c.load
	if c.busy || len(c.ops) == 0 || !l.ready {
		return
	}
	op := &l.plan.Ops[c.ops[0]]
	if at := op.AtMillis * 1_000_000; at > l.world.Now() {
		l.world.After(at, uint64(c.index), timerNext)
		return
	}
	c.busy = true
	c.ops = c.ops[1:]
	c.whenReady(func() { c.perform(op) })
}

// finished ends the client's operation and begins the next one.
func (c *client) finished() {
	c.busy = false
	c.load.world.After(c.load.world.Now(), uint64(c.index), timerNext)
}
