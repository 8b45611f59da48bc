package engine

import (
	"errors"
	"fmt"

	"weir/node/api"
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
		e.replaceBehind(g, mine.ID)
	}
	clear(e.fenced[n:])
	e.fenced = e.fenced[:n]
}

// replaceBehind asks for another replica in the place of one that is stopped, once the group's leader has heard of a majority:
// what the damaged one has goes then. Where too many are damaged the group would never get the others, and what is left of its
// log may be all that there is of something acknowledged: it stays for somebody to mend.
func (e *Engine) replaceBehind(g *group, id uint64) {
	q := &api.Question{What: api.AskMajority, Group: g.entry.Group, WaitNanos: retryNanos}
	(*backend)(e).Ask(q, func(answer []byte) {
		if answer == nil && !e.config.Plant.InviteUnasked || e.groups[g.id] != g || g.damaged == nil {
			return
		}
		if mine, ok := g.entry.Member(uint64(e.config.Server)); ok && mine.ID == id {
			view := e.clusterView(0)
			c := view.Replace(g.entry, id)
			e.proposeMeta(&c)
		}
	})
}

// noteForgotten fences a replica whose log turned out to lack what it had acknowledged.
func (e *Engine) noteForgotten(g *group) {
	if err := g.replica.Broken(); g.entry != nil && g.damaged == nil && errors.Is(err, replica.ErrForgotten) {
		e.fence(g, err)
	}
}
