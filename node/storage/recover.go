package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"

	"weir/disk/checkpoint"
	"weir/disk/msgstore"
	"weir/disk/vfs"
	"weir/disk/wal"
	"weir/node/event"
)

// ReapMax bounds the files that one start removes from the quarantine of ended groups.
const ReapMax = 10_000

// Hidden is not nil when damage of the log may hide groups that have no files yet, so that Open did not return them. Then
// a group that is known from elsewhere and was not returned is damaged, not new.
func (s *Storage) Hidden() error { return s.hidden }

// recoverGroups joins what the log and the checkpoints say about each group.
func (s *Storage) recoverGroups(found *wal.Recovered) ([]event.Group, error) {
	if found.Incomplete {
		s.hidden = fmt.Errorf("damage in the log may hide groups: %w", wal.ErrCorrupt)
	}
	groups := make([]event.Group, 0, len(found.Groups)+len(found.Damaged))
	for i := range found.Groups {
		groups = append(groups, s.recoverGroup(found.Groups[i], nil))
	}
	for i := range found.Damaged {
		groups = append(groups, s.recoverGroup(wal.Group{ID: found.Damaged[i].Group}, found.Damaged[i].Err))
	}
	orphans, err := s.orphans(groups)
	if err != nil {
		return nil, err
	}
	groups = append(groups, orphans...)
	for i := range groups {
		if err := groups[i].Damage; s.options.Patient && errors.Is(err, vfs.ErrIO) {
			return nil, fmt.Errorf("group %d: %w", groups[i].ID, err)
		}
	}
	slices.SortFunc(groups, func(a, b event.Group) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return groups, s.reap()
}

// orphans finds groups that have files and are not in the log: either their end is in the log already, and the files
// were still to be moved away, or the log has lost them. Which of the two it is only the catalog knows.
func (s *Storage) orphans(known []event.Group) ([]event.Group, error) {
	names, err := s.fs.List(path.Join(s.dir, "groups"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list groups: %w", err)
	}
	var orphans []event.Group
	for _, name := range names {
		id, err := strconv.ParseUint(name, 16, 64)
		same := func(g event.Group) bool { return g.ID == wal.GroupID(id) }
		if err != nil || slices.ContainsFunc(known, same) {
			continue
		}
		lost := fmt.Errorf("the log has no trace of the group: %w", wal.ErrCorrupt)
		orphans = append(orphans, event.Group{ID: wal.GroupID(id), NextBlock: 1, Damage: lost})
	}
	return orphans, nil
}

// recoverGroup reads the checkpoint of a group. Damage ends up in the result, the group's data stays as it is.
func (s *Storage) recoverGroup(log wal.Group, damage error) event.Group {
	g := event.Group{ID: log.ID, Log: log, NextBlock: 1, Damage: damage}
	files := s.files(log.ID)
	state, err := files.checkpoints.Load()
	if err != nil && s.options.Plant.DamagedIsEmpty {
		state, err = checkpoint.State{Index: log.Compact}, files.blocks.RemoveExcept(nil)
	}
	if err == nil && state.Index < log.Compact {
		// The log gave up entries only once a checkpoint covered them, so a newer checkpoint has been lost.
		err = fmt.Errorf("the newest readable checkpoint is at index %d, the log begins behind index %d: %w",
			state.Index, log.Compact, checkpoint.ErrCorrupt)
	}
	if err == nil {
		err = s.resumeInstall(files, &state)
	}
	if err == nil {
		g.Checkpoint = state
		err = loadBlocks(files.blocks, &g)
	}
	if err == nil {
		err = s.noteLeftover(files)
	}
	if err != nil && g.Damage == nil {
		g.Damage = err
	}
	return g
}

// loadBlocks finds the message blocks that a checkpoint refers to.
func loadBlocks(files *msgstore.Files, g *event.Group) error {
	var sections []msgstore.StateSection
	for _, section := range g.Checkpoint.Sections {
		if section.ID >= event.IndexSections {
			sections = append(sections, msgstore.StateSection{ID: section.ID - event.IndexSections, Data: section.Data})
		}
	}
	states, next, err := msgstore.DecodeState(sections)
	if err != nil {
		return err
	}
	g.NextBlock = next
	g.Blocks, err = files.Load(states)
	return err
}

// drop moves the files of a group that has ended into the quarantine. A later start reaps them.
func (s *Storage) drop(id wal.GroupID) error {
	g := s.groups[id]
	if g == nil {
		g = s.files(id)
	}
	s.unpinGroup(id)
	_ = g.leave() // its files go with the group
	delete(s.groups, id)
	s.open = slices.DeleteFunc(s.open, func(o *groupFiles) bool { return o == g })
	if err := errors.Join(g.checkpoints.Close(), g.blocks.Close()); err != nil {
		return err
	}
	if _, err := s.fs.List(g.dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	quarantine := path.Join(s.dir, quarantineDir)
	if err := vfs.MakeDir(s.fs, quarantine); err != nil {
		return err
	}
	name, err := s.freeName(quarantine, strconv.FormatUint(uint64(id), 16))
	if err != nil {
		return err
	}
	if err := s.fs.Rename(g.dir, name); err != nil {
		return fmt.Errorf("move group %d to the quarantine: %w", id, err)
	}
	if err := s.fs.SyncDir(path.Join(s.dir, "groups")); err != nil {
		return err
	}
	return s.fs.SyncDir(quarantine)
}

const quarantineDir = "dropped"

// freeName returns the name of a directory that does not exist: a group may end, begin again and end again.
func (s *Storage) freeName(dir, prefix string) (string, error) {
	names, err := s.fs.List(dir)
	if err != nil {
		return "", fmt.Errorf("list %s: %w", dir, err)
	}
	name := prefix
	for n := 1; slices.Contains(names, name); n++ {
		name = prefix + "-" + strconv.Itoa(n)
	}
	return dir + "/" + name, nil
}

// reap removes what the quarantine holds: groups whose end was committed in an earlier run. This is the only place that
// removes files of a group beside blocks that no checkpoint refers to.
func (s *Storage) reap() error {
	quarantine := path.Join(s.dir, quarantineDir)
	names, err := s.fs.List(quarantine)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", quarantine, err)
	}
	left := ReapMax
	for _, name := range names {
		if left, err = s.reapTree(quarantine+"/"+name, left); err != nil {
			return err
		}
	}
	return nil
}

// reapTree removes the files of one group, at most left of them, and returns how many may still be removed. The layout
// is two levels deep: the checkpoint and the directory of blocks.
func (s *Storage) reapTree(dir string, left int) (int, error) {
	names, err := s.fs.List(dir)
	if err != nil {
		return left, fmt.Errorf("list %s: %w", dir, err)
	}
	for _, name := range names {
		inner, err := s.fs.List(dir + "/" + name)
		if err == nil {
			for _, file := range inner {
				if left == 0 {
					return 0, nil
				}
				left--
				if err := s.fs.Remove(dir + "/" + name + "/" + file); err != nil {
					return left, err
				}
			}
		}
		if err := s.fs.Remove(dir + "/" + name); err != nil {
			return left, err
		}
	}
	return left, s.fs.Remove(dir)
}

func (s *Storage) groupIDs() []wal.GroupID { return slices.Sorted(maps.Keys(s.groups)) }
