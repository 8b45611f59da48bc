package engine

import (
	"maps"
	"slices"

	"weir/disk/wal"
	"weir/model/jsapi"
	"weir/node/api"
	"weir/node/event"
	"weir/spec/assert"
	"weir/transport/peerwire"
)

// AsksMax bounds the questions to other servers that wait for an answer.
const AsksMax = 1 << 16

// askRetryNanos is the time after which a question is asked again that could not be asked or answered, stepDownNanos how
// long another replica may take to lead a group in the place of this one.
const (
	askRetryNanos = int64(50e6)
	stepDownNanos = int64(3e9)
)

// inquiring is what the API waits for in a cluster: answers of other servers, leaders, and the end of leaderships.
type inquiring struct {
	asks      map[uint64]*ask            // by token
	unasked   map[wal.GroupID][]uint64   // tokens of the questions about a group whose leader is not known
	lastAsk   uint64                     // the last token
	askArmed  bool                       // a timer is set
	waiting   map[wal.GroupID][]*waiting // requests for a group whose leader is not known
	waits     int                        // how many
	waitBytes int                        // and of how many bytes
	ends      []awaitingEnd              // who waits for the end of groups
	leaseEnds []awaitingLeases           // and of leases, in the order of their times
	stepping  map[wal.GroupID][]step     // who waits for the end of the group's leadership here
	leaders   map[wal.GroupID]leadership // who is known to lead, and since when
	elected   []wal.GroupID              // groups of which something new is known, in this step
}

// ask is one question that is not answered.
type ask struct {
	token    uint64
	question *api.Question
	done     func([]byte)
	deadline int64          // monotone
	to       event.ServerID // who was asked; 0: nobody yet, or in vain
}

// step is one who waits for the end of a leadership.
type step struct {
	done     func(*jsapi.Error)
	deadline int64 // monotone
}

// leadership is who leads a group in a term, and since when in unix nanoseconds, as noticed here.
type leadership struct {
	server event.ServerID
	term   uint64
	since  int64
}

func newInquiring() inquiring {
	return inquiring{
		asks: map[uint64]*ask{}, unasked: map[wal.GroupID][]uint64{}, waiting: map[wal.GroupID][]*waiting{},
		stepping: map[wal.GroupID][]step{}, leaders: map[wal.GroupID]leadership{},
	}
}

// Ask implements api.Cluster.
func (b *backend) Ask(q *api.Question, done func([]byte)) {
	e := (*Engine)(b)
	if len(e.asks) >= AsksMax {
		done(nil)
		return
	}
	e.lastAsk++
	a := &ask{token: e.lastAsk, question: q, done: done, deadline: e.now.Mono + q.WaitNanos}
	e.asks[a.token] = a
	e.armAsks()
	e.put(a)
}

// put puts a question to whom it is for. Without one it waits.
func (e *Engine) put(a *ask) {
	q := a.question
	if q.Group != 0 && e.catalog.ByGroup(q.Group) == nil {
		e.finish(a, nil) // it has ended
		return
	}
	a.to = event.ServerID(q.Server)
	if q.Group != 0 {
		a.to = e.leaderOf(wal.GroupID(q.Group))
	}
	if a.to == e.config.Server {
		token := a.token
		e.api.Answer(q, func(answer []byte) { e.told(token, e.config.Server, answer) })
		return
	}
	if e.peerOf[a.to] == nil {
		a.to = 0
		if q.Group == 0 {
			e.finish(a, nil) // it is not there to be asked
			return
		}
		e.unasked[wal.GroupID(q.Group)] = append(e.unasked[wal.GroupID(q.Group)], a.token)
		return
	}
	e.sendFrame(a.to, &peerwire.Frame{
		Kind: peerwire.Ask, Token: a.token, Text: []byte(q.What), Group: q.Group, Account: []byte(q.Account),
		Offset: q.Version, Payload: q.Body,
	})
}

// awaitingEnd is one who waits until the end of a group is known here, even after a restart.
type awaitingEnd struct {
	group    wal.GroupID
	index    uint64 // of the catalog
	done     func(bool)
	deadline int64 // monotone
}

