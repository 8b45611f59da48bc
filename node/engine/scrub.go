package engine

import (
	"weir/disk/msgstore"
	"weir/disk/wal"
	"weir/node/event"
)

// scrubNanos is the time between two blocks that are read again to see whether they are still what was written: bytes that
// nobody reads are found damaged while other replicas still have them.
const scrubNanos = int64(5e9)

// scrubbing is where the search for damage is.
type scrubbing struct {
	scrubGroup wal.GroupID      // whose blocks are next
	scrubAfter msgstore.BlockID // the block that was verified last
	scrubs     map[event.Ticket]scrubOf
	suspect    *group // it is verified without pauses, because somebody says that it is damaged
}

// scrubOf is a verification under way.
type scrubOf struct {
	group *group
	last  bool // it is of the checkpoint, behind all blocks
}

// armScrub sets the timer of the next block.
func (e *Engine) armScrub() {
	e.timers.push(timer{at: e.now.Mono + scrubNanos, kind: scrubTimer})
}

// scrub orders the next block, or the checkpoint of the next group, to be verified, and sets the timer of the one after
// that.
func (e *Engine) scrub() {
	e.scrubNext()
	e.armScrub()
}

// suspectDamage verifies a group at once, from its first block on.
func (e *Engine) suspectDamage(g *group) {
	if e.suspect != nil || g.damaged != nil || !g.durable() {
		return
	}
	e.suspect, e.scrubGroup, e.scrubAfter = g, g.id, 0
	e.scrubNext()
}

func (e *Engine) scrubNext() {
	if g := e.nextToScrub(); g != nil && len(e.scrubs) == 0 {
		if e.scrubAfter == 0 {
			g.foundBad = false
		}
		var order msgstore.Scrub
		ok := false
		if g.index != nil {
			order, ok = g.index.TakeScrub(e.scrubAfter)
		}
		if ok {
			e.scrubAfter = order.Block
		} else {
			// After its blocks the group's checkpoint, then the next group.
			e.scrubGroup, e.scrubAfter = g.id+1, 0
		}
		if g == e.meta {
			e.compareCatalog() // what is in memory may not be what it was either
		}
		ticket := e.ticket()
		e.scrubs[ticket] = scrubOf{g, !ok}
		e.transferOp = append(e.transferOp, event.Op{
			Kind: event.Scrub, Ticket: ticket, Group: g.id, Snapshot: event.Snapshot{Scrub: order},
		})
	}
}

// nextToScrub is the group with the lowest id from scrubGroup on; after the last one it begins again.
func (e *Engine) nextToScrub() *group {
	var next, first *group
	for _, g := range e.order {
		if !g.durable() || g.damaged != nil || g.installing {
			continue
		}
		if first == nil || g.id < first.id {
			first = g
		}
		if g.id >= e.scrubGroup && (next == nil || g.id < next.id) {
			next = g
		}
	}
	if next == nil {
		next, e.scrubAfter = first, 0
	}
	if next != nil && next.id != e.scrubGroup {
		e.scrubGroup, e.scrubAfter = next.id, 0
	}
	return next
}

// scrubbed takes what was found.
func (e *Engine) scrubbed(c *event.Completion) {
	s := e.scrubs[c.Ticket]
	g := s.group
	delete(e.scrubs, c.Ticket)
	if e.suspect != nil {
		if e.scrubGroup != e.suspect.id {
			e.suspect = nil
		} else {
			e.scrubNext()
		}
	}
	if g == nil {
		return
	}
	e.foundIfDamage(g, c.Err)
	g.foundBad = g.foundBad || c.Err != nil
	if s.last && !g.foundBad && g.ailing == nil {
		g.readFailed = nil // what could not be read is gone: it was deleted, or its disk reads again
	}
}
