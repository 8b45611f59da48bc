package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"weir/disk/record"
	"weir/disk/vfs"
	"weir/spec/assert"
)

const (
	fileSuffix      = ".ckpt"
	temporarySuffix = ".tmp"
)

func fileName(generation uint64) string { return fmt.Sprintf("%016x%s", generation, fileSuffix) }

// parseFileName returns the generation in a file name, or false where the file is no checkpoint.
func parseFileName(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, fileSuffix)
	if !ok || len(digits) != 16 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	return n, err == nil && fileName(n) == name && n > 0
}

// Store writes the checkpoints of one group.
type Store struct {
	fs      vfs.FS
	dir     string
	loaded  bool
	file             // of the newest generation; zero when there is none
	f       vfs.File // nil until it is needed
	settled bool     // the entries of the directory are durable, and older generations are gone
	old     []uint64 // generations to remove
	pinned  []uint64 // generations that are read, one entry for each pin
	failed  error    // of a write or sync: nothing is durable any more through this store
	buf     []byte
}

// NewStore returns the checkpoints in a directory, which is made when the first one is written.
func NewStore(fs vfs.FS, dir string) *Store { return &Store{fs: fs, dir: dir} }

// Load reads the newest checkpoint of the directory. Without one it returns the zero State. The error wraps ErrCorrupt
// when the checkpoint is damaged, ErrVersion when its format is unknown.
func (s *Store) Load() (State, error) {
	generations, err := list(s.fs, s.dir)
	if err != nil {
		return State{}, err
	}
	if len(generations) == 0 {
		s.loaded = true
		return State{}, nil
	}
	newest := generations[len(generations)-1]
	f, data, err := readGeneration(s.fs, s.dir, newest)
	if err != nil {
		return State{}, err
	}
	s.file, s.old, s.loaded = f, generations[:len(generations)-1], true
	return f.state(data), nil
}

// Load reads the newest checkpoint of a directory without anything being written, as Store.Load does.
func Load(fs vfs.FS, dir string) (State, error) { return NewStore(fs, dir).Load() }

// list returns the generations in a directory in ascending order; none where there is no directory.
func list(fs vfs.FS, dir string) ([]uint64, error) {
	names, err := fs.List(dir)
	if errors.Is(err, vfs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list checkpoints: %w", err)
	}
	var generations []uint64
	for _, name := range names {
		if n, ok := parseFileName(name); ok {
			generations = append(generations, n)
		}
	}
	slices.Sort(generations)
	return generations, nil
}

// Write makes the state that the update leads to durable. After an error the newest checkpoint is the one before or,
// where the error came late, this one. An error that wraps vfs.ErrNoSpace leaves the store usable: the caller writes an
// update that covers this one and its successors later. Any other error is returned by every later Write.
func (s *Store) Write(u Update) error {
	if s.failed != nil {
		return s.failed
	}
	if !s.loaded {
		if _, err := s.Load(); err != nil {
			return err
		}
	}
	assert.True(u.Index >= s.last.index, "checkpoints move forward", u.Index, s.last.index)
	err := s.write(&u)
	if err != nil && !errors.Is(err, vfs.ErrNoSpace) {
		s.failed = err
	}
	return err
}

func (s *Store) write(u *Update) error {
	if err := s.settle(); err != nil {
		return err
	}
	if s.generation == 0 || s.end-s.live > max(s.live, garbageBytesMin) {
		return s.rewrite(u)
	}
	if err := s.open(); err != nil {
		return err
	}
	w := writer{f: s.f, generation: s.generation, bufAt: s.end, buf: s.buf[:0]}
	c := commit{number: s.last.number + 1}
	if err := w.update(u, nil, &c); err != nil {
		return fmt.Errorf("append to checkpoint %d: %w", s.generation, err)
	}
	s.accept(c, w.bufAt, w.changes)
	s.buf = w.buf
	return nil
}

