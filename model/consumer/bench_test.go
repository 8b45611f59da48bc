package consumer

import (
	"testing"
	"time"

	"weir/model/effect"
	"weir/model/jsapi"
)

// denseLog is a stream of n messages without gaps, every one of which matches.
type denseLog struct{ n uint64 }

func (l denseLog) First() uint64                                      { return 1 }
func (l denseLog) Last() uint64                                       { return l.n }
func (l denseLog) Count(_ []string, from uint64) uint64               { return l.n + 1 - from }
func (l denseLog) LastSeqs([]string) []uint64                         { return []uint64{l.n} }
func (l denseLog) LastMatch([]string) uint64                          { return l.n }
func (l denseLog) Matches([]string, uint64) bool                      { return true }
func (l denseLog) Meta(uint64) (Meta, bool)                           { return Meta{Time: 1, SubjectSize: 5, Size: 128}, true }
func (l denseLog) SeqAtTime(int64) uint64                             { return 1 }
func (l denseLog) Next(_ []string, from uint64, _ int) (uint64, bool) { return from, true }

func explicit() *jsapi.ConsumerConfig {
	return &jsapi.ConsumerConfig{Name: "C", AckPolicy: jsapi.AckExplicit, AckWait: 30 * time.Second, MaxDeliver: -1}
}

// deliverAndAck hands out and acknowledges n messages in batches, with outstanding more in flight.
func deliverAndAck(s *State, n, outstanding uint64) {
	var list effect.List
	b := &Batch{Time: 1, Out: &list}
	const size = 100
	acked := s.floor.Stream
	for done := uint64(0); done < n; done += size {
		list.Reset()
		b.Index++
		b.Time += int64(time.Millisecond)
		s.Deliver(b, Request{Token: 1, Count: size})
		for ; acked+outstanding < s.delivered.Stream; acked++ {
			s.Ack(b, Delivery{StreamSeq: acked + 1, ConsumerSeq: acked + 1, Deliveries: 1})
		}
		s.Tick(b)
		s.Deadline()
	}
}

func benchmarkDeliverAck(b *testing.B, outstanding uint64) {
	s := New(Params{ID: 7, Name: "C", Config: explicit(), Options: Options{Stream: "S"}}, denseLog{n: 1 << 50}, 1)
	deliverAndAck(s, 2*outstanding+2000, outstanding)
	b.ReportAllocs()
	b.ResetTimer()
	deliverAndAck(s, uint64(b.N), outstanding)
}

func BenchmarkDeliverAck(b *testing.B)               { benchmarkDeliverAck(b, 0) }
func BenchmarkDeliverAck1000Pending(b *testing.B)    { benchmarkDeliverAck(b, 1000) }
func BenchmarkDeliverAckMillionPending(b *testing.B) { benchmarkDeliverAck(b, 1_000_000) }

// BenchmarkAckScattered acknowledges every message of a million, far from the order of their deliveries.
func BenchmarkAckScattered(b *testing.B) {
	const million = 1_000_000
	var list effect.List
	batch := &Batch{Time: 1, Out: &list}
	var s *State
	for i := 0; b.Loop(); i++ {
		if i%million == 0 {
			b.StopTimer()
			s = New(Params{ID: 7, Name: "C", Config: explicit()}, denseLog{n: 1 << 50}, 1)
			for s.NumAckPending() < million {
				list.Reset()
				s.Deliver(batch, Request{Count: 1000})
			}
			b.StartTimer()
		}
		list.Reset()
		s.Ack(batch, Delivery{StreamSeq: uint64(i%million)*7919%million + 1})
	}
}

func TestDeliverAndAckDoNotAllocate(t *testing.T) {
	s := New(Params{ID: 7, Name: "C", Config: explicit()}, denseLog{n: 1 << 50}, 1)
	var list effect.List
	b := &Batch{Time: 1, Out: &list}
	round := func() {
		list.Reset()
		b.Index++
		b.Time++
		s.Deliver(b, Request{Token: 1, Count: 100, MaxBytes: 1 << 20})
		for seq := s.floor.Stream + 1; seq <= s.delivered.Stream; seq++ {
			s.Ack(b, Delivery{StreamSeq: seq, ConsumerSeq: seq, Deliveries: 1})
		}
		s.Tick(b)
	}
	for range 100 {
		round()
	}
	if got := testing.AllocsPerRun(200, round); got > 0 {
		t.Fatalf("100 deliveries and acks allocate %v times", got)
	}
}
