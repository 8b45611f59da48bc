package world

import (
	"fmt"
	"hash/crc32"

	"weir/disk/wal"
	"weir/node/event"
	"weir/node/replica"
)

// Violation is a broken invariant of the servers, seen from inside.
type Violation struct {
	// Class names the invariant, Detail the numbers.
	Class, Detail string
}

// Violated is the first invariant that was broken, nil when none was.
func (w *World) Violated() *Violation { return w.violation }

func (w *World) violate(class, format string, args ...any) {
	if w.violation == nil {
		w.violation = &Violation{class, fmt.Sprintf(format, args...)}
	}
}

// ledgerKey names the log of one group on one disk.
type ledgerKey struct {
	machine int
	wipes   uint64
	group   wal.GroupID
}

// ledger is what one disk was told to hold of one group's log. It is the simulator's own account, made from the
// operations on their way to the disk.
type ledger struct {
	base    uint64 // entries up to here are covered by a checkpoint that was installed
	entries []ledgerEntry
	hard    wal.HardState // the newest one that is durable
	meta    string        // which replica it is of
}

// ledgerEntry is one entry. What a crash took is still here until something takes its place.
type ledgerEntry struct {
	term   uint64
	sum    uint64
	kind   uint8
	synced bool
}

// at returns the entry with an index.
func (l *ledger) at(index uint64) *ledgerEntry {
	if index <= l.base || index > l.base+uint64(len(l.entries)) {
		return nil
	}
	return &l.entries[index-l.base-1]
}

// holds says whether the disk surely has the entry, or a checkpoint that covers it.
func (l *ledger) holds(index, term uint64) bool {
	if index <= l.base {
		return true
	}
	e := l.at(index)
	return e != nil && e.synced && e.term == term
}

// entryKey names an entry of a group: there must be only one with each index and term.
type entryKey struct {
	group       wal.GroupID
	index, term uint64
}

// entryFacts are what is the same for an entry wherever it is.
type entryFacts struct {
	sum, before uint64
}

// committedEntry is what was applied at an index of a group.
type committedEntry struct {
	term, sum uint64
	by        int    // a machine that applied it
	in        uint64 // the newest term that had a leader then: it was committed in that one or before
}

// ledgers is the simulator's account of all logs.
type ledgers struct {
	logs      map[ledgerKey]*ledger
	dropped   map[ledgerKey]*ledger // of replicas that are gone: what they told others may arrive after their end
	entries   map[entryKey]entryFacts
	committed map[applied]committedEntry
	newest    map[wal.GroupID]uint64 // the highest index applied anywhere
}

func newLedgers() ledgers {
	return ledgers{
		logs: map[ledgerKey]*ledger{}, dropped: map[ledgerKey]*ledger{}, entries: map[entryKey]entryFacts{},
		committed: map[applied]committedEntry{}, newest: map[wal.GroupID]uint64{},
	}
}

func (m *machine) ledger(group wal.GroupID) *ledger {
	key := ledgerKey{m.index, m.wipes, group}
	l := m.w.ledgers.logs[key]
	if l == nil {
		l = &ledger{}
		m.w.ledgers.logs[key] = l
	}
	return l
}

func sumOf(e *wal.Entry) uint64 {
	return uint64(crc32.ChecksumIEEE(e.Data))<<32 | uint64(len(e.Data))<<8 | uint64(e.Type)
}

// submitted accounts for what is on its way to the log.
func (m *machine) submitted(op *event.Op) {
	for i := range op.Writes {
		write := &op.Writes[i]
		if m.w.hidden(write.Group) {
			m.foreign(write)
			continue
		}
		if write.Drop {
			// The replica is gone; another one of the group may come later, with another id.
			key := ledgerKey{m.index, m.wipes, write.Group}
			if l := m.w.ledgers.logs[key]; l != nil {
				m.w.ledgers.dropped[key] = l
			}
			m.gaveUp(write.Group, m.w.ledgers.logs[key])
			delete(m.w.ledgers.logs, key)
			continue
		}
		if write.Meta != nil && write.Group >= firstStream {
			m.begun(write.Group, write.Meta)
		}
		l := m.ledger(write.Group)
		if write.Reset {
			l.base, l.entries = write.Compact, nil
		}
		if len(write.Entries) == 0 {
			continue
		}
		first := write.Entries[0].Index
		if first <= l.base {
			continue // An append behind a checkpoint that has been installed meanwhile.
		}
		if end := l.base + uint64(len(l.entries)); first > end+1 {
			// The log begins behind what the ledger knows: the disk was recovered with a checkpoint that covers more.
			l.base, l.entries = first-1, nil
		}
		old := l.entries[first-l.base-1:]
		l.entries = append([]ledgerEntry(nil), l.entries[:first-l.base-1]...)
		for k := range write.Entries {
			e := &write.Entries[k]
			before := uint64(0)
			if old := l.at(e.Index - 1); old != nil {
				before = old.term
			}
			m.agree(entryKey{write.Group, e.Index, e.Term}, entryFacts{sumOf(e), before})
			m.entered(write.Group, e)
			next := ledgerEntry{term: e.Term, sum: sumOf(e), kind: e.Type}
			if k < len(old) && old[k].term == next.term && old[k].sum == next.sum {
				next.synced = old[k].synced // It is moved to the end of the log; until that is durable the old place counts.
			}
			l.entries = append(l.entries, next)
		}
	}
}

