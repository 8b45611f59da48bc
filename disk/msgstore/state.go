package msgstore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"weir/spec/assert"
)

// StateSection is a piece of the index's state for a checkpoint: section 0 is the head, every other one a block.
type StateSection struct {
	// ID is the id of the section.
	ID uint64
	// Data is its canonical form; nil when the section no longer exists.
	Data []byte
}

// headSection is the id of the section that holds the next block id. Blocks have the ids from 1.
const headSection = 0

// errState says that a section does not decode. Checkpoints are checksummed, so it is damage that was not noticed, or
// another version.
var errState = errors.New("malformed state of a message index")

// BlockState is what a checkpoint says about a block.
type BlockState struct {
	// ID is the block.
	ID BlockID
	// First is its first sequence, Count the number of sequences from there on that it covers.
	First uint64
	Count int
	// Size is the bytes of header and messages; the footer of a sealed block follows them.
	Size int
	// Sealed reports whether the block has its footer.
	Sealed bool
	// missing are the sequences that are not there, relative to First: alternating lengths of runs that are there and
	// runs that are not.
	missing []int
}

// TakeState returns the sections that changed since the last TakeState, ascending by id. If saving them fails the
// caller calls StateFailed.
func (x *Index) TakeState() []StateSection {
	var sections []StateSection
	x.taken = x.taken[:0]
	if x.headSet {
		x.headSet = false
		sections = append(sections, StateSection{ID: headSection, Data: binary.AppendUvarint(nil, uint64(x.next))})
	}
	for _, id := range x.gone {
		sections = append(sections, StateSection{ID: uint64(id)})
	}
	x.gone = x.gone[:0]
	for _, b := range x.blocks {
		if b.dirty {
			b.dirty = false
			sections = append(sections, StateSection{ID: uint64(b.id), Data: b.appendState(nil)})
			x.taken = append(x.taken, b.id)
		}
	}
	slices.SortFunc(sections, func(a, b StateSection) int { return cmp.Compare(a.ID, b.ID) })
	return sections
}

// StateFailed takes back the last TakeState. Sections of blocks that are gone are harmless: they are removed with the
// next state that is saved.
func (x *Index) StateFailed(gone []uint64) {
	x.headSet = true
	for _, b := range x.blocks {
		if slices.Contains(x.taken, b.id) {
			b.dirty = true
		}
	}
	for _, id := range gone {
		x.gone = append(x.gone, BlockID(id))
	}
}

// Blocks appends the ids of all blocks.
func (x *Index) Blocks(dst []BlockID) []BlockID {
	for _, b := range x.blocks {
		dst = append(dst, b.id)
	}
	return dst
}

func (b *block) appendState(dst []byte) []byte {
	sealed := byte(0)
	if b.sealed {
		sealed = 1
	}
	dst = append(dst, sealed)
	dst = binary.AppendUvarint(dst, b.first)
	dst = binary.AppendUvarint(dst, uint64(len(b.offsets)))
	dst = binary.AppendUvarint(dst, uint64(b.size))
	there, run := true, 0
	for _, offset := range b.offsets {
		if (offset != 0) != there {
			dst = binary.AppendUvarint(dst, uint64(run))
			there, run = !there, 0
		}
		run++
	}
	return binary.AppendUvarint(dst, uint64(run))
}

// DecodeState reads the sections of a checkpoint into block states, ascending by first sequence, and the next block id.
func DecodeState(sections []StateSection) ([]BlockState, BlockID, error) {
	var blocks []BlockState
	next := BlockID(1)
	for _, s := range sections {
		if s.ID == headSection {
			n, size := binary.Uvarint(s.Data)
			if size != len(s.Data) || n == 0 {
				return nil, 0, fmt.Errorf("head: %w", errState)
			}
			next = BlockID(n)
			continue
		}
		b, err := decodeBlockState(s)
		if err != nil {
			return nil, 0, err
		}
		blocks = append(blocks, b)
	}
	slices.SortFunc(blocks, func(a, b BlockState) int { return cmp.Compare(a.First, b.First) })
	for i := range blocks {
		if blocks[i].ID >= next || i > 0 && blocks[i].First < blocks[i-1].First+uint64(blocks[i-1].Count) {
			return nil, 0, fmt.Errorf("block %d overlaps another: %w", blocks[i].ID, errState)
		}
		if !blocks[i].Sealed && i != len(blocks)-1 {
			return nil, 0, fmt.Errorf("block %d is not sealed and not the last: %w", blocks[i].ID, errState)
		}
	}
	return blocks, next, nil
}

func decodeBlockState(s StateSection) (BlockState, error) {
	bad := fmt.Errorf("block %d: %w", s.ID, errState)
	if len(s.Data) == 0 || s.Data[0] > 1 {
		return BlockState{}, bad
	}
	b := BlockState{ID: BlockID(s.ID), Sealed: s.Data[0] == 1}
	rest := s.Data[1:]
	number := func() uint64 {
		n, size := binary.Uvarint(rest)
		if size <= 0 {
			rest = nil
			return 1 << 40 // out of every bound below
		}
		rest = rest[size:]
		return n
	}
	b.First = number()
	count, size := number(), number()
	if count > 1<<31 || size > 1<<32 || count*headBytes > size+gapMax*headBytes*(count+1) {
		return BlockState{}, bad
	}
	b.Count, b.Size = int(count), int(size)
	covered := 0
	for len(rest) > 0 {
		run := number()
		if run > count {
			return BlockState{}, bad
		}
		b.missing = append(b.missing, int(run))
		covered += int(run)
	}
	if covered != b.Count {
		return BlockState{}, bad
	}
	return b, nil
}

// BlockInfo is a block as found on the disk, for Restore.
type BlockInfo struct {
	// State is what the checkpoint said.
	State BlockState
	// Offsets are the places of the messages from State.First on, 0 where there is none.
	Offsets []uint32
	// Data are the header and messages of a block that is not sealed; nil for others.
	Data []byte
}

// Restore loads the state of a checkpoint into a fresh index. blocks are what Files.Load found, in its order.
func (x *Index) Restore(next BlockID, blocks []BlockInfo) {
	assert.True(len(x.blocks) == 0, "an index is restored once", uint64(len(x.blocks)))
	x.next, x.headSet = next, false
	for i := range blocks {
		info := &blocks[i]
		b := &block{
			id: info.State.ID, first: info.State.First, offsets: info.Offsets, size: info.State.Size,
			sealed: info.State.Sealed, data: info.Data, written: len(info.Data),
		}
		b.drop(info.State.missing)
		x.memory += cap(b.data)
		x.blocks = append(x.blocks, b)
	}
}

// drop clears the places of missing messages and counts what is left.
func (b *block) drop(missing []int) {
	at, there := 0, true
	for _, run := range missing {
		if !there {
			clear(b.offsets[at : at+run])
		}
		at += run
		there = !there
	}
	last := b.size
	for i := len(b.offsets) - 1; i >= 0; i-- {
		if b.offsets[i] != 0 {
			b.live++
			b.liveBytes += last - int(b.offsets[i])
			last = int(b.offsets[i])
		}
	}
}
