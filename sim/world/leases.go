package world

import (
	"weir/disk/wal"
	"weir/model/stream"
	"weir/node/replica"
)

// Ended is told that a client has been told of the end of a stream: nobody may answer reads of it any more, not even by a lease.
func (w *World) Ended(name string) {
	for _, m := range w.machines {
		if m.node == nil || w.mesh == nil {
			continue
		}
		m.node.Engine().EachReplica(func(group wal.GroupID, r *replica.Replica) {
			s, ok := r.Machine().(*stream.Machine)
			if ok && s.Name() == name && !w.hidden(group) && w.deleted(group) && m.node.Engine().Serves(group) && r.Leased(m.time()) {
				w.violate("lease-outlives-stream", "node %d answers reads of group %d by a lease, a client knows that stream %s is deleted", m.index, group, name)
			}
		})
	}
}

// deleted says whether a catalog has had a stream and has it no more.
func (w *World) deleted(group wal.GroupID) bool {
	for _, m := range w.machines {
		if m.node == nil {
			continue
		}
		c := m.catalog()
		if c == nil || len(w.decisions.ids[group]) == 0 || c.ByGroup(uint64(group)) != nil {
			continue
		}
		if c.Applied() >= w.decisions.known[replicaKey{group, w.decisions.ids[group][0]}] {
			return true
		}
	}
	return false
}

// leasesEnded checks that nobody holds a lease when another server is elected: it was promised not to be.
func (w *World) leasesEnded(leader *machine, elected *replica.Replica) {
	for _, m := range w.machines {
		if m == leader || m.node == nil {
			continue
		}
		m.node.Engine().EachReplica(func(group wal.GroupID, r *replica.Replica) {
			if group == elected.Group() && r.Term() < elected.Term() && r.Leased(m.time()) {
				w.violate("lease-outlives-term", "group %d: node %d is elected in term %d, node %d has a lease of term %d",
					group, leader.index, elected.Term(), m.index, r.Term())
			}
		})
	}
}
