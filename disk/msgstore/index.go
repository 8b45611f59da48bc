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

// BlockWrite is a range of a block that is to be written. Its bytes are never changed any more.
type BlockWrite struct {
	// Block is the block.
	Block BlockID
	// Offset is where the bytes go.
	Offset int64
	// Bytes are the bytes.
	Bytes []byte
}

// Index lays out the messages of one stream in blocks and knows where they are. It takes about 4 bytes a message besides
// the bytes that are in memory. It is not safe for concurrent use.
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
	assert.True(options.BlockBytes <= blockBytesMax/2, "block size <= maximum", uint64(options.BlockBytes))
	return &Index{options: options, next: 1, headSet: true}
}

// Append lays out a message, whose sequence is higher than every one before. The bytes are copied.
func (x *Index) Append(m Msg) {
	b := x.tail()
	if b != nil && b.count() > 0 {
		assert.True(m.Seq > b.last(), "sequences ascend", m.Seq, b.last())
		if b.size+messageBytes(&m) > x.options.BlockBytes || m.Seq-b.last() > gapMax {
			x.seal(b)
			b = nil
		}
	}
	if b == nil {
		b = x.begin(m.Seq)
	}
	for b.first+uint64(b.count()) < m.Seq {
		b.places = append(b.places, 0)
	}
	before, at := cap(b.data), b.size
	assert.True(at == b.base+len(b.data), "messages follow each other", uint64(at), uint64(b.base), uint64(len(b.data)))
	b.data = appendMessage(b.data, layout{b.id, at, x.options.Compress, !x.options.Volatile}, &m)
	b.places = append(b.places, uint32(at))
	b.size = b.base + len(b.data)
	assert.True(b.size < blockBytesMax, "block size < maximum", uint64(b.size))
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
	b := &block{table: table{first: first}, id: x.next, dirty: true}
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
	b.places = slices.Clip(b.places)
	if b.live == 0 {
		x.remove(b)
		return
	}
	if x.options.Volatile {
		return
	}
	b.footer = appendFooter(nil, b.id, b.size, &b.table)
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
	if at < 0 || x.blocks[at].count() == 0 || seq > x.blocks[at].last() {
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
		if bytes := b.data[b.written-b.base : len(b.data) : len(b.data)]; len(bytes) > 0 {
			dst = append(dst, BlockWrite{Block: b.id, Offset: int64(b.written), Bytes: bytes})
			b.written += len(bytes)
		}
		if b.footer != nil {
			dst = append(dst, BlockWrite{Block: b.id, Offset: int64(b.size), Bytes: b.footer})
			b.footer = nil
		}
	}
	return dst
}

// Unwritten is the number of bytes that TakeWrites would hand out.
func (x *Index) Unwritten() (bytes int) {
	if x.options.Volatile {
		return 0
	}
	for at := len(x.blocks) - 1; at >= 0 && x.blocks[at].unwritten(); at-- {
		b := x.blocks[at]
		bytes += b.base + len(b.data) - b.written + len(b.footer)
	}
	return bytes
}

func (b *block) unwritten() bool { return b.written < b.base+len(b.data) || b.footer != nil }

// Lookup returns the place of a message; false when it is not there.
func (x *Index) Lookup(seq uint64) (Loc, bool) {
	b := x.find(seq)
	if b == nil {
		return Loc{}, false
	}
	i, ok := b.living(seq)
	if !ok {
		return Loc{}, false
	}
	return Loc{Block: b.id, Offset: b.places[i], Size: uint32(b.sizeAt(i, b.size)), Seq: seq}, true
}

// Cached returns a message whose bytes are in memory. The slices alias the block's memory, which is not changed as long
// as somebody holds it.
func (x *Index) Cached(seq uint64) (Msg, bool) {
	b := x.find(seq)
	if b == nil || b.data == nil {
		return Msg{}, false
	}
	i, ok := b.living(seq)
	if !ok || int(b.places[i]) < b.base {
		return Msg{}, false
	}
	m, err := decodeMessage(b.data[int(b.places[i])-b.base : b.size-b.base])
	assert.True(err == nil && m.Seq == seq, "memory holds what was laid out", seq, m.Seq)
	return m, true
}

// MemoryBytes is the memory that the bytes of blocks take.
func (x *Index) MemoryBytes() int { return x.memory }

// Evict drops bytes of blocks that have been handed out to be written from memory, oldest first, until at most budget
// bytes of blocks are in memory or nothing more can go. With a budget of 0 the room that is kept for further messages goes
// as well. It returns how many bytes it freed.
func (x *Index) Evict(budget int) int {
	before := x.memory
	if x.options.Volatile {
		return 0
	}
	for _, b := range x.blocks {
		if x.memory <= budget {
			break
		}
		if b.data != nil && !b.unwritten() {
			x.memory -= cap(b.data)
			b.data, b.base = nil, b.written
		}
	}
	if b := x.tail(); b != nil && budget == 0 && cap(b.data) > len(b.data) {
		x.memory -= cap(b.data)
		b.data = append(make([]byte, 0, len(b.data)), b.data...)
		x.memory += cap(b.data)
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
		if b.count() > 0 && b.last() >= first {
			x.forgetIn(b, first, last)
			if b.live == 0 && b.sealed {
				x.remove(b)
				continue
			}
		}
		at++
	}
}

func (x *Index) forgetIn(b *block, first, last uint64) {
	if first <= b.first && last >= b.last() && b.sealed {
		b.live, b.liveBytes = 0, 0
		return
	}
	for i := b.from(first); i < b.count() && b.seqAt(i) <= last; i++ {
		if b.places[i] == 0 || b.places[i]&dead != 0 {
			continue
		}
		b.liveBytes -= b.sizeAt(i, b.size)
		b.places[i] |= dead
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
	var kept table
	kept.first = b.first
	for i := range b.places {
		if place := b.places[i]; place != 0 && place&dead == 0 {
			kept.put(b.seqAt(i), len(data))
			data = append(data, b.data[place:int(place)+b.sizeAt(i, b.size)]...)
		}
	}
	kept.pack()
	x.memory += cap(data) - cap(b.data)
	b.table, b.data, b.size = kept, data, len(data)
	assert.True(b.liveBytes == b.size-blockHeaderBytes, "all of a compacted block lives", uint64(b.liveBytes), uint64(b.size))
}
