package msgstore

import (
	"fmt"
	"slices"

	"weir/spec/assert"
)

// Bounds of one Rewrite.
const (
	// RewriteBlocksMax is how many blocks are copied into one.
	RewriteBlocksMax = 16
	// RewriteSizesMax bounds the bytes of the blocks read, in sizes of a block.
	RewriteSizesMax = 4
)

// Rewrite orders the living messages of some neighbouring blocks to be copied into a new block.
type Rewrite struct {
	// From are the blocks, in ascending order of their sequences, To is the new one.
	From []RewriteSource
	To   BlockID
}

// RewriteSource is a block that is copied.
type RewriteSource struct {
	// Block is the block.
	Block BlockID
	// Size is the bytes of its header and messages.
	Size int
	// living says where the living messages are.
	living table
}

// Rewritten is the outcome of a Rewrite.
type Rewritten struct {
	// From and To are those of the order.
	From []BlockID
	To   BlockID
	// Size is the bytes of header and messages of the new block.
	Size   int
	copied table
}

// poor reports whether less than half of a block lives.
func (b *block) poor() bool { return b.sealed && b.live > 0 && 2*b.liveBytes < b.size }

// TakeRewrite returns an order to copy the block that wastes most, if a block is less than half alive, together with
// neighbours that are poor or small; or small neighbours of which there are two. The caller has it carried out and calls
// Rewritten with the outcome; there is one order at a time.
func (x *Index) TakeRewrite() (Rewrite, bool) {
	if x.options.Volatile {
		return Rewrite{}, false
	}
	small := func(b *block) bool { return b.sealed && b.size <= x.options.BlockBytes/4 }
	worst, pair := -1, -1
	for i, b := range x.blocks {
		if b.poor() && (worst < 0 || b.size-b.liveBytes > x.blocks[worst].size-x.blocks[worst].liveBytes) {
			worst = i
		}
		if pair < 0 && i > 0 && small(b) && small(x.blocks[i-1]) {
			pair = i - 1
		}
	}
	if worst < 0 {
		worst = pair
	}
	if worst < 0 {
		return Rewrite{}, false
	}
	lo, hi := worst, worst+1
	bytes, size := x.blocks[worst].liveBytes, x.blocks[worst].size
	fits := func(i int) bool {
		if i < 0 || i >= len(x.blocks) || hi-lo >= RewriteBlocksMax {
			return false
		}
		b := x.blocks[i]
		if !b.poor() && !small(b) || bytes+b.liveBytes > x.options.BlockBytes || size+b.size > RewriteSizesMax*x.options.BlockBytes {
			return false
		}
		first, last := min(b.first, x.blocks[lo].first), max(b.last(), x.blocks[hi-1].last())
		if last-first >= 1<<32 {
			return false
		}
		bytes += b.liveBytes
		size += b.size
		return true
	}
	for fits(lo - 1) {
		lo--
	}
	for fits(hi) {
		hi++
	}
	if hi-lo == 1 && !x.blocks[lo].poor() {
		return Rewrite{}, false
	}
	order := Rewrite{To: x.next}
	for _, b := range x.blocks[lo:hi] {
		order.From = append(order.From, RewriteSource{Block: b.id, Size: b.size, living: b.livingOnly()})
	}
	x.next++
	x.headSet = true
	return order, true
}

// livingOnly returns a copy of the table without the dead.
func (t *table) livingOnly() table {
	c := table{first: t.first}
	for i, place := range t.places {
		if place != 0 && place&dead == 0 {
			c.put(t.seqAt(i), int(place))
		}
	}
	return c
}

// Rewritten notes that an order was carried out. Messages that were forgotten meanwhile stay forgotten.
func (x *Index) Rewritten(r Rewritten) {
	copied := &block{table: r.copied, id: r.To, size: r.Size, base: r.Size, written: r.Size, sealed: true, dirty: true}
	for i := range copied.places {
		if copied.places[i] == 0 {
			continue
		}
		seq := copied.seqAt(i)
		b := x.find(seq)
		if b == nil || !slices.Contains(r.From, b.id) {
			copied.places[i] |= dead // its block was emptied meanwhile
		} else if _, ok := b.living(seq); !ok {
			copied.places[i] |= dead
		}
	}
	copied.recount()
	x.blocks = slices.DeleteFunc(x.blocks, func(b *block) bool { return x.replaced(b, &r) })
	if copied.live == 0 {
		x.gone = append(x.gone, copied.id)
		return
	}
	at, found := slices.BinarySearchFunc(x.blocks, copied.first, compareFirst)
	assert.True(!found, "a copy takes the place of its blocks", uint64(copied.id), copied.first)
	x.blocks = slices.Insert(x.blocks, at, copied)
}

// replaced takes a block that a copy replaces out of the books.
func (x *Index) replaced(b *block, r *Rewritten) bool {
	if !slices.Contains(r.From, b.id) {
		return false
	}
	x.memory -= cap(b.data)
	x.gone = append(x.gone, b.id)
	return true
}

// copyBlock appends the living messages in the bytes of a block to the bytes of the new one.
func (done *Rewritten) copyBlock(out, data []byte, from *RewriteSource) ([]byte, error) {
	for i, place := range from.living.places {
		if int(place) >= len(data) {
			return nil, fmt.Errorf("message at offset %d of block %d: %w", place, from.Block, ErrCorrupt)
		}
		if err := checkMessage(data[place:], from.Block, int(place)); err != nil {
			return nil, err
		}
		m, err := decodeMessage(data[place:])
		if err != nil {
			return nil, err
		}
		seq := from.living.seqAt(i)
		if m.Seq != seq {
			return nil, fmt.Errorf("message %d of block %d lies at the place of %d: %w", m.Seq, from.Block, seq, ErrCorrupt)
		}
		done.copied.put(seq, len(out))
		out = appendMessage(out, layout{done.To, len(out), data[int(place)+24]&flagCompressed != 0, true}, &m)
	}
	return out, nil
}
