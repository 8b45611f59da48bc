package storage

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"weir/disk/msgstore"
	"weir/disk/snapshot"
	"weir/node/event"
)

// StageBytesMax is about how many bytes of blocks one Stage reads.
const StageBytesMax = 64 << 20

// lookBytes is what a look at one block counts for beside the bytes read.
const lookBytes = 4096

// stage says what is missing of a snapshot, after having looked for what there is.
func (s *Storage) stage(op *event.Op) (event.Staged, error) {
	g := s.files(op.Group)
	if g.staging != nil && g.staging.manifest != op.Snapshot.Manifest {
		if err := g.leave(); err != nil {
			return event.Staged{}, err
		}
	}
	if g.staging == nil {
		st, err := s.beginStaging(g, op.Snapshot.Manifest)
		if err != nil {
			return event.Staged{}, fmt.Errorf("stage a snapshot of group %d: %w", op.Group, err)
		}
		g.staging = st
	}
	st := g.staging
	if !st.whole {
		return event.Staged{Missing: st.missingSections()}, nil
	}
	if op.Snapshot.Verify && !st.verify {
		if err := st.lookAgain(g); err != nil {
			return event.Staged{}, err
		}
	}
	more, err := st.look(g)
	if err != nil || more {
		return event.Staged{More: more}, err
	}
	var staged event.Staged
	for i := range st.states {
		staged.Missing = st.appendMissing(staged.Missing, i)
	}
	return staged, nil
}

func (st *staging) missingSections() []event.MissingPart {
	return []event.MissingPart{{Part: event.SectionsPart, Bytes: st.manifest.Bytes, Offset: st.have}}
}

// appendMissing appends the part that is block i unless it is there.
func (st *staging) appendMissing(dst []event.MissingPart, i int) []event.MissingPart {
	if st.found[i].whole {
		return dst
	}
	state := &st.states[i]
	return append(dst, event.MissingPart{Part: uint64(state.ID), Bytes: uint64(state.Length()), Offset: st.found[i].have})
}

// look looks for the blocks of the snapshot, first among those of the replica, then among those that were staged. more
// says that it has read a good deal and is to be called again.
func (st *staging) look(g *groupFiles) (more bool, err error) {
	local := g.blocks
	left := int64(StageBytesMax)
	for ; st.looked < len(st.states); st.looked++ {
		if left <= 0 {
			return true, nil
		}
		state, found := &st.states[st.looked], &st.found[st.looked]
		if found.whole {
			continue // staged and verified before the blocks were looked for again
		}
		// A block that the device does not give is brought like one that is not there.
		suits, read, err := local.Suits(state, st.verify || !g.knows(state))
		left -= read + lookBytes
		if err == nil && suits {
			local.Pin([]msgstore.BlockID{state.ID})
			st.local = append(st.local, state.ID)
			*found = stagedBlock{whole: true, local: true}
			continue
		}
		found.whole, read, err = st.blocks.Suits(state, true)
		left -= read
		if err != nil {
			return false, fmt.Errorf("staged block %d: %w", state.ID, err)
		}
	}
	local.EndLooking()
	if st.swept {
		return false, nil
	}
	return false, st.sweep()
}

// lookAgain has the blocks of the replica that stand for parts verified whole, and forgets those that were taken without. The
// replica may have come to blocks meanwhile of which pieces were staged: these go, or they would move into the place of those.
func (st *staging) lookAgain(g *groupFiles) error {
	local := st.local
	st.verify, st.looked, st.local, st.swept = true, 0, nil, false
	for i := range st.found {
		if st.found[i].local || !st.found[i].whole {
			st.found[i] = stagedBlock{}
		}
	}
	return g.blocks.Unpin(local)
}

// knows reports whether the replica's newest checkpoint refers to a block and describes it in the same way. A file that no
// checkpoint refers to may hold what a crash left of it.
func (g *groupFiles) knows(state *msgstore.BlockState) bool {
	data, err := g.checkpoints.Section(event.IndexSections + uint64(state.ID))
	return err == nil && state.SealedAs(msgstore.StateSection{ID: uint64(state.ID), Data: data})
}

