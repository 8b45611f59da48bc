package replica

import (
	"encoding/binary"

	pb "go.etcd.io/raft/v3/raftpb"

	"weir/model/command"
	"weir/model/effect"
	"weir/node/event"
	"weir/spec/assert"
)

// Origin is who waits for the result of a command: Done, or whoever subscribes to the reply subject that came with the
// command, which is Batch.Reply of its ordinal. At most one of the two is there.
type Origin struct {
	// Done is called with the Result effect of the command, or with nil when the outcome will never be known here.
	Done func(result *effect.Effect)

	replyEnd int // end of the reply subject in the batch's arena
}

// Batch is a group of commands that travel as one entry, and the callers that wait for their results.
type Batch struct {
	data      []byte // nil once it is proposed
	dataBytes int    // its size then
	token     uint64
	origins   []Origin
	replies   []byte // reply subjects, one after the other
	published bool   // it holds a message
	term      uint64 // in which it was proposed, once that has ended; 0 before
}

// BatchBytesMax is the size from which a batch takes no more commands; it waits for the log.
const BatchBytesMax = 1 << 20

// WaitingBytesMax bounds the bytes that are proposed or gathered and not yet applied in one group, LoadBytesMax those in
// all groups of a node. Beyond it new commands are refused, so that publishers slow down before the log.
const (
	WaitingBytesMax = 128 << 20
	LoadBytesMax    = 2 * WaitingBytesMax
)

// ProposedBytesMax is the size from which a replica proposes nothing more at a time: what is left waits for the append to
// end. No append grows beyond what the log takes by it.
const ProposedBytesMax = 8 << 20

// OverlapBytesMin is the size of the open batch from which it is appended while another append is under way.
const OverlapBytesMin = 16 << 10

// originBytes is about what a command takes in memory beside its bytes.
const originBytes = 64

// Load is what waits, and what is kept of logs, in all replicas of a node.
type Load struct {
	bytes, tailBytes, logBytes int

	buffers [][]byte // memory of batches that are proposed, for the next ones
}

// Bounds of Load.buffers.
const (
	buffersMax     = 8
	bufferBytesMax = BatchBytesMax / 4
)

// buffer is empty memory for a batch of about so many bytes.
func (l *Load) buffer(bytes int) []byte {
	n := len(l.buffers)
	if n == 0 {
		return make([]byte, 0, bytes)
	}
	b := l.buffers[n-1]
	l.buffers[n-1] = nil
	l.buffers = l.buffers[:n-1]
	return b[:0]
}

// giveBack takes memory that nobody uses any more.
func (l *Load) giveBack(b []byte) {
	if len(l.buffers) < buffersMax && cap(b) <= bufferBytesMax {
		l.buffers = append(l.buffers, b)
	}
}

// Origin is who waits for the command with the ordinal.
func (b *Batch) Origin(ordinal int32) *Origin { return &b.origins[ordinal] }

// Reply is the reply subject that came with the command of the ordinal; empty when there is none. It is valid while
// the batch is.
func (b *Batch) Reply(ordinal int32) []byte {
	start := 0
	if ordinal > 0 {
		start = b.origins[ordinal-1].replyEnd
	}
	return b.replies[start:b.origins[ordinal].replyEnd]
}

// Len is the number of commands.
func (b *Batch) Len() int { return len(b.origins) }

// Full reports whether the group, or the node, has so much under way that messages are refused.
func (r *Replica) Full() bool {
	return r.waitingBytes >= WaitingBytesMax || r.config.Load.bytes >= LoadBytesMax
}

// Jammed reports whether so much is under way that everything is refused. What is not a message finds room that messages
// leave, so that acknowledgements are recorded while publishers are too fast.
func (r *Replica) Jammed() bool {
	return r.waitingBytes >= WaitingBytesMax/4*5 || r.config.Load.bytes >= LoadBytesMax/4*5
}

// load notes that bytes more, or fewer, wait.
func (r *Replica) load(bytes int) {
	r.waitingBytes += bytes
	r.config.Load.bytes += bytes
}

// bytes is about what the batch takes in memory.
func (b *Batch) bytes() int {
	return len(b.data) + b.dataBytes + len(b.replies) + originBytes*len(b.origins)
}

// Published is a message on its way into the log.
type Published struct {
	// Subject, Header and Payload are the message.
	Subject, Header, Payload []byte
	// Reply is where the acknowledgement goes; empty without one.
	Reply []byte
}

// Publish adds a message to the open batch. The slices are copied.
func (r *Replica) Publish(m *Published) {
	b := r.batch()
	before := b.bytes()
	b.data = command.AppendPublish(b.data, m.Subject, m.Header, m.Payload)
	b.published = true
	b.replies = append(b.replies, m.Reply...)
	b.origins = append(b.origins, Origin{replyEnd: len(b.replies)})
	r.load(b.bytes() - before)
}

// Propose adds a command to the open batch. done may be nil; see Origin.
func (r *Replica) Propose(c *command.Command, done func(result *effect.Effect)) {
	b := r.batch()
	before := b.bytes()
	b.data = command.Append(b.data, c)
	b.origins = append(b.origins, Origin{Done: done, replyEnd: len(b.replies)})
	r.load(b.bytes() - before)
}

// batch returns the open batch, opening one when there is none or the last is full.
func (r *Replica) batch() *Batch {
	if r.open != nil && len(r.open.data) >= BatchBytesMax {
		r.close()
	}
	if r.open == nil {
		if n := len(r.spare); n > 0 {
			r.open, r.spare = r.spare[n-1], r.spare[:n-1]
		} else {
			r.open = &Batch{}
		}
		r.token++
		r.open.token = r.token
		r.open.data = command.AppendHeader(r.config.Load.buffer(r.sizeHint()), 0, r.token)
		r.load(len(r.open.data))
	}
	return r.open
}

