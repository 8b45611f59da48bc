package engine

import (
	"time"

	"weir/disk/wal"
	"weir/model/command"
	"weir/model/effect"
	"weir/model/header"
	"weir/model/jsapi"
	"weir/model/meta"
	"weir/node/event"
	"weir/spec/assert"
)

// The leader of a mirror asks the leader of the stream that it copies for what comes after what the mirror has, proposes
// what it is told to the mirror's own group, and asks again once that is applied. The other leader answers when there is
// something (copies.go), so that a mirror that has everything costs nothing. All that is known here may be lost: the mirror's
// own state says where it stands.

// The bounds of that.
const (
	// CopyBytesMax is how many bytes of messages a question asks for, beyond the first message.
	CopyBytesMax = 256 << 10
	// copySkipMax is how far a mirror looks ahead for messages of its filter before it notes how far it has come.
	copySkipMax = 1 << 16
	// copyLifeNanos is how long a question stays open before it is asked again.
	copyLifeNanos = int64(300e9)
	// copyRetryNanos and copyRetryMaxNanos are how long to wait before a question is asked again that could not be answered:
	// ever longer.
	copyRetryNanos    = int64(50e6)
	copyRetryMaxNanos = int64(2e9)
)

// mirroring is what the engine knows about the mirrors that it leads.
type mirroring struct {
	copyQuestions map[uint64]*mirror // open, by token
	copyTokens    uint64             // the last
}

func newMirroring(boot uint64) mirroring {
	return mirroring{copyQuestions: map[uint64]*mirror{}, copyTokens: boot << 24}
}

// mirror is a mirror while it is led here.
type mirror struct {
	group *group
	// token is that of the open question, 0: none; to is whom it was put to.
	token uint64
	to    event.ServerID
	// open is how many commands are proposed and not applied, refused what became of the first that was refused.
	open    int
	refused *jsapi.Error
	// seen is the sequence up to which the other stream was found to have nothing more for the mirror.
	seen uint64
	// stopped says that nothing can be copied until something about the mirror changes.
	stopped bool
	alarm   int64 // monotone time at which something is to be done; 0: never
	armed   int64 // when the timer for that fires, which may be earlier; 0: there is none
	tries   int   // questions in vain, one after the other

	// What is shown: why nothing is copied, how many messages there were behind the newest copy, and when the other stream
	// answered last, 0: never.
	err   *jsapi.Error
	lag   uint64
	heard int64
}

// leadMirror begins or ends to copy, as the configuration of a stream that is led here says.
func (e *Engine) leadMirror(g *group) {
	switch wanted := g.leads() && g.stream.Config().Mirror != nil; {
	case !wanted:
		e.leaveMirror(g)
	case g.mirror == nil:
		g.mirror = &mirror{group: g}
		e.copyOn(g.mirror)
	}
}

// leaveMirror ends to copy, because the stream is no mirror any more, or not led here.
func (e *Engine) leaveMirror(g *group) {
	if g.mirror != nil {
		e.closeQuestion(g.mirror)
		g.mirror = nil
	}
}

func (e *Engine) closeQuestion(m *mirror) {
	delete(e.copyQuestions, m.token)
	m.token, m.to = 0, 0
}

// copyOn asks for what comes next, unless that is under way.
func (e *Engine) copyOn(m *mirror) {
	g := m.group
	if g.mirror != m || m.token != 0 || m.open > 0 {
		return
	}
	config := g.stream.Config().Mirror
	entry := e.catalog.Stream(g.entry.Account, config.Name)
	if entry == nil {
		m.err, m.alarm = jsapi.CodeStreamNotFound.Err(), 0
		return // it goes on when there is one
	}
	to := e.leaderOf(wal.GroupID(entry.Group))
	if to == 0 || e.refusesMessages(g) != nil || g.replica.Full() {
		e.retryCopy(m)
		return
	}
	copied := g.stream.Copied()
	q := question{
		from: e.config.Server, mirror: g.id, group: wal.GroupID(entry.Group), incarnation: copied.Incarnation,
		after: max(copied.Through, m.seen), filter: config.FilterSubject,
		behind: m.lag > 0 || m.err != nil,
	}
	if g.stream.Fresh() {
		q.start = config.OptStartSeq
		if config.OptStartTime != nil {
			q.startTime = int64(*config.OptStartTime)
		}
	} else {
		q.start = g.stream.State().LastSeq + 1
	}
	e.copyTokens++
	q.token, m.token, m.to = e.copyTokens, e.copyTokens, to
	e.copyQuestions[m.token] = m
	e.setCopyAlarm(m, copyLifeNanos)
	if to == e.config.Server {
		e.takeQuestion(&q)
		return
	}
	e.sendFrame(to, q.frame())
}

