package fields

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// part is one field of a form: a kind and a value that may be read as any kind.
type part struct {
	kind   int
	number uint64
	data   []byte
}

const kinds = 6

func (p part) append(dst []byte) []byte {
	switch p.kind {
	case 0:
		return append(dst, byte(p.number))
	case 1:
		return AppendBool(dst, p.number&1 != 0)
	case 2:
		return binary.LittleEndian.AppendUint64(dst, p.number)
	case 3:
		return binary.AppendUvarint(dst, p.number)
	case 4:
		return binary.AppendVarint(dst, int64(p.number))
	default:
		return AppendBytes(dst, p.data)
	}
}

// same reads the part and reports whether it is what was written.
func (p part) same(r *Reader) bool {
	switch p.kind {
	case 0:
		return r.Byte() == byte(p.number)
	case 1:
		return r.Bool() == (p.number&1 != 0)
	case 2:
		return r.Fixed64() == p.number
	case 3:
		return r.Uvarint() == p.number
	case 4:
		return r.Varint() == int64(p.number)
	default:
		return bytes.Equal(r.Bytes(), p.data)
	}
}

func drawParts(t *rapid.T) []part {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) part {
		return part{
			kind: rapid.IntRange(0, kinds-1).Draw(t, "kind"), number: rapid.Uint64().Draw(t, "number"),
			data: rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "data"),
		}
	}), 1, 20).Draw(t, "parts")
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := drawParts(t)
		var data []byte
		for _, p := range parts {
			data = p.append(data)
		}
		r := NewReader(data)
		for i, p := range parts {
			if !p.same(&r) || r.Failed() {
				t.Fatalf("part %d of %v is read differently", i, parts)
			}
		}
		if !r.Done() {
			t.Fatalf("%d bytes are left", r.Len())
		}
	})
}

func TestFailureStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := drawParts(t)
		var data []byte
		for _, p := range parts {
			data = p.append(data)
		}
		r := NewReader(data[:rapid.IntRange(0, len(data)-1).Draw(t, "cut")])
		for _, p := range parts {
			p.same(&r)
		}
		if !r.Failed() || r.Done() || r.Len() != 0 {
			t.Fatalf("a form that is cut is read without failure")
		}
		if r.Byte() != 0 || r.Fixed64() != 0 || r.Uvarint() != 0 || r.Varint() != 0 || r.Count() != 0 || len(r.Bytes()) != 0 || r.Done() {
			t.Fatal("something is read after a failure")
		}
	})
}

func TestCountIsBoundedByWhatIsLeft(t *testing.T) {
	for _, c := range []struct {
		count uint64
		left  int
		fits  bool
	}{{0, 0, true}, {3, 3, true}, {4, 3, false}, {1 << 63, 3, false}} {
		r := NewReader(append(binary.AppendUvarint(nil, c.count), make([]byte, c.left)...))
		if got := r.Count(); r.Failed() == c.fits || c.fits && got != int(c.count) {
			t.Errorf("count %d before %d bytes: %d, failed %v", c.count, c.left, got, r.Failed())
		}
	}
}

func TestTextIsWrittenLikeBytes(t *testing.T) {
	if got, want := AppendText(nil, "weir"), AppendBytes(nil, []byte("weir")); !bytes.Equal(got, want) {
		t.Errorf("%v, %v", got, want)
	}
}
