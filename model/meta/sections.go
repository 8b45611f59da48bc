package meta

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	"weir/model/fields"
	"weir/model/jsapi"
)

// The state is cut into a head section, one of the servers, and one section per stream, whose id is the group of the
// stream. Numbers without a size are uvarints, texts and lists have their length in front.
//
//	head:    version (1) | applied (8, LE) | last time (8, LE) | next group (8, LE) | next replica | registrations |
//	         formed (1, not there before it is)
//	servers: version (1) | count | servers in JSON, ascending by id
//	stream:  version (1) | created (8, LE) | config version | placement | settled | moving (1) |
//	         birth | replicas | former | first config JSON (empty: the same) | account | config JSON
//
// A list of replicas is its length, and of each the id and the server. Version 1 knew no servers.
const (
	headSection    uint64 = 0
	serversSection uint64 = 1
	sectionVersion        = 2
	versionAlone          = 1
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
		dst = binary.LittleEndian.AppendUint64(dst, m.nextGroup)
		dst = binary.AppendUvarint(dst, m.nextReplica)
		dst = binary.AppendUvarint(dst, m.registrations)
		if m.formed {
			dst = fields.AppendBool(dst, true)
		}
		return dst, true
	}
	if id == serversSection {
		return m.appendServers(dst), len(m.servers) > 0
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
	dst = binary.AppendUvarint(dst, s.Placement)
	dst = binary.AppendUvarint(dst, s.Settled)
	dst = fields.AppendBool(dst, s.Moving)
	dst = appendReplicas(dst, s.Birth)
	dst = appendReplicas(dst, s.Replicas)
	dst = appendReplicas(dst, s.Former)
	if slices.Equal(s.BirthJSON, s.JSON) {
		dst = fields.AppendBytes(dst, nil)
	} else {
		dst = fields.AppendBytes(dst, s.BirthJSON)
	}
	dst = fields.AppendText(dst, s.Account)
	return append(dst, s.JSON...)
}

func appendReplicas(dst []byte, replicas []Replica) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(replicas)))
	for _, r := range replicas {
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, r.ID), r.Server)
	}
	return dst
}

func takeReplicas(r *fields.Reader) []Replica {
	var replicas []Replica
	for range r.Count() {
		replicas = append(replicas, Replica{ID: r.Uvarint(), Server: r.Uvarint()})
	}
	return replicas
}

func (m *Machine) appendServers(dst []byte) []byte {
	dst = append(dst, sectionVersion)
	dst = binary.AppendUvarint(dst, uint64(len(m.servers)))
	for _, id := range slices.Sorted(maps.Keys(m.servers)) {
		dst = fields.AppendBytes(dst, jsapi.AppendJSON(nil, m.servers[id]))
	}
	return dst
}

// RestoreSection loads a section into a fresh machine. It fails with ErrSection.
func (m *Machine) RestoreSection(id uint64, data []byte) error {
	if len(data) == 0 || data[0] != sectionVersion && data[0] != versionAlone {
		return fmt.Errorf("%w: %d of %d bytes has another version", ErrSection, id, len(data))
	}
	switch id {
	case headSection:
		return m.restoreHead(data)
	case serversSection:
		return m.restoreServers(data)
	}
	s, err := parseStream(data)
	if err != nil {
		return fmt.Errorf("stream of group %d: %w", id, err)
	}
	s.Group = id
	if m.byGroup[id] != nil || m.byName[key{s.Account, s.Name}] != nil {
		return fmt.Errorf("%w: group %d is there twice", ErrSection, id)
	}
	if m.checkOverlap(s.Account, id, s.Config) != nil {
		return fmt.Errorf("%w: group %d captures subjects of another stream", ErrSection, id)
	}
	m.insert(s)
	return nil
}

func (m *Machine) restoreHead(data []byte) error {
	r := fields.NewReader(data[1:])
	m.applied, m.lastTime, m.nextGroup = r.Fixed64(), int64(r.Fixed64()), r.Fixed64()
	if data[0] != versionAlone {
		m.nextReplica, m.registrations = r.Uvarint(), r.Uvarint()
		m.formed = r.Len() > 0
	}
	if m.formed && r.Byte() != 1 || !r.Done() {
		return fmt.Errorf("%w: head of %d bytes", ErrSection, len(data))
	}
	return nil
}

func (m *Machine) restoreServers(data []byte) error {
	r := fields.NewReader(data[1:])
	for range r.Count() {
		s := new(Server)
		if err := json.Unmarshal(r.Bytes(), s); err != nil {
			return fmt.Errorf("%w: server: %w", ErrSection, err)
		}
		if s.ID == 0 || m.servers[s.ID] != nil {
			return fmt.Errorf("%w: server %d is there twice", ErrSection, s.ID)
		}
		m.putServer(s)
	}
	if !r.Done() || len(m.servers) == 0 {
		return fmt.Errorf("%w: servers in %d bytes", ErrSection, len(data))
	}
	return nil
}

func parseStream(data []byte) (*Stream, error) {
	r := fields.NewReader(data[1:]) // what follows the version
	s := &Stream{Created: int64(r.Fixed64()), Version: r.Uvarint()}
	if data[0] != versionAlone {
		s.Placement, s.Settled, s.Moving = r.Uvarint(), r.Uvarint(), r.Bool()
		s.Birth, s.Replicas, s.Former = takeReplicas(&r), takeReplicas(&r), takeReplicas(&r)
		s.BirthJSON = slices.Clone(r.Bytes())
	}
	s.Account = string(r.Bytes())
	if r.Failed() {
		return nil, fmt.Errorf("%w: cut off in %d bytes", ErrSection, len(data))
	}
	if !distinct(s) {
		return nil, fmt.Errorf("%w: a server has two replicas", ErrSection)
	}
	config, err := jsapi.ParseStreamConfig(r.Rest())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSection, err)
	}
	if config.Replicas > jsapi.ReplicasMax {
		return nil, fmt.Errorf("%w: %d replicas", ErrSection, config.Replicas)
	}
	s.Name, s.Config, s.JSON = config.Name, config, config.AppendJSON(nil)
	if len(s.BirthJSON) == 0 {
		s.BirthJSON = s.JSON
	}
	return s, nil
}

// Restored validates the whole after the last RestoreSection. It fails with ErrSection.
func (m *Machine) Restored() error {
	for _, s := range m.order {
		if s.Group < FirstGroup || s.Group >= m.nextGroup {
			return fmt.Errorf("%w: group %d, next is %d", ErrSection, s.Group, m.nextGroup)
		}
		for _, r := range slices.Concat(s.Replicas, s.Former) {
			if r.ID >= m.nextReplica || m.servers[r.Server] == nil {
				return fmt.Errorf("%w: group %d has replica %d on server %d", ErrSection, s.Group, r.ID, r.Server)
			}
		}
	}
	m.MarkClean()
	return nil
}

// Digest is a hash of the complete logical state; equal states have equal digests.
func (m *Machine) Digest() uint64 {
	head, _ := m.AppendSection(nil, headSection)
	if len(m.servers) > 0 {
		head = m.appendServers(head)
	}
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
