// Package storage carries out what an engine asks of the disk: one write-ahead log for all groups, and for each group
// its checkpoint and its message blocks.
//
// It promises that an operation that completes without error is durable where its kind says so, that a failure is
// reported and never repaired by removing anything, and that what Open returns is what was durable or newer, with
// damage told apart from absence. It works synchronously and decides nothing.
//
// The data directory:
//
//	identity            who this directory is (Server)
//	format              the version of the layout
//	lock                held by the running server
//	reserve             room for a checkpoint on a full disk
//	log-reserve         room for the log on a full disk
//	wal/                the write-ahead log (package wal)
//	groups/G/checkpoint the checkpoint of group G (package checkpoint), G in hexadecimal
//	groups/G/msgs       the message blocks of group G (package msgstore)
//	groups/G/incoming-N a snapshot that group G receives from another server
//	dropped/            groups that ended, until they are reaped
//
// The log and the rest share nothing: Append and Sync may run beside Do.
package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
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
	// NewServer is the identity that a directory gets when it is made: a random number that no other server has. 0 is for
	// a server that is never part of a cluster.
	NewServer uint64
	// Patient ends Open with an error that wraps vfs.ErrIO when the device does not read something: it may do so later.
	// Without it, what is not readable is damaged.
	Patient bool
	// ReserveBytes and LogReserveBytes are the room that is held in readiness for checkpoints and for the log on a full
	// disk; 0: none.
	ReserveBytes, LogReserveBytes int64
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
	// InstallKeepsOld leaves sections of the old checkpoint in place that an installed snapshot does not have.
	InstallKeepsOld bool
	// InstallSkips leaves the sections with ids in [first, last] out of an installed snapshot; {0, 0}: none.
	InstallSkips [2]uint64
	// SwitchEarly installs a snapshot before its blocks are durable.
	SwitchEarly bool
	// MoveEarly moves the blocks of a snapshot to their place before it is installed.
	MoveEarly bool
	// DamagedIsEmpty takes a damaged checkpoint for none, and its blocks for orphans.
	DamagedIsEmpty bool
	// NoSpaceIsSuccess reports an append that a full disk refused as done.
	NoSpaceIsSuccess bool
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

	saveReserve reserve // of the operations that are not about the log
	logReserve  reserve // of those that are

	server    uint64
	hidden    error
	pins      map[event.PinID]*pin
	newestPin event.PinID
}

// groupFiles are the files of one group.
type groupFiles struct {
	dir         string
	checkpoints *checkpoint.Store
	blocks      *msgstore.Files
	staging     *staging // the snapshot that is being received, or nil
	leftover    uint64   // index of a snapshot that an earlier process was receiving, at least 1; 0: none
	half        bool     // a snapshot is installed in part
}

// blocksDir is the directory of message blocks in that of a group.
const blocksDir = "msgs"

// GroupDir is the directory of a group below the data directory.
func GroupDir(id wal.GroupID) string { return "groups/" + strconv.FormatUint(uint64(id), 16) }

// ErrVersion says that the data directory has a layout that this server does not know.
var ErrVersion = errors.New("unknown version of the data directory")

// Open locks the data directory, makes it when it does not exist, and recovers what it holds, ascending by group.
func Open(fsys vfs.FS, dir string, options Options) (*Storage, []event.Group, error) {
	s := &Storage{fs: fsys, dir: dir, options: options, groups: map[wal.GroupID]*groupFiles{}, pins: map[event.PinID]*pin{}}
	if err := vfs.MakeDir(fsys, dir); err != nil {
		return nil, nil, err
	}
	lock, err := fsys.Lock(path.Join(dir, "lock"))
	if err != nil {
		return nil, nil, fmt.Errorf("another server uses it: %w", err)
	}
	s.lock = lock
	if err := s.identify(); err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	if err := s.checkFormat(); err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	options.Log.Patient = options.Patient
	log, found, err := wal.Open(fsys, path.Join(dir, "wal"), options.Log)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open the log: %w", err), lock.Close())
	}
	s.log = log
	groups, err := s.recoverGroups(&found)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	s.saveReserve = reserve{fs: fsys, path: path.Join(dir, "reserve"), bytes: options.ReserveBytes}
	s.saveReserve.open()
	s.logReserve = reserve{fs: fsys, path: path.Join(dir, "log-reserve"), bytes: options.LogReserveBytes}
	s.logReserve.open()
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
	return s.writeDurably(name, []byte(formatText))
}

