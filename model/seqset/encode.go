package seqset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrMalformed is the cause of every error of Decode.
var ErrMalformed = errors.New("malformed sequence set")

// AppendBinary appends the canonical encoding of the set: equal sets give equal bytes.
//
//	uvarint  number of runs
//	then for each maximal run, ascending:
//	uvarint  the first run: its first sequence; the others: distance from the end of the run before, less 2
//	uvarint  length of the run, less 1
//
// All varints have their shortest form.
func (s *Set) AppendBinary(dst []byte) []byte {
	runs := uint64(0)
	s.Ranges(func(_, _ uint64) bool {
		runs++
		return true
	})
	dst = binary.AppendUvarint(dst, runs)
	end, any := uint64(0), false
	s.Ranges(func(first, last uint64) bool {
		gap := first
		if any {
			gap = first - end - 2
		}
		dst = binary.AppendUvarint(dst, gap)
		dst = binary.AppendUvarint(dst, last-first)
		end, any = last, true
		return true
	})
	return dst
}

// Decode replaces the set by the one encoded at the start of data and returns the bytes after it. It accepts exactly
// what AppendBinary writes. Memory is bounded by the length of data and by MaxLen. On an error, which wraps
// ErrMalformed, the set is empty. The set keeps no reference to data.
func (s *Set) Decode(data []byte) (rest []byte, err error) {
	*s = Set{}
	d := decoder{data: data}
	runs := d.uvarint()
	if runs > uint64(len(data)) {
		return nil, fmt.Errorf("%w: %d runs in %d bytes", ErrMalformed, runs, len(data))
	}
	decoded := Set{}
	total, end := uint64(0), uint64(0)
	for i := range runs {
		gap, more := d.uvarint(), d.uvarint()
		first := gap
		if i > 0 {
			d.failed = d.failed || end > math.MaxUint64-2 || gap > math.MaxUint64-2-end
			first = end + 2 + gap
		}
		last := first + more
		total += more + 1
		if d.failed || last < first || more >= MaxLen || total > MaxLen {
			return nil, fmt.Errorf("%w: run %d of %d", ErrMalformed, i, runs)
		}
		decoded.AddRange(first, last)
		end = last
	}
	if d.failed {
		return nil, fmt.Errorf("%w: cut off in %d bytes", ErrMalformed, len(data))
	}
	*s = decoded
	return d.data, nil
}

// decoder reads varints and remembers the first failure.
type decoder struct {
	data   []byte
	failed bool
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.data)
	if n <= 0 || (n > 1 && d.data[n-1] == 0) {
		d.failed, d.data = true, nil
		return 0
	}
	d.data = d.data[n:]
	return v
}
