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
