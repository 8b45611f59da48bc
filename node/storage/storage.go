// Package storage carries out what an engine asks of the disk: one write-ahead log for all groups, and for each group
// its checkpoint and its message blocks.
//
// It promises that an operation that completes without error is durable where its kind says so, that a failure is
// reported and never repaired by removing anything, and that what Open returns is what was durable or newer, with
// damage told apart from absence. It works synchronously and decides nothing.
//
// The data directory:
//
//	format              the version of the layout
//	lock                held by the running server
//	wal/                the write-ahead log (package wal)
//	groups/G/checkpoint the checkpoint of group G (package checkpoint), G in hexadecimal
//	groups/G/msgs       the message blocks of group G (package msgstore)
//	dropped/            groups that ended, until they are reaped
//
// The log and the rest share nothing: Append and Sync may run beside Do.
package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"weir/disk/checkpoint"
	"weir/disk/msgstore"
	"weir/disk/vfs"
	"weir/disk/wal"
	"weir/node/event"
	"weir/spec/assert"
)

// Version is the version of the layout of the data directory.
const Version = 1

// Options say how a data directory is used.
type Options struct {
	// Log are the options of the write-ahead log.
	Log wal.Options
	// Plant holds deliberate faults for the simulator; empty in production.
	Plant Plant
}

// Plant names the deliberate faults of the storage, for checking that the simulator finds them. Those of the log are in
// Options.Log.
type Plant struct {
	// Blocks are the faults of message blocks.
	Blocks msgstore.Plant
	// CheckpointBeforeBlocks switches to a checkpoint before the blocks that it refers to are durable.
	CheckpointBeforeBlocks bool
}

// Storage is an open data directory.
type Storage struct {
	fs      vfs.FS
	dir     string
	options Options
	lock    io.Closer
	log     *wal.Log
	stalled error // of the last append, until an operation resumes
	groups  map[wal.GroupID]*groupFiles
	open    []*groupFiles // whose files may be open, least recently used first
}

// groupFiles are the files of one group.
type groupFiles struct {
	dir         string
	checkpoints *checkpoint.Store
	blocks      *msgstore.Files
}

// GroupDir is the directory of a group below the data directory.
func GroupDir(id wal.GroupID) string { return "groups/" + strconv.FormatUint(uint64(id), 16) }

// ErrVersion says that the data directory has a layout that this server does not know.
var ErrVersion = errors.New("unknown version of the data directory")

// Open locks the data directory, makes it when it does not exist, and recovers what it holds, ascending by group.
func Open(fsys vfs.FS, dir string, options Options) (*Storage, []event.Group, error) {
	s := &Storage{fs: fsys, dir: dir, options: options, groups: map[wal.GroupID]*groupFiles{}}
	if err := vfs.MakeDir(fsys, dir); err != nil {
		return nil, nil, err
	}
	lock, err := fsys.Lock(path.Join(dir, "lock"))
	if err != nil {
		return nil, nil, fmt.Errorf("another server uses it: %w", err)
	}
	s.lock = lock
	if err := s.checkFormat(); err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	log, found, err := wal.Open(fsys, path.Join(dir, "wal"), options.Log)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the log: %w", err), lock.Close())
	}
	s.log = log
	groups, err := s.recoverGroups(&found)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, groups, nil
}

