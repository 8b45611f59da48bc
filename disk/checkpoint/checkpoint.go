// Package checkpoint keeps the newest durable state of one group as sections: numbered pieces of bytes that are written
// only when they change.
//
// It promises that Write is atomic: after a power loss Load returns the state as of one Write, at least the newest that
// returned nil. Damage to bytes that are known to have been durable is ErrCorrupt, never an older or an empty state. It
// does not know what sections mean. A Store is used by one caller at a time.
//
// The directory of a group holds one file, "000000000000000a.ckpt" for generation 10, besides what a crash leaves:
//
//	+--------+---------+---------+--------+--------+---------+--------+
//	| header | section | section | commit | delete | section | commit |
//	+--------+---------+---------+--------+--------+---------+--------+
//	         \________ one Write ________/\________ the next ________/
//
// The frames are those of package record, bound to the generation and their offsets; little-endian numbers:
//
//	header   version (2 bytes), generation (8)
//	section  id (8), data
//	delete   ids (8 each)
//	commit   number (8), start of its update (8), frames of it (8), index (8), term (8), meta
//
// A commit counts only when its update starts where the commit before it ends and its number is the next: frames that a
// torn Write left behind can not pass for a later one. When more than half of a file is superseded, the live sections
// go into a file of the next generation, which is written and synced under a temporary name, renamed, and made durable
// before the old one is removed.
//
// # Crash and damage
//
// Bad bytes behind the last commit that counts are the torn end, unless a good commit of a later update stands behind
// them. When the last commit itself is damaged, that reads as torn: Load returns the state before it. The caller tells the
// two apart by the log, whose compaction mark must not be above the index of the checkpoint.
package checkpoint

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"weir/disk/record"
	"weir/disk/vfs"
	"weir/spec/assert"
)

// Mark is a position in the log of a group.
type Mark struct {
	Index, Term uint64
}

// Section is a piece of state.
type Section struct {
	// ID identifies the section within its group.
	ID uint64
	// Data is its content, at most SectionBytesMax.
	Data []byte
}

// Update is what changed since the Write before.
type Update struct {
	// Index and Term are the newest log entry that the state includes.
	Index, Term uint64
	// Put are new or changed sections, Delete the ids of those that no longer exist. No id occurs twice.
	Put    []Section
	Delete []uint64
	// Meta replaces the opaque bytes that go with the state.
	Meta []byte
}

// State is a whole checkpoint. The zero State means that there is none.
type State struct {
	// Index and Term are the newest log entry that the state includes.
	Index, Term uint64
	// Meta are the opaque bytes of the newest update.
	Meta []byte
	// Sections are all sections, ascending by id. Their data are slices of one buffer.
	Sections []Section
}

const (
	// SectionBytesMax bounds the data of a section.
	SectionBytesMax = record.PayloadBytesMax - 8

	version         = 1
	garbageBytesMin = 64 << 10 // a file with less garbage is not worth rewriting
	flushBytes      = 1 << 20  // frames are written in pieces of about this size
	commitBytes     = 5 * 8
)

// ErrCorrupt says that a checkpoint which was durable is damaged. It is record.ErrCorrupt.
var ErrCorrupt = record.ErrCorrupt

// ErrVersion says that the checkpoint was written in a format that this program does not know.
var ErrVersion = errors.New("unknown version of a checkpoint")

const (
	frameHeader  record.Type = 1
	frameSection record.Type = 2
	frameDelete  record.Type = 3
	frameCommit  record.Type = 4
)

// place is where a section lies: its frame is the bytes [off, off+size()) of the file. The zero place is none.
type place struct {
	off int64
	n   uint32 // bytes of the section's data
	sum uint32 // checksum of the frame's payload, which is id and data
}

func (p place) size() int {
	if p.off == 0 { // where the header of the file lies
		return 0
	}
	return record.Size(8 + int(p.n))
}

// frameSum is the checksum of the payload in the header of a frame.
func frameSum(frame []byte) uint32 { return binary.LittleEndian.Uint32(frame[record.HeaderBytes-4:]) }

// change is a section that an update puts at a place, or deletes where there is no place.
type change struct {
	id uint64
	place
}

// commit is the payload of a frameCommit.
type commit struct {
	number      uint64
	start       int64
	frames      uint64
	index, term uint64
	meta        []byte
}

func (c *commit) append(dst []byte) []byte {
	for _, n := range [...]uint64{c.number, uint64(c.start), c.frames, c.index, c.term} {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	}
	return append(dst, c.meta...)
}

func decodeCommit(p []byte) (commit, bool) {
	if len(p) < commitBytes {
		return commit{}, false
	}
	n := func(i int) uint64 { return binary.LittleEndian.Uint64(p[8*i:]) }
	return commit{n(0), int64(n(1)), n(2), n(3), n(4), p[commitBytes:]}, true
}

// file is what the bytes of a checkpoint file hold.
type file struct {
	generation uint64
	last       commit // the newest commit that counts
	end        int64  // behind it
	sections   map[uint64]place
	live       int64 // bytes of the frames of the sections
}