// sweep removes staged blocks that the snapshot does not need.
func (st *staging) sweep() error {
	ids, err := st.blocks.List()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if i, ok := st.find(uint64(id)); ok && st.found[i].whole && !st.found[i].local {
			continue
		}
		if err := st.blocks.Discard(id); err != nil {
			return err
		}
	}
	st.swept = true
	return nil
}

// find returns which block a part is.
func (st *staging) find(part uint64) (int, bool) {
	return slices.BinarySearchFunc(st.states, part, func(b msgstore.BlockState, part uint64) int {
		return cmp.Compare(uint64(b.ID), part)
	})
}

// stagePart takes the next bytes of a part.
func (s *Storage) stagePart(op *event.Op) (event.Staged, error) {
	st, order := s.files(op.Group).staging, &op.Snapshot
	if st == nil {
		return event.Staged{}, event.ErrNotStaged
	}
	if order.Part == event.SectionsPart {
		return st.takeSections(order.Offset, order.Data)
	}
	if !st.whole || st.looked < len(st.states) || !st.swept {
		return event.Staged{}, fmt.Errorf("block %d before the sections: %w", order.Part, event.ErrNotStaged)
	}
	i, ok := st.find(order.Part)
	if !ok {
		return event.Staged{}, fmt.Errorf("block %d is not in the snapshot: %w", order.Part, event.ErrNotStaged)
	}
	return st.takeBlock(i, order.Offset, order.Data)
}

func (st *staging) takeSections(offset uint64, data []byte) (event.Staged, error) {
	if st.whole {
		return event.Staged{}, nil
	}
	if offset == st.have && offset+uint64(len(data)) > st.manifest.Bytes {
		return event.Staged{}, fmt.Errorf("%d bytes of sections at offset %d of %d: %w", len(data), offset, st.manifest.Bytes, event.ErrNotStaged)
	}
	if offset != st.have {
		return event.Staged{Missing: st.missingSections()}, nil
	}
	if _, err := st.sections.WriteAt(data, int64(offset)); err != nil {
		return event.Staged{}, fmt.Errorf("stage the sections of the snapshot: %w", err)
	}
	if st.have += uint64(len(data)); st.have < st.manifest.Bytes {
		return event.Staged{Missing: st.missingSections()}, nil
	}
	if err := st.sections.Sync(); err != nil {
		st.have = 0
		return event.Staged{}, fmt.Errorf("sync the sections of the snapshot: %w", err)
	}
	if err := st.complete(); err != nil {
		st.have = 0
		return event.Staged{}, errors.Join(err, st.sections.Truncate(0))
	}
	return event.Staged{}, nil
}

func (st *staging) takeBlock(i int, offset uint64, data []byte) (event.Staged, error) {
	state, found := &st.states[i], &st.found[i]
	if found.whole {
		return event.Staged{}, nil
	}
	length := uint64(state.Length())
	if offset == found.have && offset+uint64(len(data)) > length {
		return event.Staged{}, fmt.Errorf("%d bytes of block %d at offset %d of %d: %w", len(data), state.ID, offset, length, event.ErrNotStaged)
	}
	if offset != found.have {
		return event.Staged{Missing: st.appendMissing(nil, i)}, nil
	}
	if err := st.blocks.Write([]msgstore.BlockWrite{{Block: state.ID, Offset: int64(offset), Bytes: data}}); err != nil {
		return event.Staged{}, st.lost(i, err)
	}
	if found.have += uint64(len(data)); found.have < length {
		return event.Staged{Missing: st.appendMissing(nil, i)}, nil
	}
	err := st.blocks.Sync()
	if err == nil {
		found.whole, _, err = st.blocks.Suits(state, true)
	}
	if err != nil {
		return event.Staged{}, st.lost(i, err)
	}
	if !found.whole {
		return event.Staged{}, st.lost(i, fmt.Errorf("block %d as received: %w", state.ID, snapshot.ErrCorrupt))
	}
	found.have = 0
	return event.Staged{}, nil
}

// lost throws away what was staged of a block because of a failure, which it returns. Files that failed for good are opened
// anew: what they hold is verified before it counts.
func (st *staging) lost(i int, err error) error {
	for j := range st.found {
		st.found[j].have = 0 // also of others: what was not synced may be gone
	}
	if discardErr := st.blocks.Discard(st.states[i].ID); discardErr != nil {
		err = errors.Join(err, discardErr)
	}
	st.blocks = st.blocks.Anew()
	return err
}