// Ended implements api.Cluster.
func (b *backend) Ended(group, index uint64, done func(bool)) {
	e := (*Engine)(b)
	e.ends = append(e.ends, awaitingEnd{wal.GroupID(group), index, done, e.now.Mono + askRetryNanos*100})
	e.answerEnds()
}

// awaitingLeases is one who waits until the leases have ended that were given before.
type awaitingLeases struct {
	until int64 // monotone
	done  func()
}

// LeasesEnd implements api.Cluster. A lease is shorter than an election timeout by more than clocks are trusted to differ.
func (b *backend) LeasesEnd(done func()) {
	e := (*Engine)(b)
	if e.leaseNanos() == 0 || e.config.Plant.LeaseOutlives {
		done()
		return
	}
	e.leaseEnds = append(e.leaseEnds, awaitingLeases{e.now.Mono + int64(e.electionTicks())*e.tickNanos(), done})
}

// answerEnds answers those who wait for the end of a group that is known now, or have waited for too long, and for the end of
// leases. Ticks see to it that there is a step soon enough.
func (e *Engine) answerEnds() {
	for len(e.leaseEnds) > 0 && e.leaseEnds[0].until <= e.now.Mono {
		done := e.leaseEnds[0].done
		e.leaseEnds = slices.Delete(e.leaseEnds, 0, 1)
		done()
	}
	if len(e.ends) == 0 {
		return
	}
	waiting := e.ends
	e.ends = nil
	for _, w := range waiting {
		_, ending := e.ending[w.group]
		switch {
		case e.catalog.Applied() >= w.index && !ending:
			w.done(true)
		case w.deadline <= e.now.Mono:
			w.done(false)
		default:
			e.ends = append(e.ends, w)
		}
	}
}

// asked answers the question of another server.
func (e *Engine) asked(from event.ServerID, f *peerwire.Frame) {
	token := f.Token
	answer := func(answer []byte) {
		e.sendFrame(from, &peerwire.Frame{Kind: peerwire.Answer, Token: token, Flag: answer != nil, Payload: answer})
	}
	if e.api == nil {
		answer(nil)
		return
	}
	e.api.Answer(&api.Question{
		What: string(f.Text), Group: f.Group, Account: string(f.Account), Version: f.Offset, Body: slices.Clone(f.Payload),
	}, answer)
}

// answered takes the answer of another server.
func (e *Engine) answered(from event.ServerID, f *peerwire.Frame) {
	if !f.Flag {
		e.told(f.Token, from, nil)
		return
	}
	e.told(f.Token, from, append([]byte{}, f.Payload...))
}

// told takes an answer. One that no longer is waited for, or that is not of the server asked last, changes nothing.
func (e *Engine) told(token uint64, from event.ServerID, answer []byte) {
	a := e.asks[token]
	switch {
	case a == nil || a.to != from:
	case answer != nil:
		e.finish(a, answer)
	default:
		a.to = 0 // asked again when the timer fires
	}
}

func (e *Engine) finish(a *ask, answer []byte) {
	delete(e.asks, a.token)
	a.done(answer)
}

// asksLost asks others what was asked of a server whose session ended.
func (e *Engine) asksLost(from event.ServerID) {
	for _, token := range slices.Sorted(maps.Keys(e.asks)) {
		if a := e.asks[token]; a != nil && a.to == from {
			e.put(a)
		}
	}
}

// leaderKnown notes that the leader of a group is known, or another one than before. Whoever waits for that goes on at the
// end of the step.
func (e *Engine) leaderKnown(id wal.GroupID) { e.elected = append(e.elected, id) }

// followLeaders lets go on what waited for the leaders that became known in this step, and remembers since when they lead.
func (e *Engine) followLeaders() {
	for i := 0; i < len(e.elected); i++ { // what goes on may add more
		if g := e.groups[e.elected[i]]; g != nil {
			e.followLeader(g)
		}
	}
	e.elected = e.elected[:0]
}

