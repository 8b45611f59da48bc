package consumer

import (
	"bytes"
	"testing"
	"time"

	"weir/model/effect"
	"weir/model/jsapi"
)

// sampleState is a consumer with pending messages in every phase.
func sampleState() (*State, *fakeLog) {
	log := &fakeLog{}
	for range 9 {
		log.store("a", 5, 10)
	}
	s := New(Params{ID: 7, Name: "C", Config: explicit(), Options: Options{Stream: "S"}}, log, 1)
	b := &Batch{Time: 100, Index: 1, Out: &effect.List{}}
	s.Deliver(b, Request{Count: 6})
	s.Ack(b, Delivery{StreamSeq: 2, ConsumerSeq: 2})
	s.Nak(b, Delivery{StreamSeq: 3, ConsumerSeq: 3}, 0)
	s.Nak(b, Delivery{StreamSeq: 4, ConsumerSeq: 4}, int64(time.Second))
	s.Deliver(b, Request{Count: 1})
	s.Nak(b, Delivery{StreamSeq: 5, ConsumerSeq: 5}, 0)
	return s, log
}

// TestRestoreReadsVersionOne holds the format of version 1 fast: these bytes were written by it.
func TestRestoreReadsVersionOne(t *testing.T) {
	s, log := sampleState()
	got := s.AppendState(nil)
	want := "\x01\a\x02\x01C\x8e\x01" + string(explicit().AppendJSON(nil)) +
		"\a\a\x06\xc8\x01\x00\x00\xc8\x01\x03\x00\x05" +
		"\x01\x01\xc8\x01\x01\x00\x81\xd8\x8e\xe1o" +
		"\x02\x02\x00\x02\x00\x81\xd8\x8e\xe1o" +
		"\x01\x01\x00\x01\x01\x81\x94\xeb\xdc\x03" +
		"\x01\x01\x00\x01\x02" +
		"\x01\x01\x00\x01\x00\x81\xd8\x8e\xe1o"
	if string(got) != want {
		t.Fatalf("the state is written as\n%q, not as\n%q", got, want)
	}
	restored, err := RestoreState([]byte(want), log, s.options)
	if err != nil || restored.Digest() != s.Digest() {
		t.Fatalf("restore: %v", err)
	}
}

func TestRestoreRefusesEveryTruncation(t *testing.T) {
	s, log := sampleState()
	data := s.AppendState(nil)
	for n := range data {
		if _, err := RestoreState(data[:n], log, Options{}); err == nil {
			t.Fatalf("%d of %d bytes are taken for a state", n, len(data))
		}
	}
	if _, err := RestoreState(append(data, 0), log, Options{}); err == nil {
		t.Fatal("a byte too many is accepted")
	}
}

func FuzzRestoreState(f *testing.F) {
	s, log := sampleState()
	f.Add(s.AppendState(nil))
	f.Add([]byte{codecVersion})
	f.Fuzz(func(t *testing.T, data []byte) {
		restored, err := RestoreState(data, log, Options{Stream: "S"})
		if err != nil {
			return
		}
		again := restored.AppendState(nil)
		second, err := RestoreState(again, log, Options{Stream: "S"})
		if err != nil || !bytes.Equal(second.AppendState(nil), again) {
			t.Fatalf("what was read can not be written and read again: %v", err)
		}
	})
}

// TestDigestCoversEveryPart changes one part of the state at a time.
func TestDigestCoversEveryPart(t *testing.T) {
	changes := map[string]func(s *State, b *Batch){
		"cursor and pending": func(s *State, b *Batch) { s.Deliver(b, Request{Count: 1}) },
		"ack":                func(s *State, b *Batch) { s.Ack(b, Delivery{StreamSeq: 6}) },
		"nak":                func(s *State, b *Batch) { s.Nak(b, Delivery{StreamSeq: 6, ConsumerSeq: 6}, 0) },
		"progress":           func(s *State, b *Batch) { s.Progress(b, Delivery{StreamSeq: 6}) },
		"count":              func(s *State, b *Batch) { s.Removed(b, 9, true, Deleted) },
		"release":            func(s *State, b *Batch) { s.Release(b, Delivery{StreamSeq: 3, Deliveries: 2}) },
	}
	for name, change := range changes { // order-free: each change is tried on its own state
		s, _ := sampleState()
		before := s.Digest()
		change(s, &Batch{Time: 300, Index: 2, Out: &effect.List{}})
		if s.Digest() == before {
			t.Errorf("the digest does not change with %s", name)
		}
	}
}

func TestAckReplySizeIsThatOfTheReply(t *testing.T) {
	s := New(Params{ID: 1, Name: "consumer", Config: explicit(), Options: Options{Stream: "stream"}}, denseLog{n: 5}, 1)
	for _, r := range []jsapi.AckReply{
		{Delivered: 1, StreamSeq: 9, ConsumerSeq: 10, TimeNanos: 0, Pending: 0},
		{Delivered: 99, StreamSeq: 1 << 63, ConsumerSeq: 100, TimeNanos: 1_700_000_000_123_456_789, Pending: 12345},
		{Delivered: 1, StreamSeq: 1, ConsumerSeq: 1, TimeNanos: -5, Pending: 1},
	} {
		full := r
		full.Stream, full.Consumer = "stream", "consumer"
		if got, want := s.replySize(&r), len(jsapi.AppendAckReply(nil, &full)); got != want {
			t.Errorf("%+v: size %d, want %d", r, got, want)
		}
	}
}
