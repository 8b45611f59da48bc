package world

import (
	"maps"
	"slices"

	"weir/node/replica"
)

// bearable says whether the cluster is promised to bear the loss of what is durable on a machine: without it every group
// that it may be a voter of still has a majority of voters whose disks are whole. What a replica knew of its membership
// last counts, and if replicas differ, all of it.
func (w *World) bearable(m *machine) bool {
	for _, known := range w.inspector.seen {
		for _, group := range slices.Sorted(maps.Keys(known)) {
			if !w.majorityWithout(known[group].members, m) {
				return false
			}
		}
	}
	return true
}

func (w *World) majorityWithout(members []replica.Member, m *machine) bool {
	voters, whole, concerned := 0, 0, false
	for i := range members {
		id := serverID(members[i].Server)
		at, known := w.servers[id]
		if members[i].Learner {
			continue
		}
		voters++
		switch other := w.machines[at]; {
		case known && other == m && m.serverID() == id:
			concerned = true
		case known && other.serverID() == id && !other.gone && !other.rotten:
			whole++
		}
	}
	return !concerned || whole > voters/2
}
