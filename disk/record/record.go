// Package record frames bytes on disk, so that a reader can tell a whole frame from a torn or a damaged one.
//
//	 0        4        8      9          12        16
//	+--------+--------+------+----------+---------+=========+-----+
//	| header | length | type | reserved | payload | payload | pad |
//	| CRC    |        |      | (zero)   | CRC     |         |     |
//	+--------+--------+------+----------+---------+=========+-----+
//
// Numbers are little-endian. Frames start at multiples of 8 bytes. Both checksums are CRC-32C. The header's covers the
// 12 bytes that follow it, and starts from a value that depends on the place of the frame: the id of its segment and
// its offset there. So a frame that was left behind by an earlier use of the file, or written to the wrong offset, is no
// frame. The payload's checksum is covered by the header's, so it is bound to the place as well. The two checksums
// let a reader step over a frame whose payload alone is damaged, and search a region for frames cheaply.
//
// The package does no I/O. Whether a bad frame is the torn end of a log or damage in its middle it decides by one number
// of the caller: how far the file is known to have been synced.
package record

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"weir/spec/assert"
)

const (
	// HeaderBytes is the size of a frame without payload and padding.
	HeaderBytes = 16
	// Align is what every frame's offset is a multiple of.
	Align = 8
	// PayloadBytesMax bounds a payload; a longer length field is damage.
	PayloadBytesMax = 1 << 30
)

// ErrTorn says that there is no whole frame at a place that was never known to be synced: the end of what was written.
var ErrTorn = errors.New("torn record")

// ErrCorrupt says that there is no whole frame at a place that was synced: data was lost after it was durable.
var ErrCorrupt = errors.New("corrupt record")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC-32C of the bytes, starting from a seed of the caller.
func Checksum(seed uint32, bytes []byte) uint32 { return crc32.Update(seed, castagnoli, bytes) }

// Place is where a frame starts.
type Place struct {
	// Segment identifies the use of the file: it is never the same for two uses.
	Segment uint64
	// Offset in bytes from the start of the file, a multiple of Align.
	Offset int64
}

// Seed returns the value that checksums bound to the place start from.
func (p Place) Seed() uint32 {
	z := p.Segment*0x9e3779b97f4a7c15 + uint64(p.Offset)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return uint32(z ^ z>>31)
}

// Type is the kind of a frame. Zero is not a kind: zeroed space holds no frame.
type Type uint8

// Frame is a frame as read.
type Frame struct {
	Type Type
	// Payload is a slice into the buffer that was read.
	Payload []byte
	// End is the offset in the file behind the frame and its padding, where the next frame may start.
	End int64
}

// Size returns the bytes that a frame takes with its padding.
func Size(payload int) int { return (HeaderBytes + payload + Align - 1) / Align * Align }

// Begin appends space for a header to dst. The caller appends the payload and then calls Finish.
func Begin(dst []byte) []byte {
	return append(dst, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
}

// Finish completes the frame that Begin started at dst[start:], which will be written at the place, and pads it.
func Finish(dst []byte, start int, typ Type, at Place) []byte {
	payload := len(dst) - start - HeaderBytes
	assert.True(payload >= 0, "Finish follows Begin", uint64(start), uint64(len(dst)))
	assert.True(payload <= PayloadBytesMax, "payload <= maximum", uint64(payload))
	assert.True(typ != 0, "a frame has a type")
	assert.True(at.Offset%Align == 0, "frames are aligned", uint64(at.Offset))
	h := dst[start : start+HeaderBytes]
	binary.LittleEndian.PutUint32(h[4:], uint32(payload))
	binary.LittleEndian.PutUint32(h[8:], uint32(typ))
	binary.LittleEndian.PutUint32(h[12:], Checksum(0, dst[start+HeaderBytes:]))
	binary.LittleEndian.PutUint32(h, Checksum(at.Seed(), h[4:]))
	for (len(dst)-start)%Align != 0 {
		dst = append(dst, 0)
	}
	return dst
}

// Append appends a whole frame, to be written at the place, to dst.
func Append(dst []byte, typ Type, payload []byte, at Place) []byte {
	start := len(dst)
	return Finish(append(Begin(dst), payload...), start, typ, at)
}

// Next reads the frame that starts at data[0], which lies at the place. The file is known to have been synced up to the
// offset durable. The error is ErrTorn or ErrCorrupt. When only the payload is bad, Type and End are still set (End is
// zero otherwise), so that the reader can step over the frame.
func Next(data []byte, at Place, durable int64) (Frame, error) {
	bad := ErrTorn
	if at.Offset < durable {
		bad = ErrCorrupt
	}
	typ, length, ok := header(data, at)
	if !ok {
		return Frame{}, bad
	}
	f := Frame{Type: typ, End: at.Offset + int64(Size(length))}
	if Size(length) > len(data) { // the padding belongs to the frame: its absence shows that the write was cut off
		return f, bad
	}
	payload := data[HeaderBytes : HeaderBytes+length : HeaderBytes+length]
	if Checksum(0, payload) != binary.LittleEndian.Uint32(data[12:]) {
		return f, bad
	}
	f.Payload = payload
	return f, nil
}

// header checks the header at data[0].
func header(data []byte, at Place) (typ Type, length int, ok bool) {
	if len(data) < HeaderBytes {
		return 0, 0, false
	}
	kind := binary.LittleEndian.Uint32(data[8:])
	if kind == 0 || kind > 0xff { // the cheap test first: most of a searched region fails it
		return 0, 0, false
	}
	size := binary.LittleEndian.Uint32(data[4:])
	if size > PayloadBytesMax || Checksum(at.Seed(), data[4:HeaderBytes]) != binary.LittleEndian.Uint32(data) {
		return 0, 0, false
	}
	return Type(kind), int(size), true
}

// Find returns the offset in the file of the first good header at or behind data[0], which lies at the place, or false.
// The payload of the frame found may still be bad.
func Find(data []byte, at Place) (int64, bool) {
	for i := 0; i+HeaderBytes <= len(data); i += Align {
		if _, _, ok := header(data[i:], Place{at.Segment, at.Offset + int64(i)}); ok {
			return at.Offset + int64(i), true
		}
	}
	return 0, false
}
