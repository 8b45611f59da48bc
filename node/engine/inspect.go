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
