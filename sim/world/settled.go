package world

import (
	"fmt"

	"weir/disk/wal"
	"weir/model/meta"
	"weir/node/replica"
)

// catalogGroup is the group of the catalog.
const catalogGroup = 1

// hosted is one replica of a group.
type hosted struct {
	machine *machine
	replica *replica.Replica
}

// replicas returns every group with its replicas on servers that run, in a fixed order.
func (w *World) replicas() (groups []wal.GroupID, of map[wal.GroupID][]hosted) {
	of = map[wal.GroupID][]hosted{}
	for _, m := range w.machines {
		if m.node == nil {
			continue
		}
		m.node.Engine().EachReplica(func(group wal.GroupID, r *replica.Replica) {
			if of[group] == nil {
				groups = append(groups, group)
			}
			of[group] = append(of[group], hosted{m, r})
		})
	}
	return groups, of
}

// Unsettled says what is missing until a cluster is at rest: every group has a leader, the members that the catalog asks
// for, and on all of them that run the same state at the same index. It returns "" for a cluster at rest and for a single
// server.
func (w *World) Unsettled() string {
	if len(w.machines) == 1 {
		return ""
	}
	groups, of := w.replicas()
	if len(of[catalogGroup]) == 0 {
		return "no server has the catalog"
	}
	for _, group := range groups {
		if text := w.unsettledGroup(group, of[group]); text != "" {
			return text
		}
	}
	return w.unsettledCatalog(of)
}

func (w *World) unsettledGroup(group wal.GroupID, all []hosted) string {
	at := w.leaderOf(group)
	if w.hidden(group) {
		return ""
	}
	if at < 0 {
		text := fmt.Sprintf("group %d has no leader", group)
		for _, h := range all {
			text += fmt.Sprintf("; node %d: %s", h.machine.index, about(h.replica))
		}
		return text
	}
	var leader *replica.Replica
	for _, h := range all {
		if h.machine.index == at {
			leader = h.replica
		}
	}
	if leader == nil || !leader.Serving() {
		return fmt.Sprintf("the leader of group %d on node %d does not serve", group, at)
	}
	for _, m := range leader.Members() {
		node, known := w.servers[serverID(m.Server)]
		switch {
		case known && w.machines[node].gone && w.plan.Spares == 0:
			continue
		case !known || w.machines[node].gone:
			return fmt.Sprintf("group %d has a member that left for good", group)
		case w.machines[node].serverID() != serverID(m.Server):
			return fmt.Sprintf("group %d has a member on a disk of node %d that was wiped", group, node)
		case m.Learner:
			return fmt.Sprintf("the replica of group %d on node %d is a learner; %s; the leader knows %+v", group, node, about(leader),
				progress(leader, m.ID))
		}
		if text := same(group, leader, all, w.machines[node]); text != "" {
			return text
		}
	}
	return ""
}

// same says what a member differs in from the leader.
func same(group wal.GroupID, leader *replica.Replica, all []hosted, m *machine) string {
	for _, h := range all {
		if h.machine != m {
			continue
		}
		a, b := h.replica.Applied().Index, leader.Applied().Index
		switch {
		case h.replica.Broken() != nil:
			return fmt.Sprintf("the replica of group %d on node %d is broken: %v", group, m.index, h.replica.Broken())
		case a != b:
			return fmt.Sprintf("group %d on node %d has applied %d, its leader %d; %s, %s; the leader knows %+v", group, m.index, a, b,
				about(h.replica), about(leader), progress(leader, h.replica.ID()))
		case h.replica.Machine().Digest() != leader.Machine().Digest():
			return fmt.Sprintf("group %d on node %d differs from its leader at index %d", group, m.index, a)
		}
		return ""
	}
	return fmt.Sprintf("node %d, a member of group %d, has no replica of it", m.index, group)
}

// about describes a replica for a person.
func about(r *replica.Replica) string {
	return fmt.Sprintf("term %d, last %d, commit %d, at rest %v", r.Term(), r.LastIndex(), r.Commit(), r.Quiesced())
}

func progress(leader *replica.Replica, id uint64) replica.Progress {
	p, _ := leader.Progress(id)
	return p
}

// unsettledCatalog compares what the catalog asks for with what there is.
func (w *World) unsettledCatalog(of map[wal.GroupID][]hosted) string {
	catalog, ok := of[catalogGroup][0].replica.Machine().(*meta.Machine)
	if !ok {
		return "group 1 is not the catalog"
	}
	for _, s := range catalog.All() {
		group := wal.GroupID(s.Group)
		if len(of[group]) == 0 {
			return fmt.Sprintf("no server has group %d of stream %s", group, s.Name)
		}
		if !s.IsSettled() && w.plan.Gone == 0 {
			return fmt.Sprintf("the placement of stream %s is not settled", s.Name)
		}
	}
	return ""
}