// open opens the file of the newest generation unless it is open.
func (s *Store) open() error {
	if s.f != nil {
		return nil
	}
	f, err := s.fs.Open(s.path(fileName(s.generation)))
	if err != nil {
		return fmt.Errorf("open checkpoint %d: %w", s.generation, err)
	}
	s.f = f
	return nil
}

func (s *Store) path(name string) string { return s.dir + "/" + name }

func (s *Store) makeDir() error { return vfs.MakeDir(s.fs, s.dir) }

// settle makes durable what a killed process may have left un-synced, in the file that was loaded and in the directory,
// and removes older generations. An update that Load has seen must not be lost once a later one follows it.
func (s *Store) settle() error {
	if s.settled {
		return nil
	}
	if err := s.makeDir(); err != nil {
		return err
	}
	if err := s.fs.SyncDir(s.dir); err != nil {
		return fmt.Errorf("sync checkpoints: %w", err)
	}
	if s.generation > 0 && s.f == nil {
		if err := s.open(); err != nil {
			return err
		}
		if err := s.f.Sync(); err != nil {
			return fmt.Errorf("sync checkpoint %d: %w", s.generation, err)
		}
	}
	if err := s.removeOld(); err != nil {
		return err
	}
	s.settled = true
	return nil
}

// removeOld removes older generations that are not pinned.
func (s *Store) removeOld() error {
	var kept []uint64
	for i, generation := range s.old {
		if slices.Contains(s.pinned, generation) {
			kept = append(kept, generation)
			continue
		}
		if err := s.fs.Remove(s.path(fileName(generation))); err != nil {
			s.old = append(kept, s.old[i:]...)
			return fmt.Errorf("remove checkpoint %d: %w", generation, err)
		}
	}
	s.old = kept
	return nil
}

// rewrite writes the live sections and the update into a file of the next generation and switches to it.
func (s *Store) rewrite(u *Update) error {
	kept, err := s.kept(u)
	if err != nil {
		return err
	}
	next := s.generation + 1
	f, err := s.temporary()
	if err != nil {
		return fmt.Errorf("create checkpoint %d: %w", next, err)
	}
	w := writer{f: f, generation: next, buf: s.buf[:0]}
	c := commit{number: 1}
	if err := w.whole(kept, u, &c); err != nil {
		return errors.Join(fmt.Errorf("write checkpoint %d: %w", next, err), f.Close())
	}
	if s.generation > 0 {
		s.old = append(s.old, s.generation)
	}
	if err := s.adopt(&w, c); err != nil {
		return err
	}
	return s.settle()
}

// adopt makes a whole file that was written and synced under the temporary name the newest generation. The entry is
// durable once the store has settled.
func (s *Store) adopt(w *writer, c commit) error {
	if err := s.fs.Rename(s.path(temporaryName), s.path(fileName(w.generation))); err != nil {
		s.old = slices.DeleteFunc(s.old, func(g uint64) bool { return g == s.generation })
		return errors.Join(fmt.Errorf("switch to checkpoint %d: %w", w.generation, err), w.f.Close())
	}
	var closed error
	if s.f != nil {
		closed = s.f.Close()
	}
	s.f, s.settled, s.buf = w.f, false, w.buf
	s.file = file{generation: w.generation, sections: map[uint64]place{}}
	s.accept(c, w.bufAt, w.changes)
	return closed
}

const temporaryName = "next" + temporarySuffix

