package engine

import (
	"weir/disk/wal"
	"weir/model/command"
	"weir/model/consumer"
	"weir/model/effect"
	"weir/node/delivery"
	"weir/node/route"
)

// desk is the engine as the world of the delivery desk.
type desk Engine

// Consumer implements delivery.World.
func (d *desk) Consumer(id, consumer uint64) *consumer.State {
	g := d.groups[wal.GroupID(id)]
	if g == nil || g.stream == nil {
		return nil
	}
	return g.stream.Consumer(consumer)
}

// Consumers implements delivery.World.
func (d *desk) Consumers(id uint64) []*consumer.State {
	return d.groups[wal.GroupID(id)].stream.Consumers()
}

// Fetch implements delivery.World.
func (d *desk) Fetch(id, seq, ticket uint64) (delivery.Stored, delivery.Presence) {
	e := (*Engine)(d)
	g := d.groups[wal.GroupID(id)]
	if g == nil {
		return delivery.Stored{}, delivery.Missing
	}
	if m, ok := g.index.Cached(seq); ok {
		return delivery.Stored{Subject: m.Subject, Header: m.Header, Payload: m.Payload}, delivery.Here
	}
	if _, ok := g.index.Lookup(seq); !ok {
		return delivery.Stored{}, delivery.Missing
	}
	e.fetchFor(g, seq, ticket)
	return delivery.Stored{}, delivery.Coming
}

// fetchFor reads a message for the desk. One that is stored and can not be read holds up its consumer, which must not
// skip it: it is read again after a while, until it can be or is removed.
func (e *Engine) fetchFor(g *group, seq, ticket uint64) {
	e.fetch(g, seq, func(m *stored, err error) {
		switch {
		case err != nil:
			e.unreadable = append(e.unreadable, unreadable{g, seq, ticket})
			e.timers.push(timer{at: e.now.Mono + retryNanos, kind: unreadableTimer})
		case m == nil:
			e.desk.Fetched(e.now.Mono, ticket, delivery.Stored{}, false)
		default:
			e.desk.Fetched(e.now.Mono, ticket, delivery.Stored{Subject: m.Subject, Header: m.Header, Payload: m.Payload}, true)
		}
	})
}

// unreadable is a message that a consumer waits for.
type unreadable struct {
	group       *group
	seq, ticket uint64
}

// readAgain reads again what could not be read, as far as it is still here: consumers of a stream that has moved away wait for
// it no more.
func (e *Engine) readAgain() {
	again := e.unreadable
	e.unreadable = nil
	for _, u := range again {
		if e.groups[u.group.id] == u.group && u.group.index != nil {
			e.fetchFor(u.group, u.seq, u.ticket)
		}
	}
}

// Propose implements delivery.World.
func (d *desk) Propose(id uint64, c *command.Command) bool {
	e := (*Engine)(d)
	g := d.groups[wal.GroupID(id)]
	if g == nil || !g.leads() || e.refusesProposals(g) != nil {
		return false
	}
	var done func(*effect.Effect)
	if c.Kind == command.Deliver {
		consumer, token := c.Consumer, c.Token
		done = func(result *effect.Effect) {
			if result == nil {
				e.desk.Dropped(e.now.Mono, id, consumer, token)
			}
		}
	}
	g.replica.Propose(c, done)
	if e.config.Plant.DeliverEarly && c.Kind == command.Deliver {
		e.plantEarly(g, c)
	}
	e.markDirty(g)
	return true
}

// HasInterest implements delivery.World.
func (d *desk) HasInterest(id uint64, subject []byte) bool {
	g := d.groups[wal.GroupID(id)]
	return g != nil && g.account.routes.HasInterest(subject)
}

// congestedShare is the part of the bytes that may wait for a client beyond which the server sends no more messages of
// streams: the rest is for what can not wait.
const congestedShare = 4

// Congested implements delivery.World.
func (d *desk) Congested(id uint64, subject []byte) bool {
	g := d.groups[wal.GroupID(id)]
	if g == nil {
		return false
	}
	found := g.account.routes.Match(subject)
	keepsUp := func(sub *route.Sub) bool { return !d.behind(sub) }
	return !found.Empty() && !found.KeepsUp(keepsUp, (*Engine)(d).peerKeepsUp)
}

// behind reports whether the subscription is that of a client for which much waits to be sent.
func (d *desk) behind(sub *route.Sub) bool {
	c := d.sessions[sub.Conn]
	return c != nil && c.session.PendingBytes() > d.config.Limits.PendingBytes/congestedShare
}

// Send implements delivery.World.
func (d *desk) Send(id uint64, subject []byte, m *delivery.Message) int {
	g := d.groups[wal.GroupID(id)]
	if g == nil {
		return 0
	}
	return g.account.route(subject, route.Message{Subject: m.Subject, Reply: m.Reply, Header: m.Header, Payload: m.Payload})
}

// Watch implements delivery.World.
func (d *desk) Watch(group, id uint64, subject, queue string) bool {
	key := watchKey{group, id}
	routes := d.groups[wal.GroupID(group)].account.routes
	if w := d.watches[key]; w != nil {
		routes.Unwatch(w)
		delete(d.watches, key)
		delete(d.watchers, w.Token)
	}
	if subject == "" {
		return false
	}
	d.lastWatch++
	w := routes.Watch(subject, queue, d.lastWatch)
	d.watches[key] = w
	d.watchers[w.Token] = key
	return w.Interested()
}

// Random implements delivery.World.
func (d *desk) Random() uint64 { return d.random.Uint64() }

// watching is who waits for interest in deliver subjects.
type watching struct {
	watches        map[watchKey]*route.Watch
	watchers       map[uint64]watchKey // by the token of the watch
	lastWatch      uint64              // the last token
	changedWatches []*route.Watch      // of the step
}

type watchKey struct{ group, consumer uint64 }

// watchInterest tells the desk which deliver subjects gained or lost interest since the last step.
func (e *Engine) watchInterest() {
	e.changedWatches = e.changedWatches[:0]
	for _, a := range e.accounts {
		e.changedWatches = a.routes.Changed(e.changedWatches)
	}
	for _, w := range e.changedWatches {
		if key, ok := e.watchers[w.Token]; ok {
			e.desk.Interest(e.now.Mono, key.group, key.consumer, w.Interested())
		}
	}
}

// deliverable passes an effect on to the desk and to whoever listens to advisories. Handoffs of an entry that was not
// proposed in this run of the process have no request here.
func (e *Engine) deliverable(g *group, ours bool, f *effect.Effect) {
	switch f.Kind {
	case effect.Handoff, effect.Delivered:
		if ours && !e.sentEarly(g, f) {
			e.desk.Apply(e.now.Mono, uint64(g.id), f)
		}
	default:
		if !g.started {
			return
		}
		if ours {
			e.advise(g, f)
		}
		e.desk.Apply(e.now.Mono, uint64(g.id), f)
	}
}

// flowControls is the engine as the receiver of answers to flow control, on $JS.FC.>.
type flowControls Engine

// Deliver tells the desk that a client has processed what came before the request.
func (f *flowControls) Deliver(sub *route.Sub, m *route.Message) bool {
	e := (*Engine)(f)
	return e.flowControl(e.servedBy(sub), m, 0)
}