// recovered replaces the account of a machine's log by what its log holds after a start: of what was under way when the
// process ended, some is there and some is not.
func (m *machine) recovered() {
	if m.w.mesh == nil {
		return
	}
	found, err := wal.Scan(m.disk, Dir+"/wal", nil)
	if err != nil {
		return // The disk fails at the moment; the account stays as it was.
	}
	m.forget(&found)
	for i := range found.Groups {
		g := &found.Groups[i]
		if m.w.hidden(g.ID) {
			continue
		}
		l := m.ledger(g.ID)
		if m.forgot {
			l.base, l.hard = 0, wal.HardState{}
		}
		if l.hard.Term > g.HardState.Term || l.hard.Term == g.HardState.Term && l.hard.Vote != 0 && l.hard.Vote != g.HardState.Vote {
			m.w.violate("vote-lost", "group %d on node %d: term %d with a vote for %d was durable, after a start it is term %d with a vote for %d",
				g.ID, m.index, l.hard.Term, l.hard.Vote, g.HardState.Term, g.HardState.Vote)
		}
		l.hard, l.meta = g.HardState, string(g.Meta)
		l.base, l.entries = max(g.Compact, l.base), l.entries[:0]
		for k := range g.Entries {
			if e := &g.Entries[k]; e.Index > l.base {
				l.entries = append(l.entries, ledgerEntry{term: e.Term, sum: sumOf(e), kind: e.Type, synced: true})
			}
		}
	}
	m.node.Engine().EachReplica(func(group wal.GroupID, r *replica.Replica) {
		l := m.ledger(group)
		for index := r.Applied().Index; l.base < index; l.base++ { // what a checkpoint covers
			l.entries = l.entries[min(1, len(l.entries)):]
		}
	})
	m.forgot = false
}

// agree checks the log matching property: entries with one index and term are the same everywhere, and so are those
// before them.
func (m *machine) agree(key entryKey, facts entryFacts) {
	all := m.w.ledgers.entries
	known, ok := all[key]
	switch {
	case !ok:
		all[key] = facts
	case known.sum != facts.sum:
		m.w.violate("log-matching", "group %d: entry %d of term %d on node %d is not what it is elsewhere", key.group, key.index, key.term, m.index)
	case known.before == 0:
		all[key] = facts
	case facts.before != 0 && known.before != facts.before:
		m.w.violate("log-matching", "group %d: entry %d of term %d on node %d follows term %d, elsewhere term %d",
			key.group, key.index, key.term, m.index, facts.before, known.before)
	}
}

// synced accounts for what the log has made durable.
func (m *machine) synced(op *event.Op) {
	for i := range op.Writes {
		write := &op.Writes[i]
		if m.w.hidden(write.Group) {
			continue
		}
		l := m.ledger(write.Group)
		if write.Drop {
			l.hard = wal.HardState{} // what was under way for the replica that is gone has ended before
			m.ended(write.Group)
			continue
		}
		for k := range write.Entries {
			if e := l.at(write.Entries[k].Index); e != nil && e.term == write.Entries[k].Term {
				e.synced = true
			}
		}
		if !write.HasHardState {
			continue
		}
		if write.Meta != nil {
			if write.Reset && l.meta != string(write.Meta) {
				l.hard = wal.HardState{} // another replica goes on from the state of the one that was there
			}
			l.meta = string(write.Meta)
		}
		old, now := l.hard, write.HardState
		if now.Term < old.Term || now.Term == old.Term && old.Vote != 0 && now.Vote != old.Vote {
			m.w.violate("vote-changed", "group %d on node %d: term %d with a vote for %d is followed by term %d with a vote for %d",
				write.Group, m.index, old.Term, old.Vote, now.Term, now.Vote)
		}
		l.hard = now
	}
}

// appliedEntry accounts for an entry that a replica applied: at one index every replica applies the same one, after a
// leader has committed it.
func (m *machine) appliedEntry(at applied) {
	all := &m.w.ledgers
	e := m.ledger(at.group).at(at.index)
	if e == nil {
		return // It is of a checkpoint, or of a group that keeps no log.
	}
	known, ok := all.committed[at]
	if !ok {
		all.committed[at] = committedEntry{e.term, e.sum, m.index, m.w.inspector.newest[at.group].term}
		all.newest[at.group] = max(all.newest[at.group], at.index)
		m.w.inspector.due = append(m.w.inspector.due, at)
		return
	}
	if known.term != e.term || known.sum != e.sum {
		m.w.violate("applied-differently", "group %d at index %d: node %d applied an entry of term %d, node %d one of term %d",
			at.group, at.index, m.index, e.term, known.by, known.term)
	}
}
