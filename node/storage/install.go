package storage

import (
	"errors"
	"fmt"
	"iter"

	"weir/disk/checkpoint"
	"weir/disk/msgstore"
	"weir/disk/wal"
	"weir/node/event"
)

// install makes the staged snapshot the state of its group. The order of the steps is what makes it atomic:
//
//  1. Everything that was staged is durable, blocks and their names, and so are the blocks of the replica that stand for
//     parts of the snapshot.
//  2. The sections become the newest checkpoint, by a rename. Its Meta names the directory that holds the rest: this is
//     the switch. The blocks of the old state are still where they were.
//  3. The blocks move to their place, over those of the old state that have their ids. A start that finds the switch
//     done does this step again.
//  4. What only the old state needed is removed.
//
// The next Save clears the Meta.
func (s *Storage) install(op *event.Op) (*event.Group, error) {
	g := s.files(op.Group)
	st := g.staging
	if st == nil || st.manifest != op.Snapshot.Manifest || !st.ready() {
		return nil, event.ErrNotStaged
	}
	s.unpinGroup(op.Group)
	if err := st.durable(s, g); err != nil {
		return nil, fmt.Errorf("install a snapshot of group %d: %w", op.Group, err)
	}
	if s.options.Plant.MoveEarly {
		_ = g.blocks.Adopt(st.blocks)
	}
	err := g.checkpoints.Replace(&checkpoint.Replacement{
		Index: st.manifest.Index, Term: st.manifest.Term, Meta: installMeta(st.number), Sections: s.planted(g, st),
	})
	if err != nil && !errors.Is(err, checkpoint.ErrSwitched) {
		return nil, fmt.Errorf("install a snapshot of group %d: %w", op.Group, err)
	}
	// What the old state had still to write would go into blocks of the new one.
	g.half, g.blocks, st.local = true, g.blocks.Anew(), nil
	if err != nil {
		return nil, fmt.Errorf("%w: group %d: %w", event.ErrHalfInstalled, op.Group, err)
	}
	installed, err := s.finishInstall(op.Group, g, st)
	if err != nil {
		return nil, fmt.Errorf("%w: group %d: %w", event.ErrHalfInstalled, op.Group, err)
	}
	g.half = false
	// What is left in the directory is empty or worthless; a later start or Save removes what can not be removed now.
	_ = s.unstage(g)
	_ = s.removeIncoming(g, st.number)
	return installed, nil
}

// ready reports whether nothing is missing.
func (st *staging) ready() bool {
	if !st.whole || st.looked < len(st.states) || !st.swept {
		return false
	}
	for i := range st.found {
		if !st.found[i].whole {
			return false
		}
	}
	return true
}

// durable makes the names of what was staged durable; the bytes are since they were verified.
func (st *staging) durable(s *Storage, g *groupFiles) error {
	if s.options.Plant.SwitchEarly {
		return nil
	}
	if err := st.blocks.Sync(); err != nil {
		return err
	}
	if err := s.fs.SyncDir(st.dir); err != nil {
		return err
	}
	if len(st.local) > 0 {
		if err := s.fs.SyncDir(g.dir + "/" + blocksDir); err != nil {
			return err
		}
	}
	return s.fs.SyncDir(g.dir)
}

// finishInstall does what follows the switch.
func (s *Storage) finishInstall(id wal.GroupID, g *groupFiles, st *staging) (*event.Group, error) {
	fresh := msgstore.NewFiles(s.fs, g.dir+"/"+blocksDir, s.options.Plant.Blocks)
	if err := fresh.Adopt(st.blocks); err != nil {
		return nil, err
	}
	state, err := g.checkpoints.Load()
	if err != nil {
		return nil, err
	}
	installed := &event.Group{ID: id, Log: wal.Group{ID: id}, NextBlock: 1, Checkpoint: state}
	if err := loadBlocks(fresh, installed); err != nil {
		return nil, err
	}
	var ids []msgstore.BlockID
	for i := range st.states {
		ids = append(ids, st.states[i].ID)
	}
	if err := fresh.RemoveExcept(ids); err != nil {
		return nil, err
	}
	old := g.blocks
	g.blocks = fresh
	return installed, old.Close()
}

// resumeInstall goes on with an install that a crash has cut off behind the switch; state is the checkpoint found. It does
// no harm to one that was finished.
func (s *Storage) resumeInstall(g *groupFiles, state *checkpoint.State) error {
	number := installNumber(state.Meta)
	if number == 0 {
		return nil
	}
	from := msgstore.NewFiles(s.fs, g.dir+"/"+incomingDir(number), s.options.Plant.Blocks)
	if err := g.blocks.Adopt(from); err != nil {
		return fmt.Errorf("go on with the snapshot at index %d: %w", state.Index, err)
	}
	return nil
}

// planted returns the sections of a staged snapshot, as they are unless a fault is planted.
func (s *Storage) planted(g *groupFiles, st *staging) iter.Seq2[checkpoint.Section, error] {
	plant := &s.options.Plant
	if !plant.InstallKeepsOld && plant.InstallSkips == [2]uint64{} {
		return st.allSections()
	}
	return func(yield func(checkpoint.Section, error) bool) {
		var old []checkpoint.Section
		if state, err := g.checkpoints.Load(); err == nil && plant.InstallKeepsOld {
			old = state.Sections
		}
		for section, err := range st.allSections() {
			for ; len(old) > 0 && old[0].ID <= section.ID && err == nil; old = old[1:] {
				if old[0].ID < min(section.ID, event.IndexSections) && !yield(old[0], nil) {
					return
				}
			}
			if last := plant.InstallSkips[1]; last > 0 && section.ID >= plant.InstallSkips[0] && section.ID <= last && err == nil {
				continue
			}
			if !yield(section, err) {
				return
			}
		}
	}
}