// setCopyAlarm sets the alarm anew. A timer that fires before it is left where it is: a mirror that copies much asks
// thousands of questions in the life of one.
func (e *Engine) setCopyAlarm(m *mirror, nanos int64) {
	m.alarm = e.now.Mono + nanos
	if m.armed == 0 || m.armed > m.alarm {
		m.armed = m.alarm
		e.timers.push(timer{at: m.armed, kind: copyTimer, owner: uint64(m.group.id)})
	}
}

// retryCopy asks again later.
func (e *Engine) retryCopy(m *mirror) {
	e.closeQuestion(m)
	delay := min(copyRetryNanos<<min(m.tries, 10), copyRetryMaxNanos)
	m.tries++
	e.setCopyAlarm(m, delay)
}

// copyTimerFired acts on the timer of a mirror, whose question is to be asked again or has been open for long, or on the one
// for the answers that wait.
func (e *Engine) copyTimerFired(t timer) {
	if t.owner == 0 {
		e.copiesArmed = false
		return
	}
	g := e.groups[wal.GroupID(t.owner)]
	if g == nil || g.mirror == nil || g.mirror.armed != t.at {
		return
	}
	g.mirror.armed = 0
	if alarm := g.mirror.alarm; alarm == 0 || alarm > e.now.Mono {
		if alarm != 0 {
			e.setCopyAlarm(g.mirror, alarm-e.now.Mono)
		}
		return
	}
	g.mirror.alarm = 0
	e.closeQuestion(g.mirror)
	e.copyOn(g.mirror)
}

// copiesCame takes the answer of a server to a question.
func (e *Engine) copiesCame(from event.ServerID, a *copies) {
	m := e.copyQuestions[a.token]
	if m == nil || m.to != from {
		return
	}
	e.closeQuestion(m)
	m.alarm = 0
	g := m.group
	if a.unknown || e.refusesMessages(g) != nil || g.replica.Full() {
		e.retryCopy(m)
		return
	}
	m.heard = max(e.now.Mono, 1)
	copied := g.stream.Copied()
	switch {
	case a.failed != "":
		m.err = jsapi.CodeMirrorConsumerSetupFailed.With(a.failed)
		m.tries = copyTriesFailed
		e.retryCopy(m)
	case a.incarnation != copied.Incarnation:
		m.lag, m.tries = a.lag, 0
		e.followAnother(m, a)
	default:
		m.lag, m.tries = a.lag, 0
		e.proposeCopies(m, a)
	}
}

// copyTriesFailed makes the next attempt one after the longest delay.
const copyTriesFailed = 10

// followAnother begins to copy a stream, if the mirror has nothing of another one.
func (e *Engine) followAnother(m *mirror, a *copies) {
	g := m.group
	before := g.stream.Copied().Incarnation
	if before != 0 && g.stream.State().Msgs > 0 {
		m.err = jsapi.CodeMirrorConsumerSetupFailed.With("stream '" + g.stream.Config().Mirror.Name +
			"' is another one than that of which the mirror has messages; purge the mirror to have it follow the new one")
		m.stopped = true
		return
	}
	m.seen = 0
	e.proposeCopy(m, &command.Command{Kind: command.Follow, Version: a.incarnation, Keep: before, StreamSeq: a.through}, e.copyDone(m))
}

