package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"weir/disk/vfs"
)

// Pin is the newest state of a store at one moment, readable section by section while the store goes on.
type Pin struct {
	// Index and Term are the newest log entry that the state includes.
	Index, Term uint64
	// IDs are the ids of the sections, ascending.
	IDs []uint64

	store      *Store
	generation uint64
	f          vfs.File
	places     []place
}

// Pin pins the newest durable state; nil when there is none. The file of the state stays until Release.
func (s *Store) Pin() (*Pin, error) {
	if !s.loaded {
		if _, err := s.Load(); err != nil {
			return nil, err
		}
	}
	if s.failed != nil || s.generation == 0 {
		return nil, s.failed
	}
	if err := s.settle(); err != nil { // so that the state is durable also when a killed process left it behind
		return nil, err
	}
	f, err := s.fs.Open(s.path(fileName(s.generation)))
	if err != nil {
		return nil, fmt.Errorf("open checkpoint %d: %w", s.generation, err)
	}
	p := &Pin{Index: s.last.index, Term: s.last.term, store: s, generation: s.generation, f: f}
	p.IDs = slices.Sorted(maps.Keys(s.sections))
	p.places = make([]place, len(p.IDs))
	for i, id := range p.IDs {
		p.places[i] = s.sections[id]
	}
	s.pinned = append(s.pinned, s.generation)
	return p, nil
}

// Size is the length and the checksum of the data of section i: the CRC-32C of its id, little-endian, and its data.
func (p *Pin) Size(i int) (bytes int, sum uint32) { return int(p.places[i].n), p.places[i].sum }

// Read reads the data of section i. The error wraps ErrCorrupt when it is damaged.
func (p *Pin) Read(i int) ([]byte, error) {
	at := p.places[i]
	frame := make([]byte, at.size())
	err := vfs.ReadFull(p.f, frame, at.off)
	if errors.Is(err, vfs.ErrIO) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read section %d of checkpoint %d: %w", p.IDs[i], p.generation, err)
	}
	return at.section(frame, p.IDs[i], p.generation)
}

// Release ends the pin and removes the file if the store has gone on to another.
func (p *Pin) Release() error {
	s := p.store
	if i := slices.Index(s.pinned, p.generation); i >= 0 {
		s.pinned = slices.Delete(s.pinned, i, i+1)
	}
	err := p.f.Close()
	if s.settled {
		err = errors.Join(err, s.removeOld())
	}
	return err
}

// Section reads a section of the newest state; nil when there is none with the id.
func (s *Store) Section(id uint64) ([]byte, error) {
	at, ok := s.sections[id]
	if !ok {
		return nil, nil
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	p := Pin{IDs: []uint64{id}, generation: s.generation, f: s.f, places: []place{at}}
	return p.Read(0)
}

// Verify reads the newest state again. The error wraps ErrCorrupt when it is damaged.
func (s *Store) Verify() error {
	if s.generation == 0 {
		return nil
	}
	f, _, err := readGeneration(s.fs, s.dir, s.generation)
	if err == nil && f.last.number < s.last.number {
		err = fmt.Errorf("checkpoint %d ends at update %d of %d: %w", s.generation, f.last.number, s.last.number, ErrCorrupt)
	}
	return err
}
