package peerwire

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func drawFrame(t *rapid.T) *Frame {
	text := rapid.SliceOfN(rapid.Byte(), 0, 20)
	f := &Frame{
		Kind: Kind(rapid.IntRange(1, int(kindMax)).Draw(t, "kind")), Flag: rapid.Bool().Draw(t, "flag"),
		Count: rapid.Uint64().Draw(t, "count"), Offset: rapid.Uint64().Draw(t, "offset"), Token: rapid.Uint64().Draw(t, "token"),
		Group: rapid.Uint64().Draw(t, "group"),
	}
	for _, field := range []*[]byte{&f.Account, &f.Subject, &f.Reply, &f.Queue, &f.Text, &f.Header, &f.Payload, &f.Extra} {
		*field = text.Draw(t, "text")
	}
	f.Queues = rapid.SliceOfN(text, 0, 4).Draw(t, "queues")
	return f
}

// same compares frames; empty and nil are the same.
func same(a, b *Frame) bool { return bytes.Equal(Append(nil, a), Append(nil, b)) }

// TestParseGivesBackWhatWasAppended reads several frames from one buffer, into one Frame.
func TestParseGivesBackWhatWasAppended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sent []*Frame
		var data []byte
		for range rapid.IntRange(1, 4).Draw(t, "frames") {
			f := drawFrame(t)
			sent, data = append(sent, f), Append(data, f)
		}
		var got Frame
		for _, want := range sent {
			frame, rest, err := Split(data)
			if err != nil {
				t.Fatal(err)
			}
			if KindOf(frame) != want.Kind {
				t.Fatalf("kind is %d, want %d", KindOf(frame), want.Kind)
			}
			if err := Parse(frame, &got); err != nil || !same(&got, want) {
				t.Fatalf("got %+v and %v, want %+v", got, err, want)
			}
			data = rest
		}
		if len(data) > 0 {
			t.Fatalf("%d bytes are left", len(data))
		}
	})
}

// TestDamagedFrameIsRefused changes one bit of a frame, or cuts it off.
func TestDamagedFrameIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := Append(nil, drawFrame(t))
		cut := rapid.IntRange(0, len(data)-1).Draw(t, "cut")
		if _, _, err := Split(data[:cut]); !errors.Is(err, ErrMalformed) {
			t.Fatalf("a frame of %d of %d bytes gave %v", cut, len(data), err)
		}
		bit := rapid.IntRange(0, 8*len(data)-1).Draw(t, "bit")
		data[bit/8] ^= 1 << (bit % 8)
		frame, rest, err := Split(data)
		var f Frame
		if err == nil && len(rest) == 0 {
			err = Parse(frame, &f)
		}
		if err == nil && len(rest) == 0 {
			t.Fatalf("a changed bit %d is taken for %+v", bit, f)
		}
	})
}

func TestLengthsAreBounded(t *testing.T) {
	for _, head := range [][]byte{{0, 0, 0, 0}, {1, 0, 0, 10}, {255, 255, 255, 255}} {
		if n, err := Length(head); !errors.Is(err, ErrMalformed) {
			t.Errorf("%v is a length of %d, %v", head, n, err)
		}
	}
}

func TestShortIDsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for id := range ServerID(10_000) {
		short := (id * 0x9E3779B97F4A7C15).Short()
		if len(short) != shortLen || seen[short] {
			t.Fatalf("the id %d is short for %q", id, short)
		}
		seen[short] = true
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Append(nil, &Frame{Kind: Msg, Subject: []byte("a.b"), Queues: [][]byte{[]byte("q")}, Payload: []byte("x")}))
	f.Add(Append(nil, &Frame{Kind: Known, Token: 1 << 63}))
	f.Fuzz(func(t *testing.T, data []byte) {
		frame, _, err := Split(data)
		if err != nil {
			return
		}
		var got, again Frame
		Seal(frame, 0) // else hardly anything gets past the checksum
		if err := Parse(frame, &got); err != nil {
			return
		}
		if err := Parse(Append(nil, &got), &again); err != nil || !reflect.DeepEqual(got, again) {
			t.Fatalf("%+v becomes %+v, %v", got, again, err)
		}
	})
}
