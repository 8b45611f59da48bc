package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"weir/disk/vfs"
	"weir/node/event"
)

// A full disk must not keep anybody from freeing it: what a purge removes goes with the next checkpoint, and a checkpoint
// has to be written first. So a file of the size Options.ReserveBytes is held in readiness and given up for a checkpoint
// that finds no room and frees more than it takes; it is made again when there is plenty.

// ReserveBytesDefault is the reserve of a server.
const ReserveBytesDefault = 4 << 20

const (
	reserveName = "reserve"
	// reserveFreeFactor is how many times the reserve has to be free before it is made.
	reserveFreeFactor = 4
)

func (s *Storage) reservePath() string { return path.Join(s.dir, reserveName) }

// saveWithReserve makes a checkpoint durable, with the room of the reserve if it takes that.
func (s *Storage) saveWithReserve(op *event.Op) error {
	err := s.save(op)
	if errors.Is(err, vfs.ErrNoSpace) && s.reserved {
		blocks := s.files(op.Group).blocks
		takes := blocks.Abandon(op.Save.Blocks)
		for i := range op.Save.Update.Put {
			takes += int64(len(op.Save.Update.Put[i].Data))
		}
		if frees, sizeErr := blocks.Removable(op.Save.Blocks); sizeErr != nil || frees <= takes {
			return errors.Join(err, sizeErr) // the reserve is not for growth
		}
		if giveUp := s.giveUpReserve(); giveUp != nil {
			return errors.Join(err, giveUp)
		}
		return s.save(op)
	}
	if err == nil && !s.reserved {
		s.makeReserve()
	}
	return err
}

func (s *Storage) giveUpReserve() error {
	s.reserved = false
	if err := s.fs.Remove(s.reservePath()); err != nil {
		return fmt.Errorf("give up the reserve: %w", err)
	}
	return s.fs.SyncDir(path.Dir(s.reservePath()))
}

// makeReserve makes the reserve when there is room for it. It is an attempt: without a reserve everything works but the
// freeing of a full disk.
func (s *Storage) makeReserve() {
	size := s.options.ReserveBytes
	if free, err := s.fs.Free(); size == 0 || err != nil || free < reserveFreeFactor*size {
		return
	}
	file, err := s.fs.Create(s.reservePath())
	if errors.Is(err, fs.ErrExist) {
		file, err = s.fs.Open(s.reservePath())
	}
	if err != nil {
		return
	}
	zeros := make([]byte, min(size, 256<<10))
	for at := int64(0); at < size && err == nil; at += int64(len(zeros)) {
		_, err = file.WriteAt(zeros[:min(size-at, int64(len(zeros)))], at)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_ = s.fs.Remove(s.reservePath())
		return
	}
	s.reserved = true
}

// openReserve looks for the reserve of an earlier start, or makes one.
func (s *Storage) openReserve() {
	if s.options.ReserveBytes == 0 {
		return
	}
	if file, err := s.fs.Open(s.reservePath()); err == nil {
		size, err := file.Size()
		s.reserved = file.Close() == nil && err == nil && size >= s.options.ReserveBytes
	}
	if !s.reserved {
		s.makeReserve()
	}
}
