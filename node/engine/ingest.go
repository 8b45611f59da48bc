package engine

import (
	"strconv"

	"weir/model/header"
	"weir/model/jsapi"
	"weir/node/replica"
	"weir/node/route"
)

// ingest is the engine as the receiver of messages that streams capture.
type ingest Engine

// Deliver proposes the message to the stream that the subscription stands for. Everything about the message is decided
// when it is applied, in the order of the log.
func (i *ingest) Deliver(sub *route.Sub, m *route.Message) bool {
	e := (*Engine)(i)
	g := e.groups[groupID(sub.Handler)]
	return g != nil && e.publish(g, m, 0)
}

// publish proposes a message to its stream, here or at the server that leads it. It reports false when there is none.
func (e *Engine) publish(g *group, m *route.Message, hops uint64) bool {
	if e.clustered() && g.damaged == nil && !g.leads() {
		return e.forwardPublish(g, m, hops)
	}
	if g.replica == nil && g.damaged == nil {
		return false
	}
	if refused := e.refusesMessages(g); refused != nil {
		e.pubAckError(g, m.Reply, refused)
		return true
	}
	if g.replica.Full() {
		e.pubAckError(g, m.Reply, jsapi.CodeStreamTooManyRequests.Err())
		return true
	}
	subject, hdr, payload := m.Subject, m.Header, m.Payload
	if e.config.Plant.EarlyExpect {
		var refused *jsapi.Error
		if hdr, refused = earlyExpect(g, hdr); refused != nil {
			e.pubAckError(g, m.Reply, refused)
			return true
		}
	}
	if e.config.Plant.KeepFailedID && e.publishOnce(g, m) {
		return true
	}
	g.replica.Publish(&replica.Published{Subject: subject, Header: hdr, Payload: payload, Reply: m.Reply})
	e.markDirty(g)
	return true
}

// refusesProposals reports why the group takes no commands, or nil.
func (e *Engine) refusesProposals(g *group) *jsapi.Error {
	switch {
	case g.damaged != nil:
		return jsapi.CodeStreamOffline.Err()
	case e.failure != nil || e.full != nil:
		return jsapi.CodeInsufficientResources.Err()
	case g.replica.Jammed():
		return jsapi.CodeStreamTooManyRequests.Err()
	default:
		return nil
	}
}

// earlyExpect is the planted fault of judging an expectation before the messages in flight.
func earlyExpect(g *group, hdr []byte) ([]byte, *jsapi.Error) {
	expected := header.Get(hdr, header.ExpectedLastSeq)
	if expected == nil {
		return hdr, nil
	}
	last := strconv.FormatUint(g.stream.State().LastSeq, 10)
	if string(expected) != last {
		return hdr, jsapi.CodeStreamWrongLastSequence.With(last)
	}
	return header.Delete(append([]byte(nil), hdr...), header.ExpectedLastSeq), nil
}

// pubAckError answers a publish that is refused before it reaches the log.
func (e *Engine) pubAckError(g *group, reply []byte, refused *jsapi.Error) {
	if len(reply) == 0 || g.entry.Config.NoAck {
		return
	}
	e.scratch = jsapi.AppendPubAckError(e.scratch[:0], g.entry.Name, refused)
	g.account.send(reply, nil, e.scratch)
}

// capture subscribes a stream's group to the stream's subjects, also when other servers hold the stream.
func (e *Engine) capture(g *group) {
	e.release(g)
	config := g.entry.Config
	if g.stream != nil {
		config = g.stream.Config()
	}
	for _, pattern := range config.Subjects {
		sub := &route.Sub{Receiver: (*ingest)(e), Pattern: pattern, Handler: uint64(g.id), Home: true}
		g.account.routes.Subscribe(sub)
		g.captures = append(g.captures, sub)
		e.changeHome(g.account, pattern, home{1, one(g.started)})
	}
}

// release ends the subscriptions of a stream's group.
func (e *Engine) release(g *group) {
	for _, sub := range g.captures {
		g.account.routes.Unsubscribe(sub)
		e.changeHome(g.account, sub.Pattern, home{-1, -one(g.started)})
	}
	g.captures = nil
}

func one(so bool) int {
	if so {
		return 1
	}
	return 0
}