// temporary returns an empty file under the temporary name.
func (s *Store) temporary() (vfs.File, error) {
	f, err := s.fs.Create(s.path(temporaryName))
	if !errors.Is(err, vfs.ErrExist) {
		return f, err
	}
	f, err = s.fs.Open(s.path(temporaryName)) // a crash or a full disk left it
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close releases the file.
func (s *Store) Close() error {
	if s.f == nil {
		return nil
	}
	f := s.f
	s.f = nil
	return f.Close()
}

// kept reads the sections of the newest generation that the update leaves as they are. The error wraps ErrCorrupt when one
// of them is not what was written: the device may have lost it or put it elsewhere.
func (s *Store) kept(u *Update) ([]Section, error) {
	if s.generation == 0 {
		return nil, nil
	}
	old, err := readFile(s.fs, s.dir, s.generation)
	if err != nil {
		return nil, err
	}
	drop := make(map[uint64]bool, len(u.Put)+len(u.Delete))
	for i := range u.Put {
		drop[u.Put[i].ID] = true
	}
	for _, id := range u.Delete {
		drop[id] = true
	}
	var kept []Section
	for _, id := range slices.Sorted(maps.Keys(s.sections)) {
		if drop[id] {
			continue
		}
		p := s.sections[id]
		end := min(p.off+int64(p.size()), int64(len(old)))
		data, err := p.section(old[min(p.off, end):end], id, s.generation)
		if err != nil {
			return nil, err
		}
		kept = append(kept, Section{id, data})
	}
	return kept, nil
}

// writer appends to a checkpoint file.
type writer struct {
	f          vfs.File
	generation uint64
	buf        []byte
	bufAt      int64    // offset of buf[0]
	changes    []change // what was appended
}

// whole writes a file from its header on: the sections kept and what the update puts.
func (w *writer) whole(kept []Section, u *Update, c *commit) error {
	header := binary.LittleEndian.AppendUint16(nil, version)
	header = binary.LittleEndian.AppendUint64(header, w.generation)
	w.buf = record.Append(w.buf, frameHeader, header, record.Place{Segment: w.generation})
	return w.update(&Update{Index: u.Index, Term: u.Term, Put: u.Put, Meta: u.Meta}, kept, c)
}

// update appends the sections kept, the update and its commit, whose number is given, and syncs.
func (w *writer) update(u *Update, kept []Section, c *commit) error {
	c.start, c.index, c.term, c.meta = w.at(len(w.buf)).Offset, u.Index, u.Term, slices.Clone(u.Meta)
	for _, sections := range [...][]Section{kept, u.Put} {
		for i := range sections {
			if err := w.section(&sections[i]); err != nil {
				return err
			}
			c.frames++
		}
	}
	if len(u.Delete) > 0 {
		start := len(w.buf)
		w.buf = record.Begin(w.buf)
		for _, id := range u.Delete {
			w.buf = binary.LittleEndian.AppendUint64(w.buf, id)
			w.changes = append(w.changes, change{id: id})
		}
		w.buf = record.Finish(w.buf, start, frameDelete, w.at(start))
		c.frames++
	}
	return w.end(c)
}

// end appends the commit of what was appended, and syncs.
func (w *writer) end(c *commit) error {
	c.frames++
	start := len(w.buf)
	w.buf = record.Finish(c.append(record.Begin(w.buf)), start, frameCommit, w.at(start))
	if err := w.flush(); err != nil {
		return err
	}
	return w.f.Sync()
}

func (w *writer) at(start int) record.Place {
	return record.Place{Segment: w.generation, Offset: w.bufAt + int64(start)}
}

func (w *writer) section(s *Section) error {
	assert.True(len(s.Data) <= SectionBytesMax, "a section has at most its maximum", s.ID, uint64(len(s.Data)))
	start := len(w.buf)
	w.buf = binary.LittleEndian.AppendUint64(record.Begin(w.buf), s.ID)
	w.buf = append(w.buf, s.Data...)
	w.buf = record.Finish(w.buf, start, frameSection, w.at(start))
	at := place{w.bufAt + int64(start), uint32(len(s.Data)), frameSum(w.buf[start:])}
	w.changes = append(w.changes, change{s.ID, at})
	if len(w.buf) >= flushBytes {
		return w.flush()
	}
	return nil
}

// flush writes the buffer.
func (w *writer) flush() error {
	if _, err := w.f.WriteAt(w.buf, w.bufAt); err != nil {
		return err
	}
	w.bufAt += int64(len(w.buf))
	w.buf = w.buf[:0]
	return nil
}
