package engine

import (
	"errors"
	"fmt"

	"weir/node/event"
	"weir/node/replica"
	"weir/spec/assert"
)

// A replica whose log, checkpoint or state turns out to be wrong may have forgotten what it promised to its group: it
// stops for good, and another one takes its place under a new Raft id, on the same server, and fetches everything anew. Its
// files stay until the group has that replica. A stream that has no other replica stays stopped, with its data.

// fence stops this server's replica of a group, says why, and asks for another one in its place.
func (e *Engine) fence(g *group, why error) {
	assert.True(g != e.meta, "the catalog is mended, or rejoined: nobody else gives it another replica")
	if g.damaged != nil {
		return
	}
	g.damaged = why
	e.logf(event.Error, fmt.Sprintf("The replica of %s on this server is stopped: %v", e.describe(g), why))
	if g.replica != nil {
		if g.leads() {
			e.handOver(g, g.replica.Members())
		}
		g.replica.Fail(why)
		e.lostLead(g)
	}
	if mine, ok := g.entry.On(uint64(e.config.Server)); ok {
		g.damagedID = mine.ID
	}
	e.fenced = append(e.fenced, g)
	e.replaceFenced()
}

// replaceFenced asks the catalog for new replicas in the place of those that were stopped, until it has given them.
func (e *Engine) replaceFenced() {
	if !e.clustered() {
		return
	}
	n := 0
	for _, g := range e.fenced {
		if e.groups[g.id] != g || g.damaged == nil || g.entry == nil {
			continue
		}
		e.fenced[n] = g
		n++
		mine, ok := g.entry.Member(uint64(e.config.Server))
		if !ok || len(g.entry.Replicas) < 2 || g.replacing > e.now.Mono {
			continue
		}
		g.replacing = e.now.Mono + retryNanos
		view := e.clusterView(0)
		c := view.Replace(g.entry, mine.ID)
		e.proposeMeta(&c)
	}
	clear(e.fenced[n:])
	e.fenced = e.fenced[:n]
}

// noteForgotten fences a replica whose log turned out to lack what it had acknowledged.
func (e *Engine) noteForgotten(g *group) {
	if err := g.replica.Broken(); g.entry != nil && g.damaged == nil && errors.Is(err, replica.ErrForgotten) {
		e.fence(g, err)
	}
}
