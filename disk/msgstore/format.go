// Package msgstore keeps the bytes of a stream's messages in append-only block files, found by sequence.
//
// It comes in two halves that share the format. Index is pure: it lays messages out in blocks, remembers where they
// are, and holds recent blocks in memory. Files carries out on a file system what Index hands out. The blocks are
// written behind the log without being synced one by one; a checkpoint syncs them and records the index's state, and
// what came later is laid out again from the log. So nothing here decides what exists: the state machine does.
//
// Every message carries a checksum bound to its place. A message that does not match it is damaged (ErrCorrupt), which
// is never the same as absent.
//
// A block file:
//
//	+----------------+---------+---------+-----+--------+
//	| magic, version | message | message | ... | footer |
//	| id   (16 B)    |         |         |     |        |
//	+----------------+---------+---------+-----+--------+
//
// A message (little-endian):
//
//	 0      4       8      16     24        25       27      31
//	+------+-------+------+------+---------+--------+-------+---------+--------+---------+
//	| crc  | size  | seq  | time | flags   | subj.  | hdr.  | subject | header | payload |
//	|      |       |      |      |         | length | length|         |        |         |
//	+------+-------+------+------+---------+--------+-------+---------+--------+---------+
//
// size is the whole message's. The footer of a sealed block, at the offset that the index's state gives:
//
//	crc, count (8 bytes), then for each sequence from the block's first the offset of its message (4 bytes), 0: none;
//	or, with the highest bit of the count set, for each message its offset, then for each its sequence relative to the
//	first (4 bytes each).
package msgstore

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"

	"weir/disk/record"
	"weir/spec/assert"
)

// BlockID identifies a block of one stream. It is never used for two blocks whose bytes a checkpoint refers to.
type BlockID uint64

// ErrCorrupt says that bytes at a place where a message or footer was written are not what was written. It wraps
// record.ErrCorrupt.
var ErrCorrupt = fmt.Errorf("damaged message block: %w", record.ErrCorrupt)

// ErrVersion says that a block was written in a format that this program does not know.
var ErrVersion = errors.New("unknown version of a message block")

const (
	magic             = "WEIRMSG"
	version           = 1
	blockHeaderBytes  = 16
	headBytes         = 31
	footerHeadBytes   = 8
	flagCompressed    = 1
	compressFromBytes = 256
	payloadBytesMax   = 1 << 30 // more than any message has; bounds what a damaged length can ask for

	// SubjectBytesMax is what the format can hold of a subject in bytes; the client protocol allows less.
	SubjectBytesMax = 1<<16 - 1
	// HeaderBytesMax is what the format can hold of a header in bytes; the client protocol allows less.
	HeaderBytesMax = 1<<31 - 1
)

// Msg is a stored message.
type Msg struct {
	// Seq is the sequence in the stream.
	Seq uint64
	// Time is when it was stored, unix nanoseconds.
	Time int64
	// Subject, Header and Payload are its bytes. Header is empty or a NATS/1.0 block.
	Subject, Header, Payload []byte
}

// Loc is the place of a message.
type Loc struct {
	// Block is the block that holds it.
	Block BlockID
	// Offset and Size are in bytes.
	Offset, Size uint32
	// Seq is the sequence that has to be there.
	Seq uint64
}

func appendBlockHeader(dst []byte, id BlockID) []byte {
	dst = append(dst, magic...)
	dst = append(dst, version)
	return binary.LittleEndian.AppendUint64(dst, uint64(id))
}

func checkBlockHeader(data []byte, id BlockID) error {
	if len(data) < blockHeaderBytes || string(data[:len(magic)]) != magic {
		return fmt.Errorf("block %d has no header: %w", id, ErrCorrupt)
	}
	if data[len(magic)] != version {
		return fmt.Errorf("block %d has version %d, this server knows version %d: %w", id, data[len(magic)], version, ErrVersion)
	}
	if got := binary.LittleEndian.Uint64(data[8:]); got != uint64(id) {
		return fmt.Errorf("block %d holds block %d: %w", id, got, ErrCorrupt)
	}
	return nil
}

func seedOf(id BlockID, offset int) uint32 {
	return record.Place{Segment: uint64(id), Offset: int64(offset)}.Seed()
}

// messageBytes is the size of m without compression.
func messageBytes(m *Msg) int { return headBytes + len(m.Subject) + len(m.Header) + len(m.Payload) }

// layout is how a message is laid out: at which offset of which block, whether its payload is compressed where that
// helps, and whether its checksum is computed.
type layout struct {
	id                BlockID
	offset            int
	compress, checked bool
}

// appendMessage appends m.
func appendMessage(dst []byte, l layout, m *Msg) []byte {
	assert.True(len(m.Subject) <= SubjectBytesMax, "subject fits", uint64(len(m.Subject)))
	assert.True(len(m.Header) <= HeaderBytesMax, "header fits", uint64(len(m.Header)))
	at := len(dst)
	payload, flags := m.Payload, byte(0)
	if l.compress && len(payload) >= compressFromBytes {
		if smaller := s2.Encode(nil, payload); len(smaller) < len(payload) {
			payload, flags = smaller, flagCompressed
		}
	}
	var head [headBytes]byte
	binary.LittleEndian.PutUint32(head[4:], uint32(headBytes+len(m.Subject)+len(m.Header)+len(payload)))
	binary.LittleEndian.PutUint64(head[8:], m.Seq)
	binary.LittleEndian.PutUint64(head[16:], uint64(m.Time))
	head[24] = flags
	binary.LittleEndian.PutUint16(head[25:], uint16(len(m.Subject)))
	binary.LittleEndian.PutUint32(head[27:], uint32(len(m.Header)))
	dst = append(dst, head[:]...)
	dst = append(dst, m.Subject...)
	dst = append(dst, m.Header...)
	dst = append(dst, payload...)
	if l.checked {
		binary.LittleEndian.PutUint32(dst[at:], record.Checksum(seedOf(l.id, l.offset), dst[at+4:]))
	}
	return dst
}

