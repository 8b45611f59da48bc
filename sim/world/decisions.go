package world

import (
	"encoding/json"
	"slices"

	"weir/disk/wal"
	"weir/model/command"
	"weir/model/meta"
	"weir/node/replica"
)

// The catalog decides what streams there are and which servers have them. What a server does about that has to wait until it
// is decided, and until the server knows it: the world keeps account of all that any catalog has said.

// replicaKey names a replica of a stream.
type replicaKey struct {
	group wal.GroupID
	id    uint64
}

// decisions is what catalogs have said so far.
type decisions struct {
	looked  []uint64                   // by machine, the index up to which its catalog was looked at
	atStart []uint64                   // by machine, what was committed to the catalog when its process began
	known   map[replicaKey]uint64      // replicas that a catalog has, and an index at which it has them
	settled map[wal.GroupID]uint64     // the newest placement that is settled
	left    map[replicaKey]bool        // replicas that are told to leave for good
	dropped [][]replicaKey             // by machine, what it gives up in this step
	ids     map[wal.GroupID][]uint64   // of all replicas that a stream ever had
	changes map[wal.GroupID][]changeAt // of the membership, as they were proposed
	begun   [][]replicaKey             // by machine, logs that it begins again in this step
	ending  map[ledgerKey]ending       // logs that end
	running []map[wal.GroupID]uint64   // by machine, the replicas that its catalog had when it was looked at last
	ended   map[endedKey]bool          // replicas whose logs have ended for good
}

// ending is the end of a log that is on its way to the disk: of a replica that the catalog still had at an index, 0: nobody knows.
type ending struct{ id, had uint64 }

// endedKey names a replica on a disk.
type endedKey struct {
	ledgerKey
	id uint64
}

// changeAt is a change of the membership on its way into a log.
type changeAt struct{ index, term uint64 }

func newDecisions(machines int) decisions {
	return decisions{
		looked: make([]uint64, machines), atStart: make([]uint64, machines), known: map[replicaKey]uint64{},
		settled: map[wal.GroupID]uint64{}, left: map[replicaKey]bool{}, dropped: make([][]replicaKey, machines),
		ids: map[wal.GroupID][]uint64{}, changes: map[wal.GroupID][]changeAt{},
		begun: make([][]replicaKey, machines), ending: map[ledgerKey]ending{}, running: make([]map[wal.GroupID]uint64, machines), ended: map[endedKey]bool{},
	}
}

// startsAgain notes that the process of a machine begins, when so much was committed to the catalog.
func (d *decisions) startsAgain(machine int, committed uint64) {
	d.looked[machine], d.atStart[machine] = 0, committed
	d.begun[machine], d.dropped[machine], d.running[machine] = nil, nil, nil
}

// catalog is the catalog that a server knows, nil while it knows none.
func (m *machine) catalog() *meta.Machine {
	var found *meta.Machine
	m.node.Engine().EachReplica(func(group wal.GroupID, r *replica.Replica) {
		if c, ok := r.Machine().(*meta.Machine); ok && group == catalogGroup {
			found = c
		}
	})
	return found
}

// decided looks at what is new in the catalog of a server, and at what the server has done about it.
func (w *World) decided(m *machine) {
	d, c := &w.decisions, m.catalog()
	for _, gone := range d.dropped[m.index] {
		w.justified(m, c, gone)
	}
	d.dropped[m.index] = d.dropped[m.index][:0]
	for _, again := range d.begun[m.index] {
		// One that a catalog begins and ends in one go, as it is replayed, promises nothing.
		w.violate("begun-again", "node %d begins replica %d of group %d, whose log it has ended", m.index, again.id, again.group)
	}
	if c == nil || c.Applied() == d.looked[m.index] {
		return
	}
	w.founder(m, m.hello())
	d.looked[m.index], d.running[m.index] = c.Applied(), map[wal.GroupID]uint64{}
	for _, s := range c.All() {
		group := wal.GroupID(s.Group)
		if w.hidden(group) {
			continue
		}
		for _, r := range slices.Concat(s.Replicas, s.Former) {
			key := replicaKey{group, r.ID}
			if serverID(r.Server) == m.serverID() {
				d.running[m.index][group] = r.ID
			}
			if _, known := d.known[key]; !known {
				d.known[key] = c.Applied()
				d.ids[group] = append(d.ids[group], r.ID)
			}
		}
		if s.Settled > d.settled[group] {
			d.settled[group] = s.Settled
			w.tellLeft(s)
		}
	}
}

