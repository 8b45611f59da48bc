package msgstore

import (
	"errors"
	"fmt"
)

// BlockInfo is a block as found on the disk, for Restore.
type BlockInfo struct {
	// State is what the checkpoint said.
	State BlockState
	// found says where the messages are.
	found table
}

// Load finds the blocks that a checkpoint refers to: the places of the messages come from the footers of sealed blocks,
// and from the bytes of the one that is not sealed, or whose footer is damaged. The error wraps ErrCorrupt when a block
// is damaged or missing. A message whose bytes are damaged is found nevertheless where its frame can be stepped over: it
// fails when it is read.
func (f *Files) Load(states []BlockState) ([]BlockInfo, error) {
	infos := make([]BlockInfo, 0, len(states))
	for i := range states {
		found, err := f.load(&states[i])
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		infos = append(infos, BlockInfo{states[i], found})
	}
	if len(states) > 0 {
		f.exists, f.newDir, f.newDirs = true, true, true // a killed process may have left entries that are not durable
	}
	return infos, f.Close()
}

func (f *Files) load(s *BlockState) (table, error) {
	file, err := f.file(s.ID)
	if err != nil {
		return table{}, missing(s.ID, err)
	}
	if s.Sealed {
		data := make([]byte, footerBytes(s.Count, s.Sparse))
		if err = readFull(file, data, int64(s.Size)); err == nil {
			var t table
			if t, err = decodeFooter(data, s); err == nil {
				return t, nil
			}
		}
		if !errors.Is(err, ErrCorrupt) {
			return table{}, err
		}
	}
	data := make([]byte, s.Size)
	if err := readFull(file, data, 0); err != nil {
		return f.endAtDamage(s, fmt.Errorf("read block %d: %w", s.ID, err))
	}
	t, err := scanBlock(data, s, f.plant.EndAtDamage)
	if err != nil {
		return f.endAtDamage(s, err)
	}
	return t, nil
}

// endAtDamage is the error that a block can not be read, unless the fault is planted that takes such a block for an empty
// one.
func (f *Files) endAtDamage(s *BlockState, err error) (table, error) {
	if !f.plant.EndAtDamage || s.Sparse || !errors.Is(err, ErrCorrupt) {
		return table{}, err
	}
	return table{first: s.First, places: make([]uint32, s.Count)}, nil
}

// scanBlock finds the messages in the bytes of a block. lenient is the planted fault of taking damage for the end.
func scanBlock(data []byte, s *BlockState, lenient bool) (table, error) {
	if err := checkBlockHeader(data, s.ID); err != nil {
		return table{}, err
	}
	t := table{first: s.First}
	for at := blockHeaderBytes; at < len(data); {
		size, ok := frameSize(data[at:])
		seq := sequenceOf(data[at:])
		if !ok || seq < s.First || seq > s.Last || t.count() > 0 && seq <= t.last() {
			if lenient {
				break
			}
			return table{}, fmt.Errorf("message at offset %d of block %d: %w", at, s.ID, ErrCorrupt)
		}
		t.put(seq, at)
		at += size
	}
	if s.Sparse {
		if t.count() != s.Count && !lenient {
			return table{}, fmt.Errorf("block %d holds %d messages of %d: %w", s.ID, t.count(), s.Count, ErrCorrupt)
		}
		return t, nil
	}
	places := make([]uint32, s.Count)
	for i, rel := range t.seqs {
		places[rel] = t.places[i]
	}
	return table{first: s.First, places: places}, nil
}

// Locs appends the places of the messages that are there according to the checkpoint, ascending by sequence.
func (b *BlockInfo) Locs(dst []Loc) []Loc {
	t := table{first: b.found.first, seqs: b.found.seqs, places: append([]uint32(nil), b.found.places...)}
	t.bury(b.State.runs)
	for i, place := range t.places {
		if place != 0 && place&dead == 0 {
			dst = append(dst, Loc{Block: b.State.ID, Offset: place, Size: uint32(t.sizeAt(i, b.State.Size)), Seq: t.seqAt(i)})
		}
	}
	return dst
}
