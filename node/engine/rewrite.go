package engine

import (
	"errors"
	"fmt"

	"weir/disk/vfs"
	"weir/node/event"
)

// GoneBlocksMax is how many blocks without a living message wait for the next checkpoint to remove their files.
const GoneBlocksMax = 8

// wantRewrite notes that a group, whose checkpoint has become durable, may have blocks that are worth copying. One copy
// is made after each checkpoint, and one checkpoint after each copy, so that the work comes in pieces of bounded size.
func (e *Engine) wantRewrite(g *group) {
	if g.index != nil && !g.rewriting && !g.rewriteDue {
		g.rewriteDue = true
		e.copies = append(e.copies, g)
	}
}

// flushRewrites orders the copies that are worth it, of blocks that are in their files.
func (e *Engine) flushRewrites(out *event.Outputs) {
	for i, g := range e.copies {
		e.copies[i] = nil
		g.rewriteDue = false
		if e.groups[g.id] != g || g.index == nil || g.installing {
			continue
		}
		e.keep(g, out)
		order, ok := g.index.TakeRewrite()
		if !ok {
			continue
		}
		g.rewriting = true
		out.Storage = append(out.Storage, event.Op{Kind: event.Rewrite, Ticket: e.ticket(), Group: g.id, Block: order})
	}
	e.copies = e.copies[:0]
}

// rewritten handles the end of a copy of blocks. What it replaces is removed with the next checkpoint. After a failure
// everything is where it was, and the next checkpoint tries again.
func (e *Engine) rewritten(c *event.Completion) {
	g := e.groups[c.Group]
	if g == nil || g.index == nil {
		return
	}
	g.rewriting = false
	if c.Err == nil {
		g.index.Rewritten(c.Rewritten)
		g.moved = true
		e.wantSave(g)
		return
	}
	if errors.Is(c.Err, vfs.ErrNoSpace) {
		return
	}
	if g.readFailed == nil {
		e.logf(event.Error, fmt.Sprintf("Messages of %s can not be copied: %v", e.describe(g), c.Err))
	}
	g.readFailed = c.Err
	e.foundIfDamage(g, c.Err)
}
