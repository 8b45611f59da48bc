package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"weir/disk/record"
	"weir/spec/assert"
)

// Replacement is a whole state that takes the place of what a store has.
type Replacement struct {
	// Index and Term are the newest log entry that the state includes. They may be below those of what is replaced.
	Index, Term uint64
	// Meta are the opaque bytes that go with the state.
	Meta []byte
	// Sections are all sections, ascending by id. An error ends the replacement.
	Sections iter.Seq2[Section, error]
}

// ErrSwitched says that a Replace failed behind the switch: readers see the new state, and which of the two a power loss
// leaves is unknown.
var ErrSwitched = errors.New("the switch to the new checkpoint is not durable")

// NextGeneration is a number above every generation that the directory holds, whether it can be read or not.
func (s *Store) NextGeneration() (uint64, error) {
	generations, err := list(s.fs, s.dir)
	if err != nil || len(generations) == 0 {
		return s.generation + 1, err
	}
	return max(s.generation, generations[len(generations)-1]) + 1, nil
}

// Replace makes a whole state durable, also in the place of one that is damaged, and also after Write has failed. After an
// error the old state is in place, unless the error wraps ErrSwitched.
func (s *Store) Replace(r *Replacement) error {
	generations, err := list(s.fs, s.dir)
	if err != nil {
		return err
	}
	next, err := s.NextGeneration()
	if err != nil {
		return err
	}
	if err := s.makeDir(); err != nil {
		return err
	}
	f, err := s.temporary()
	if err != nil {
		return fmt.Errorf("create checkpoint %d: %w", next, err)
	}
	w := writer{f: f, generation: next, buf: s.buf[:0]}
	c, err := w.replacement(r)
	if err != nil {
		err = errors.Join(fmt.Errorf("write checkpoint %d: %w", next, err), f.Close())
		// What a full disk can not take is not left on it; if this fails as well, the next file takes its place.
		_ = s.fs.Remove(s.path(temporaryName))
		return err
	}
	if err := s.adopt(&w, c); err != nil && s.generation != next {
		return err
	}
	s.old, s.failed, s.loaded = generations, nil, true
	if err := s.settle(); err != nil {
		s.failed = err
		return fmt.Errorf("%w: %w", ErrSwitched, err)
	}
	return nil
}

// replacement writes a whole file and returns its commit.
func (w *writer) replacement(r *Replacement) (commit, error) {
	header := binary.LittleEndian.AppendUint16(nil, version)
	header = binary.LittleEndian.AppendUint64(header, w.generation)
	w.buf = record.Append(w.buf, frameHeader, header, record.Place{Segment: w.generation})
	c := commit{number: 1, start: w.at(len(w.buf)).Offset, index: r.Index, term: r.Term, meta: append([]byte(nil), r.Meta...)}
	last := uint64(0)
	for section, err := range r.Sections {
		if err != nil {
			return commit{}, err
		}
		assert.True(c.frames == 0 || section.ID > last, "sections ascend", section.ID, last)
		if err := w.section(&section); err != nil {
			return commit{}, err
		}
		last = section.ID
		c.frames++
	}
	return c, w.end(&c)
}

// Meta are the opaque bytes of the newest state that was loaded or written. They must not be changed.
func (s *Store) Meta() []byte { return s.last.meta }

// Index is the index of the newest state that was loaded or written; 0 without one.
func (s *Store) Index() uint64 { return s.last.index }

// Known reports whether the newest state was loaded or written, so that Meta and Index are those of it.
func (s *Store) Known() bool { return s.loaded }
