package record

import (
	"bytes"
	"errors"
	"testing"
)

// log returns three frames written from offset 64 of segment 5, and the offsets of the frames.
func log() (data []byte, offsets []int64) {
	off := int64(64)
	for i, payload := range []string{"first", "", "the third, longer one"} {
		offsets = append(offsets, off)
		data = Append(data, Type(i+1), []byte(payload), Place{5, off})
		off = 64 + int64(len(data))
	}
	return data, offsets
}

func TestFramesReadBack(t *testing.T) {
	data, offsets := log()
	for i, want := range []string{"first", "", "the third, longer one"} {
		f, err := Next(data[offsets[i]-64:], Place{5, offsets[i]}, 0)
		if err != nil || string(f.Payload) != want || f.Type != Type(i+1) {
			t.Fatalf("frame %d: %q, type %d, %v", i, f.Payload, f.Type, err)
		}
		if i < 2 && f.End != offsets[i+1] {
			t.Fatalf("frame %d ends at %d, want %d", i, f.End, offsets[i+1])
		}
	}
}

func TestFrameIsBoundToItsPlace(t *testing.T) {
	data, offsets := log()
	for _, at := range []Place{{6, offsets[0]}, {5, offsets[0] + 8}, {5, 0}, {0, offsets[0]}} {
		if _, err := Next(data, at, 0); !errors.Is(err, ErrTorn) {
			t.Errorf("at %v: %v, want ErrTorn", at, err)
		}
	}
}

func TestEveryBitFlipIsDetected(t *testing.T) {
	data := Append(nil, 3, []byte("a payload of 24 bytes ok"), Place{1, 8})
	for bit := range len(data) * 8 {
		data[bit/8] ^= 1 << (bit % 8)
		f, err := Next(data, Place{1, 8}, 16)
		if !errors.Is(err, ErrCorrupt) {
			t.Fatalf("bit %d: frame %q, %v", bit, f.Payload, err)
		}
		if payload := bit/8 >= HeaderBytes; payload != (f.End != 0) {
			t.Fatalf("bit %d: end %d", bit, f.End)
		}
		data[bit/8] ^= 1 << (bit % 8)
	}
}

func TestTornIsBeyondTheDurableOffset(t *testing.T) {
	data := Append(nil, 3, []byte("payload"), Place{1, 80})
	for n := range len("payload") + HeaderBytes {
		if _, err := Next(data[:n], Place{1, 80}, 80); !errors.Is(err, ErrTorn) {
			t.Fatalf("%d bytes beyond the durable offset: %v", n, err)
		}
		if _, err := Next(data[:n], Place{1, 80}, 81); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("%d bytes before the durable offset: %v", n, err)
		}
	}
}

func TestFindSkipsWhatIsNoFrame(t *testing.T) {
	data, offsets := log()
	region := append(bytes.Repeat([]byte{1}, 64), data...)
	off, ok := Find(region, Place{5, 0})
	if !ok || off != offsets[0] {
		t.Fatalf("found %d, %t; want %d", off, ok, offsets[0])
	}
	off, ok = Find(region[offsets[0]+8:], Place{5, offsets[0] + 8})
	if !ok || off != offsets[1] {
		t.Fatalf("found %d, %t; want %d", off, ok, offsets[1])
	}
	if _, ok := Find(make([]byte, 4096), Place{5, 0}); ok {
		t.Fatal("found a frame in zeros")
	}
}

func TestFramingDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 4096)
	payload := make([]byte, 200)
	n := testing.AllocsPerRun(100, func() {
		buf = Append(buf[:0], 1, payload, Place{1, 0})
		if _, err := Next(buf, Place{1, 0}, 0); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Fatalf("%v allocations, want none", n)
	}
}

func FuzzNext(f *testing.F) {
	data, _ := log()
	f.Add(data, int64(64))
	f.Add(make([]byte, 40), int64(0))
	f.Fuzz(func(t *testing.T, data []byte, off int64) {
		at := Place{5, off &^ 7}
		frame, err := Next(data, at, 0)
		if err != nil {
			return
		}
		again := Append(nil, frame.Type, frame.Payload, at)
		if !bytes.Equal(again[:HeaderBytes+len(frame.Payload)], data[:HeaderBytes+len(frame.Payload)]) {
			t.Fatalf("frame %v does not encode to what it was read from", frame)
		}
	})
}

// A crash can cut a frame within its padding (seed 1454 of the simulator): what is left is the torn end of the log.
func TestFrameCutInItsPaddingIsTorn(t *testing.T) {
	at := Place{Segment: 1}
	frame := Append(nil, 1, []byte("payload"), at)
	whole := HeaderBytes + len("payload")
	if len(frame) == whole {
		t.Fatal("the frame has no padding")
	}
	for n := whole; n < len(frame); n++ {
		if _, err := Next(frame[:n:n], at, 0); !errors.Is(err, ErrTorn) {
			t.Errorf("%d of %d bytes: %v", n, len(frame), err)
		}
	}
	if _, err := Next(frame, at, 0); err != nil {
		t.Errorf("whole frame: %v", err)
	}
}
