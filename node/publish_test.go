package node_test

import (
	"testing"

	"weir/disk/memfs"
	"weir/model/jsapi"
	"weir/node"
	"weir/node/auth"
	"weir/node/engine"
	"weir/node/event"
	"weir/transport/wire"
)

// pipeline is a node whose log is durable at once and whose network forgets, for measuring what a publish costs the
// node itself.
type pipeline struct {
	node   *node.Node
	now    event.Time
	done   []event.Input
	spare  [][]byte
	parser *wire.Parser
	ops    []wire.Op
	acked  int
}

func newPipeline(t testing.TB) *pipeline {
	t.Helper()
	p := &pipeline{now: event.Time{Mono: 1, Wall: 1_700_000_000_000_000_000}}
	p.parser = wire.NewParser(wire.Limits{ControlLineBytes: 4096, PayloadBytes: 1 << 20})
	config := engine.Config{
		ServerID: "NTEST", ServerName: "test",
		Limits: engine.Limits{
			ControlLineBytes: 4096, PayloadBytes: 1 << 20, PendingBytes: 64 << 20, Connections: 100,
			PingIntervalNanos: 120e9, PingsOut: 2, AuthTimeoutNanos: 2e9,
		},
		JetStream: engine.JetStream{Enabled: true, Strict: true, Limits: jsapi.Limits{Account: jsapi.Unlimited()}},
		Seed:      1, Boot: 1,
	}
	var err error
	if config.Auth, err = auth.New(auth.Config{}); err != nil {
		t.Fatal(err)
	}
	env := node.Env{Clock: p, Network: p, Worker: p, Disk: memfs.New(memfs.Options{})}
	if p.node, err = node.New(env, node.Config{Engine: config}); err != nil {
		t.Fatal(err)
	}
	p.settle()
	p.node.Step(event.Input{Kind: event.Opened, Conn: 1, Text: "127.0.0.1:5000"})
	p.send([]byte("CONNECT {\"verbose\":false,\"headers\":true}\r\nSUB in.* 1\r\n"))
	create := `{"name":"S","subjects":["s.>"]}`
	p.send([]byte("PUB $JS.API.STREAM.CREATE.S in.0 " + itoa(len(create)) + "\r\n" + create + "\r\n"))
	p.acked = 0
	return p
}

func (p *pipeline) send(text []byte) {
	for len(text) > 0 {
		var used int
		p.ops, used, _ = p.parser.Feed(text, p.ops[:0])
		text = text[used:]
		p.node.Step(event.Input{Kind: event.Ops, Conn: 1, Ops: p.ops})
		p.settle()
	}
}

func (p *pipeline) settle() {
	for len(p.done) > 0 {
		inputs := append([]event.Input(nil), p.done...)
		p.done = p.done[:0]
		p.now.Mono++
		p.now.Wall++
		p.node.StepAll(inputs)
	}
}

func (p *pipeline) Now() event.Time { return p.now }
func (p *pipeline) Wake(int64)      {}

func (p *pipeline) Send(out []event.ConnOut) {
	for i := range out {
		for _, b := range out[i].Bytes {
			if b == '\n' {
				p.acked++
			}
		}
		p.spare = append(p.spare, out[i].Bytes)
		p.done = append(p.done, event.Input{Kind: event.Flushed, Conn: out[i].Conn, N: len(out[i].Bytes)})
	}
}

func (p *pipeline) SendPeers([]event.PeerOut) {}

func (p *pipeline) Spare(dst [][]byte) [][]byte {
	dst = append(dst, p.spare...)
	p.spare = p.spare[:0]
	return dst
}

func (p *pipeline) Submit(ops []event.Op) {
	for i := range ops {
		if ops[i].Ticket != 0 {
			p.done = append(p.done, event.Input{Kind: event.Done, Done: event.Completion{Ticket: ops[i].Ticket, Kind: ops[i].Kind, Group: ops[i].Group}})
		}
	}
}

// publishes is the protocol text of n publishes of 128 bytes that ask for an acknowledgement at subjects of their own.
func publishes(n int, number *int) []byte {
	var text []byte
	payload := make([]byte, 128)
	for i := range payload {
		payload[i] = 'x'
	}
	for range n {
		*number++
		text = append(text, "PUB s.a in."+itoa(*number)+" 128\r\n"...)
		text = append(text, payload...)
		text = append(text, '\r', '\n')
	}
	return text
}

// A publish costs allocations per batch (the entry, Raft's messages, the append), none of its own: seven times as many
// messages in a batch need hardly more.
func TestPublishAllocatesPerBatchNotPerMessage(t *testing.T) {
	p := newPipeline(t)
	measure := func(n int) float64 {
		number := 0
		text := publishes(n, &number)
		p.send(text) // buffers grow to their working size
		return testing.AllocsPerRun(20, func() { p.send(text) })
	}
	many, few := measure(448), measure(64)
	if extra := many - few; extra > 40 {
		t.Errorf("%v allocations for 448 messages, %v for 64: %v more", many, few, extra)
	}
	if p.acked < 20*(448+64)*2 {
		t.Errorf("%d lines of acknowledgements", p.acked)
	}
}

// BenchmarkPublish has one client publish 1 and 256 messages at a time, each with a reply subject of its own, as clients do.
func BenchmarkPublish(b *testing.B) {
	for _, batch := range []int{1, 256} {
		b.Run(itoa(batch), func(b *testing.B) {
			p := newPipeline(b)
			number := 10_000_000
			b.ReportAllocs()
			for b.Loop() {
				p.send(publishes(batch, &number))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/msg")
		})
	}
}