// tellLeft notes which replicas of a stream have been told to leave for good.
func (w *World) tellLeft(s *meta.Stream) {
	group := wal.GroupID(s.Group)
	for _, id := range w.decisions.ids[group] {
		here := slices.ContainsFunc(slices.Concat(s.Replicas, s.Former), func(r meta.Replica) bool { return r.ID == id })
		w.decisions.left[replicaKey{group, id}] = w.decisions.left[replicaKey{group, id}] || !here
	}
}

// proposed looks at a command for the catalog that a server sends or, if it leads the catalog, has on its way into the log.
func (m *machine) proposed(c *command.Command) {
	if c.Kind != command.Settle || m.node == nil || m.w.hidden(wal.GroupID(c.Version)) {
		return
	}
	if catalog := m.catalog(); catalog != nil {
		if s := catalog.ByGroup(c.Version); s != nil && s.Placement == c.Keep {
			m.w.settles(m, s)
		}
	}
}

// settles checks that a server reports a placement as reached only when it is: the voters of the group are the replicas that are
// wanted, and a majority of them knows that even if all restart. Those that are not wanted end their logs then: who does not
// know that they have left would wait for their votes for ever.
func (w *World) settles(m *machine, s *meta.Stream) {
	group := wal.GroupID(s.Group)
	if !w.hasMembers(group, s.Replicas) {
		w.violate("settled-early", "group %d: node %d reports placement %d, no replica has the members %v", group, m.index, s.Placement, s.Replicas)
		return
	}
	last, aware := w.lastChange(group), 0
	for _, r := range s.Replicas {
		id := serverID(r.Server)
		l := w.ledgers.logs[ledgerKey{w.servers[id], w.disks[id], group}]
		if l != nil && max(l.base, l.hard.Commit) >= last {
			aware++
		}
	}
	if aware <= len(s.Replicas)/2 {
		w.violate("settled-early", "group %d: node %d reports placement %d, %d of %d replicas would know after a restart that entry %d made them the members",
			group, m.index, s.Placement, aware, len(s.Replicas), last)
	}
}

// hasMembers says whether some replica of a group has the wanted ones as members, all of them voters.
func (w *World) hasMembers(group wal.GroupID, wanted []meta.Replica) bool {
	for _, known := range w.inspector.seen {
		s := known[group]
		if s == nil || len(s.members) != len(wanted) {
			continue
		}
		same := !slices.ContainsFunc(s.members, func(m replica.Member) bool {
			return m.Learner || !slices.ContainsFunc(wanted, func(r meta.Replica) bool { return r.ID == m.ID })
		})
		if same {
			return true
		}
	}
	return false
}

// lastChange is the index of the newest change of a group's membership that is applied somewhere.
func (w *World) lastChange(group wal.GroupID) uint64 {
	last := uint64(0)
	for _, c := range w.decisions.changes[group] {
		if e, ok := w.ledgers.committed[applied{group, c.index}]; ok && e.term == c.term {
			last = max(last, c.index)
		}
	}
	return last
}

// justified checks that a server gives up a replica of a stream only because a catalog says so that knows of the replica.
func (w *World) justified(m *machine, c *meta.Machine, gone replicaKey) {
	since, known := w.decisions.known[gone]
	switch {
	case c == nil:
		w.violate("dropped-unasked", "node %d ends the log of group %d and knows no catalog", m.index, gone.group)
	case known && c.Applied() < since:
		w.violate("dropped-unasked", "node %d ends the log of replica %d of group %d by the catalog of index %d, which has it at index %d",
			m.index, gone.id, gone.group, c.Applied(), since)
	case known:
		s := c.ByGroup(uint64(gone.group))
		if s == nil {
			return
		}
		if r, here := s.On(uint64(m.serverID())); here && r.ID == gone.id {
			w.violate("dropped-unasked", "node %d ends the log of replica %d of group %d, which the catalog wants", m.index, gone.id, gone.group)
		}
	}
}

// gaveUp notes that a server ends a log.
func (m *machine) gaveUp(group wal.GroupID, l *ledger) {
	if group < firstStream || m.w.mesh == nil {
		return
	}
	d := &m.w.decisions
	d.begun[m.index] = slices.DeleteFunc(d.begun[m.index], func(key replicaKey) bool { return key.group == group })
	if l == nil || l.meta == "" || m.forgot { // the account is of what the disk had before it forgot
		return
	}
	gone := replicaKey{group, replicaOf([]byte(l.meta))}
	d.dropped[m.index] = append(d.dropped[m.index], gone)
	end := ending{id: gone.id}
	if d.running[m.index][group] == gone.id {
		end.had = d.looked[m.index]
	}
	d.ending[ledgerKey{m.index, m.wipes, group}] = end
}

