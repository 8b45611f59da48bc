package crash

import (
	"weir/disk/memfs"
	"weir/disk/wal"
)

// script is a generated storage workload: a node driven by keyed choices.
type script struct {
	node   *node
	ledger *ledger
	key    uint64
	step   uint64
	nextID wal.GroupID
	steps  int
}

const (
	groupsMax   = 4
	batchMax    = 3
	scriptSteps = 26
)

func (s *script) draw(domain string, n uint64) uint64 { return memfs.Hash(s.key, domain, s.step) % n }

// run drives the node until the steps are done or a call fails. A failure is returned: it is the harness's to judge, as
// the disk may be off.
func (s *script) run() error {
	for range s.steps {
		s.step++
		if err := s.one(); err != nil {
			return err
		}
	}
	return nil
}

func (s *script) one() error {
	n := s.node
	switch kind := s.draw("kind", 17); {
	case kind < 9 || len(n.groups) == 0:
		return s.publish()
	case kind < 12:
		return n.save(s.pick())
	case kind == 12:
		return n.rewrite(s.pick())
	case kind == 13:
		g := s.pick()
		n.keep(g)
		g.index.Evict(0)
		return nil
	case kind == 16:
		return s.receive(s.pick())
	case kind == 14:
		_, err := n.storage.IdleLog()
		return err
	default:
		if s.draw("drop", 3) > 0 || len(n.groups) < 2 {
			return s.publish()
		}
		return s.drop()
	}
}

func (s *script) pick() *group {
	return s.node.groups[s.draw("group", uint64(len(s.node.groups)))]
}

// publish appends entries to some groups in one Persist, with the compaction marks that are due, and applies them.
func (s *script) publish() error {
	n := s.node
	var writes []wal.Write
	if len(n.groups) < groupsMax && s.draw("new", 5) == 0 || len(n.groups) == 0 {
		s.nextID++
		g := &group{id: s.nextID, machine: &machine{seed: n.seed, id: s.nextID}, index: newIndex()}
		n.groups = append(n.groups, g)
		s.ledger.groups = append(s.ledger.groups, acknowledged{id: g.id})
		writes = append(writes, s.entries(g))
		writes[0].Meta = []byte("meta")
	}
	first := s.draw("first", uint64(len(n.groups)))
	for i := range min(1+s.draw("count", batchMax), uint64(len(n.groups))) {
		g := n.groups[(first+i)%uint64(len(n.groups))]
		if len(writes) == 0 || writes[0].Group != g.id {
			writes = append(writes, s.entries(g))
		}
	}
	for i := range writes {
		w := &writes[i]
		s.ledger.of(w.Group).pending = n.group(w.Group).last + uint64(len(w.Entries))
	}
	if err := n.persist(writes); err != nil {
		return err
	}
	for i := range writes {
		w := &writes[i]
		g, a := n.group(w.Group), s.ledger.of(w.Group)
		for _, e := range w.Entries {
			g.apply(e.Index)
		}
		g.last += uint64(len(w.Entries))
		g.behind = false
		a.last = g.last
		if w.HasHardState {
			g.hard, a.term = w.HardState, w.HardState.Term
		}
		if w.Compact > 0 {
			g.saved = 0
		}
		n.keep(g)
	}
	return nil
}

// entries makes the next entries of a group.
func (s *script) entries(g *group) wal.Write {
	w := wal.Write{Group: g.id, Compact: g.saved}
	if g.behind {
		w = resetWrite(g)
	}
	for i := range 1 + memfs.Hash(s.key, "entries", s.step, uint64(g.id))%3 {
		index := g.last + 1 + i
		c := commandAt(s.node.seed, g.id, index)
		w.Entries = append(w.Entries, wal.Entry{Term: g.hard.Term, Index: index, Data: c.encode()})
	}
	if g.last == 0 || g.behind || s.draw("hard", 4) == 0 {
		w.HasHardState = true
		w.HardState = wal.HardState{Term: g.hard.Term + 1, Vote: 1, Commit: g.last}
	}
	return w
}

func (s *script) drop() error {
	g := s.pick()
	a := s.ledger.of(g.id)
	a.dropping = true
	err := s.node.drop(g)
	if s.node.group(g.id) == nil { // the log took it
		a.dropped = true
	}
	return err
}
