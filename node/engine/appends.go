package engine

import (
	"maps"

	"weir/disk/wal"
	"weir/node/event"
	"weir/node/replica"
	"weir/spec/assert"
)

// appending is what the engine knows about the log: what the step gathers, what is under way, and what failed.
type appending struct {
	dirty      []*group // those with commands to propose
	dirtySpare []*group // the memory of the last dirty
	touched    []*group // those whose index may have blocks to write
	load       replica.Load

	writes       []wal.Write // of the step
	writeBytes   int         // of writes
	writers      []*group    // whose replicas wait for writes
	writesTicket event.Ticket
	lastTicket   event.Ticket                 // of any storage operation
	unwritten    int                          // bytes of messages that no Keep has handed out
	drops        []event.Op                   // files of groups that have ended
	ending       map[wal.GroupID]event.Ticket // groups whose end is on its way to the log
	erases       []event.Op                   // messages to be overwritten

	appends []persisting // under way, oldest first
	stalled []persisting // those that wait for space on the disk, oldest first
	// stalledBytes is the size of the appends that found no space and have not gone well since.
	stalledBytes int
	retries      []persisting // those of them that are tried again in this step
	failure      error        // why the log can not be written any more
	full         error        // why the log can not be written at the moment
	fullNanos    int64        // how long to wait before the next attempt to append to a full disk; 0: there is space
	short        bool         // the log lives on its reserve
	probing      bool         // a timer is set for looking whether it still does
	probe        bool         // this step is to look
}

// persisting is an append under way.
type persisting struct {
	ticket  event.Ticket
	writers []*group
	writes  []wal.Write
	bytes   int
	stalled bool // Engine.stalledBytes counts it
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

// StepBytesMax is the size of a step's append from which groups wait for the next step. The log bounds an append.
const StepBytesMax = 32 << 20

// flushGroups proposes what the step gathered. It reports whether anything was proposed.
func (e *Engine) flushGroups() bool {
	proposed := false
	at := event.Time{Mono: e.now.Mono, Wall: e.wall}
	if e.config.Plant.Replica.LeaseJump {
		at.Wall = e.now.Wall
	}
	dirty := e.dirty
	e.dirty = e.dirtySpare[:0]
	for _, g := range dirty {
		g.dirty = false
		if e.groups[g.id] != g || g.replica == nil {
			continue
		}
		proposed = e.writeBytes < StepBytesMax && g.replica.Flush(at, e) || proposed
		if g.replica.Dirty() {
			e.markDirty(g)
			e.awaitGathered(g)
		}
	}
	if proposed {
		e.busyUntil = e.now.Mono + busyNanos
	}
	clear(dirty)
	e.dirtySpare = dirty[:0]
	return proposed
}

// awaitGathered sets a timer for messages that wait for company: nothing else may happen until their time is over.
func (e *Engine) awaitGathered(g *group) {
	if at := g.replica.GatherUntil(); at != 0 && (g.gatherAt == 0 || at < g.gatherAt) {
		g.gatherAt = at
		e.timers.push(timer{at: at, kind: gatherTimer, owner: uint64(g.id)})
	}
}

// gathered has a group proposed whose messages have waited long enough.
func (e *Engine) gathered(g *group, at int64) {
	if g.gatherAt == at {
		g.gatherAt = 0
	}
	if g.replica != nil && g.replica.Dirty() {
		e.markDirty(g)
	}
}

// flushAppends hands out the step's append and the blocks that follow it.
func (e *Engine) flushAppends(out *event.Outputs) {
	e.flushRetries(out)
	if len(e.writes) > 0 {
		done := persisting{ticket: e.writesTicket, writers: e.writers, writes: e.writes, bytes: e.writeBytes}
		e.writes, e.writers, e.writeBytes = nil, nil, 0
		if e.full != nil {
			e.awaitSpace(done)
		} else {
			out.Storage = append(out.Storage, event.Op{Kind: event.Persist, Ticket: done.ticket, Writes: done.writes})
			e.appends = append(e.appends, done)
		}
	}
	if e.probe && e.full == nil {
		out.Storage = append(out.Storage, event.Op{Kind: event.Probe, Ticket: e.ticket()})
	}
	e.probe = false
	for _, g := range e.touched {
		g.touched = false
		if e.groups[g.id] != g || g.index == nil || g.installing {
			continue
		}
		e.noteUnwritten(g)
		if g.unwritten >= KeepBytesMin || e.unwritten > UnwrittenBytesMax || g.keepDue {
			e.keep(g, out)
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

// The bounds of message bytes that are in memory and in the log only. A group's blocks are written once that is worth a
// call, before its checkpoint, or when all groups together have much to write.
const (
	KeepBytesMin      = 64 << 10
	UnwrittenBytesMax = 64 << 20
)

// keep hands out what a group's blocks have to be written.
func (e *Engine) keep(g *group, out *event.Outputs) {
	g.keepDue = false
	if g.index == nil || !g.durable() {
		return
	}
	if blocks := g.index.TakeWrites(nil); len(blocks) > 0 {
		out.Storage = append(out.Storage, event.Op{Kind: event.Keep, Group: g.id, Blocks: blocks})
	}
	e.noteUnwritten(g)
}

// noteUnwritten keeps account of what a group has to write.
func (e *Engine) noteUnwritten(g *group) {
	e.unwritten -= g.unwritten
	g.unwritten = g.index.Unwritten()
	e.unwritten += g.unwritten
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
	if done.stalled {
		e.stalledBytes -= done.bytes
	}
	e.noteSpace()
	e.noteShort(c.Short)
	maps.DeleteFunc(e.ending, func(_ wal.GroupID, ticket event.Ticket) bool { return ticket <= c.Ticket })
	for _, g := range done.writers {
		if e.groups[g.id] == g && g.replica != nil {
			g.replica.Persisted(c.Ticket, e)
			if g.replica.Dirty() {
				e.markDirty(g)
			}
		}
	}
}
