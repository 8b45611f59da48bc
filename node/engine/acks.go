package engine

import (
	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/node/delivery"
	"weir/node/route"
)

// acks is the engine as the receiver of acknowledgements, on $JS.ACK.>.
type acks Engine

// Deliver proposes what the acknowledgement says. It reports false when there is no such consumer or when it asks for no
// acknowledgements, so that whoever waits for a reply learns that nobody listens.
func (a *acks) Deliver(sub *route.Sub, m *route.Message) bool {
	e := (*Engine)(a)
	return e.acknowledge(e.servedBy(sub), m, 0)
}

// acknowledge proposes what an acknowledgement says, here or at the server that leads the stream.
func (e *Engine) acknowledge(account *account, m *route.Message, hops uint64) bool {
	ack, ok := jsapi.ParseAckReply(string(m.Subject))
	if !ok {
		return false
	}
	g := e.streamNamed(account.name, ack.Stream)
	if g == nil {
		return false
	}
	if e.clustered() && !g.leads() {
		return e.forwardRequest(g, account, m, hops)
	}
	consumer := g.stream.ConsumerByName(ack.Consumer)
	if consumer == nil || consumer.Config().AckPolicy == jsapi.AckNone {
		return false
	}
	e.desk.Active(e.now.Mono, uint64(g.id), consumer.ID())
	if e.refusesProposals(g) != nil {
		// Nothing is recorded, so nothing is answered: the client does not know, and asks again.
		return true
	}
	body := jsapi.ParseAckBody(m.Payload)
	c := command.Command{
		Consumer: consumer.ID(), StreamSeq: ack.StreamSeq, ConsumerSeq: ack.ConsumerSeq, Deliveries: ack.Delivered,
	}
	switch body.Kind {
	case jsapi.AckAck, jsapi.AckNext:
		c.Kind = command.Ack
	case jsapi.AckNak:
		c.Kind, c.Delay = command.Nak, max(body.Delay, 0)
	case jsapi.AckProgress:
		c.Kind = command.Progress
	case jsapi.AckTerm:
		c.Kind, c.Text = command.Term, body.Reason
	default:
		account.answerAck(m.Reply)
		return true
	}
	next := body.Kind == jsapi.AckNext
	var done func(*effect.Effect)
	if len(m.Reply) > 0 && !next {
		reply := append([]byte(nil), m.Reply...)
		done = func(result *effect.Effect) {
			if result != nil && result.Err == nil && result.Flag {
				account.answerAck(reply)
			}
		}
	}
	g.replica.Propose(&c, done)
	if c.Kind == command.Ack && done == nil && !next && g.durable() && !consumer.AtMaxAckPending() {
		e.markLazy(g)
	} else {
		e.markDirty(g)
	}
	if next {
		e.desk.Pull(e.now.Mono, delivery.PullRequest{
			Group: uint64(g.id), Consumer: consumer.ID(), Reply: string(m.Reply), Body: body.Next,
		})
	}
	return true
}

// answerAck confirms an acknowledgement with an empty message.
func (a *account) answerAck(reply []byte) {
	if len(reply) > 0 {
		a.send(reply, nil, nil)
	}
}

// streamNamed returns the group of a stream that can be used, or nil.
func (e *Engine) streamNamed(account, name string) *group {
	g := e.byName[streamKey{account, name}]
	if g == nil || g.damaged != nil {
		return nil
	}
	return g
}
