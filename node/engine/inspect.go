package engine

import (
	"weir/disk/wal"
	"weir/node/replica"
)

// EachReplica shows every replica of the server, in the order of their start. It is for the simulator, which checks what
// must hold after every step; the caller changes nothing.
func (e *Engine) EachReplica(visit func(group wal.GroupID, r *replica.Replica)) {
	for _, g := range e.order {
		visit(g.id, g.replica)
	}
}

// Asleep returns a group that nothing drives although its replica does not rest: it would wait for ever for what it needs of
// the others. It is for the simulator, too; false when all is well.
func (e *Engine) Asleep() (wal.GroupID, bool) {
	for _, g := range e.order {
		r := g.replica
		alone := r.IsLeader() && len(r.Members()) == 1
		if e.clustered() && !g.awake && !r.Quiesced() && !alone && r.Broken() == nil {
			return g.id, true
		}
	}
	return 0, false
}

// Serves reports whether the server serves a group as its leader.
func (e *Engine) Serves(group wal.GroupID) bool {
	g := e.groups[group]
	return g != nil && g.leads()
}

// Misled returns a group for which the server acts as its leader although it is not; false when all is well.
func (e *Engine) Misled() (wal.GroupID, bool) {
	for _, g := range e.order {
		if g.started && !g.replica.IsLeader() && g.replica.Broken() == nil {
			return g.id, true
		}
		if g.id != metaGroup && e.desk.Serves(uint64(g.id)) && !g.started {
			return g.id, true
		}
	}
	return 0, false
}
