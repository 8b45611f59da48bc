package engine

import (
	"weir/model/command"
	"weir/model/consumer"
	"weir/model/effect"
	"weir/model/header"
	"weir/model/jsapi"
	"weir/model/meta"
	"weir/node/route"
)

// What the faults of Plant do. Nothing here runs in production.

// newCatalog is an empty catalog.
func (e *Engine) newCatalog() *meta.Machine {
	m := meta.New()
	m.Plant(e.config.Plant.Catalog)
	return m
}

// planted is what they remember.
type planted struct {
	early earlyDeliveries
	ids   failedIDs
}

// earlyDelivery is a delivery that is proposed, or the number of a message that it sent before it was committed.
type earlyDelivery struct {
	group                *group
	consumer, number     uint64
	token, count, budget uint64
}

// earlyDeliveries are those to be sent in this step, and what was sent and is not committed.
type earlyDeliveries struct{ due, sent []earlyDelivery }

// plantEarly notes a delivery that is proposed, if nothing else of its consumer is under way: it could change what the
// delivery hands out.
func (e *Engine) plantEarly(g *group, c *command.Command) {
	p := &e.planted.early
	for _, lists := range [][]earlyDelivery{p.due, p.sent} {
		for i := range lists {
			if lists[i].group == g && lists[i].consumer == c.Consumer {
				return
			}
		}
	}
	p.due = append(p.due, earlyDelivery{group: g, consumer: c.Consumer, token: c.Token, count: c.Count, budget: c.MaxBytes})
}

// deliverEarly sends what the deliveries that were just proposed will hand out.
func (e *Engine) deliverEarly() {
	p := &e.planted.early
	due := p.due
	p.due = nil
	for _, d := range due {
		state := d.group.stream.Consumer(d.consumer)
		if state == nil || !d.group.leads() {
			continue
		}
		var out effect.List
		state.Rehearse(e.wall, consumer.Request{Token: d.token, Count: d.count, MaxBytes: d.budget}, &out)
		for i := range out.Effects {
			f := &out.Effects[i]
			if f.Kind == effect.Handoff && f.Deliveries == 1 { // what is redelivered is compared with the state first
				d.number = f.ConsumerSeq
				p.sent = append(p.sent, d)
				e.desk.Apply(e.now.Mono, uint64(d.group.id), f)
			}
		}
	}
}

// sentEarly reports whether a message that is handed out was sent before.
func (e *Engine) sentEarly(g *group, f *effect.Effect) bool {
	p := &e.planted.early
	found := false
	kept := p.sent[:0]
	for _, d := range p.sent {
		same := d.group == g && d.consumer == f.Consumer && d.token == f.Token
		if same && f.Kind == effect.Handoff && d.number == f.ConsumerSeq {
			found = true
			continue
		}
		if !same || f.Kind != effect.Delivered {
			kept = append(kept, d)
		}
	}
	p.sent = kept
	return found
}

// failedIDs maps the group and the message ids that were proposed here to the sequence that the message was to get. Those
// that are under way are asked for in the log, as they should be.
type failedIDs map[failedID]guess

type failedID struct {
	group *group
	id    string
}

type guess struct {
	seq      uint64
	underWay int
}

// publishOnce proposes a message with an id, or answers one whose id is known as a duplicate. It reports false for messages
// without an id.
func (e *Engine) publishOnce(g *group, m *route.Message) bool {
	id := string(header.Get(m.Header, header.MsgID))
	if id == "" {
		return false
	}
	p := &e.planted
	if p.ids == nil {
		p.ids = failedIDs{}
	}
	key := failedID{g, id}
	known, found := p.ids[key]
	reply := append([]byte(nil), m.Reply...)
	answer := func(seq uint64, duplicate bool) {
		if len(reply) > 0 {
			e.scratch = jsapi.AppendPubAck(e.scratch[:0], jsapi.PubAck{Stream: g.entry.Name, Seq: seq, Duplicate: duplicate})
			g.account.send(reply, nil, e.scratch)
		}
	}
	if found && known.underWay == 0 {
		answer(known.seq, true)
		return true
	}
	if !found {
		known.seq = g.stream.State().LastSeq + 1
	}
	known.underWay++
	p.ids[key] = known
	command := &command.Command{Kind: command.Publish, Subject: m.Subject, Header: m.Header, Payload: m.Payload}
	g.replica.Propose(command, func(result *effect.Effect) {
		switch {
		case result == nil: // the proposal failed; the id stays
			if k, ok := p.ids[key]; ok {
				k.underWay--
				p.ids[key] = k
			}
			return
		case result.Err != nil && len(reply) > 0:
			e.pubAckError(g, reply, result.Err)
		case result.Err == nil:
			answer(result.Seq, result.Flag)
		}
		delete(p.ids, key)
	})
	e.markDirty(g)
	return true
}
