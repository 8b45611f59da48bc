package crash

import (
	"errors"

	"weir/disk/memfs"
	"weir/disk/wal"
	"weir/node/event"
	"weir/node/storage"
)

// resetWrite is what follows the installation of a snapshot in the log: it is the whole state of the group there.
func resetWrite(g *group) wal.Write {
	return wal.Write{
		Group: g.id, Reset: true, HasHardState: true, HardState: wal.HardState{Term: g.hard.Term, Vote: g.hard.Vote, Commit: g.last},
		Meta: []byte("meta"), Compact: g.last,
	}
}

// donor is another server that is ahead with a group, on a disk of its own.
type donor struct {
	node  *node
	group *group
}

// newDonor makes a server whose group has the entries up to the index, with blocks and checkpoints of its own.
func newDonor(seed, key uint64, id wal.GroupID, index uint64) (*donor, error) {
	fs := memfs.New(memfs.Options{Seed: key})
	n, _, err := start(fs, seed, storage.Options{Log: wal.Options{SegmentBytes: segmentBytes}})
	if err != nil {
		return nil, err
	}
	g := &group{id: id, machine: &machine{seed: seed, id: id}, index: newIndex()}
	n.groups = append(n.groups, g)
	d := &donor{n, g}
	for g.machine.applied < index {
		if err := d.step(memfs.Hash(key, "donor", g.machine.applied)); err != nil {
			return nil, err
		}
	}
	return d, n.save(g)
}

// step applies one entry, and now and then makes a checkpoint or copies blocks.
func (d *donor) step(draw uint64) error {
	d.group.last++
	d.group.apply(d.group.last)
	switch draw % 8 {
	case 0, 1:
		return d.node.save(d.group)
	case 2:
		return d.node.rewrite(d.group)
	}
	return nil
}

// pieceBytes bounds the pieces in which snapshots travel here.
const pieceBytes = 1500

// receive has a group take over the state of a server that is ahead. Now and then it is left half-way, to be taken up by
// a later call with another snapshot.
func (s *script) receive(g *group) error {
	if g.last == 0 {
		return nil
	}
	target := g.last + 1 + s.draw("ahead", 20)
	d, err := newDonor(s.node.seed, memfs.Hash(s.key, "donor", s.step), g.id, target)
	if err != nil {
		return err
	}
	pinned := d.node.do(event.Op{Kind: event.Pin, Group: g.id})[0]
	if pinned.Err != nil {
		return pinned.Err
	}
	for i := range s.draw("on", 12) { // the sender goes on
		if err := d.step(memfs.Hash(s.key, "on", s.step, i)); err != nil {
			return err
		}
	}
	snap := event.Snapshot{Pin: pinned.Pinned.Pin, Manifest: pinned.Pinned.Manifest, Verify: s.draw("verify", 2) == 0}
	pieces := 1000
	if s.draw("stop", 3) == 0 {
		pieces = int(s.draw("pieces", 6))
	}
	done, err := s.bring(&transfer{from: d.node, group: g.id, pieces: pieces}, g, snap)
	if err != nil || !done {
		return err
	}
	return s.install(g, snap)
}

// transfer is the way of a snapshot from another server, at most so many pieces of it.
type transfer struct {
	from   *node
	group  wal.GroupID
	pieces int
}

// bring stages a snapshot; done says that it is whole.
func (s *script) bring(t *transfer, g *group, snap event.Snapshot) (done bool, err error) {
	for round := 0; ; round++ {
		staged := s.node.do(event.Op{Kind: event.Stage, Group: g.id, Snapshot: snap})[0]
		if staged.Err != nil {
			return false, staged.Err
		}
		if staged.Staged.More {
			continue
		}
		if len(staged.Staged.Missing) == 0 {
			return true, nil
		}
		if round > 2 {
			return false, errors.New("a snapshot that was brought is still missing parts")
		}
		for _, missing := range staged.Staged.Missing {
			if done, err = s.bringPart(t, snap, missing); err != nil || !done {
				return false, err
			}
		}
		if round == 0 && s.draw("save", 2) == 0 { // the receiver goes on
			if err := errors.Join(s.node.save(g), s.node.rewrite(g)); err != nil {
				return false, err
			}
		}
	}
}

func (s *script) bringPart(t *transfer, snap event.Snapshot, m event.MissingPart) (bool, error) {
	snap.Part = m.Part
	for m.Offset < m.Bytes {
		if t.pieces--; t.pieces < 0 {
			return false, nil
		}
		snap.Offset, snap.Max = m.Offset, int(min(pieceBytes, m.Bytes-m.Offset))
		read := t.from.do(event.Op{Kind: event.ReadPart, Group: t.group, Snapshot: snap})[0]
		if read.Err != nil {
			return false, read.Err
		}
		snap.Data = read.Data
		staged := s.node.do(event.Op{Kind: event.StagePart, Group: t.group, Snapshot: snap})[0]
		if staged.Err != nil {
			return false, staged.Err
		}
		m.Offset += uint64(len(read.Data))
		if left := staged.Staged.Missing; len(left) > 0 != (m.Offset < m.Bytes) || len(left) > 0 && left[0] != m {
			return false, errors.New("a piece that was brought is not there")
		}
	}
	return true, nil
}

// install makes a staged snapshot the state of the group, and tells the log.
func (s *script) install(g *group, snap event.Snapshot) error {
	n, a := s.node, s.ledger.of(g.id)
	a.pending = max(a.pending, snap.Manifest.Index)
	done := n.do(event.Op{Kind: event.Install, Group: g.id, Snapshot: snap})[0]
	if done.Err != nil {
		return done.Err
	}
	fresh, err := recoverGroup(n.seed, done.Installed)
	if err != nil {
		return err
	}
	a.last = fresh.last
	fresh.hard = g.hard
	*g = *fresh
	if s.draw("late", 2) == 0 {
		return nil // the log hears of it with the next entry
	}
	if err := n.persist([]wal.Write{resetWrite(g)}); err != nil {
		return err
	}
	g.behind = false
	return nil
}
