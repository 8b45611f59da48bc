package wal

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/disk/record"
	"weir/disk/vfs"
	"weir/spec/assert"
)

// Log is an open write-ahead log. It is used by one caller at a time.
type Log struct {
	fs   vfs.FS
	dir  string
	opts Options
	err  error // the failure that poisoned the log; every later call returns it

	groups map[GroupID]*group
	live   refs // live segments, the current one last

	// The current segment.
	f          vfs.File
	id         uint64
	off        int64 // end of the last frame written
	synced     int64 // everything before was synced
	filled     int64 // end of the blocks that the file has: writes before it change no metadata of the file system
	fresh      bool  // the header is in buf and not yet written
	torn       int64 // behind off, an append that failed for lack of space may have left frames up to here; 0: none
	header     segmentHeader
	incomplete bool          // damage may hide groups; kept in every header
	recent     recent        // what the newest appends of the segment wrote
	listed     []listedGroup // reused
	stamp      uint64
	created    uint64 // how many groups the log has ever had

	// buf holds the bytes of the segment from bufAt on up to off, for the next write. bufAt is a multiple of the page
	// size, and buf starts with at most a page of bytes that are written already, except while a header waits in it.
	buf   []byte
	bufAt int64

	spare spare
	mark  markFile

	stats Stats
}

// Stats count what a log did since Open and describe what it holds.
type Stats struct {
	// Appends counts successful calls of Append, Bytes what they wrote without padding, Syncs the syncs of segments.
	Appends, Bytes, Syncs uint64
	// Groups and Segments count what is live now.
	Groups, Segments int
	// Segment and Offset are the end of the log.
	Segment uint64
	Offset  int64
}

// Append writes what the groups give, each group at most once, in one write, and syncs once; in lazy mode it does not sync. After nil
// everything is durable (in lazy mode: will be after Sync). ErrTooLarge and ErrDamaged leave the log as it was. An error
// that wraps vfs.ErrNoSpace means that nothing was appended and that a later Append may succeed. After any other error the
// log is poisoned: what was given may or may not survive, and every later call returns the same error.
func (l *Log) Append(writes []Write) error {
	if l.err != nil || len(writes) == 0 {
		return l.err
	}
	bound := int64(appendBound(len(l.recent.list)))
	for i := range writes {
		if err := l.check(&writes[i]); err != nil {
			return err
		}
		bound += int64(writeBound(&writes[i]))
	}
	if bound > AppendBytesMax {
		return fmt.Errorf("append of %d bytes: %w", bound, ErrTooLarge)
	}
	if err := l.mend(); err != nil {
		return l.failed(err)
	}
	if !l.fresh && l.off+bound > l.opts.SegmentBytes {
		if err := l.rotate(); err != nil {
			return l.failed(err)
		}
	}
	at := l.encode(writes)
	if err := l.write(true); err != nil {
		l.unstage(writes)
		return l.failed(fmt.Errorf("append to segment %d at %d: %w", l.id, at, err))
	}
	l.commit(writes, at)
	if l.opts.Lazy || l.opts.Plant.AckBeforeSync {
		return nil
	}
	return l.Sync()
}

// check returns an error for a write that the state of its group refuses.
func (l *Log) check(w *Write) error {
	assert.True(!w.Reset || w.HasHardState && w.Meta != nil, "a reset brings hard state and meta", uint64(w.Group))
	assert.True(!w.Drop || len(w.Entries) == 0 && !w.HasHardState && w.Meta == nil, "a drop brings nothing else", uint64(w.Group))
	g := l.groups[w.Group]
	if g != nil && g.damaged && !w.Reset && !w.Drop {
		return fmt.Errorf("group %d: %w", w.Group, ErrDamaged)
	}
	return nil
}

// failed poisons the log unless the error is a lack of space, which may pass.
func (l *Log) failed(err error) error {
	if !errors.Is(err, vfs.ErrNoSpace) {
		l.err = err
	}
	return err
}