func (e *Engine) followLeader(g *group) {
	leader := e.leaderOf(g.id)
	if leader == 0 {
		return
	}
	if known := e.leaders[g.id]; known.server != leader || known.term != g.leaderTerm {
		e.leaders[g.id] = leadership{leader, g.leaderTerm, e.wall}
	}
	if leader != e.config.Server {
		for _, s := range e.takeSteps(g.id) {
			s.done(nil)
		}
	}
	tokens := e.unasked[g.id]
	delete(e.unasked, g.id)
	for _, token := range tokens {
		if a := e.asks[token]; a != nil && a.to == 0 {
			e.put(a)
		}
	}
	if g.entry != nil {
		e.mirrorsOf(g.entry)
	}
	if g == e.meta && g.leads() && !e.formed() {
		return // its requests go on waiting
	}
	requests := e.waiting[g.id]
	delete(e.waiting, g.id)
	e.unwait(requests)
	for _, w := range requests {
		e.dispatch(w.request, w.hops)
	}
}

// forgetLeadership forgets a group that ended. Who waits for its leader is answered when the time is over.
func (e *Engine) forgetLeadership(id wal.GroupID) { delete(e.leaders, id) }

func (e *Engine) takeSteps(id wal.GroupID) []step {
	steps := e.stepping[id]
	delete(e.stepping, id)
	return steps
}

func (e *Engine) armAsks() {
	if !e.askArmed {
		e.askArmed = true
		e.timers.push(timer{at: e.now.Mono + askRetryNanos, kind: askTimer})
	}
}

// askAgain asks again what could not be asked or answered, and gives up what has waited for long enough.
func (e *Engine) askAgain() {
	e.askArmed = false
	for _, token := range slices.Sorted(maps.Keys(e.asks)) {
		a := e.asks[token]
		switch {
		case a == nil:
		case a.deadline <= e.now.Mono:
			e.finish(a, nil)
		case a.to == 0:
			e.put(a)
		}
	}
	clear(e.unasked)
	for _, token := range slices.Sorted(maps.Keys(e.asks)) {
		if a := e.asks[token]; a.to == 0 {
			id := wal.GroupID(a.question.Group)
			e.unasked[id] = append(e.unasked[id], token)
		}
	}
	e.endWaits()
	if len(e.waiting[metaGroup]) > 0 && e.meta.leads() && e.formed() {
		e.leaderKnown(metaGroup)
	}
	for _, id := range slices.Sorted(maps.Keys(e.stepping)) {
		for _, s := range e.takeSteps(id) {
			if s.deadline <= e.now.Mono {
				s.done(jsapi.CodeRaftGeneral.With("no other replica took the leadership over in time"))
				continue
			}
			e.stepping[id] = append(e.stepping[id], s)
		}
	}
	if len(e.asks) > 0 || len(e.stepping) > 0 || e.waits > 0 {
		e.armAsks()
	}
}

// StepDown implements api.Cluster.
func (b *backend) StepDown(id uint64, to string, done func(*jsapi.Error)) {
	e := (*Engine)(b)
	g := e.groups[wal.GroupID(id)]
	if g == nil || g.damaged != nil || !g.replica.IsLeader() {
		done(jsapi.CodeClusterNotAvail.Err())
		return
	}
	preferred := event.ServerID(0)
	if to != "" {
		for _, s := range e.catalog.Servers() {
			if s.Name == to {
				preferred = event.ServerID(s.ID)
			}
		}
	}
	successor := e.successor(g, g.replica.Members(), preferred)
	if successor == 0 {
		done(jsapi.CodeClusterNoPeers.With("no replacement peer connected"))
		return
	}
	assert.True(successor != g.replica.ID(), "a leader steps down for another", id)
	e.stepping[g.id] = append(e.stepping[g.id], step{done, e.now.Mono + stepDownNanos})
	e.armAsks()
	if !g.replica.Transfer(successor, e) {
		for _, s := range e.takeSteps(g.id) {
			s.done(jsapi.CodeRaftGeneral.With("the leadership can not be moved now"))
		}
	}
}
