package msgstore

import (
	"bytes"
	"errors"
	"testing"
)

func FuzzDecodeState(f *testing.F) {
	x := NewIndex(IndexOptions{BlockBytes: 1024})
	for seq := uint64(1); seq < 30; seq++ {
		x.Append(Msg{Seq: seq, Subject: []byte("s"), Payload: make([]byte, 100)})
	}
	x.Forget(3)
	for _, s := range x.TakeState() {
		f.Add(s.ID, s.Data)
	}
	f.Fuzz(func(t *testing.T, id uint64, data []byte) {
		states, _, err := DecodeState([]StateSection{{0, []byte{100}}, {id, data}})
		if err != nil || len(states) == 0 {
			return
		}
		if s := states[0]; s.Count < 1 || s.Last-s.First+1 < uint64(s.Count) {
			t.Fatalf("decoded %+v", s)
		}
	})
}

func FuzzScanBlock(f *testing.F) {
	data := appendBlockHeader(nil, 1)
	for seq := uint64(1); seq < 4; seq++ {
		data = appendMessage(data, layout{1, len(data), true, true}, &Msg{Seq: seq, Subject: []byte("s"), Payload: make([]byte, 300)})
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := BlockState{ID: 1, First: 1, Last: 100, Count: 100, Size: len(data)}
		found, err := scanBlock(data, &s, false)
		if err != nil {
			return
		}
		for _, place := range found.places {
			if place == 0 || checkMessage(data[place:], 1, int(place)) != nil {
				continue
			}
			if _, err := decodeMessage(data[place:]); err != nil && !errors.Is(err, ErrCorrupt) {
				t.Fatal(err)
			}
		}
	})
}

func FuzzDecodeFooter(f *testing.F) {
	t := table{first: 5, places: []uint32{16, 0, 80}}
	f.Add(appendFooter(nil, 1, 200, &t), 3, false)
	t = table{first: 5, places: []uint32{16, 80}, seqs: []uint32{0, 2}}
	f.Add(appendFooter(nil, 1, 200, &t), 2, true)
	f.Fuzz(func(t *testing.T, data []byte, count int, sparse bool) {
		if count < 1 || count > 1000 {
			return
		}
		s := BlockState{ID: 1, First: 5, Last: 7, Count: count, Sparse: sparse, Size: 200}
		got, err := decodeFooter(data, &s)
		if err == nil && !bytes.Equal(appendFooter(nil, 1, 200, &got), data) {
			t.Fatalf("%+v does not encode to what it was read from", got)
		}
	})
}

func FuzzDecodeMessage(f *testing.F) {
	m := Msg{Seq: 3, Time: 4, Subject: []byte("s"), Header: []byte("NATS/1.0\r\n\r\n"), Payload: make([]byte, 400)}
	f.Add(appendMessage(nil, layout{1, 0, true, true}, &m))
	f.Add(appendMessage(nil, layout{1, 0, false, true}, &m))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, ok := frameSize(data); !ok {
			return
		}
		if _, err := decodeMessage(data); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
	})
}