// encode appends the frames to buf and returns the offset of the append frame.
func (l *Log) encode(writes []Write) int64 {
	at := l.off
	info := l.info(at)
	start := len(l.buf)
	assert.True(l.bufAt+int64(start) == at, "buffer ends at the end of the log", uint64(l.bufAt), uint64(start), uint64(at))
	l.buf = info.append(record.Begin(l.buf))
	l.buf = record.Finish(l.buf, start, frameAppend, record.Place{Segment: l.id, Offset: at})
	fresh := uint64(0)
	for i := range writes {
		w := &writes[i]
		g := l.groups[w.Group]
		if g == nil {
			g = &group{id: w.Group, records: (l.created + fresh) * numbersPerGroup, fresh: true}
			fresh++
			l.groups[w.Group] = g
		}
		assert.True(!g.staged, "a group writes once in an append", uint64(w.Group))
		g.staged = true
		start := len(l.buf)
		l.buf = appendGroup(record.Begin(l.buf), w, recordNumber{g.records + 1, g.fresh})
		l.buf = record.Finish(l.buf, start, frameGroup, record.Place{Segment: l.id, Offset: l.bufAt + int64(start)})
	}
	return at
}

// write writes buf, padded to whole pages, and with ahead more zeros behind it when it reached a part of the segment that
// was not prepared. Afterwards buf holds the bytes of the last page only.
func (l *Log) write(ahead bool) error {
	n := len(l.buf)
	for len(l.buf)%pageBytes != 0 {
		l.buf = append(l.buf, zeroPage[:pageBytes-len(l.buf)%pageBytes]...)
	}
	_, err := l.f.WriteAt(l.buf, l.bufAt)
	if err == nil && ahead {
		err = l.fillAhead(l.bufAt + int64(len(l.buf)))
	}
	if err != nil {
		l.torn = max(l.torn, l.bufAt+int64(len(l.buf)))
	}
	l.buf = l.buf[:n]
	if err != nil {
		l.buf = l.buf[:l.off-l.bufAt]
		return err
	}
	l.stats.Bytes += uint64(l.bufAt + int64(n) - l.off)
	l.off = l.bufAt + int64(n)
	l.fresh = false
	last := l.off / pageBytes * pageBytes
	kept := l.buf[last-l.bufAt:]
	if cap(l.buf) > keptBufBytes {
		l.buf = append(make([]byte, 0, pageBytes), kept...)
	} else {
		l.buf = append(l.buf[:0], kept...)
	}
	l.bufAt = last
	return nil
}

// aheadBytesMax and aheadShare bound how much of a segment is filled with zeros at a time when the log reaches a part that
// was not prepared: a share of the segment, in whole pages.
const (
	aheadBytesMax = int64(len(zeros))
	aheadShare    = 8
)

// fillAhead keeps the end of the file ahead of the end of the log, which is now at end. After a write that makes the file
// longer the sync has to write the inode too, and takes up to twice as long: so it is made longer for many appends at once,
// by zeros that go along with the append that reaches the end. They are no promise: a disk without room for them costs
// time only.
func (l *Log) fillAhead(end int64) error {
	if end <= l.filled {
		return nil
	}
	l.filled = end
	share := (l.opts.SegmentBytes/aheadShare + pageBytes - 1) / pageBytes * pageBytes
	n := min(share, aheadBytesMax, l.opts.SegmentBytes-end)
	if n <= 0 {
		return nil
	}
	_, err := l.f.WriteAt(zeros[:n], end)
	if errors.Is(err, vfs.ErrNoSpace) {
		l.filled = max(end, l.opts.SegmentBytes) // not again for every append
		return nil
	}
	if err == nil {
		l.filled = end + n
	}
	return err
}

// mend overwrites what an append that failed half-way has left behind the end of the log, and syncs: its frames must never
// follow a later append. The segment then goes on, so that a full disk does not cost a segment for each attempt.
func (l *Log) mend() error {
	if l.torn == 0 {
		return nil
	}
	size, err := l.f.Size()
	if err == nil && min(size, l.torn) > l.off {
		err = zero(l.f, l.off, min(size, l.torn))
	}
	if err == nil {
		err = l.f.Sync()
	}
	if err != nil {
		return fmt.Errorf("mend the end of segment %d at %d: %w", l.id, l.off, err)
	}
	l.torn = 0
	return nil
}

// zero overwrites the bytes [lo, hi) of a file.
func zero(f vfs.File, lo, hi int64) error {
	for lo < hi {
		n := min(int64(len(zeros)), hi-lo)
		if _, err := f.WriteAt(zeros[:n], lo); err != nil {
			return err
		}
		lo += n
	}
	return nil
}

