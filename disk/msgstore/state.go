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
	// First and Last are the sequences that it covers, Count the entries of its table: all from First to Last, or, when it
	// is Sparse, only those that had a message when it was written.
	First, Last uint64
	Count       int
	Sparse      bool
	// Size is the bytes of header and messages; the footer of a sealed block follows them.
	Size int
	// Sealed reports whether the block has its footer.
	Sealed bool
	// listed says that seqs is the checksum of the sequences that a Sparse block lists.
	listed bool
	seqs   uint32
	// runs are alternating lengths of runs of entries whose messages are there and of entries whose are not.
	runs []int
}

// The flags of a block's section.
const (
	stateSealed = 1 << iota
	stateSparse
	stateListed
	stateFlagsEnd
)

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

// Gone is the number of blocks without a living message that no state taken so far leaves out.
func (x *Index) Gone() int { return len(x.gone) }

// Blocks appends the ids of all blocks.
func (x *Index) Blocks(dst []BlockID) []BlockID {
	for _, b := range x.blocks {
		dst = append(dst, b.id)
	}
	return dst
}

// appendState appends the section of a block: flags (1 byte), then unsigned varints: first sequence, span, count, size,
// the checksum of the sequences if they are listed, and the runs.
func (b *block) appendState(dst []byte) []byte {
	flags := byte(0)
	if b.sealed {
		flags |= stateSealed
	}
	if b.seqs != nil {
		flags |= stateSparse | stateListed
	}
	dst = append(dst, flags)
	dst = binary.AppendUvarint(dst, b.first)
	dst = binary.AppendUvarint(dst, b.last()-b.first)
	dst = binary.AppendUvarint(dst, uint64(b.count()))
	dst = binary.AppendUvarint(dst, uint64(b.size))
	if b.seqs != nil {
		dst = binary.AppendUvarint(dst, uint64(b.seqsSum()))
	}
	there, run := true, 0
	for _, place := range b.places {
		if (place != 0 && place&dead == 0) != there {
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
		if blocks[i].ID >= next || i > 0 && blocks[i].First <= blocks[i-1].Last {
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
	if len(s.Data) == 0 || s.Data[0] >= stateFlagsEnd {
		return BlockState{}, bad
	}
	b := BlockState{ID: BlockID(s.ID), Sealed: s.Data[0]&stateSealed != 0, Sparse: s.Data[0]&stateSparse != 0}
	b.listed = s.Data[0]&stateListed != 0
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
	span, count, size := number(), number(), number()
	if count == 0 || count > 1<<31 || size >= blockBytesMax || span >= 1<<32 || span+1 < count || !b.Sparse && span+1 != count {
		return BlockState{}, bad
	}
	if count > (size/headBytes+1)*(gapMax+1) {
		return BlockState{}, bad // more sequences than messages and the gaps between them can make
	}
	if b.listed {
		sum := number()
		if sum > 1<<32-1 || !b.Sparse {
			return BlockState{}, bad
		}
		b.seqs = uint32(sum)
	}
	b.Last, b.Count, b.Size = b.First+span, int(count), int(size)
	covered := uint64(0)
	for len(rest) > 0 {
		run := number()
		if covered+run > count {
			return BlockState{}, bad
		}
		b.runs = append(b.runs, int(run))
		covered += run
	}
	if covered != count {
		return BlockState{}, bad
	}
	return b, nil
}

// Restore loads the state of a checkpoint into a fresh index. blocks are what Files.Load found, in its order.
func (x *Index) Restore(next BlockID, blocks []BlockInfo) {
	assert.True(len(x.blocks) == 0, "an index is restored once", uint64(len(x.blocks)))
	x.next, x.headSet = next, false
	for i := range blocks {
		s := &blocks[i].State
		b := &block{table: blocks[i].found, id: s.ID, size: s.Size, base: s.Size, written: s.Size, sealed: s.Sealed}
		b.bury(s.runs)
		b.recount()
		x.blocks = append(x.blocks, b)
	}
}

// bury marks the entries whose messages are not there as dead.
func (t *table) bury(runs []int) {
	at, there := 0, true
	for _, run := range runs {
		for i := at; i < at+run && !there; i++ {
			if t.places[i] != 0 {
				t.places[i] |= dead
			}
		}
		at += run
		there = !there
	}
}
