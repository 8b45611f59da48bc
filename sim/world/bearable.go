package world

import (
	"maps"
	"slices"

	"weir/disk/wal"
	"weir/node/replica"
)

// bearable says whether the cluster is promised to bear the loss of what is durable on a machine: without it every group
// that it may be a voter of still has a majority of voters whose disks are whole. What a replica knew of its membership
// last counts, and if replicas differ, all of it.
func (w *World) bearable(m *machine) bool {
	if !w.founded() {
		return false
	}
	for _, other := range w.machines {
		if other.node != nil && other.changing() {
			return false // The membership that counts is about to be another one.
		}
	}
	for _, known := range w.inspector.seen {
		for _, group := range slices.Sorted(maps.Keys(known)) {
			if !w.majorityWithout(known[group].members, m) {
				return false
			}
		}
	}
	return true
}

// founded says whether all servers that found the cluster have been voters of the catalog at one time, as its leader knows:
// before that none may be missing.
func (w *World) founded() bool {
	at := w.leaderOf(catalogGroup)
	if at < 0 {
		return false
	}
	c := w.machines[at].catalog()
	return c != nil && c.Formed()
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

// changing says whether a log of the machine has a change of the membership that is not applied.
func (m *machine) changing() bool {
	found := false
	m.node.Engine().EachReplica(func(group wal.GroupID, r *replica.Replica) {
		l := m.ledger(group)
		for index := r.Applied().Index + 1; index <= l.base+uint64(len(l.entries)); index++ {
			if e := l.at(index); e != nil && e.kind != 0 {
				found = true
			}
		}
	})
	return found
}
