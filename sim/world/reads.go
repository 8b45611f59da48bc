package world

import "weir/node/replica"

// asked is told that a replica was asked for a read, and returns what is to be called when the replica answers it: the
// state is at least as new then as everything that any leader of the group had committed when the read was asked, whether
// a client knows of that or not (Raft thesis, section 6.4).
func (m *machine) asked(r *replica.Replica) (answered func()) {
	w, group := m.w, r.Group()
	committed, at := w.inspector.commits[group], w.now
	return func() {
		if w.hidden(group) || r.Volatile() {
			return
		}
		if applied := r.Machine().Applied(); applied < committed {
			w.violate("stale-read", "group %d: node %d answers a read of %d.%03ds from index %d, a leader had committed %d before",
				group, m.index, at/1_000_000_000, at/1_000_000%1000, applied, committed)
		}
	}
}
