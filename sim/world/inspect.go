package world

import (
	"fmt"

	"weir/disk/wal"
	"weir/node/replica"
	"weir/sim/trace"
)

// lead is who leads a group in a term.
type lead struct {
	group wal.GroupID
	term  uint64
}

// seen is what a replica was like after the step before.
type seen struct {
	gen     uint32
	id      uint64
	term    uint64
	commit  uint64
	applied uint64
	leader  bool
	members []replica.Member
}

// inspector watches every replica of every server, step by step.
type inspector struct {
	leaders map[lead]int // the machine
	newest  map[wal.GroupID]lead
	seen    []map[wal.GroupID]*seen // by machine
	due     []applied               // entries applied first in this step
	commits map[wal.GroupID]uint64  // the highest commit of a leader
}

func newInspector(machines int) inspector {
	i := inspector{leaders: map[lead]int{}, commits: map[wal.GroupID]uint64{}, newest: map[wal.GroupID]lead{}, seen: make([]map[wal.GroupID]*seen, machines)}
	for k := range i.seen {
		i.seen[k] = map[wal.GroupID]*seen{}
	}
	return i
}

// leaderOf is the machine whose replica leads a group, that with the highest term if several think so; -1: none.
func (w *World) leaderOf(group wal.GroupID) int {
	newest, ok := w.inspector.newest[group]
	if !ok {
		return -1
	}
	at := w.inspector.leaders[newest]
	s := w.inspector.seen[at][group]
	if m := w.machines[at]; m.node == nil || s == nil || s.gen != m.gen || !s.leader || s.term != newest.term {
		return -1
	}
	return at
}

// inspect checks what holds after every step of a node.
func (w *World) inspect(m *machine) {
	if len(w.machines) == 1 || m.node == nil {
		w.inspector.due = w.inspector.due[:0]
		return
	}
	m.node.Engine().EachReplica(func(group wal.GroupID, r *replica.Replica) {
		if w.hidden(group) {
			return
		}
		s := w.inspector.seen[m.index][group]
		if s == nil || s.gen != m.gen || s.id != r.ID() {
			s = &seen{gen: m.gen, id: r.ID()}
			w.inspector.seen[m.index][group] = s
		}
		w.inspectReplica(m, r, s)
	})
	w.decided(m)
	m.node.Engine().EachReplica(func(group wal.GroupID, r *replica.Replica) { w.serves(m, r) })
	w.inspector.due = w.inspector.due[:0]
	if group, asleep := m.node.Engine().Asleep(); asleep {
		w.violate("asleep", "group %d on node %d has work to do, and is not ticked", group, m.index)
	}
	if group, misled := m.node.Engine().Misled(); misled {
		w.violate("misled", "node %d still acts as the leader of group %d, or has not begun to", m.index, group)
	}
}

// inspectReplica checks one replica: terms and commits do not go back, a term has one leader, and that leader has
// everything that was committed.
func (w *World) inspectReplica(m *machine, r *replica.Replica, s *seen) {
	group, term, leads := r.Group(), r.Term(), r.IsLeader()
	now := r.Machine().Applied()
	if term < s.term || r.Commit() < s.commit || now < s.applied {
		w.violate("goes-back", "group %d on node %d: term %d, commit %d and state %d came after %d, %d and %d",
			group, m.index, term, r.Commit(), now, s.term, s.commit, s.applied)
	}
	if term != s.term || leads != s.leader {
		w.trace.Add(trace.Role, m.life(), uint64(group), fmt.Appendf(nil, "node %d group %d: leads %v in term %d", m.index, group, leads, term))
	}
	if leads && (!s.leader || s.term != term) {
		w.elected(m, r)
	}
	if leads {
		w.oneChange(m, r)
	}
	switch {
	case leads && r.Commit() > s.commit:
		w.countCopies(m, r, s.members)
		w.ownTerm(m, r, s)
	case s.leader:
		// It committed, and left its office in the same step.
		w.inspector.commits[group] = max(w.inspector.commits[group], r.Commit())
	}
	for _, at := range w.inspector.due {
		if at.group == group && at.index > w.inspector.commits[group] {
			w.violate("applied-before-commit", "group %d: node %d applies entry %d, no leader has committed more than %d",
				group, m.index, at.index, w.inspector.commits[group])
		}
	}
	s.term, s.commit, s.applied, s.leader, s.members = term, r.Commit(), now, leads, r.Members()
}