const formatText = "weir data 1\n"

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
		c.Err = s.saveWithReserve(op)
	case event.Rewrite:
		if c.Err = event.ErrHalfInstalled; !s.files(op.Group).half {
			c.Rewritten, c.Err = s.files(op.Group).blocks.Rewrite(&op.Block)
		}
	case event.Drop:
		c.Err = s.drop(op.Group)
	case event.Unpin:
		s.unpin(op.Snapshot.Pin)
		return done
	case event.Pin, event.ReadPart, event.Stage, event.StagePart, event.Unstage, event.Install, event.Scrub:
		s.doSnapshot(op, &c)
	default:
		assert.Unreachable("kind of storage operation", uint64(op.Kind))
	}
	return append(done, c)
}

// doSnapshot carries out an operation about a snapshot.
func (s *Storage) doSnapshot(op *event.Op, c *event.Completion) {
	switch op.Kind {
	case event.Pin:
		c.Pinned, c.Err = s.pin(op.Group)
	case event.ReadPart:
		c.Data, c.Err = s.readPart(op)
	case event.Stage:
		c.Staged, c.Err = s.stage(op)
	case event.StagePart:
		c.Staged, c.Err = s.stagePart(op)
	case event.Unstage:
		c.Err = s.unstage(s.files(op.Group))
	case event.Install:
		c.Installed, c.Err = s.install(op)
	default:
		c.Err = s.scrub(op)
	}
}

// scrub verifies a block, or the checkpoint when the order is about none.
func (s *Storage) scrub(op *event.Op) error {
	g := s.files(op.Group)
	if op.Snapshot.Scrub.Block == 0 {
		return g.checkpoints.Verify()
	}
	return g.blocks.Scrub(&op.Snapshot.Scrub)
}

// keep writes blocks behind the log. Nobody waits for it: the files keep what a full disk refused, and what failed
// otherwise shows at the next Save, which the ranges have to be durable for.
func (s *Storage) keep(op *event.Op) {
	if g := s.files(op.Group); !g.half {
		_ = g.blocks.Write(op.Blocks)
	}
}

// erase overwrites a message. A failure shows at the next Save, as that of a keep; a message that is damaged already has
// nothing left to be overwritten with care for.
func (s *Storage) erase(op *event.Op) {
	if g := s.files(op.Group); !g.half {
		_ = g.blocks.Erase(op.Loc)
	}
}

// save makes a checkpoint durable, after everything that it refers to.
func (s *Storage) save(op *event.Op) error {
	g := s.files(op.Group)
	if g.half {
		return event.ErrHalfInstalled
	}
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
	if g.staging == nil && g.leftover > 0 && g.leftover <= op.Save.Update.Index {
		// The log has brought what a snapshot was to bring. Should this fail, a later start tries again.
		_ = s.unstage(g)
		g.leftover = 0
	}
	return g.blocks.RemoveExcept(op.Save.Blocks)
}

// files returns the files of a group, and closes those of another group when many are open.
func (s *Storage) files(id wal.GroupID) *groupFiles {
	g := s.groups[id]
	if g == nil {
		dir := path.Join(s.dir, GroupDir(id))
		g = &groupFiles{
			dir:         dir,
			checkpoints: checkpoint.NewStore(s.fs, dir+"/checkpoint"),
			blocks:      msgstore.NewFiles(s.fs, dir+"/"+blocksDir, s.options.Plant.Blocks),
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
		_ = s.open[0].leave()
		s.open = slices.Delete(s.open, 0, 1)
	}
	return g
}

// GroupsOpenMax bounds the groups whose files are open at a time.
const GroupsOpenMax = 1024

// Close makes the log durable and releases everything.
func (s *Storage) Close() error {
	err := s.log.Close()
	for _, id := range slices.Sorted(maps.Keys(s.pins)) {
		s.unpin(id)
	}
	for _, id := range s.groupIDs() {
		g := s.groups[id]
		err = errors.Join(err, g.leave(), g.checkpoints.Close(), g.blocks.Close())
	}
	return errors.Join(err, s.lock.Close())
}
