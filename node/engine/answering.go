package engine

import (
	"weir/model/command"
	"weir/model/stream"
	"weir/node/event"
	"weir/transport/peerwire"
)

// answering is an answer to the question of a mirror while its messages are read.
type answering struct {
	question *question
	group    *group
	known    []stream.Meta
	term     uint64 // in which the stream is led here
	msgs     []copyRead
	bytes    int
	waiting  int
	// through is the sequence up to which the answer has all.
	through uint64
}

// copyRead is what became of reading one message; without both it is gone.
type copyRead struct {
	msg *stored
	err error
}

// take adds a message to the answer, if it has room.
func (a *answering) take(m stream.Meta) bool {
	if len(a.known) >= CopyCountMax || len(a.known) > 0 && a.bytes+m.Size > CopyBytesMax {
		return false
	}
	a.known = append(a.known, m)
	a.bytes += m.Size
	return true
}

// gatherCopies reads the messages of an answer.
func (e *Engine) gatherCopies(a *answering) {
	if len(e.wanted) >= FetchesWaitingMax {
		e.postpone(a.question)
		return
	}
	e.copyReads++
	a.msgs = make([]copyRead, len(a.known))
	a.waiting = len(a.known) + 1
	for i := range a.known {
		if _, cached := a.group.index.Cached(a.known[i].Seq); !cached && e.config.Plant.CopyCached {
			a.waiting--
			continue
		}
		e.fetch(a.group, a.known[i].Seq, func(m *stored, err error) {
			a.msgs[i].err = err
			if m != nil {
				kept := *m
				a.msgs[i].msg = &kept
			}
			e.copyWasRead(a)
		})
	}
	e.copyWasRead(a)
}

// copyWasRead gives the answer when the last message is there.
func (e *Engine) copyWasRead(a *answering) {
	if a.waiting--; a.waiting > 0 {
		return
	}
	e.copyReads--
	if e.groups[a.group.id] != a.group || !a.group.leads() || a.group.replica.Term() != a.term {
		e.answerCopies(a.question, &copies{unknown: true}) // what was not read may be there: the stream was taken from here
		return
	}
	answer := copies{incarnation: e.incarnation(a.group), through: a.through}
	answer.batch = command.AppendHeader(make([]byte, 0, command.HeaderSize+a.bytes+len(a.known)*copyRoom), 0, 0)
	for i := range a.msgs {
		read, known := &a.msgs[i], &a.known[i]
		if read.err != nil {
			// What can not be read is no gap: the answer ends before it.
			if answer.through = known.Seq - 1; i == 0 {
				answer.failed = "a message of the stream can not be read"
			}
			break
		}
		if read.msg == nil {
			continue
		}
		answer.batch = command.Append(answer.batch, &command.Command{
			Kind: command.Copy, Version: answer.incarnation, StreamSeq: known.Seq, Time: known.Time,
			Subject: []byte(known.Subject), Header: read.msg.Header, Payload: read.msg.Payload,
		})
	}
	if a.group.stream != nil {
		answer.lag = a.group.stream.Behind(answer.through)
	}
	e.answerCopies(a.question, &answer)
}

// copyRoom is about what a message of an answer takes beside its header and payload.
const copyRoom = 64

// answerCopies gives an answer to whom it is for.
func (e *Engine) answerCopies(q *question, a *copies) {
	a.token = q.token
	if q.from == e.config.Server {
		e.copiesCame(q.from, a)
		return
	}
	n := e.neighbour(q.from)
	switch {
	case n == nil:
		return // it asks again when there is a session
	case len(a.batch) > 0 && n.underWay() > WindowBytesMax:
		e.postpone(q)
		return
	}
	f := peerwire.Frame{
		Kind: peerwire.Copies, Token: a.token, Flag: !a.unknown, Text: []byte(a.failed), Group: a.incarnation, Offset: a.through,
		Count: a.lag, Payload: a.batch,
	}
	n.sent += peerwire.MsgCost(&f)
	e.sendFrame(q.from, &f)
}

// answeredCopies takes the answer of another server.
func (e *Engine) answeredCopies(from event.ServerID, f *peerwire.Frame) {
	e.copiesCame(from, &copies{
		token: f.Token, unknown: !f.Flag, failed: string(f.Text), incarnation: f.Group, through: f.Offset, lag: f.Count, batch: f.Payload,
	})
}
