package replica

import (
	"encoding/binary"

	"weir/model/command"
	"weir/model/effect"
	"weir/node/event"
	"weir/spec/assert"
)

// Origin is who waits for the result of a command. At most one of the two forms is used; the zero Origin is nobody.
type Origin struct {
	// Conn is the connection that published; its reply subject is Batch.Reply of the command's ordinal.
	Conn event.ConnID
	// Done is called with the Result effect of the command, or with nil when the outcome will never be known here.
	Done func(result *effect.Effect)

	replyEnd int // end of the reply subject in the batch's arena
}

// Batch is a group of commands that travel as one entry, and the callers that wait for their results.
type Batch struct {
	data    []byte
	token   uint64
	origins []Origin
	replies []byte // reply subjects, one after the other
}

// BatchBytesMax is the size from which a batch takes no more commands; it waits for the log.
const BatchBytesMax = 1 << 20

// WaitingBytesMax bounds the bytes that are proposed or gathered and not yet applied in one group. Beyond it new
// commands are refused, so that publishers slow down before the log.
const WaitingBytesMax = 128 << 20

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

// Full reports whether the group has so much under way that commands are refused.
func (r *Replica) Full() bool {
	bytes := 0
	for _, b := range r.waiting {
		bytes += len(b.data)
	}
	if r.open != nil {
		bytes += len(r.open.data)
	}
	return bytes >= WaitingBytesMax
}

// Published is a message of a connection on its way into the log.
type Published struct {
	// Subject, Header and Payload are the message.
	Subject, Header, Payload []byte
	// Conn is the connection that published it, Reply where the acknowledgement goes; empty without one.
	Conn  event.ConnID
	Reply []byte
}

// Publish adds a message to the open batch. The slices are copied.
func (r *Replica) Publish(m *Published) {
	b := r.batch()
	b.data = command.AppendPublish(b.data, m.Subject, m.Header, m.Payload)
	b.replies = append(b.replies, m.Reply...)
	b.origins = append(b.origins, Origin{Conn: m.Conn, replyEnd: len(b.replies)})
}

// Propose adds a command to the open batch. done may be nil; see Origin.
func (r *Replica) Propose(c *command.Command, done func(result *effect.Effect)) {
	r.ProposeFor(c, 0, nil, done)
}

// ProposeFor is Propose for a command of a connection that gave a reply subject, which is copied.
func (r *Replica) ProposeFor(c *command.Command, conn event.ConnID, reply []byte, done func(result *effect.Effect)) {
	b := r.batch()
	b.data = command.Append(b.data, c)
	b.replies = append(b.replies, reply...)
	b.origins = append(b.origins, Origin{Conn: conn, Done: done, replyEnd: len(b.replies)})
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
		r.open.data = command.AppendHeader(make([]byte, 0, r.sizeHint()), 0, r.token)
	}
	return r.open
}

// sizeHint guesses the size of the next batch by the last one, so that a batch is rarely copied while it grows. The
// memory of a batch becomes the entry's and is never used again.
func (r *Replica) sizeHint() int {
	const least = 512
	if n := len(r.waiting); n > 0 {
		return max(least, len(r.waiting[n-1].data)*5/4)
	}
	return least
}

// Dirty reports whether commands wait in the open batch.
func (r *Replica) Dirty() bool { return r.open != nil }

// Flush proposes the open batch, unless so many appends are under way that the batch better grows. It stamps the batch
// with the leader's time, never earlier than the one before. It reports whether it proposed.
func (r *Replica) Flush(now event.Time, sink Sink) bool {
	if r.open == nil || len(r.inFlight) >= InFlightMax || !r.leader || r.broken != nil {
		return false
	}
	r.time = max(now.Wall, r.time+1)
	r.close()
	for _, b := range r.waiting {
		if binary.LittleEndian.Uint64(b.data[1:9]) != 0 {
			continue
		}
		command.SetTime(b.data, r.time)
		if err := r.node.Propose(b.data); err != nil {
			// A leader without transfer in progress and without a size limit takes every proposal.
			assert.Unreachable("raft refused a proposal of the leader: " + err.Error())
		}
	}
	r.Advance(sink)
	return true
}

// close moves the open batch to the ones that are to be proposed; Flush recognises them by their missing time.
func (r *Replica) close() {
	r.waiting = append(r.waiting, r.open)
	r.open = nil
}

// resolve finds the waiting batch that an applied entry carries.
func (r *Replica) resolve(entry []byte) *Batch {
	if len(entry) < command.HeaderSize || len(r.waiting) == 0 {
		return nil
	}
	b := r.waiting[0]
	if binary.LittleEndian.Uint64(entry[9:17]) != b.token {
		return nil
	}
	n := copy(r.waiting, r.waiting[1:])
	r.waiting[n] = nil
	r.waiting = r.waiting[:n]
	return b
}

// recycle keeps the memory of a resolved batch, but not that of its entry.
func (r *Replica) recycle(b *Batch) {
	const spareMax = 4
	if len(r.spare) >= spareMax {
		return
	}
	clear(b.origins)
	b.data, b.origins, b.replies = nil, b.origins[:0], b.replies[:0]
	r.spare = append(r.spare, b)
}

// abandon tells everybody who waits that the outcome is not known here: the term has ended.
func (r *Replica) abandon() {
	if r.open != nil {
		r.close()
	}
	for _, b := range r.waiting {
		for i := range b.origins {
			if done := b.origins[i].Done; done != nil {
				done(nil)
			}
		}
	}
	r.waiting = nil
	reads := r.reads
	r.reads = nil
	for _, rd := range reads {
		rd.done(false)
	}
}

// read waits until everything that was proposed before it is applied.
type read struct {
	after uint64 // token of the last batch to wait for
	done  func(ok bool)
}

// ReadsMax bounds the reads of one group that may wait.
const ReadsMax = 10_000

// Read calls done with true once this replica's state is at least as new as everything acknowledged, by anyone, and
// everything proposed here before the call; that may be at once. It calls done with false when it cannot know.
func (r *Replica) Read(done func(ok bool)) {
	if r.serving && len(r.reads) == 0 && len(r.waiting) == 0 && r.open == nil {
		done(true)
		return
	}
	if len(r.reads) >= ReadsMax {
		done(false)
		return
	}
	r.reads = append(r.reads, read{after: r.token, done: done})
}

// runReads answers the reads whose turn has come.
func (r *Replica) runReads() {
	if !r.serving || len(r.reads) == 0 {
		return
	}
	applied := r.token
	if len(r.waiting) > 0 {
		applied = r.waiting[0].token - 1
	} else if r.open != nil {
		applied = r.open.token - 1
	}
	for len(r.reads) > 0 && r.reads[0].after <= applied {
		done := r.reads[0].done
		n := copy(r.reads, r.reads[1:])
		r.reads[n] = read{}
		r.reads = r.reads[:n]
		done(true)
	}
}
