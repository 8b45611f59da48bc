package engine

import "weir/node/event"

// The servers that a stream is placed on do not matter to its leader's work, but leading costs more than following: after a
// server was away the others lead what it led. Leadership goes back to the servers that the catalog prefers, slowly, and
// only as far as that evens out how much each leads.

// The pace of balancing: how often it is looked at, how long a group stays where it is after a change, and from which
// difference on two servers are not even.
const (
	balanceTicks     = 64
	balanceRestNanos = int64(60e9)
	balanceGap       = 2
)

// balance hands one group over to the server that the catalog prefers, if that leads less.
func (e *Engine) balance() {
	if e.ticks%balanceTicks != 0 || e.catalog == nil {
		return
	}
	led := make(map[event.ServerID]int, len(e.peers)+1)
	for _, entry := range e.catalog.All() {
		if g := e.groups[groupID(entry.Group)]; g != nil && len(entry.Replicas) > 1 {
			led[e.leaderOf(g.id)]++
		}
	}
	for _, g := range e.order {
		if g.entry == nil || !g.leads() || len(g.entry.Replicas) < 2 || !g.entry.IsSettled() || e.now.Mono-g.ledSince < balanceRestNanos {
			continue
		}
		preferred := event.ServerID(g.entry.Replicas[0].Server)
		if preferred == e.config.Server || led[e.config.Server]-led[preferred] < balanceGap {
			continue
		}
		p, ok := g.replica.Progress(g.entry.Replicas[0].ID)
		if to := e.successor(g, g.replica.Members(), preferred); ok && to != 0 && p.Match == g.replica.LastIndex() {
			g.ledSince = e.now.Mono // if it does not work, not again at once
			g.replica.Transfer(to, e)
			return
		}
	}
}