// checkFormat reads the version of the layout, or writes it into a new directory.
func (s *Storage) checkFormat() error {
	name := path.Join(s.dir, "format")
	data, err := vfs.ReadFile(s.fs, name)
	if err == nil && string(data) == formatText {
		return nil
	}
	if err == nil && !strings.HasPrefix(formatText, string(data)) { // a prefix is a first start that was cut off
		return fmt.Errorf("%w: %q, this server writes %q", ErrVersion, data, formatText)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return s.writeFormat(name)
}

const formatText = "weir data 1\n"

func (s *Storage) writeFormat(name string) error {
	file, err := s.fs.Create(name)
	if errors.Is(err, fs.ErrExist) {
		file, err = s.fs.Open(name)
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	_, err = file.WriteAt([]byte(formatText), 0)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return s.fs.SyncDir(s.dir)
}

// Do carries out operations in order and appends a completion for each that has a ticket. Consecutive operations on the
// log are one append.
func (s *Storage) Do(ops []event.Op, done []event.Completion) []event.Completion {
	for len(ops) > 0 {
		n := 0
		for n < len(ops) && ops[n].Kind.Log() {
			n++
		}
		if n > 0 {
			done = s.appendLog(ops[:n], done)
			ops = ops[n:]
			continue
		}
		done = s.do(&ops[0], done)
		ops = ops[1:]
	}
	return done
}

func (s *Storage) do(op *event.Op, done []event.Completion) []event.Completion {
	c := event.Completion{Ticket: op.Ticket, Kind: op.Kind, Group: op.Group}
	switch op.Kind {
	case event.Keep:
		s.keep(op)
		return done
	case event.Erase:
		s.erase(op)
		return done
	case event.Fetch:
		c.Message, c.Err = s.files(op.Group).blocks.Read(op.Loc)
	case event.Save:
		c.Err = s.save(op)
	case event.Rewrite:
		c.Rewritten, c.Err = s.files(op.Group).blocks.Rewrite(&op.Block)
	case event.Drop:
		c.Err = s.drop(op.Group)
	default:
		assert.Unreachable("kind of storage operation", uint64(op.Kind))
	}
	return append(done, c)
}

// keep writes blocks behind the log. Nobody waits for it: the files keep what a full disk refused, and what failed
// otherwise shows at the next Save, which the ranges have to be durable for.
func (s *Storage) keep(op *event.Op) {
	_ = s.files(op.Group).blocks.Write(op.Blocks)
}

// erase overwrites a message. A failure shows at the next Save, as that of a keep; a message that is damaged already has
// nothing left to be overwritten with care for.
func (s *Storage) erase(op *event.Op) {
	_ = s.files(op.Group).blocks.Erase(op.Loc)
}

// save makes a checkpoint durable, after everything that it refers to.
func (s *Storage) save(op *event.Op) error {
	g := s.files(op.Group)
	early := s.options.Plant.CheckpointBeforeBlocks
	if !early {
		if err := g.blocks.Sync(); err != nil {
			return err
		}
	}
	if err := g.checkpoints.Write(op.Save.Update); err != nil {
		return fmt.Errorf("write checkpoint at index %d: %w", op.Save.Update.Index, err)
	}
	if early {
		if err := g.blocks.Sync(); err != nil {
			return err
		}
	}
	return g.blocks.RemoveExcept(op.Save.Blocks)
}

// files returns the files of a group, and closes those of another group when many are open.
func (s *Storage) files(id wal.GroupID) *groupFiles {
	g := s.groups[id]
	if g == nil {
		dir := s.dir + "/" + GroupDir(id)
		g = &groupFiles{
			dir:         dir,
			checkpoints: checkpoint.NewStore(s.fs, dir+"/checkpoint"),
			blocks:      msgstore.NewFiles(s.fs, dir+"/msgs", s.options.Plant.Blocks),
		}
		s.groups[id] = g
	}
	if n := len(s.open); n > 0 && s.open[n-1] == g {
		return g
	}
	s.open = append(slices.DeleteFunc(s.open, func(o *groupFiles) bool { return o == g }), g)
	if len(s.open) > GroupsOpenMax {
		// What fails here fails again, and is reported, when the group is saved.
		_ = s.open[0].blocks.Release()
		_ = s.open[0].checkpoints.Close()
		s.open = slices.Delete(s.open, 0, 1)
	}
	return g
}

// GroupsOpenMax bounds the groups whose files are open at a time.
const GroupsOpenMax = 1024

// Close makes the log durable and releases everything.
func (s *Storage) Close() error {
	err := s.log.Close()
	for _, id := range s.groupIDs() {
		g := s.groups[id]
		err = errors.Join(err, g.checkpoints.Close(), g.blocks.Close())
	}
	return errors.Join(err, s.lock.Close())
}