// parse reads a checkpoint file.
func parse(data []byte, generation uint64) (file, error) {
	f := file{generation: generation, sections: map[uint64]place{}}
	at := record.Place{Segment: generation}
	frame, err := record.Next(data, at, 0)
	if err != nil || frame.Type != frameHeader || len(frame.Payload) < 2 {
		return file{}, fmt.Errorf("header: %w", ErrCorrupt)
	}
	if v := binary.LittleEndian.Uint16(frame.Payload); v != version {
		return file{}, fmt.Errorf("version %d: %w", v, ErrVersion)
	}
	f.end = frame.End
	at.Offset = frame.End
	var pending []change
	frames := uint64(0)
	for {
		frame, err := record.Next(data[min(at.Offset, int64(len(data))):], at, 0)
		if err != nil {
			break
		}
		off := at.Offset
		at.Offset = frame.End
		frames++
		switch {
		case frame.Type == frameSection && len(frame.Payload) >= 8:
			at := place{off, uint32(len(frame.Payload) - 8), frameSum(data[off:])}
			pending = append(pending, change{binary.LittleEndian.Uint64(frame.Payload), at})
			continue
		case frame.Type == frameDelete && len(frame.Payload)%8 == 0:
			for p := frame.Payload; len(p) > 0; p = p[8:] {
				pending = append(pending, change{id: binary.LittleEndian.Uint64(p)})
			}
			continue
		}
		c, ok := decodeCommit(frame.Payload)
		if frame.Type != frameCommit || !ok || c.start != f.end || c.number != f.last.number+1 || c.frames != frames {
			break
		}
		f.accept(c, frame.End, pending)
		pending, frames = pending[:0], 0
	}
	if f.last.number == 0 {
		return file{}, fmt.Errorf("no commit: %w", ErrCorrupt)
	}
	if later, ok := findLater(data, &f); ok {
		return file{}, fmt.Errorf("bad bytes between offset %d and the update at %d: %w", f.end, later, ErrCorrupt)
	}
	return f, nil
}

// accept makes a committed update part of the file.
func (f *file) accept(c commit, end int64, changes []change) {
	f.last, f.end = c, end
	for _, ch := range changes {
		f.live -= int64(f.sections[ch.id].size())
		if ch.off == 0 {
			delete(f.sections, ch.id)
			continue
		}
		f.sections[ch.id] = ch.place
		f.live += int64(ch.size())
	}
}

// findLater returns the start of an update that was begun after one whose frames are bad.
func findLater(data []byte, f *file) (int64, bool) {
	for off := f.end; off < int64(len(data)); {
		at, ok := record.Find(data[off:], record.Place{Segment: f.generation, Offset: off})
		if !ok {
			return 0, false
		}
		frame, err := record.Next(data[at:], record.Place{Segment: f.generation, Offset: at}, 0)
		off = at + record.Align
		if err != nil {
			continue
		}
		off = frame.End
		if c, ok := decodeCommit(frame.Payload); ok && frame.Type == frameCommit && c.start > f.end {
			return c.start, true
		}
	}
	return 0, false
}

// state returns the content of a file; the data are slices of data.
func (f *file) state(data []byte) State {
	s := State{Index: f.last.index, Term: f.last.term, Meta: slices.Clone(f.last.meta)}
	s.Sections = make([]Section, 0, len(f.sections))
	for id, p := range f.sections { // order-free: sorted below
		s.Sections = append(s.Sections, Section{id, sectionData(data[p.off : p.off+int64(p.size())])})
	}
	slices.SortFunc(s.Sections, func(a, b Section) int { return cmp.Compare(a.ID, b.ID) })
	return s
}

// sectionData returns the data in a section frame that was checked before.
func sectionData(frame []byte) []byte {
	n := int(binary.LittleEndian.Uint32(frame[4:]))
	assert.True(n >= 8 && record.Size(n) == len(frame), "a section frame has the size it says", uint64(n), uint64(len(frame)))
	return frame[record.HeaderBytes+8 : record.HeaderBytes+n : record.HeaderBytes+n]
}

// section returns the data in the frame at the place of a section. The error wraps ErrCorrupt when the frame is not the one
// that was written there.
func (p place) section(frame []byte, id, generation uint64) ([]byte, error) {
	got, err := record.Next(frame, record.Place{Segment: generation, Offset: p.off}, p.off+1)
	same := err == nil && got.Type == frameSection && len(got.Payload) == 8+int(p.n) && frameSum(frame) == p.sum
	if !same || binary.LittleEndian.Uint64(got.Payload) != id {
		return nil, fmt.Errorf("section %d of checkpoint %d at offset %d: %w", id, generation, p.off, ErrCorrupt)
	}
	return got.Payload[8:len(got.Payload):len(got.Payload)], nil
}

// readFile reads the file of a generation.
func readFile(fs vfs.FS, dir string, generation uint64) ([]byte, error) {
	data, err := vfs.ReadFile(fs, dir+"/"+fileName(generation))
	if errors.Is(err, vfs.ErrIO) {
		err = fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read checkpoint %d: %w", generation, err)
	}
	return data, nil
}

// readGeneration reads and parses the file of a generation.
func readGeneration(fs vfs.FS, dir string, generation uint64) (file, []byte, error) {
	data, err := readFile(fs, dir, generation)
	if err != nil {
		return file{}, nil, err
	}
	f, err := parse(data, generation)
	if err != nil {
		return file{}, nil, fmt.Errorf("checkpoint %d: %w", generation, err)
	}
	return f, data, nil
}
