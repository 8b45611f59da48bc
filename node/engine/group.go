package engine

import (
	"weir/disk/msgstore"
	"weir/disk/wal"
	"weir/model/meta"
	"weir/model/stream"
	"weir/node/event"
	"weir/node/replica"
	"weir/node/route"
	"weir/spec/assert"
)

// metaGroup is the Raft group of the catalog.
const metaGroup wal.GroupID = 1

// selfID is the Raft id of the only replica of a group on a single server.
const selfID = 1

// group is one Raft group on this node: the catalog, or a stream with the index of its messages.
type group struct {
	id      wal.GroupID
	replica *replica.Replica
	// entry is the catalog's newest word about the stream, stream its machine and index the places of its messages; all
	// nil for the catalog.
	entry  *meta.Stream
	stream *stream.Machine
	index  *msgstore.Index
	// account is the stream's account; nil when it is not configured.
	account *account
	cached  int // bytes of index in memory that Engine.cached counts

	dirty    bool  // in Engine.dirty
	lazy     bool  // a timer is set for commands that nobody waits for
	touched  bool  // in Engine.touched: the index may have writes to hand out
	armed    int64 // monotone time of the timer that is set; 0: none
	ticking  bool  // a Tick is proposed and not yet applied
	lastTick int64 // monotone time at which the last Tick was proposed

	saving       bool  // a checkpoint is under way
	saveDue      bool  // in Engine.due
	active       bool  // in Engine.active
	lastActive   int64 // monotone time at which it last applied something
	saveFailed   error // why the last checkpoint failed
	readFailed   error // why a stored message could not be read
	rewriting    bool  // blocks are being copied
	rewriteDue   bool  // in Engine.copies
	moved        bool  // blocks were copied and no checkpoint knows yet
	firstUnsaved int64 // Engine.logBytes at the first entry that no checkpoint covers; 0: none

	captures  []*route.Sub // the stream's subscriptions to its subjects
	started   bool         // the group has served since the start of the process
	following uint64       // the configuration version that is proposed to the stream
	damaged   error        // why the stream is not available
}

// durable reports whether the group's messages are on the disk.
func (g *group) durable() bool { return !g.replica.Volatile() }

// markDirty notes that the group has commands to propose at the end of the step.
func (e *Engine) markDirty(g *group) {
	if !g.dirty {
		g.dirty = true
		e.dirty = append(e.dirty, g)
	}
}

// lazyNanos is how long a command that nobody waits for may stay in the open batch for the company of others.
const lazyNanos = int64(2e6)

// markLazy notes that the group has a command that nobody waits for: an acknowledgement without a reply. It goes with
// the next command that somebody waits for, or alone after lazyNanos, so that a stream of them does not keep the disk
// busy. Nothing was promised about it before it is durable.
func (e *Engine) markLazy(g *group) {
	if g.dirty || g.lazy {
		return
	}
	g.lazy = true
	e.timers.push(timer{at: e.now.Mono + lazyNanos, kind: lazyTimer, owner: uint64(g.id)})
}

// Persist implements replica.Sink: everything that one step appends shares one ticket.
func (e *Engine) Persist(w wal.Write) event.Ticket {
	if len(e.writes) == 0 {
		e.writesTicket = e.ticket()
	}
	g := e.groups[w.Group]
	for i := range w.Entries {
		e.writeBytes += len(w.Entries[i].Data)
	}
	e.writes = append(e.writes, w)
	e.writers = append(e.writers, g)
	return e.writesTicket
}

// appendOnly adds a write that no replica waits for.
func (e *Engine) appendOnly(w wal.Write) {
	if len(e.writes) == 0 {
		e.writesTicket = e.ticket()
	}
	e.writes = append(e.writes, w)
}

func (e *Engine) ticket() event.Ticket {
	e.lastTicket++
	return e.lastTicket
}

// persisting is an append under way.
type persisting struct {
	ticket  event.Ticket
	writers []*group
	writes  []wal.Write
}

// StepBytesMax is the size of a step's append from which groups wait for the next step. The log bounds an append.
const StepBytesMax = 32 << 20

// flushGroups proposes what the step gathered. It reports whether anything was proposed.
func (e *Engine) flushGroups() bool {
	proposed := false
	at := event.Time{Mono: e.now.Mono, Wall: e.wall}
	dirty := e.dirty
	e.dirty = e.dirtySpare[:0]
	for _, g := range dirty {
		g.dirty = false
		if e.groups[g.id] != g {
			continue
		}
		proposed = e.writeBytes < StepBytesMax && g.replica.Flush(at, e) || proposed
		if g.replica.Dirty() {
			e.markDirty(g)
		}
	}
	clear(dirty)
	e.dirtySpare = dirty[:0]
	return proposed
}

// flushAppends hands out the step's append and the blocks that follow it.
func (e *Engine) flushAppends(out *event.Outputs) {
	e.flushRetries(out)
	if len(e.writes) > 0 {
		done := persisting{e.writesTicket, e.writers, e.writes}
		e.writes, e.writers, e.writeBytes = nil, nil, 0
		if e.full != nil {
			e.stalled = append(e.stalled, done)
		} else {
			out.Storage = append(out.Storage, event.Op{Kind: event.Persist, Ticket: done.ticket, Writes: done.writes})
			e.appends = append(e.appends, done)
		}
	}
	for _, g := range e.touched {
		g.touched = false
		if blocks := g.index.TakeWrites(nil); len(blocks) > 0 && g.durable() {
			out.Storage = append(out.Storage, event.Op{Kind: event.Keep, Group: g.id, Blocks: blocks})
		}
		if g.index.Gone() >= GoneBlocksMax {
			e.wantSave(g)
		}
		e.boundCache(g)
	}
	clear(e.touched)
	e.touched = e.touched[:0]
	// After the blocks: what is overwritten may have been laid out in this step.
	out.Storage = append(out.Storage, e.erases...)
	e.erases = e.erases[:0]
}

// boundCache keeps the memory of message blocks on disk within the cache's budget: a group that makes it overflow gives
// up its own oldest blocks.
func (e *Engine) boundCache(g *group) {
	if !g.durable() {
		return
	}
	e.cached += g.index.MemoryBytes() - g.cached
	if over := e.cached - e.config.JetStream.CacheBytes; over > 0 {
		e.cached -= g.index.Evict(max(0, g.index.MemoryBytes()-over))
	}
	g.cached = g.index.MemoryBytes()
}

// persisted handles the end of an append: appends end in the order in which they were handed out.
func (e *Engine) persisted(c *event.Completion) {
	assert.True(len(e.appends) > 0 && e.appends[0].ticket == c.Ticket, "appends end in order", uint64(c.Ticket))
	done := e.appends[0]
	n := copy(e.appends, e.appends[1:])
	e.appends[n] = persisting{}
	e.appends = e.appends[:n]
	if c.Err != nil {
		e.appendFailed(done, c.Err)
		return
	}
	e.noteSpace()
	for _, g := range done.writers {
		if e.groups[g.id] == g {
			g.replica.Persisted(c.Ticket, e)
			if g.replica.Dirty() {
				e.markDirty(g)
			}
		}
	}
}
