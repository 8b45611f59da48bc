package crash

import (
	"bytes"
	"fmt"
	"slices"

	"weir/disk/memfs"
	"weir/disk/wal"
)

// ledger is what the judge knows: what was acknowledged, and what was on its way when the power went.
type ledger struct {
	seed   uint64
	groups []acknowledged // ascending by id
}

// acknowledged is what one group may and must have. A group leaves the ledger never.
type acknowledged struct {
	id wal.GroupID
	// last is the newest index that was acknowledged, term the newest term.
	last, term uint64
	// pending is the newest index that may be there, because it was appended.
	pending uint64
	// dropping says that the end of the group was appended, dropped that it was acknowledged.
	dropping, dropped bool
}

func (l *ledger) of(id wal.GroupID) *acknowledged {
	for i := range l.groups {
		if l.groups[i].id == id {
			return &l.groups[i]
		}
	}
	return nil
}

// digest tells ledgers apart.
func (l *ledger) digest() uint64 {
	h := l.seed
	for i := range l.groups {
		a := &l.groups[i]
		flags := uint64(0)
		if a.dropping {
			flags |= 1
		}
		if a.dropped {
			flags |= 2
		}
		h = memfs.Hash(h, "group", uint64(a.id), a.last, a.term, a.pending, flags)
	}
	return h
}

func (l *ledger) clone() *ledger { return &ledger{l.seed, slices.Clone(l.groups)} }

// verify holds a recovered node against the ledger. damaged are the groups that the storage reported; only a run with
// damage allows any. It returns the first difference.
func (l *ledger) verify(n *node, damaged map[wal.GroupID]error, allowDamage bool) error {
	for i := range l.groups {
		a := &l.groups[i]
		if err := damaged[a.id]; err != nil {
			if !allowDamage && (!a.dropping || !errCorrupt(err)) {
				return fmt.Errorf("group %d: %w: %w", a.id, errDamaged, err)
			}
			continue
		}
		g := n.group(a.id)
		switch {
		case g == nil && a.last > 0 && !a.dropping:
			return fmt.Errorf("group %d, acknowledged up to index %d, is lost", a.id, a.last)
		case g == nil:
			continue
		case a.dropped:
			return fmt.Errorf("group %d is back, though its end was acknowledged", a.id)
		}
		if err := l.verifyGroup(n, g, a, allowDamage); err != nil {
			return err
		}
	}
	for _, g := range n.groups {
		if l.of(g.id) == nil {
			return fmt.Errorf("group %d was never made", g.id)
		}
	}
	return nil
}

func (l *ledger) verifyGroup(n *node, g *group, a *acknowledged, allowDamage bool) error {
	if g.last < a.last || g.last > a.pending {
		return fmt.Errorf("group %d ends at index %d, want [%d, %d]", g.id, g.last, a.last, a.pending)
	}
	if g.hard.Term < a.term {
		return fmt.Errorf("group %d has term %d, acknowledged was %d", g.id, g.hard.Term, a.term)
	}
	want := stateAt(l.seed, g.id, g.last)
	if g.machine.last != want.last || !slices.Equal(g.machine.living, want.living) {
		return fmt.Errorf("group %d at index %d has messages %v, want %v", g.id, g.last, g.machine.living, want.living)
	}
	for seq, next := uint64(1), 0; seq <= want.last; seq++ {
		if next < len(want.living) && want.living[next].seq == seq {
			next++
		} else if _, ok := g.index.Lookup(seq); ok {
			return fmt.Errorf("group %d: message %d was removed and is back", g.id, seq)
		}
	}
	for _, s := range want.living {
		c := commandAt(l.seed, g.id, s.index)
		m := c.message(s.n, s.seq)
		got, err := n.read(g, s.seq)
		if err != nil {
			if allowDamage && errCorrupt(err) {
				continue
			}
			return fmt.Errorf("group %d: message %d: %w", g.id, s.seq, err)
		}
		if got.Seq != m.Seq || got.Time != m.Time || !bytes.Equal(got.Subject, m.Subject) ||
			!bytes.Equal(got.Header, m.Header) || !bytes.Equal(got.Payload, m.Payload) {
			return fmt.Errorf("group %d: message %d reads as another one", g.id, s.seq)
		}
	}
	return nil
}
