package engine

import (
	"fmt"

	"weir/node/event"
	"weir/transport/peerwire"
)

// digestEvery is the distance in log entries between two comparisons of the states of a group's replicas.
const digestEvery = 1 << 10

// digestAt is the digest of a state.
type digestAt struct{ index, digest uint64 }

// noteDigest takes the digest of the state where it is to be compared, and the leader tells it.
func (e *Engine) noteDigest(g *group) {
	index := g.replica.Machine().Applied()
	if index%digestEvery != 0 || !e.clustered() {
		return
	}
	g.lastDigest = digestAt{index, g.replica.Machine().Digest()}
	e.judgeDigest(g)
	if !g.leads() {
		return
	}
	for _, m := range g.replica.Members() {
		if to := event.ServerID(m.Server); to != e.config.Server {
			e.sendFrame(to, &peerwire.Frame{Kind: peerwire.Digest, Group: uint64(g.id), Offset: index, Token: g.lastDigest.digest})
		}
	}
}

// compareDigest takes the digest that the leader of a group has told.
func (e *Engine) compareDigest(f *peerwire.Frame) {
	if g := e.groups[groupID(f.Group)]; g != nil && g.replica != nil && g.id != metaGroup {
		g.toldDigest = digestAt{f.Offset, f.Token}
		e.judgeDigest(g)
	}
}

// judgeDigest stops a replica whose state is not that of the leader: one of the two is wrong, and answering from either
// would hide it.
func (e *Engine) judgeDigest(g *group) {
	if g.lastDigest.index == 0 || g.lastDigest.index != g.toldDigest.index || g.lastDigest.digest == g.toldDigest.digest {
		return
	}
	e.fence(g, fmt.Errorf("its state at entry %d differs from the leader's", g.lastDigest.index))
}
