package snapshot

import (
	"encoding/binary"
	"fmt"

	"weir/disk/checkpoint"
	"weir/disk/record"
)

// headBytes is the size of what precedes the data of a section in part 0: id (8 bytes), length (4), CRC-32C of id and
// data (4), little-endian.
const headBytes = 16

// SectionBytes is the length of a section with n bytes of data in part 0.
func SectionBytes(n int) uint64 { return headBytes + uint64(n) }

// AppendHead appends what precedes the data of a section with n bytes whose checksum, as Sum computes it, is sum.
func AppendHead(dst []byte, id uint64, n int, sum uint32) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, id)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	return binary.LittleEndian.AppendUint32(dst, sum)
}

// Sum is the checksum of a section: the CRC-32C of its id and data.
func Sum(id uint64, data []byte) uint32 {
	var head [8]byte
	binary.LittleEndian.PutUint64(head[:], id)
	return record.Checksum(record.Checksum(0, head[:]), data)
}

// Digest is the digest of a sequence of sections. It covers their ids, lengths and checksums. The zero Digest is that of
// none.
type Digest uint64

// Add returns the digest with one more section.
func (d Digest) Add(id uint64, n int, sum uint32) Digest {
	h := uint64(d)
	for _, v := range [...]uint64{id, uint64(n), uint64(sum)} {
		h = (h ^ v) * 0x9e3779b97f4a7c15
		h = (h ^ h>>29) * 0xbf58476d1ce4e5b9
		h ^= h >> 32
	}
	return Digest(h)
}

// Reader reads part 0 from pieces of bytes.
type Reader struct {
	digest Digest
	count  uint64
	bytes  uint64
	last   uint64 // id of the section before
}

// Next reads the section at data[0] and returns the bytes behind it; ok is false when data ends before the section does.
// The section's data alias data. Ids ascend. The error wraps ErrCorrupt.
func (r *Reader) Next(data []byte) (s checkpoint.Section, rest []byte, ok bool, err error) {
	if len(data) < headBytes {
		return s, data, false, nil
	}
	id, n := binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint32(data[8:])
	if r.count > 0 && id <= r.last || n > checkpoint.SectionBytesMax {
		return s, data, false, fmt.Errorf("section %d of %d bytes behind section %d: %w", id, n, r.last, ErrCorrupt)
	}
	if uint64(len(data)) < SectionBytes(int(n)) {
		return s, data, false, nil
	}
	body, sum := data[headBytes:headBytes+n:headBytes+n], binary.LittleEndian.Uint32(data[12:])
	if Sum(id, body) != sum {
		return s, data, false, fmt.Errorf("section %d of %d bytes: %w", id, n, ErrCorrupt)
	}
	r.digest = r.digest.Add(id, int(n), sum)
	r.count, r.last = r.count+1, id
	r.bytes += SectionBytes(int(n))
	return checkpoint.Section{ID: id, Data: body}, data[headBytes+n:], true, nil
}

// Finish returns nil when what was read is all that the manifest describes.
func (r *Reader) Finish(m *Manifest) error {
	if r.count != m.Sections || r.bytes != m.Bytes || uint64(r.digest) != m.Digest {
		return fmt.Errorf("%d sections in %d bytes with digest %x, the manifest says %d, %d, %x: %w",
			r.count, r.bytes, uint64(r.digest), m.Sections, m.Bytes, m.Digest, ErrCorrupt)
	}
	return nil
}
