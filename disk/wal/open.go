package wal

import (
	"errors"
	"fmt"
	"slices"

	"weir/disk/vfs"
)

// Open reads the log in a directory, which it makes if it is not there, and readies it for Append. Damage is reported
// in Recovered, also that nothing at all is left of a log that was synced; the error wraps ErrVersion where the format is
// unknown. After an error nothing is open. Open does not change bytes that were durable. When it
// returns, what it recovered is durable.
func Open(fs vfs.FS, dir string, opts Options) (*Log, Recovered, error) {
	opts = opts.normalize()
	if err := vfs.MakeDir(fs, dir); err != nil {
		return nil, Recovered{}, fmt.Errorf("open the log: %w", err)
	}
	r := recovery{fs: fs, dir: dir, opts: opts}
	if err := r.run(); err != nil {
		return nil, Recovered{}, fmt.Errorf("open the log: %w", err)
	}
	l := &Log{fs: fs, dir: dir, opts: opts, groups: make(map[GroupID]*group, len(r.groups)), live: r.live}
	l.incomplete, l.created = r.out.Incomplete, r.created
	for id, f := range r.groups { // order-free: copies a map
		g := f.group // a copy, so that the entries found are not kept
		l.groups[id] = &g
	}
	if err := l.start(&r); err != nil {
		err = errors.Join(err, l.release())
		return nil, Recovered{}, fmt.Errorf("open the log: %w", err)
	}
	return l, r.out, nil
}

// release closes the files that are open.
func (l *Log) release() error {
	err := errors.Join(l.spare.close(), l.mark.close())
	if l.f != nil {
		err = errors.Join(err, l.f.Close())
	}
	return err
}

// start readies the log for its first append.
func (l *Log) start(r *recovery) error {
	if !l.opts.Plant.NoSyncDir {
		if err := l.fs.SyncDir(l.dir); err != nil {
			return err
		}
	}
	l.spare.nextID = r.mark.segment + 1
	if n := len(r.ids); n > 0 {
		l.spare.nextID = max(l.spare.nextID, r.ids[n-1]+1)
	}
	for _, id := range r.ids {
		if !slices.ContainsFunc(l.live.segments, func(s segmentRef) bool { return s.id == id }) {
			l.spare.released = append(l.spare.released, id)
		}
	}
	if err := l.openMark(r); err != nil {
		return err
	}
	if err := l.openTail(r); err != nil {
		return err
	}
	return l.SaveMark()
}

func (l *Log) openMark(r *recovery) (err error) {
	name := l.path(markName)
	if r.marked {
		// A killed process may have left the newest slot un-synced, and the next one is written over the older one.
		if l.mark.f, err = l.fs.Open(name); err == nil {
			err = l.mark.f.Sync()
		}
	} else {
		l.mark.f, err = l.fs.Create(name)
		err = errors.Join(err, l.fs.SyncDir(l.dir))
	}
	l.mark.last = r.mark
	return err
}

// openTail goes on behind the last frame of the newest segment when that is sound, and starts a new segment otherwise.
func (l *Log) openTail(r *recovery) error {
	if len(r.chain) == 0 {
		return l.startSegment()
	}
	s := r.tail
	f, err := l.fs.Open(l.path(segmentName(s.file.id)))
	if err != nil {
		return err
	}
	l.useFile(f)
	l.f, l.id, l.header = f, s.file.id, s.file.header
	l.off, l.recent = s.info.End, s.recent
	if len(s.info.Damage) > 0 || !s.sound || r.news { // the file is left as it is, and the next table tells of the damage
		if err := l.f.Sync(); err != nil {
			return fmt.Errorf("sync segment %d: %w", l.id, err)
		}
		l.synced = l.off
		return l.startSegment()
	}
	if err := l.clean(s); err != nil {
		return fmt.Errorf("clean the end of segment %d: %w", l.id, err)
	}
	l.bufAt = l.off / pageBytes * pageBytes
	size := int64(len(s.data)) // The file may end inside the padding of the last frame.
	l.filled = size
	l.buf = append(l.buf, s.data[min(l.bufAt, size):min(l.off, size)]...)
	l.buf = append(l.buf, zeros[:l.off-l.bufAt-int64(len(l.buf))]...)
	return nil
}

// clean zeroes the frames that a torn append left behind the end, so that they can never follow a later append, and
// syncs everything before, which a killed process may have left un-synced.
func (l *Log) clean(s *scan) error {
	if err := zero(l.f, l.off, min(s.tailEnd, int64(len(s.data)))); err != nil {
		return err
	}
	if err := l.f.Sync(); err != nil {
		return err
	}
	l.synced = l.off
	return nil
}

// startSegment rotates and writes the header at once.
func (l *Log) startSegment() error {
	if err := l.rotate(); err != nil {
		return err
	}
	if err := l.write(false); err != nil {
		return err
	}
	return l.Sync()
}
