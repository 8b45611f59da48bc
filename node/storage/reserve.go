package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"weir/disk/vfs"
	"weir/node/event"
)

// A full disk must not keep anybody from freeing it: a purge has to be written to the log, and what it removes goes with the
// next checkpoint, which has to be written as well. So two files of zeros are held in readiness. One is given up for a
// checkpoint that finds no room and frees more than it takes, the other for an append to the log that finds none; from then
// on the owner of the storage is told that space is short, until there is plenty and the file is made again.

const (
	// ReserveBytesDefault is the reserve of a server for checkpoints.
	ReserveBytesDefault = 4 << 20
	// LogReserveBytesDefault is the reserve of a server for the log: what may be under way when the disk is full, and
	// then many requests to remove something.
	LogReserveBytesDefault = 16 << 20
	// reserveFreeFactor is how many times a reserve has to be free before it is made.
	reserveFreeFactor = 4
)

// reserve is room that a file takes on the disk, to be given up when there is no other.
type reserve struct {
	fs    vfs.FS
	path  string
	bytes int64 // 0: there is never a reserve
	held  bool
	spent bool // it was given up, also by an earlier process, and is not made again yet
}

// open looks for what an earlier process has left, and makes the reserve if it can.
func (r *reserve) open() {
	if r.bytes == 0 {
		return
	}
	if file, err := r.fs.Open(r.path); err == nil {
		size, err := file.Size()
		r.held = file.Close() == nil && err == nil && size >= r.bytes
		r.spent = !r.held
	}
	if !r.held {
		r.make()
	}
}

// make makes the reserve when there is room for it. It is an attempt: without a reserve everything works but the freeing
// of a full disk.
func (r *reserve) make() {
	if r.held || r.bytes == 0 {
		return
	}
	if free, err := r.fs.Free(); err != nil || free < reserveFreeFactor*r.bytes {
		return
	}
	file, err := r.fs.Create(r.path)
	if errors.Is(err, fs.ErrExist) {
		file, err = r.fs.Open(r.path)
	}
	if err != nil {
		return
	}
	zeros := make([]byte, min(r.bytes, 256<<10))
	for at := int64(0); at < r.bytes && err == nil; at += int64(len(zeros)) {
		_, err = file.WriteAt(zeros[:min(r.bytes-at, int64(len(zeros)))], at)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_ = r.fs.Remove(r.path)
		return
	}
	r.held, r.spent = true, false
}

// giveUp frees the room. An empty file stays, from which a later process knows that there was a reserve; should it not
// become durable, that process takes what is free for plenty.
func (r *reserve) giveUp() error {
	r.held, r.spent = false, true
	if err := r.fs.Remove(r.path); err != nil {
		return fmt.Errorf("give up the reserve: %w", err)
	}
	if file, err := r.fs.Create(r.path); err == nil {
		_ = file.Close()
	}
	return r.fs.SyncDir(path.Dir(r.path))
}

// saveWithReserve makes a checkpoint durable, with the room of the reserve if it takes that.
func (s *Storage) saveWithReserve(op *event.Op) error {
	err := s.save(op)
	if errors.Is(err, vfs.ErrNoSpace) && s.saveReserve.held {
		blocks := s.files(op.Group).blocks
		takes := blocks.Abandon(op.Save.Blocks)
		for i := range op.Save.Update.Put {
			takes += int64(len(op.Save.Update.Put[i].Data))
		}
		if frees, sizeErr := blocks.Removable(op.Save.Blocks); sizeErr != nil || frees <= takes {
			return errors.Join(err, sizeErr) // the reserve is not for growth
		}
		if giveUp := s.saveReserve.giveUp(); giveUp != nil {
			return errors.Join(err, giveUp)
		}
		return s.save(op)
	}
	if err == nil {
		s.saveReserve.make()
	}
	return err
}

// appendWithReserve appends to the log, with the room of the reserve if it takes that.
func (s *Storage) appendWithReserve(m *merge) error {
	err := m.append(s.log)
	if errors.Is(err, vfs.ErrNoSpace) && s.logReserve.held && s.logReserve.giveUp() == nil {
		return m.append(s.log)
	}
	return err
}
