package session

import (
	"bytes"
	"testing"

	"weir/node/event"
	"weir/transport/wire"
)

// pipeline is a publisher and, for each subscription, a client that reads at once.
type pipeline struct {
	broker    *broker
	publisher *client
	chunk     []byte
	messages  int
	ops       []wire.Op
	spare     [][]byte
}

func newPipeline(tb testing.TB, subscribers int, m *wire.Msg) *pipeline {
	p := &pipeline{broker: newBroker(), messages: 256}
	config := testConfig()
	p.broker.buffers = func() []byte {
		if len(p.spare) == 0 {
			return nil
		}
		last := len(p.spare) - 1
		buffer := p.spare[last]
		p.spare = p.spare[:last]
		return buffer
	}
	hello := []byte(`CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}` + "\r\n")
	p.publisher = p.broker.open(1, config)
	p.broker.send(p.publisher, hello)
	for i := range subscribers {
		c := p.broker.open(event.ConnID(i+2), config)
		p.broker.send(c, append(bytes.Clone(hello), "SUB orders.* 1\r\n"...))
	}
	p.chunk = bytes.Repeat(wire.AppendPub(nil, m), p.messages)
	if p.broker.Table("$G").Len() != subscribers {
		tb.Fatal("subscriptions are missing")
	}
	return p
}

// round publishes the chunk and returns how many bytes left for subscribers.
func (p *pipeline) round(tb testing.TB) int {
	ops, n, err := p.publisher.parser.Feed(p.chunk, p.ops[:0])
	p.ops = ops
	if err != nil || n != len(p.chunk) || len(ops) != p.messages {
		tb.Fatalf("%d operations of %d bytes, %v", len(ops), n, err)
	}
	for i := range ops {
		p.publisher.session.Handle(&ops[i])
	}
	sent := 0
	for _, s := range p.broker.ready {
		out := s.Take()
		sent += len(out.Bytes)
		s.Flushed(len(out.Bytes))
		p.spare = append(p.spare, out.Bytes)
	}
	p.broker.ready = p.broker.ready[:0]
	return sent
}

func benchmarkPublish(b *testing.B, subscribers int, m *wire.Msg) {
	p := newPipeline(b, subscribers, m)
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += p.messages {
		p.round(b)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msgs/s")
}

// BenchmarkPublish measures parser, session and routing of small messages, without sockets.
func BenchmarkPublish(b *testing.B) {
	small := &wire.Msg{Subject: []byte("orders.new"), Payload: make([]byte, 16)}
	headed := &wire.Msg{Subject: []byte("orders.new"), Reply: []byte("_INBOX.xyz.1"), Header: []byte("NATS/1.0\r\nA: b\r\n\r\n"),
		Payload: make([]byte, 128)}
	b.Run("16B/subscribers=0", func(b *testing.B) { benchmarkPublish(b, 0, small) })
	b.Run("16B/subscribers=1", func(b *testing.B) { benchmarkPublish(b, 1, small) })
	b.Run("16B/subscribers=10", func(b *testing.B) { benchmarkPublish(b, 10, small) })
	b.Run("128B+header/subscribers=1", func(b *testing.B) { benchmarkPublish(b, 1, headed) })
}

func TestPublishingDoesNotAllocate(t *testing.T) {
	m := &wire.Msg{Subject: []byte("orders.new"), Header: []byte("NATS/1.0\r\nA: b\r\n\r\n"), Payload: make([]byte, 100)}
	for _, subscribers := range []int{0, 1, 3} {
		p := newPipeline(t, subscribers, m)
		for range 4 {
			p.round(t)
		}
		sent := 0
		allocs := testing.AllocsPerRun(20, func() { sent = p.round(t) })
		if allocs != 0 {
			t.Errorf("%d subscribers: %v allocations for %d messages", subscribers, allocs, p.messages)
		}
		if want := len(wire.AppendMsg(nil, &wire.Msg{Subject: m.Subject, Sid: []byte("1"), Header: m.Header, Payload: m.Payload},
			true)) * p.messages * subscribers; sent != want {
			t.Errorf("%d subscribers: %d bytes left, want %d", subscribers, sent, want)
		}
	}
}
