package wal

import (
	"fmt"
	"strconv"
	"strings"

	"weir/disk/record"
	"weir/disk/vfs"
	"weir/spec/assert"
)

const (
	segmentSuffix = ".seg"
	// keptSuffix ends the name of a segment that the log no longer needs, but that holds records of a damaged group. The
	// log never reads or removes such a file.
	keptSuffix = ".seg.kept"
)

// segmentName returns the file name of a segment in the directory of the log.
func segmentName(id uint64) string { return fmt.Sprintf("%016x%s", id, segmentSuffix) }

// parseSegmentName returns the id in a file name, or false where the file is no segment.
func parseSegmentName(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok || len(digits) != 16 {
		return 0, false
	}
	id, err := strconv.ParseUint(digits, 16, 64)
	return id, err == nil && segmentName(id) == name && id > 0
}

func (l *Log) path(name string) string { return l.dir + "/" + name }

// spare holds the file that becomes the next segment, and files that no longer belong to the log.
type spare struct {
	nextID   uint64   // an id that no file has ever had
	f        vfs.File // the next segment, its entry durable; nil when there is none
	id       uint64
	filled   int64    // bytes of f that are allocated
	released []uint64 // ids of files to reuse or remove
}

func (s *spare) close() error {
	if s.f == nil {
		return nil
	}
	f := s.f
	s.f = nil
	return f.Close()
}

// rotate starts a new segment: it becomes the current one, with its header waiting in buf. The old one is synced.
func (l *Log) rotate() error {
	if err := l.Sync(); err != nil {
		return err
	}
	if err := l.takeSpare(); err != nil {
		return err
	}
	if l.f != nil {
		if err := l.f.Close(); err != nil {
			return fmt.Errorf("close segment %d: %w", l.id, err)
		}
	}
	h := segmentHeader{id: l.spare.id, prev: l.id, prevEnd: l.off, created: l.created, incomplete: l.incomplete}
	if l.fresh { // nothing of the current segment was ever written: the next one takes its place
		h.prev, h.prevEnd = l.header.prev, l.header.prevEnd
		l.live.segments = l.live.segments[:len(l.live.segments)-1]
		l.spare.released = append(l.spare.released, l.id)
	}
	l.f, l.id = l.spare.f, l.spare.id
	l.spare.f = nil
	l.live.segments = append(l.live.segments, segmentRef{id: l.id})
	h.oldest = l.live.segments[0].id
	l.off, l.bufAt, l.synced, l.fresh, l.torn, l.filled = 0, 0, 0, true, 0, l.spare.filled
	l.recent.reset()
	l.header = h
	l.buf = l.appendHeader(l.buf[:0], &h)
	l.off = int64(len(l.buf))
	return nil
}

// appendHeader appends the header frame and the table of all groups.
func (l *Log) appendHeader(dst []byte, h *segmentHeader) []byte {
	groups := l.sortedGroups()
	h.groups = uint64(len(groups))
	var tables [][]byte
	var table []byte
	for _, g := range groups {
		table = appendTableEntry(table, g)
		if len(table) >= tableBytesMax {
			tables, table = append(tables, table), nil
		}
	}
	if len(table) > 0 {
		tables = append(tables, table)
	}
	h.frames = uint32(len(tables))
	start := len(dst)
	dst = record.Finish(h.append(record.Begin(dst)), start, frameHeader, record.Place{Segment: h.id, Offset: 0})
	for _, t := range tables {
		dst = record.Append(dst, frameTable, t, record.Place{Segment: h.id, Offset: int64(len(dst) - start)})
	}
	return dst
}

// takeSpare makes sure that the next segment has a file whose entry is durable: a released file under a new name where
// there is one, a new file otherwise.
func (l *Log) takeSpare() error {
	s := &l.spare
	if s.f != nil {
		return nil
	}
	id := s.nextID
	assert.True(id > l.id, "a new segment has the highest id", id, l.id)
	name := l.path(segmentName(id))
	s.nextID++ // also after a failure: the name may have been used
	var f vfs.File
	var err error
	if len(s.released) > 0 {
		old := s.released[0]
		if err := l.fs.Rename(l.path(segmentName(old)), name); err != nil {
			return fmt.Errorf("reuse segment %d: %w", old, err)
		}
		s.released = s.released[1:]
		f, err = l.fs.Open(name)
	} else {
		f, err = l.fs.Create(name)
	}
	if err != nil {
		return fmt.Errorf("make segment %d: %w", id, err)
	}
	size, err := f.Size()
	if err == nil && !l.opts.Plant.NoSyncDir {
		err = l.fs.SyncDir(l.dir)
	}
	if err != nil {
		_ = f.Close() // the first error is the one that counts
		return fmt.Errorf("make segment %d: %w", id, err)
	}
	l.useFile(f)
	s.f, s.id, s.filled = f, id, size
	return nil
}

// useFile tells the file of a segment how it is written. In lazy mode nobody waits for the disk.
func (l *Log) useFile(f vfs.File) {
	if !l.opts.Lazy {
		vfs.WriteUncached(f)
	}
}

// PrepareNext does at most one bounded piece of the work that keeps Append fast: it makes the file of the next segment,
// writes at most the given number of bytes of zeros to it and syncs them, or removes one file that is not needed. The
// owner calls it when idle. It returns whether there is more to do. The next segment is usable at any state of this
// work; what is missing makes appends slower, not wrong. An error that wraps vfs.ErrNoSpace leaves the log usable.
func (l *Log) PrepareNext(bytes int) (more bool, err error) {
	assert.True(bytes > 0, "a piece has a size")
	if l.err != nil {
		return false, l.err
	}
	s := &l.spare
	switch {
	case s.f == nil:
		return true, l.failed(l.takeSpare())
	case s.filled < l.opts.SegmentBytes:
		n := min(int64(bytes), l.opts.SegmentBytes-s.filled)
		if err := l.fill(n); err != nil {
			return false, l.failed(fmt.Errorf("prepare segment %d: %w", s.id, err))
		}
		return true, nil
	case len(s.released) > 0:
		id := s.released[0]
		if err := l.fs.Remove(l.path(segmentName(id))); err != nil {
			return false, l.failed(fmt.Errorf("remove segment %d: %w", id, err))
		}
		s.released = s.released[1:]
		return len(s.released) > 0, nil
	}
	return false, nil
}

// fill writes n bytes of zeros behind what is filled and syncs them.
func (l *Log) fill(n int64) error {
	s := &l.spare
	for n > 0 {
		piece := min(n, int64(len(zeros)))
		if _, err := s.f.WriteAt(zeros[:piece], s.filled); err != nil {
			return err
		}
		s.filled += piece
		n -= piece
	}
	return s.f.Sync()
}

var zeros [256 << 10]byte
