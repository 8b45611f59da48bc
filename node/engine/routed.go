package engine

import (
	"bytes"

	"weir/node/event"
	"weir/node/route"
	"weir/spec/assert"
	"weir/transport/peerwire"
)

// Forward implements route.Mesh: a message travels to a neighbour once, however many of its subscriptions get it. The
// frame names the subject routed to, and in Text the one that receivers see when that is another.
func (m *accountMesh) Forward(to event.ServerID, out *route.Outgoing) {
	frames := m.engine.toPeer(to)
	f := peerwire.Frame{
		Kind: peerwire.Msg, Account: m.account, Subject: out.To, Flag: out.Plain, Queues: out.Queues,
		Reply: out.Message.Reply, Header: out.Message.Header, Payload: out.Message.Payload,
	}
	if !bytes.Equal(out.To, out.Message.Subject) {
		f.Text = out.Message.Subject
	}
	*frames = peerwire.Append(*frames, &f)
}

// routedMsg hands a neighbour's message to subscriptions of this server. Neither streams nor the API get it, as they got
// it where it arose.
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
	e.routed, e.routing = route.Message{}, route.Outgoing{}
}
