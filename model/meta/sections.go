package meta

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"weir/model/fields"
	"weir/model/jsapi"
)

// The state is cut into a head section and one section per stream, whose id is the group of the stream.
//
//	head:   version (1) | applied (8, LE) | last time (8, LE) | next group (8, LE)
//	stream: version (1) | created (8, LE) | config version (uvarint) | account (uvarint length, bytes) | config JSON
const (
	headSection    uint64 = 0
	sectionVersion        = 1
	headSize              = 1 + 8 + 8 + 8
)

// ErrSection is returned for bytes that are no section of this version.
var ErrSection = errors.New("malformed section of the catalog")

func (m *Machine) markDirty(id uint64) { m.dirty[id] = struct{}{} }

// DirtySections appends the ids of the sections that changed since the last MarkClean, ascending.
func (m *Machine) DirtySections(dst []uint64) []uint64 {
	return append(dst, slices.Sorted(maps.Keys(m.dirty))...)
}

// MarkClean notes that the dirty sections have been taken.
func (m *Machine) MarkClean() { clear(m.dirty) }

// MarkDirty takes back MarkClean for sections that could not be saved.
func (m *Machine) MarkDirty(ids []uint64) {
	for _, id := range ids {
		m.markDirty(id)
	}
}

// AppendSection appends the canonical bytes of a section; false means that the section no longer exists.
func (m *Machine) AppendSection(dst []byte, id uint64) ([]byte, bool) {
	if id == headSection {
		dst = append(dst, sectionVersion)
		dst = binary.LittleEndian.AppendUint64(dst, m.applied)
		dst = binary.LittleEndian.AppendUint64(dst, uint64(m.lastTime))
		return binary.LittleEndian.AppendUint64(dst, m.nextGroup), true
	}
	s := m.byGroup[id]
	if s == nil {
		return dst, false
	}
	return appendStream(dst, s), true
}

func appendStream(dst []byte, s *Stream) []byte {
	dst = append(dst, sectionVersion)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.Created))
	dst = binary.AppendUvarint(dst, s.Version)
	dst = fields.AppendText(dst, s.Account)
	return append(dst, s.JSON...)
}

// RestoreSection loads a section into a fresh machine. It fails with ErrSection.
func (m *Machine) RestoreSection(id uint64, data []byte) error {
	if len(data) == 0 || data[0] != sectionVersion {
		return fmt.Errorf("%w: %d of %d bytes has another version", ErrSection, id, len(data))
	}
	if id == headSection {
		if len(data) != headSize {
			return fmt.Errorf("%w: head of %d bytes", ErrSection, len(data))
		}
		m.applied = binary.LittleEndian.Uint64(data[1:])
		m.lastTime = int64(binary.LittleEndian.Uint64(data[9:]))
		m.nextGroup = binary.LittleEndian.Uint64(data[17:])
		return nil
	}
	s, err := parseStream(data)
	if err != nil {
		return fmt.Errorf("stream of group %d: %w", id, err)
	}
	s.Group = id
	if m.byGroup[id] != nil || m.byName[key{s.Account, s.Name}] != nil {
		return fmt.Errorf("%w: group %d is there twice", ErrSection, id)
	}
	m.insert(s)
	return nil
}

func parseStream(data []byte) (*Stream, error) {
	r := fields.NewReader(data[1:]) // what follows the version
	s := &Stream{Created: int64(r.Fixed64()), Version: r.Uvarint(), Account: string(r.Bytes())}
	if r.Failed() {
		return nil, fmt.Errorf("%w: cut off in %d bytes", ErrSection, len(data))
	}
	config, err := jsapi.ParseStreamConfig(r.Rest())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSection, err)
	}
	s.Name, s.Config, s.JSON = config.Name, config, config.AppendJSON(nil)
	return s, nil
}

// Restored validates the whole after the last RestoreSection. It fails with ErrSection.
func (m *Machine) Restored() error {
	for _, s := range m.order {
		if s.Group < FirstGroup || s.Group >= m.nextGroup {
			return fmt.Errorf("%w: group %d, next is %d", ErrSection, s.Group, m.nextGroup)
		}
	}
	m.MarkClean()
	return nil
}

// Digest is a hash of the complete logical state; equal states have equal digests.
func (m *Machine) Digest() uint64 {
	head, _ := m.AppendSection(make([]byte, 0, headSize+8), headSection)
	hash := fnv.New64a()
	hash.Write(binary.LittleEndian.AppendUint64(head, m.sum))
	return hash.Sum64()
}

// hashStream is the part of one stream in the digest; parts are added up.
func hashStream(s *Stream) uint64 {
	hash := fnv.New64a()
	hash.Write(appendStream(binary.LittleEndian.AppendUint64(nil, s.Group), s))
	return hash.Sum64()
}