// ended checks that with the end of a log it is durable that the catalog said so: after a restart the catalog is replayed up to
// what is known to be committed, and a server that has forgotten the end begins anew, without its votes.
func (m *machine) ended(group wal.GroupID) {
	key := ledgerKey{m.index, m.wipes, group}
	end, ok := m.w.decisions.ending[key]
	if !ok {
		return
	}
	m.w.decisions.ended[endedKey{key, end.id}] = true
	if c := m.ledger(catalogGroup); max(c.hard.Commit, c.base) <= end.had {
		m.w.violate("end-forgotten", "node %d ends the log of replica %d of group %d, and would know the catalog up to entry %d after a restart, which has it at entry %d",
			m.index, end.id, group, max(c.hard.Commit, c.base), end.had)
	}
}

// begun notes that a server begins a log.
func (m *machine) begun(group wal.GroupID, data []byte) {
	key, id := ledgerKey{m.index, m.wipes, group}, replicaOf(data)
	if d := &m.w.decisions; id != 0 && d.ended[endedKey{key, id}] {
		d.begun[m.index] = append(d.begun[m.index], replicaKey{group, id})
	}
}

// replicaOf is the replica that a log is of, by what the log says; 0 when it says nothing.
func replicaOf(data []byte) uint64 {
	var birth struct {
		Replica uint64 `json:"replica"`
	}
	if json.Unmarshal(data, &birth) != nil {
		return 0
	}
	return birth.Replica
}

// entered looks at an entry that is on its way into a log.
func (m *machine) entered(group wal.GroupID, e *wal.Entry) {
	if e.Type != 0 {
		m.changed(group, e)
		return
	}
	if group != catalogGroup || len(e.Data) == 0 || m.node == nil || m.w.leaderOf(group) != m.index {
		return
	}
	batch, err := command.Read(e.Data)
	if err != nil {
		m.w.violate("malformed-entry", "entry %d of the catalog on node %d: %v", e.Index, m.index, err)
		return
	}
	var c command.Command
	for batch.Next(&c) {
		m.proposed(&c)
	}
}

// changed checks a change of the membership that is on its way into the log of a server which leads the group: nobody comes
// back who was told to leave, and nobody gets a vote who has not the change before in its log, as it would tell candidates by
// what it knows that they can do without it.
func (m *machine) changed(group wal.GroupID, e *wal.Entry) {
	d := &m.w.decisions
	at := changeAt{e.Index, e.Term}
	if slices.Contains(d.changes[group], at) {
		return // it was proposed elsewhere
	}
	before := changeAt{}
	for _, c := range d.changes[group] {
		if own := m.ledger(group).at(c.index); c.index < e.Index && c.index > before.index && own != nil && own.term == c.term {
			before = c
		}
	}
	d.changes[group] = append(d.changes[group], at)
	c, err := replica.ParseChange(e.Data)
	if err != nil {
		m.w.violate("malformed-change", "group %d: entry %d on node %d: %v", group, e.Index, m.index, err)
		return
	}
	if c.Kind == replica.Remove {
		return
	}
	if d.left[replicaKey{group, c.Member.ID}] {
		m.w.violate("brought-back", "group %d: node %d makes replica %d a member, which has been told to leave", group, m.index, c.Member.ID)
	}
	id := serverID(c.Member.Server)
	l := m.w.ledgers.logs[ledgerKey{m.w.servers[id], m.w.disks[id], group}]
	if c.Kind == replica.Promote && before.index > 0 && l != nil && !l.holds(before.index, before.term) {
		m.w.violate("promoted-unaware", "group %d: node %d gives replica %d a vote, which has not entry %d in its log", group, m.index, c.Member.ID, before.index)
	}
}

// serves checks that a server serves a stream only once it knows what the catalog had said when its process began: the stream
// may have been deleted while it was away, and another one of the name may be there.
func (w *World) serves(m *machine, r *replica.Replica) {
	if r.Group() < firstStream || !r.Serving() || !m.node.Engine().Serves(r.Group()) {
		return
	}
	if at := w.decisions.looked[m.index]; at < w.decisions.atStart[m.index] {
		w.violate("serves-by-old-catalog", "node %d serves group %d and knows the catalog up to entry %d, %d was committed when it started",
			m.index, r.Group(), at, w.decisions.atStart[m.index])
	}
}