// frameSize reads the size of the message at data[0]; false when there cannot be one.
func frameSize(data []byte) (int, bool) {
	if len(data) < headBytes {
		return 0, false
	}
	size := int64(binary.LittleEndian.Uint32(data[4:]))
	least := headBytes + int64(binary.LittleEndian.Uint16(data[25:])) + int64(binary.LittleEndian.Uint32(data[27:]))
	if size < least || size > int64(len(data)) {
		return 0, false
	}
	return int(size), true
}

// sequenceOf reads the sequence of the message at data[0], 0 when there cannot be one.
func sequenceOf(data []byte) uint64 {
	if len(data) < headBytes {
		return 0
	}
	return binary.LittleEndian.Uint64(data[8:])
}

// checkMessage verifies the message at data[0], which lies at the offset of the block.
func checkMessage(data []byte, id BlockID, offset int) error {
	size, ok := frameSize(data)
	if !ok || record.Checksum(seedOf(id, offset), data[4:size]) != binary.LittleEndian.Uint32(data) {
		return fmt.Errorf("message at offset %d of block %d: %w", offset, id, ErrCorrupt)
	}
	return nil
}

// eraseMessage returns the message at data[0], which has been checked, with zeros for its contents.
func eraseMessage(data []byte, loc Loc) []byte {
	size, ok := frameSize(data)
	assert.True(ok, "a checked message has its size", uint64(len(data)))
	erased := append([]byte(nil), data[:size]...)
	clear(erased[headBytes:])
	erased[24] = 0 // no longer compressed
	binary.LittleEndian.PutUint32(erased, record.Checksum(seedOf(loc.Block, int(loc.Offset)), erased[4:]))
	return erased
}

// decodeMessage reads the message at data[0], which has been checked. The slices alias data unless the payload was
// compressed.
func decodeMessage(data []byte) (Msg, error) {
	size, ok := frameSize(data)
	assert.True(ok, "a checked message has its size", uint64(len(data)))
	m := Msg{Seq: binary.LittleEndian.Uint64(data[8:]), Time: int64(binary.LittleEndian.Uint64(data[16:]))}
	subjectEnd := headBytes + int(binary.LittleEndian.Uint16(data[25:]))
	headerEnd := subjectEnd + int(binary.LittleEndian.Uint32(data[27:]))
	m.Subject = data[headBytes:subjectEnd:subjectEnd]
	m.Header = data[subjectEnd:headerEnd:headerEnd]
	m.Payload = data[headerEnd:size:size]
	if data[24]&flagCompressed != 0 {
		if n, err := s2.DecodedLen(m.Payload); err != nil || n > payloadBytesMax {
			return Msg{}, fmt.Errorf("compressed payload of message %d: %w", m.Seq, ErrCorrupt)
		}
		payload, err := s2.Decode(nil, m.Payload)
		if err != nil {
			return Msg{}, fmt.Errorf("compressed payload of message %d: %w: %w", m.Seq, ErrCorrupt, err)
		}
		m.Payload = payload
	}
	return m, nil
}

// footerSparse marks the count of a footer that lists sequences.
const footerSparse = 1 << 31

// footerBytes is the size of the footer of a block with count entries.
func footerBytes(count int, sparse bool) int {
	if sparse {
		return footerHeadBytes + 8*count
	}
	return footerHeadBytes + 4*count
}

// appendFooter appends the footer of the block, which will lie at offset at of the block.
func appendFooter(dst []byte, id BlockID, at int, t *table) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	count := uint32(t.count())
	if t.seqs != nil {
		count |= footerSparse
	}
	dst = binary.LittleEndian.AppendUint32(dst, count)
	for _, place := range t.places {
		dst = binary.LittleEndian.AppendUint32(dst, place&^dead)
	}
	for _, seq := range t.seqs {
		dst = binary.LittleEndian.AppendUint32(dst, seq)
	}
	binary.LittleEndian.PutUint32(dst[start:], record.Checksum(seedOf(id, at), dst[start+4:]))
	return dst
}

// decodeFooter reads the table of a block from its footer.
func decodeFooter(data []byte, s *BlockState) (table, error) {
	bad := fmt.Errorf("index of block %d at offset %d: %w", s.ID, s.Size, ErrCorrupt)
	if len(data) != footerBytes(s.Count, s.Sparse) ||
		record.Checksum(seedOf(s.ID, s.Size), data[4:]) != binary.LittleEndian.Uint32(data) {
		return table{}, bad
	}
	count := uint32(s.Count)
	if s.Sparse {
		count |= footerSparse
	}
	if binary.LittleEndian.Uint32(data[4:]) != count {
		return table{}, bad
	}
	number := func(i int) uint32 { return binary.LittleEndian.Uint32(data[footerHeadBytes+4*i:]) }
	t := table{first: s.First, places: make([]uint32, s.Count)}
	newest := uint32(0)
	for i := range t.places {
		place := number(i)
		if place != 0 && place <= newest || int(place) >= s.Size {
			return table{}, bad
		}
		t.places[i] = place
		newest = max(newest, place)
	}
	if s.Sparse {
		t.seqs = make([]uint32, s.Count)
		for i := range t.seqs {
			t.seqs[i] = number(s.Count + i)
			if i > 0 && t.seqs[i] <= t.seqs[i-1] {
				return table{}, bad
			}
		}
	}
	if t.last() != s.Last {
		return table{}, bad
	}
	return t, nil
}