// proposeCopies proposes what was answered, each message behind the one before.
func (e *Engine) proposeCopies(m *mirror, a *copies) {
	through := m.group.stream.Copied().Through
	m.seen = max(m.seen, a.through)
	var batch command.Reader
	if len(a.batch) > 0 {
		var err error
		if batch, err = command.Read(a.batch); err != nil {
			e.retryCopy(m)
			return
		}
	}
	done := e.copyDone(m)
	for c := (command.Command{}); batch.Next(&c); {
		if c.Kind != command.Copy || c.StreamSeq <= through || c.StreamSeq > a.through || c.Version != a.incarnation {
			continue // it was purged from the mirror's future meanwhile, or is not what was asked for
		}
		// Expectations were met, and batches were whole, where the message was published.
		c.Header = header.DeletePrefix(header.DeletePrefix(c.Header, "Nats-Expected-"), "Nats-Batch-")
		c.From, through = through, c.StreamSeq
		e.proposeCopy(m, &c, done)
	}
	switch {
	case m.open > 0:
	case m.seen-through > copySkipMax:
		skip := command.Command{Kind: command.Copy, Version: a.incarnation, From: through, StreamSeq: m.seen}
		e.proposeCopy(m, &skip, done)
	default:
		m.err = nil
		e.copyOn(m)
	}
}

func (e *Engine) proposeCopy(m *mirror, c *command.Command, done func(*effect.Effect)) {
	m.open++
	m.group.replica.Propose(c, done)
	e.markDirty(m.group)
}

// copyDone is what happens when the commands that are proposed for a mirror are applied.
func (e *Engine) copyDone(m *mirror) func(*effect.Effect) {
	m.refused = nil
	return func(r *effect.Effect) {
		assert.True(m.open > 0, "what is applied was proposed", uint64(m.group.id))
		m.open--
		switch {
		case r == nil:
			m.refused = jsapi.CodeClusterNotAvail.Err()
		case r.Err != nil && m.refused == nil:
			m.refused = r.Err
		}
		if m.open > 0 || m.group.mirror != m {
			return
		}
		switch refused := m.refused; {
		case refused == nil:
			m.err = nil
			e.copyOn(m)
		case jsapi.CodeClusterNotAvail.Is(refused), jsapi.CodeStreamSequenceNotMatch.Is(refused):
			m.seen = 0
			e.retryCopy(m)
		default: // its own configuration does not allow what comes next
			m.err, m.stopped, m.seen = refused, true, 0
		}
	}
}

// mirrorChanged goes on with a mirror that had stopped, since messages of it went or its configuration changed.
func (e *Engine) mirrorChanged(g *group) {
	if m := g.mirror; m != nil && m.stopped {
		m.stopped = false
		e.copyOn(m)
	}
}

// mirrorsOf goes on with the mirrors that are led here of a stream that was created, or whose leader is known now.
func (e *Engine) mirrorsOf(stream *meta.Stream) {
	for _, entry := range e.catalog.Mirrors(stream.Account, stream.Name) {
		if g := e.groups[wal.GroupID(entry.Group)]; g != nil && g.mirror != nil {
			g.mirror.stopped = false
			e.copyOn(g.mirror)
		}
	}
}

// copiesLost asks others what was asked of a server whose session ended, and forgets what it asked here.
func (e *Engine) copiesLost(id event.ServerID) {
	for _, g := range e.order {
		if m := g.mirror; m != nil && m.token != 0 && m.to == id {
			e.retryCopy(m)
		}
		e.forgetQuestions(g, id)
	}
}

// Mirror implements api.State.
func (b *backend) Mirror(id uint64) *jsapi.StreamSourceInfo {
	if g := b.groups[wal.GroupID(id)]; g != nil && g.stream != nil {
		return (*Engine)(b).showMirror(g)
	}
	return nil
}

// showMirror describes how a mirror does; nil for a stream that is none.
func (e *Engine) showMirror(g *group) *jsapi.StreamSourceInfo {
	config := g.stream.Config().Mirror
	if config == nil {
		return nil
	}
	shown := &jsapi.StreamSourceInfo{Name: config.Name, FilterSubject: config.FilterSubject, Active: -1}
	m := g.mirror
	if m == nil {
		return shown
	}
	shown.Lag, shown.Error = m.lag, m.err
	heard := m.heard
	if heard == 0 {
		return shown
	}
	if m.token != 0 && m.to == e.config.Server {
		heard = e.now.Mono // whom it waits for is here
	} else if p := e.peerOf[m.to]; m.token != 0 && p != nil {
		heard = max(heard, p.heard)
	}
	shown.Active = time.Duration(max(e.now.Mono-heard, 1)) // 0 would mean never
	return shown
}