var zeroPage [pageBytes]byte

// commit makes the written append part of the state.
func (l *Log) commit(writes []Write, at int64) {
	l.stats.Appends++
	for i := range writes {
		w := &writes[i]
		g := l.groups[w.Group]
		if g.fresh {
			l.created++
			g.fresh = false
		}
		g.records++
		l.recent.add(recentWrite{at, w.Group, g.records})
		g.staged = false
		if w.Drop {
			g.unpin(&l.live)
			delete(l.groups, w.Group)
			continue
		}
		ok := g.apply(w, l.id, &l.live)
		assert.True(ok, "entries follow what the group has", uint64(w.Group), g.last)
	}
}

// unstage undoes encode for an append that was not written.
func (l *Log) unstage(writes []Write) {
	for i := range writes {
		g := l.groups[writes[i].Group]
		g.staged = false
		if g.fresh {
			delete(l.groups, g.id)
		}
	}
}

// Sync makes everything appended durable. After an error the log is poisoned.
func (l *Log) Sync() error {
	if l.err != nil {
		return l.err
	}
	if l.synced < l.off && !l.fresh {
		if err := l.f.Sync(); err != nil {
			l.err = fmt.Errorf("sync segment %d: %w", l.id, err)
			return l.err
		}
		l.stats.Syncs++
		l.synced = l.off
	}
	if l.mark.last.segment != l.id && l.mark.f != nil { // a new segment: its file is not mistaken for an unused one
		if err := l.SaveMark(); err != nil {
			return err
		}
	}
	return l.settle()
}

// settle gives up the oldest segments that nothing needs. Their files wait in the spare until the owner calls
// PrepareNext; those that hold records of damaged groups are set aside. Everything is synced when it is called, so the
// compaction marks that free a segment are durable.
func (l *Log) settle() error {
	for len(l.live.segments) > segmentsKept && l.live.segments[0].refs == 0 {
		oldest := l.live.segments[0]
		if oldest.keep {
			name := l.path(segmentName(oldest.id))
			err := l.fs.Rename(name, strings.TrimSuffix(name, segmentSuffix)+keptSuffix)
			if err == nil {
				err = l.fs.SyncDir(l.dir)
			}
			if err != nil {
				return l.failed(fmt.Errorf("set segment %d aside: %w", oldest.id, err))
			}
		} else {
			l.spare.released = append(l.spare.released, oldest.id)
		}
		l.live.segments = slices.Delete(l.live.segments, 0, 1)
	}
	return nil
}

// Pinning names a group that keeps the oldest segment while more segments are live than the options allow: the owner
// should write a checkpoint of it and compact. It returns false when there is nothing to do.
func (l *Log) Pinning() (GroupID, bool) {
	if len(l.live.segments) <= l.opts.LiveSegmentsMax {
		return 0, false
	}
	oldest := l.live.segments[0].id
	var pinning *group
	for _, g := range l.groups { // order-free: takes the lowest id
		if len(g.spans) == 0 || g.spans[0].segment != oldest {
			continue
		}
		if pinning == nil || g.id < pinning.id {
			pinning = g
		}
	}
	if pinning == nil {
		return 0, false
	}
	return pinning.id, true
}

// Stats returns the counters.
func (l *Log) Stats() Stats {
	s := l.stats
	s.Groups, s.Segments, s.Segment, s.Offset = len(l.groups), len(l.live.segments), l.id, l.off
	return s
}

// Close syncs what is not synced, saves the mark and releases the files. A poisoned log is released without syncing;
// Close then returns the error that poisoned it.
func (l *Log) Close() error {
	err := l.err
	if err == nil {
		err = errors.Join(l.Sync(), l.SaveMark())
	}
	if errors.Is(err, ErrClosed) {
		return err
	}
	l.err = ErrClosed
	return errors.Join(err, l.f.Close(), l.spare.close(), l.mark.close())
}

// sortedGroups returns the groups that have written something, in ascending order of id.
func (l *Log) sortedGroups() []*group {
	sorted := make([]*group, 0, len(l.groups))
	for _, id := range slices.Sorted(maps.Keys(l.groups)) {
		if !l.groups[id].fresh {
			sorted = append(sorted, l.groups[id])
		}
	}
	return sorted
}
