package engine

import "weir/model/command"

// recheckNanos bounds how far ahead the timer of a group is set: its deadline is a wall-clock time, and the wall clock
// may jump while the timer waits.
const recheckNanos = int64(10e9)

// tickNanosMin is the least time between two Ticks of a group: deadlines that lie close together, as those of messages
// that expire one after the other, share a Tick.
const tickNanosMin = int64(20e6)

// retryNanos is how long to wait before something that can not be decided now is tried again.
const retryNanos = int64(1e9)

// armGroup sets the timer for the deadline of the group's machine, when it has to fire earlier than the one that is
// set.
func (e *Engine) armGroup(g *group) {
	deadline := g.replica.Machine().Deadline()
	if deadline == 0 || g.ticking {
		return
	}
	at := e.now.Mono + min(max(deadline-e.wall, 0), recheckNanos)
	at = max(at, g.lastTick+tickNanosMin)
	if g.armed != 0 && g.armed <= at {
		return
	}
	g.armed = at
	e.timers.push(timer{at: at, kind: groupTimer, owner: uint64(g.id)})
}

// tickGroup proposes a Tick when the machine's deadline has passed. The machine looks at its deadlines again when the
// Tick is applied, with the time that it carries.
func (e *Engine) tickGroup(g *group, at int64) {
	if g.armed != at {
		return // an earlier timer has been set since
	}
	g.armed = 0
	if g.replica == nil || !g.replica.Serving() || e.refusesProposals(g) != nil {
		// Without leadership or log nothing can be decided now; look again later.
		g.armed = e.now.Mono + retryNanos
		e.timers.push(timer{at: g.armed, kind: groupTimer, owner: uint64(g.id)})
		return
	}
	deadline := g.replica.Machine().Deadline()
	if deadline == 0 || deadline > e.wall {
		e.armGroup(g)
		return
	}
	g.ticking, g.lastTick = true, e.now.Mono
	g.replica.Propose(&command.Command{Kind: command.Tick}, nil)
	e.markDirty(g)
}
