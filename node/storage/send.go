package storage

import (
	"fmt"
	"maps"
	"slices"

	"weir/disk/checkpoint"
	"weir/disk/msgstore"
	"weir/disk/snapshot"
	"weir/disk/wal"
	"weir/node/event"
	"weir/spec/assert"
)

// pin is a checkpoint of a group that another server reads.
type pin struct {
	group  wal.GroupID
	files  *msgstore.Files
	state  *checkpoint.Pin
	ends   []uint64 // for each section, where it ends in part 0
	blocks []msgstore.BlockID
}

// pin pins the newest checkpoint of a group. It reads nothing but what is in memory, however large the group.
func (s *Storage) pin(id wal.GroupID) (event.Pinned, error) {
	if len(s.pins) >= event.PinsMax {
		return event.Pinned{}, event.ErrPinned
	}
	g := s.files(id)
	if g.half {
		return event.Pinned{}, event.ErrHalfInstalled
	}
	state, err := g.checkpoints.Pin()
	if err != nil {
		return event.Pinned{}, fmt.Errorf("pin the checkpoint of group %d: %w", id, err)
	}
	if state == nil {
		return event.Pinned{}, event.ErrNoCheckpoint
	}
	p := &pin{group: id, files: g.blocks, state: state}
	m := snapshot.Manifest{Index: state.Index, Term: state.Term, Sections: uint64(len(state.IDs))}
	var digest snapshot.Digest
	for i, id := range state.IDs {
		n, sum := state.Size(i)
		digest = digest.Add(id, n, sum)
		m.Bytes += snapshot.SectionBytes(n)
		p.ends = append(p.ends, m.Bytes)
		if id > event.IndexSections {
			p.blocks = append(p.blocks, msgstore.BlockID(id-event.IndexSections))
		}
	}
	m.Digest, m.Blocks = uint64(digest), uint64(len(p.blocks))
	g.blocks.Pin(p.blocks)
	s.newestPin++
	s.pins[s.newestPin] = p
	return event.Pinned{Pin: s.newestPin, Manifest: m}, nil
}

// readPart reads a piece of a pinned snapshot.
func (s *Storage) readPart(op *event.Op) ([]byte, error) {
	order := &op.Snapshot
	assert.True(order.Max > 0 && order.Max <= event.PieceBytesMax, "a piece has a size in its bounds", uint64(order.Max))
	p := s.pins[order.Pin]
	if p == nil || p.group != op.Group {
		return nil, event.ErrUnpinned
	}
	if order.Part == event.SectionsPart {
		return p.readSections(order.Offset, order.Max)
	}
	if _, ok := slices.BinarySearch(p.blocks, msgstore.BlockID(order.Part)); !ok {
		return nil, fmt.Errorf("block %d is not in the snapshot: %w", order.Part, event.ErrUnpinned)
	}
	data := make([]byte, order.Max)
	return data, p.files.ReadRange(msgstore.BlockID(order.Part), int64(order.Offset), data)
}

// readSections reads at most so many bytes of part 0.
func (p *pin) readSections(offset uint64, most int) ([]byte, error) {
	var data []byte
	i, _ := slices.BinarySearch(p.ends, offset+1) // the section that holds the byte at the offset
	for ; i < len(p.ends) && len(data) < most; i++ {
		body, err := p.state.Read(i)
		if err != nil {
			return nil, fmt.Errorf("group %d: %w", p.group, err)
		}
		n, sum := p.state.Size(i)
		start := p.ends[i] - snapshot.SectionBytes(n)
		piece := append(snapshot.AppendHead(nil, p.state.IDs[i], n, sum), body...)
		if start < offset {
			piece = piece[offset-start:]
		}
		data = append(data, piece[:min(len(piece), most-len(data))]...)
	}
	return data, nil
}

// unpin ends a pin. What it kept is removed; a file that can not be removed now goes with a later checkpoint or start.
func (s *Storage) unpin(id event.PinID) {
	p := s.pins[id]
	if p == nil {
		return
	}
	delete(s.pins, id)
	_ = p.state.Release()
	_ = p.files.Unpin(p.blocks)
}

// unpinGroup ends the pins of a group.
func (s *Storage) unpinGroup(group wal.GroupID) {
	for _, id := range slices.Sorted(maps.Keys(s.pins)) {
		if s.pins[id].group == group {
			s.unpin(id)
		}
	}
}
