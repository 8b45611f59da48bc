package msgstore

import (
	"slices"

	"weir/spec/assert"
)

// BlockBytesDefault is the size from which a block is sealed.
const BlockBytesDefault = 8 << 20

// gapMax is the longest run of missing sequences inside a block; a longer one starts a new block.
const gapMax = 4096

// tailBytesMin is the first capacity of a block's memory.
const tailBytesMin = 4 << 10

// IndexOptions says how an index lays out its blocks.
type IndexOptions struct {
	// BlockBytes is the size from which a block is sealed; 0 means BlockBytesDefault.
	BlockBytes int
	// Volatile blocks live in memory only: nothing is handed out to be written, and nothing is evicted.
	Volatile bool
	// Compress compresses payloads where that makes them smaller.
	Compress bool
}

// block is one block. Invariant: offsets[i] is the place of sequence first+i, 0 when it is not there (any more); live
// counts those that are there.
type block struct {
	id        BlockID
	first     uint64
	offsets   []uint32
	live      int
	liveBytes int
	size      int // bytes of header and messages
	sealed    bool
	data      []byte // header and messages, nil when not in memory
	written   int    // bytes of data handed out to be written
	footer    []byte // of a sealed block, until it is handed out to be written
	dirty     bool   // the state differs from what the last TakeState gave
}

func (b *block) last() uint64 { return b.first + uint64(len(b.offsets)) - 1 }

// BlockWrite is a range of a block that is to be written. Its bytes are never changed any more.
type BlockWrite struct {
	// Block is the block.
	Block BlockID
	// Offset is where the bytes go.
	Offset int64
	// Bytes are the bytes.
	Bytes []byte
}

// Index lays out the messages of one stream in blocks and knows where they are. It is not safe for concurrent use.
type Index struct {
	options IndexOptions
	blocks  []*block // ascending by first; at most the last one is not sealed
	next    BlockID
	gone    []BlockID // removed since the last TakeState
	taken   []BlockID // ids in the TakeState whose outcome is open
	headSet bool      // next differs from what the last TakeState gave
	memory  int       // bytes of data of all blocks
}

// NewIndex returns the index of a stream without messages.
func NewIndex(options IndexOptions) *Index {
	if options.BlockBytes == 0 {
		options.BlockBytes = BlockBytesDefault
	}
	assert.True(options.BlockBytes > blockHeaderBytes, "a block holds more than its header", uint64(options.BlockBytes))
	return &Index{options: options, next: 1, headSet: true}
}

// Append lays out a message, whose sequence is higher than every one before. The bytes are copied.
func (x *Index) Append(m Msg) {
	b := x.tail()
	if b != nil {
		assert.True(m.Seq > b.last() || len(b.offsets) == 0, "sequences ascend", m.Seq, b.last())
		full := b.size+messageBytes(&m) > x.options.BlockBytes && len(b.offsets) > 0
		if full || len(b.offsets) > 0 && m.Seq-b.last() > gapMax {
			x.seal(b)
			b = nil
		}
	}
	if b == nil {
		b = x.begin(m.Seq)
	}
	for b.first+uint64(len(b.offsets)) < m.Seq {
		b.offsets = append(b.offsets, 0)
	}
	before := cap(b.data)
	at := len(b.data)
	b.data = appendMessage(b.data, b.id, &m, x.options.Compress, !x.options.Volatile)
	b.offsets = append(b.offsets, uint32(at))
	b.size = len(b.data)
	b.live++
	b.liveBytes += b.size - at
	b.dirty = true
	x.memory += cap(b.data) - before
}

func (x *Index) tail() *block {
	if n := len(x.blocks); n > 0 && !x.blocks[n-1].sealed {
		return x.blocks[n-1]
	}
	return nil
}

func (x *Index) begin(first uint64) *block {
	b := &block{id: x.next, first: first, dirty: true}
	x.next++
	x.headSet = true
	room := tailBytesMin
	if n := len(x.blocks); n > 0 && 2*x.blocks[n-1].size > x.options.BlockBytes {
		room = x.options.BlockBytes // a stream that filled its last block will fill this one
	}
	b.data = appendBlockHeader(make([]byte, 0, room), b.id)
	b.size = len(b.data)
	x.memory += cap(b.data)
	x.blocks = append(x.blocks, b)
	return b
}

// seal ends a block: its footer follows its messages.
func (x *Index) seal(b *block) {
	b.sealed, b.dirty = true, true
	b.offsets = slices.Clip(b.offsets)
	if b.live == 0 {
		x.remove(b)
		return
	}
	if x.options.Volatile {
		return
	}
	b.footer = appendFooter(nil, b.id, b.size, b.offsets)
}

// remove takes a block out of the index; the file goes once a checkpoint no longer refers to it.
func (x *Index) remove(b *block) {
	at, found := slices.BinarySearchFunc(x.blocks, b.first, compareFirst)
	assert.True(found && x.blocks[at] == b, "a removed block is in the index", uint64(b.id))
	x.blocks = slices.Delete(x.blocks, at, at+1)
	x.memory -= cap(b.data)
	x.gone = append(x.gone, b.id)
}

func compareFirst(b *block, seq uint64) int {
	switch {
	case b.first < seq:
		return -1
	case b.first > seq:
		return 1
	default:
		return 0
	}
}

