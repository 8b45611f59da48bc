package engine

import (
	"bytes"
	"fmt"

	"weir/node/event"
	"weir/node/route"
	"weir/spec/assert"
	"weir/transport/peerwire"
)

// Bounds of the bytes of messages that are under way to a neighbour, each far below what the connection queues: other
// frames need it too.
const (
	// WindowBytes is where clients that publish more are slowed down, and messages of streams wait.
	WindowBytes = 8 << 20
	// WindowBytesMax is where messages are dropped.
	WindowBytesMax = 24 << 20
	// takenBytes is how much a server takes before it reports that.
	takenBytes = 256 << 10
)

// flow counts the bytes of messages to and from a neighbour since the session began.
type flow struct {
	// sent went there, taken of it has been reported as dealt with. Invariant: taken <= sent.
	sent, taken uint64
	// received came from there, reported of it has been reported. Invariant: reported <= received.
	received, reported uint64
	// dropped counts messages that were dropped since too much was under way.
	dropped uint64
}

func (f *flow) underWay() uint64 { return f.sent - f.taken }

// Forward implements route.Mesh: a message travels to a neighbour once, however many of its subscriptions get it. The
// frame names the subject routed to, and in Text the one that receivers see when that is another.
func (m *accountMesh) Forward(to event.ServerID, out *route.Outgoing) bool {
	f := peerwire.Frame{
		Kind: peerwire.Msg, Account: m.account, Subject: out.To, Flag: out.Plain, Queues: out.Queues,
		Reply: out.Message.Reply, Header: out.Message.Header, Payload: out.Message.Payload,
	}
	if !bytes.Equal(out.To, out.Message.Subject) {
		f.Text = out.Message.Subject
	}
	if out.Slow {
		m.engine.stall(out.Message.From)
	}
	return m.engine.pass(to, &f, out.Message.From)
}

// pass sends a frame with a message of a client, 0 for one of the server itself, to a neighbour. It reports false, and the
// frame is dropped, when too much is under way.
func (e *Engine) pass(to event.ServerID, f *peerwire.Frame, publisher event.ConnID) bool {
	n := e.neighbour(to)
	if n == nil {
		return false
	}
	if n.underWay() > WindowBytes {
		e.stall(publisher)
	}
	if n.underWay() > WindowBytesMax {
		if n.dropped == 0 {
			e.logf(event.Warn, fmt.Sprintf("Server %s does not keep up, messages to it are dropped", to.Short()))
		}
		n.dropped++
		return false
	}
	n.sent += peerwire.MsgCost(f)
	e.sendFrame(to, f)
	return true
}

// passed counts a frame that a neighbour sent by pass, and tells it from time to time.
func (e *Engine) passed(peer event.ServerID, f *peerwire.Frame) {
	n := e.neighbour(peer)
	if n == nil {
		return // the session is ending
	}
	n.received += peerwire.MsgCost(f)
	if n.received-n.reported >= takenBytes {
		n.reported = n.received
		e.sendFrame(peer, &peerwire.Frame{Kind: peerwire.Taken, Count: n.received})
	}
}

// stall slows a client down that publishes.
func (e *Engine) stall(publisher event.ConnID) {
	if c := e.sessions[publisher]; c != nil {
		c.session.Stall()
	}
}

// takenFrame notes what a neighbour has dealt with. After an error the session has to end.
func (e *Engine) takenFrame(peer event.ServerID, f *peerwire.Frame) error {
	n := e.neighbour(peer)
	if n == nil {
		return nil // the session is ending
	}
	if f.Count < n.taken || f.Count > n.sent {
		return fmt.Errorf("%w: %d of %d bytes taken, %d before", peerwire.ErrMalformed, f.Count, n.sent, n.taken)
	}
	n.taken = f.Count
	if n.dropped > 0 && n.underWay() <= WindowBytes {
		e.logf(event.Warn, fmt.Sprintf("Server %s keeps up again, %d messages were dropped", peer.Short(), n.dropped))
		n.dropped = 0
	}
	return nil
}

// peerKeepsUp reports whether a server should get more messages of streams.
func (e *Engine) peerKeepsUp(peer event.ServerID) bool {
	n := e.neighbour(peer)
	return n != nil && n.underWay() <= WindowBytes
}

// routedMsg hands a neighbour's message to subscriptions of this server. Streams and the API get it where it arose, unless
// it arose at a server that has neither.
func (e *Engine) routedMsg(f *peerwire.Frame) {
	a := e.accountNamed[string(f.Account)]
	if a == nil {
		return
	}
	assert.True(e.routed.Subject == nil, "messages of neighbours come one after the other")
	e.routed = route.Message{Subject: f.Subject, Reply: f.Reply, Header: f.Header, Payload: f.Payload, Routed: true}
	if len(f.Text) > 0 {
		e.routed.Subject = f.Text
	}
	e.routing = route.Outgoing{To: f.Subject, Plain: f.Flag, Queues: f.Queues, Message: &e.routed}
	a.routes.RouteLocal(&e.routing)
	if len(f.Queues) > 0 {
		e.takeHome(a, f)
	}
	e.routed, e.routing = route.Message{}, route.Outgoing{}
}
