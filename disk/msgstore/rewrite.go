package msgstore

import (
	"fmt"
	"slices"

	"weir/spec/assert"
)

// Rewrite orders the living messages of a block to be copied into a new block.
type Rewrite struct {
	// From is the block with little living data, To the new one.
	From, To BlockID
	// First is the first sequence of both; Offsets are the places of the living messages in From, 0: dead.
	First   uint64
	Offsets []uint32
	// Size is the bytes of header and messages of From.
	Size int
}

// Rewritten is the outcome of a Rewrite.
type Rewritten struct {
	// From and To are those of the order.
	From, To BlockID
	// Offsets are the places in To, Size its bytes of header and messages.
	Offsets []uint32
	Size    int
}

// TakeRewrite returns an order to copy the block that wastes most, if a block is less than half alive. The caller has
// it carried out and calls Rewritten with the outcome; there is one order at a time.
func (x *Index) TakeRewrite() (Rewrite, bool) {
	if x.options.Volatile {
		return Rewrite{}, false
	}
	var worst *block
	for _, b := range x.blocks {
		dead := b.size - b.liveBytes
		if b.sealed && b.live > 0 && 2*dead > b.size && (worst == nil || dead > worst.size-worst.liveBytes) {
			worst = b
		}
	}
	if worst == nil {
		return Rewrite{}, false
	}
	order := Rewrite{From: worst.id, To: x.next, First: worst.first, Size: worst.size, Offsets: slices.Clone(worst.offsets)}
	x.next++
	x.headSet = true
	return order, true
}

// Rewritten notes that an order was carried out. Messages that were forgotten meanwhile stay forgotten.
func (x *Index) Rewritten(r Rewritten) {
	at := slices.IndexFunc(x.blocks, func(b *block) bool { return b.id == r.From })
	if at < 0 {
		return // everything in the block was forgotten meanwhile
	}
	b := x.blocks[at]
	assert.True(len(r.Offsets) == len(b.offsets), "a copy covers the sequences of its block",
		uint64(len(r.Offsets)), uint64(len(b.offsets)))
	x.memory -= cap(b.data)
	x.gone = append(x.gone, b.id)
	copied := &block{id: r.To, first: b.first, offsets: r.Offsets, size: r.Size, sealed: true, dirty: true}
	for i, offset := range b.offsets {
		if offset == 0 {
			copied.offsets[i] = 0
		}
	}
	copied.drop(nil)
	x.blocks[at] = copied
}

// rewriteBlock copies the living messages out of the bytes of a block into the bytes of the new one.
func rewriteBlock(data []byte, r *Rewrite) ([]byte, Rewritten, error) {
	done := Rewritten{From: r.From, To: r.To, Offsets: make([]uint32, len(r.Offsets))}
	out := appendBlockHeader(nil, r.To)
	for i, offset := range r.Offsets {
		if offset == 0 {
			continue
		}
		if int(offset) >= len(data) {
			return nil, Rewritten{}, fmt.Errorf("message at offset %d of block %d: %w", offset, r.From, ErrCorrupt)
		}
		if err := checkMessage(data[offset:], r.From, int(offset)); err != nil {
			return nil, Rewritten{}, err
		}
		m, err := decodeMessage(data[offset:])
		if err != nil {
			return nil, Rewritten{}, err
		}
		if m.Seq != r.First+uint64(i) {
			return nil, Rewritten{}, fmt.Errorf("message %d of block %d lies at the place of %d: %w", m.Seq, r.From,
				r.First+uint64(i), ErrCorrupt)
		}
		done.Offsets[i] = uint32(len(out))
		out = appendMessage(out, r.To, &m, data[offset+24]&flagCompressed != 0, true)
	}
	done.Size = len(out)
	return appendFooter(out, r.To, len(out), done.Offsets), done, nil
}