// sizeHint guesses the size of the next batch by the last one, so that a batch is rarely copied while it grows.
func (r *Replica) sizeHint() int {
	const least, most = 512, BatchBytesMax / 4
	return min(max(least, r.lastBatchBytes*5/4), most)
}

// Dirty reports whether commands wait to be proposed, or reads for a round.
func (r *Replica) Dirty() bool { return r.open != nil || r.proposed < len(r.waiting) || r.mustAsk() }

// mayAppend reports whether another append may be under way. The disk syncs one append after the other: a second one
// pays when somebody waits for a message of it, or when it is large, so that its preparation overlaps with the sync of
// the first. Deliveries and acknowledgements better gather what else comes until then.
func (r *Replica) mayAppend(mono int64) bool {
	switch {
	case len(r.inFlight) >= InFlightMax:
		return false
	case r.rounds:
		return r.mayReplicate(mono)
	case len(r.inFlight) == 0:
		return true
	default:
		return r.proposed < len(r.waiting) || r.open.published || len(r.open.data) >= OverlapBytesMin
	}
}

// Flush proposes what has been gathered, unless so many appends are under way that batches better grow, and begins the
// round of the reads that wait. It stamps batches with the leader's time, never earlier than the ones before. It reports
// whether it did anything. On a replica that can not lead yet batches wait; where another one may lead, they are undone.
func (r *Replica) Flush(now event.Time, sink Sink) bool {
	if r.broken != nil || !r.Dirty() {
		return false
	}
	asked := r.ask(now, sink)
	if !r.leader && r.rounds {
		r.depose(sink)
	}
	if !r.serving || r.open == nil && r.proposed == len(r.waiting) || !r.mayAppend(now.Mono) {
		return asked
	}
	r.Wake(sink)
	r.time = max(now.Wall, r.time+1, r.machine.LastTime()+1)
	if r.open != nil {
		r.close()
	}
	before, commands := r.proposed, 0
	for bytes := 0; r.proposed < len(r.waiting) && bytes < ProposedBytesMax; r.proposed++ {
		b := r.waiting[r.proposed]
		bytes, commands = bytes+len(b.data), commands+b.Len()
		command.SetTime(b.data, r.time)
		if err := r.node.Step(r.proposal(b.data)); err != nil {
			// A leader drops proposals while it hands over leadership. They wait for the outcome of that.
			assert.True(r.rounds, "the only voter takes every proposal", r.term)
			break
		}
		r.config.Load.giveBack(b.data) // Raft has copied it
		b.data, b.dataBytes = nil, len(b.data)
	}
	proposed := r.proposed > before
	if proposed {
		r.noteProposed(commands, now.Mono)
	}
	r.Advance(sink)
	return asked || proposed
}

// proposal is the message by which Raft proposes data; it is valid until the next one. Raft keeps neither the message nor
// the entry in it but a copy, data included, so that one message does for all.
func (r *Replica) proposal(data []byte) *pb.Message {
	if r.propose == nil {
		r.propose = &pb.Message{Type: pb.MsgProp.Enum(), From: new(r.config.ID), Entries: []*pb.Entry{{}}}
	}
	r.propose.Entries[0].Data = data
	return r.propose
}

// close moves the open batch to the ones that are to be proposed.
func (r *Replica) close() {
	r.lastBatchBytes = len(r.open.data)
	r.waiting = append(r.waiting, r.open)
	r.open = nil
}

// resolve finds the waiting batch that an applied entry carries. Entries of the current term are the leader's own.
func (r *Replica) resolve(e *pb.Entry) *Batch {
	if r.proposed == 0 || !r.leader || e.GetTerm() != r.term || !carries(e, r.waiting[0]) {
		return nil
	}
	b := r.waiting[0]
	n := copy(r.waiting, r.waiting[1:])
	r.waiting[n] = nil
	r.waiting = r.waiting[:n]
	r.proposed--
	r.load(-b.bytes())
	return b
}

// carries reports whether an entry of the batch's term is that of the batch.
func carries(e *pb.Entry, b *Batch) bool {
	data := e.GetData()
	return e.GetType() == pb.EntryNormal && len(data) >= command.HeaderSize && binary.LittleEndian.Uint64(data[9:17]) == b.token
}

// recycle keeps the memory of a resolved batch, but not that of its entry.
func (r *Replica) recycle(b *Batch) {
	const spareMax = 4
	if len(r.spare) >= spareMax {
		return
	}
	clear(b.origins)
	b.data, b.dataBytes, b.origins, b.replies, b.published = nil, 0, b.origins[:0], b.replies[:0], false
	b.term = 0
	r.spare = append(r.spare, b)
}

// abandon tells everybody who waits that the outcome will never be known here. It returns what they waited for.
func (r *Replica) abandon() []*Batch {
	if r.open != nil {
		r.close()
	}
	r.late = append(r.late, r.waiting...)
	r.waiting, r.proposed = nil, 0
	waiting := r.forgetLate()
	assert.True(r.waitingBytes == 0, "nothing waits in an ended replica", uint64(r.waitingBytes))
	return waiting
}

// forget tells the callers that the outcome is not known here.
func (b *Batch) forget() {
	for i := range b.origins {
		if done := b.origins[i].Done; done != nil {
			done(nil)
		}
	}
}
