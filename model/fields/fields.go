// Package fields writes and reads the parts of our own binary forms: commands in the log, sections of checkpoints.
//
// It promises that a reader never looks beyond its bytes, allocates nothing, and never takes a part for another once one
// did not fit: a failure stays until the end, where one question to Done settles it. It says nothing about versions,
// checksums or canonical form; those belong to the formats that are made of the parts.
package fields

import "encoding/binary"

// AppendBytes appends the length of b, a uvarint, and b.
func AppendBytes(dst, b []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

// AppendText appends what AppendBytes appends for the bytes of a text.
func AppendText(dst []byte, text string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return append(dst, text...)
}

// AppendBool appends one byte, 1 for true.
func AppendBool(dst []byte, value bool) []byte {
	if value {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// Reader takes the parts of a form in their order. After one that does not fit, all that it returns is zero or empty.
type Reader struct {
	rest   []byte
	failed bool
}

// NewReader reads data. The reader keeps data, and the slices that it returns alias it.
func NewReader(data []byte) Reader { return Reader{rest: data} }

// Fail makes the reader fail: for values that are not what the form allows.
func (r *Reader) Fail() { r.rest, r.failed = nil, true }

// Failed reports whether a part did not fit.
func (r *Reader) Failed() bool { return r.failed }

// Done reports whether every part fitted and nothing is left.
func (r *Reader) Done() bool { return !r.failed && len(r.rest) == 0 }

// Len is the number of bytes that are left; 0 after a failure.
func (r *Reader) Len() int { return len(r.rest) }

// Rest takes all that is left.
func (r *Reader) Rest() []byte {
	b := r.rest
	r.rest = nil
	return b
}

// Take takes n bytes.
func (r *Reader) Take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.Fail()
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// Bytes takes what AppendBytes or AppendText wrote.
func (r *Reader) Bytes() []byte { return r.Take(r.Uvarint()) }

// Byte takes one byte.
func (r *Reader) Byte() byte {
	if len(r.rest) == 0 {
		r.Fail()
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

// Bool takes what AppendBool wrote.
func (r *Reader) Bool() bool { return r.Byte() != 0 }

// Fixed64 takes eight bytes, little endian.
func (r *Reader) Fixed64() uint64 {
	if b := r.Take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Uvarint takes an unsigned varint.
func (r *Reader) Uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.Fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// Varint takes a signed varint.
func (r *Reader) Varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.Fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// Count takes a uvarint that is the length of a list whose elements take a byte each at least, so that room for the list
// is bounded by what was read.
func (r *Reader) Count() int {
	n := r.Uvarint()
	if n > uint64(len(r.rest)) {
		r.Fail()
		return 0
	}
	return int(n)
}