// elected checks a new leader.
func (w *World) elected(m *machine, r *replica.Replica) {
	group := r.Group()
	key := lead{group, r.Term()}
	if other, known := w.inspector.leaders[key]; known && other != m.index && !r.Volatile() {
		w.violate("two-leaders", "group %d has the leaders node %d and node %d in term %d", group, other, m.index, key.term)
	}
	w.inspector.leaders[key] = m.index
	if key.term >= w.inspector.newest[group].term {
		w.inspector.newest[group] = key
	}
	w.leasesEnded(m, r)
	newest := w.ledgers.newest[group]
	committed, known := w.ledgers.committed[applied{group, newest}]
	l := m.ledger(group)
	e := l.at(newest)
	if !known || key.term <= committed.in || committed.by == m.index || newest <= l.base || r.Applied().Index >= newest {
		return
	}
	if (e == nil || e.term != committed.term) && !r.Holds(newest, committed.term) {
		w.violate("leader-incomplete", "group %d: node %d leads in term %d without the entry %d, which node %d has applied",
			group, m.index, key.term, newest, committed.by)
	}
}

// oneChange checks that a leader does not begin a change of the membership before it has applied the one before.
func (w *World) oneChange(m *machine, r *replica.Replica) {
	l, changes := m.ledger(r.Group()), 0
	for index := r.Applied().Index + 1; index <= l.base+uint64(len(l.entries)); index++ {
		if e := l.at(index); e != nil && e.kind != 0 && e.term == r.Term() {
			changes++
		}
	}
	if changes > 1 {
		w.violate("two-changes", "group %d: the leader on node %d has begun %d changes of the membership that it has not applied",
			r.Group(), m.index, changes)
	}
}

// countCopies checks that a majority of the voters has an entry on disk when the leader commits it. The step may have
// changed the membership: one of the two, before and after, has to have the majority. A change counts for the leader from
// when it has applied it.
func (w *World) countCopies(m *machine, r *replica.Replica, before []replica.Member) {
	at := applied{r.Group(), r.Commit()}
	w.inspector.commits[at.group] = max(w.inspector.commits[at.group], at.index)
	e := m.ledger(at.group).at(at.index)
	if e == nil {
		return
	}
	copies, voters := w.copies(at, e.term, r.Members())
	if copies > voters/2 {
		return
	}
	if copies, voters := w.copies(at, e.term, before); copies > voters/2 {
		return
	}
	w.violate("committed-before-durable", "group %d: node %d commits entry %d of term %d with %d copies on disk, the voters are %d:%s",
		at.group, m.index, at.index, e.term, copies, voters, w.accounts(at, r.Members()))
}

// ownTerm checks that a leader commits by counting copies only what is of its own term, and with it what came before
// (Raft, section 5.4.2).
func (w *World) ownTerm(m *machine, r *replica.Replica, s *seen) {
	e := m.ledger(r.Group()).at(r.Commit())
	if e != nil && s.leader && s.term == r.Term() && e.term != r.Term() {
		w.violate("committed-of-earlier-term", "group %d: node %d commits entry %d of term %d by counting, as the leader of term %d",
			r.Group(), m.index, r.Commit(), e.term, r.Term())
	}
}

// accounts describes what is known of the copies of an entry.
func (w *World) accounts(at applied, members []replica.Member) string {
	text := ""
	for i := range members {
		id := serverID(members[i].Server)
		node := w.servers[id]
		l := w.ledgers.logs[ledgerKey{node, w.disks[id], at.group}]
		text += fmt.Sprintf(" [node %d, learner %v", node, members[i].Learner)
		if l != nil {
			text += fmt.Sprintf(", base %d, %d entries", l.base, len(l.entries))
			if e := l.at(at.index); e != nil {
				text += fmt.Sprintf(", there with term %d, synced %v", e.term, e.synced)
			}
		}
		text += "]"
	}
	return text
}

// copies counts the voters, and those of them that have an entry on disk. A disk that was emptied counts: what it had told
// others may arrive after its end.
func (w *World) copies(at applied, term uint64, members []replica.Member) (copies, voters int) {
	for i := range members {
		if members[i].Learner {
			continue
		}
		voters++
		id := serverID(members[i].Server)
		key := ledgerKey{w.servers[id], w.disks[id], at.group}
		l, gone := w.ledgers.logs[key], w.ledgers.dropped[key]
		if l != nil && l.holds(at.index, term) || gone != nil && gone.holds(at.index, term) {
			copies++
		}
	}
	return copies, voters
}
