package engine

import (
	"encoding/binary"
	"fmt"
	"slices"

	"weir/disk/wal"
	"weir/model/fields"
	"weir/model/stream"
	"weir/node/event"
	"weir/transport/peerwire"
)

// The leader of a stream that has mirrors tells their leaders what comes next when they ask. What it tells is applied, and
// so committed: it needs no round. A question about what is not there yet waits until it is.

// The bounds of that.
const (
	// CopyCountMax is how many messages an answer has at most.
	CopyCountMax = 1024
	// copyScanMax is how many messages are looked at for an answer at a time.
	copyScanMax = 4096
	// CopyReadsMax is how many answers are put together at a time.
	CopyReadsMax = 16
	// copyBusyNanos is how long an answer waits for a server that does not keep up.
	copyBusyNanos = int64(50e6)
)

// copying is what the engine knows about the questions that are put to it.
type copying struct {
	copiesDue   []*question // those to be answered, the oldest first
	copyReads   int         // answers that are being put together
	copiesArmed bool        // a timer is set for those that wait for a server
}

// question asks for what comes next in a stream.
type question struct {
	// from is the server that asks, for its mirror of the group, and token its name for the question.
	from   event.ServerID
	mirror wal.GroupID
	token  uint64
	// group is the stream's, incarnation that of the stream which the mirror copies so far: 0, or perhaps another one.
	group       wal.GroupID
	incarnation uint64
	// after is the sequence that the answer follows, filter selects its messages; "" for all.
	after  uint64
	filter string
	// behind says that the mirror believes to lack something: it is answered even if there is nothing more.
	behind bool
	// start and startTime are where a mirror begins that does not copy this stream yet; 0, 0: with the first message.
	start     uint64
	startTime int64
}

// copies is the answer.
type copies struct {
	token uint64
	// unknown says that another server is to be asked, or this one later.
	unknown bool
	// failed is why there is no answer.
	failed string
	// incarnation is that of the stream. When it is not the one that was asked for, through is where to begin behind.
	incarnation uint64
	// through is the sequence up to which batch has all, lag how many messages there are behind it.
	through, lag uint64
	// batch are the messages, Copy commands in a batch of package command.
	batch []byte
}

// frame is the question on its way to another server.
func (q *question) frame() *peerwire.Frame {
	body := binary.AppendUvarint(nil, uint64(q.mirror))
	body = binary.AppendUvarint(body, q.incarnation)
	body = binary.AppendUvarint(body, q.start)
	body = binary.AppendVarint(body, q.startTime)
	return &peerwire.Frame{
		Kind: peerwire.Follow, Token: q.token, Group: uint64(q.group), Offset: q.after, Subject: []byte(q.filter), Flag: q.behind, Payload: body,
	}
}

// questioned takes the question of another server.
func (e *Engine) questioned(from event.ServerID, f *peerwire.Frame) error {
	r := fields.NewReader(f.Payload)
	q := question{
		from: from, token: f.Token, group: wal.GroupID(f.Group), after: f.Offset, filter: string(f.Subject), behind: f.Flag,
		mirror: wal.GroupID(r.Uvarint()), incarnation: r.Uvarint(), start: r.Uvarint(), startTime: r.Varint(),
	}
	if !r.Done() {
		return fmt.Errorf("%w: question about what a mirror lacks", peerwire.ErrMalformed)
	}
	e.takeQuestion(&q)
	return nil
}

// takeQuestion takes a question, in the place of the last one for the same mirror. It is answered at the end of the step, or
// later.
func (e *Engine) takeQuestion(q *question) {
	g := e.groups[q.group]
	if g == nil || g.stream == nil || !g.leads() {
		e.answerCopies(q, &copies{unknown: true})
		return
	}
	same := func(o *question) bool { return o.from == q.from && o.mirror == q.mirror }
	g.questions = slices.DeleteFunc(g.questions, same)
	e.copiesDue = slices.DeleteFunc(e.copiesDue, same)
	e.copiesDue = append(e.copiesDue, q)
}

// forgetQuestions forgets what a server asked about a group.
func (e *Engine) forgetQuestions(g *group, from event.ServerID) {
	g.questions = slices.DeleteFunc(g.questions, func(q *question) bool { return q.from == from })
}

// endQuestions tells everybody who waits for something of a group that this server does not lead it any more.
func (e *Engine) endQuestions(g *group) {
	waiting := g.questions
	g.questions = nil
	for _, q := range waiting {
		e.answerCopies(q, &copies{unknown: true})
	}
}

// copiesCameUp has the questions answered that waited for something new in the group.
func (e *Engine) copiesCameUp(g *group) {
	e.copiesDue = append(e.copiesDue, g.questions...)
	clear(g.questions)
	g.questions = g.questions[:0]
}

// answerQuestions answers what can be answered now. Questions of servers that do not keep up wait.
func (e *Engine) answerQuestions() {
	for budget := len(e.copiesDue); budget > 0 && len(e.copiesDue) > 0 && e.copyReads < CopyReadsMax; budget-- {
		q := e.copiesDue[0]
		e.copiesDue[0] = nil
		e.copiesDue = e.copiesDue[1:]
		if q.from != e.config.Server && e.peerOf[q.from] != nil && !e.peerKeepsUp(q.from) {
			e.postpone(q)
			continue
		}
		e.answerMirror(q)
	}
}

// postpone answers a question a little later.
func (e *Engine) postpone(q *question) {
	e.copiesDue = append(e.copiesDue, q)
	if !e.copiesArmed {
		e.copiesArmed = true
		e.timers.push(timer{at: e.now.Mono + copyBusyNanos, kind: copyTimer})
	}
}

// answerMirror answers one question, or has it wait.
func (e *Engine) answerMirror(q *question) {
	g := e.groups[q.group]
	if g == nil || g.stream == nil || !g.leads() {
		e.answerCopies(q, &copies{unknown: true})
		return
	}
	incarnation := e.incarnation(g)
	if q.incarnation != incarnation {
		begin := q.begin(g.stream)
		e.answerCopies(q, &copies{incarnation: incarnation, through: begin, lag: g.stream.Behind(begin)})
		return
	}
	a := &answering{question: q, group: g, term: g.replica.Term()}
	a.through = g.stream.Scan(q.filter, q.after+1, copyScanMax, a.take)
	switch {
	case len(a.known) > 0:
		e.gatherCopies(a)
	case a.through > q.after && g.stream.Behind(a.through) > 0:
		q.after = a.through
		e.copiesDue = append(e.copiesDue, q) // on from there, after others
		e.unsettled = true
	case q.behind:
		e.answerCopies(q, &copies{incarnation: incarnation, through: max(q.after, a.through)})
	default:
		q.after = max(q.after, a.through)
		g.questions = append(g.questions, q)
	}
}

// begin is the sequence behind which a mirror begins that does not copy the stream yet.
func (q *question) begin(s *stream.Machine) uint64 {
	first := s.State().FirstSeq
	switch {
	case q.start > 0:
		first = max(q.start, first)
	case q.startTime != 0:
		first = s.SeqAtTime(q.startTime)
	}
	return min(max(first, 1)-1, stream.SeqMax)
}

// incarnation identifies a stream, as long as its sequences go on: one that is kept in memory begins anew with the process.
func (e *Engine) incarnation(g *group) uint64 {
	switch {
	case e.config.Plant.CopyByName:
		return 1
	case g.durable():
		return uint64(g.id)
	}
	return 1<<63 | (uint64(g.id)<<24^e.config.Boot)&^(1<<63)
}