// find returns the block that may hold the sequence, or nil.
func (x *Index) find(seq uint64) *block {
	at, found := slices.BinarySearchFunc(x.blocks, seq, compareFirst)
	if !found {
		at--
	}
	if at < 0 || seq > x.blocks[at].last() {
		return nil
	}
	return x.blocks[at]
}

// TakeWrites appends what has to be written to the disk behind the log since the last call. The bytes are frozen.
func (x *Index) TakeWrites(dst []BlockWrite) []BlockWrite {
	if x.options.Volatile {
		return dst
	}
	// Only the newest blocks can have unwritten bytes.
	at := len(x.blocks)
	for at > 0 && x.blocks[at-1].unwritten() {
		at--
	}
	for _, b := range x.blocks[at:] {
		if b.written < len(b.data) {
			bytes := b.data[b.written:len(b.data):len(b.data)]
			dst = append(dst, BlockWrite{Block: b.id, Offset: int64(b.written), Bytes: bytes})
			b.written = len(b.data)
		}
		if b.footer != nil {
			dst = append(dst, BlockWrite{Block: b.id, Offset: int64(b.size), Bytes: b.footer})
			b.footer = nil
		}
	}
	return dst
}

func (b *block) unwritten() bool { return b.written < len(b.data) || b.footer != nil }

// Lookup returns the place of a message; false when it is not there.
func (x *Index) Lookup(seq uint64) (Loc, bool) {
	b := x.find(seq)
	if b == nil {
		return Loc{}, false
	}
	offset := b.offsets[seq-b.first]
	if offset == 0 {
		return Loc{}, false
	}
	return Loc{Block: b.id, Offset: offset, Size: b.sizeAt(seq), Seq: seq}, true
}

// sizeAt bounds the size of a message: up to the next one that was laid out behind it.
func (b *block) sizeAt(seq uint64) uint32 {
	offset := b.offsets[seq-b.first]
	for _, next := range b.offsets[seq-b.first+1:] {
		if next != 0 {
			return next - offset
		}
	}
	return uint32(b.size) - offset
}

// Cached returns a message whose block is in memory. The slices alias the block's memory, which is not changed as long
// as somebody holds it.
func (x *Index) Cached(seq uint64) (Msg, bool) {
	b := x.find(seq)
	if b == nil || b.data == nil {
		return Msg{}, false
	}
	offset := b.offsets[seq-b.first]
	if offset == 0 {
		return Msg{}, false
	}
	m, err := decodeMessage(b.data[offset:b.size])
	assert.True(err == nil && m.Seq == seq, "memory holds what was laid out", seq, m.Seq)
	return m, true
}

// MemoryBytes is the memory that the bytes of blocks take.
func (x *Index) MemoryBytes() int { return x.memory }

// Evict drops sealed blocks whose bytes have been handed out from memory, oldest first, until at most budget bytes of
// blocks are in memory or nothing more can go. It returns how many bytes it freed.
func (x *Index) Evict(budget int) int {
	before := x.memory
	if x.options.Volatile {
		return 0
	}
	for _, b := range x.blocks {
		if x.memory <= budget {
			break
		}
		if b.sealed && b.data != nil && !b.unwritten() {
			x.memory -= cap(b.data)
			b.data, b.written = nil, 0
		}
	}
	return before - x.memory
}

// Forget drops one message.
func (x *Index) Forget(seq uint64) { x.ForgetRange(seq, seq) }

// ForgetRange drops the messages with sequences in [first, last]; those that are not there do not matter. It costs what
// it drops and the blocks that it empties.
func (x *Index) ForgetRange(first, last uint64) {
	at, found := slices.BinarySearchFunc(x.blocks, first, compareFirst)
	if !found && at > 0 {
		at--
	}
	for at < len(x.blocks) && x.blocks[at].first <= last {
		b := x.blocks[at]
		if len(b.offsets) > 0 && b.last() >= first {
			x.forgetIn(b, max(first, b.first), min(last, b.last()))
			if b.live == 0 && b.sealed {
				x.remove(b)
				continue
			}
		}
		at++
	}
}

func (x *Index) forgetIn(b *block, first, last uint64) {
	if first == b.first && last == b.last() && b.sealed {
		b.live, b.liveBytes = 0, 0
		return
	}
	for seq := first; seq <= last; seq++ {
		at := &b.offsets[seq-b.first]
		if *at == 0 {
			continue
		}
		if b.data != nil {
			size, ok := frameSize(b.data[*at:])
			assert.True(ok, "memory holds what was laid out", seq)
			b.liveBytes -= size
		} else {
			b.liveBytes -= int(b.sizeAt(seq))
		}
		*at = 0
		b.live--
		b.dirty = true
	}
	x.compact(b)
}

// compact moves the living messages of a block together that is kept in memory only, once more than half of it is dead.
func (x *Index) compact(b *block) {
	if !x.options.Volatile || !b.sealed || b.live == 0 || 2*b.liveBytes > b.size {
		return
	}
	data := appendBlockHeader(make([]byte, 0, blockHeaderBytes+b.liveBytes), b.id)
	for i, offset := range b.offsets {
		if offset == 0 {
			continue
		}
		size, ok := frameSize(b.data[offset:])
		assert.True(ok, "memory holds what was laid out", b.first+uint64(i))
		b.offsets[i] = uint32(len(data))
		data = append(data, b.data[offset:int(offset)+size]...)
	}
	x.memory += cap(data) - cap(b.data)
	b.data, b.size = data, len(data)
}
