package node_test

import (
	"strings"
	"testing"

	"weir/disk/memfs"
	"weir/model/jsapi"
	"weir/node"
	"weir/node/auth"
	"weir/node/engine"
	"weir/node/event"
	"weir/node/storage"
	"weir/transport/wire"
)

// rig is a node on a simulated disk, with clients that are nothing but parsers in front and text behind. Storage is
// carried out after each step, and time moves only when a test says so.
type rig struct {
	t       *testing.T
	node    *node.Node
	now     event.Time
	ops     []event.Op
	appends int // handed out so far
	parsers map[event.ConnID]*wire.Parser
	out     map[event.ConnID]*strings.Builder
	orders  map[event.ConnID][]event.ConnOut // without bytes
	// unread holds back the reports that bytes were written.
	unread  bool
	written []event.Input

	submitted func(ops []event.Op) // is shown every operation
	peers     func(out []event.PeerOut)
	logged    func(line event.LogLine)

	disk    *memfs.FS
	storage storage.Options
	config  engine.Config
}

func newRig(t *testing.T, change func(*engine.Config)) *rig {
	t.Helper()
	r := &rig{
		t: t, now: event.Time{Mono: 1, Wall: 1_700_000_000_000_000_000},
		parsers: map[event.ConnID]*wire.Parser{}, out: map[event.ConnID]*strings.Builder{},
		orders: map[event.ConnID][]event.ConnOut{},
	}
	config := engine.Config{
		ServerID: "NTEST", ServerName: "test", Host: "127.0.0.1", Port: 4222, GoVersion: "go",
		Limits: engine.Limits{
			ControlLineBytes: 4096, PayloadBytes: 1 << 20, PendingBytes: 64 << 20, Connections: 100,
			PingIntervalNanos: 120e9, PingsOut: 2, AuthTimeoutNanos: 2e9,
		},
		JetStream: engine.JetStream{Enabled: true, StoreDir: "data", Strict: true, Limits: jsapi.Limits{Account: jsapi.Unlimited()}},
		Seed:      1, Boot: 1,
	}
	var err error
	if config.Auth, err = auth.New(auth.Config{}); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&config)
	}
	r.disk, r.config = memfs.New(memfs.Options{}), config
	r.start()
	return r
}

func (r *rig) start() {
	r.t.Helper()
	env := node.Env{Clock: (*rigClock)(r), Network: (*rigNetwork)(r), Worker: (*rigWorker)(r), Disk: r.disk, Log: func(line event.LogLine) {
		if r.logged != nil {
			r.logged(line)
		}
	}}
	var err error
	if r.node, err = node.New(env, node.Config{Engine: r.config, Storage: r.storage, Dir: "data"}); err != nil {
		r.t.Fatal(err)
	}
	r.settle()
}

// restart ends the process in order and starts another on its data. Clients have to connect again.
func (r *rig) restart() {
	r.t.Helper()
	if err := r.node.Storage().Close(); err != nil {
		r.t.Fatal(err)
	}
	r.config.Boot++
	r.written = nil
	r.start()
}

// settle carries out storage operations until there are none.
func (r *rig) settle() {
	for len(r.ops) > 0 || len(r.written) > 0 && !r.unread {
		inputs := r.written
		r.written = nil
		ops := r.ops
		r.ops = nil
		if len(ops) > 0 {
			for _, c := range r.node.Storage().Do(ops, nil) {
				inputs = append(inputs, event.Input{Kind: event.Done, Done: c})
			}
		}
		r.node.StepAll(inputs)
	}
}

// open connects a client with the given options of CONNECT, not verbose.
func (r *rig) open(id event.ConnID, connect string) {
	r.parsers[id] = wire.NewParser(wire.Limits{ControlLineBytes: 4096, PayloadBytes: 1 << 20})
	r.out[id] = &strings.Builder{}
	r.node.Step(event.Input{Kind: event.Opened, Conn: id, Text: "127.0.0.1:5000"})
	r.send(id, "CONNECT {\"verbose\":false,"+connect+"}\r\n")
	r.out[id].Reset()
}

// send has a client send protocol text and everything that follows from it happen.
func (r *rig) send(id event.ConnID, text string) {
	r.t.Helper()
	ops, used, err := r.parsers[id].Feed([]byte(text), nil)
	if err != nil || used != len(text) {
		r.t.Fatalf("parse %q: %d bytes, %v", text, used, err)
	}
	r.node.Step(event.Input{Kind: event.Ops, Conn: id, Ops: ops})
	r.settle()
}

// pub has a client publish.
func (r *rig) pub(id event.ConnID, to, reply, body string) {
	r.t.Helper()
	r.send(id, "PUB "+to+" "+reply+" "+itoa(len(body))+"\r\n"+body+"\r\n")
}

// read is what a client was sent since the last read.
func (r *rig) read(id event.ConnID) string {
	text := r.out[id].String()
	r.out[id].Reset()
	return text
}

func itoa(n int) string {
	digits := ""
	for {
		digits = string(rune('0'+n%10)) + digits
		if n /= 10; n == 0 {
			return digits
		}
	}
}

type rigClock rig

func (c *rigClock) Now() event.Time { return c.now }
func (c *rigClock) Wake(int64)      {}

type rigNetwork rig

func (n *rigNetwork) Send(out []event.ConnOut) {
	for _, o := range out {
		n.out[o.Conn].Write(o.Bytes)
		if len(o.Bytes) > 0 {
			n.written = append(n.written, event.Input{Kind: event.Flushed, Conn: o.Conn, N: len(o.Bytes)})
		}
		o.Bytes = nil
		n.orders[o.Conn] = append(n.orders[o.Conn], o)
	}
}
func (n *rigNetwork) SendPeers(out []event.PeerOut) {
	if n.peers != nil {
		n.peers(out)
	}
}

func (n *rigNetwork) Spare(dst [][]byte) [][]byte { return dst }

type rigWorker rig

func (w *rigWorker) Submit(ops []event.Op) {
	for i := range ops {
		if ops[i].Kind == event.Persist {
			w.appends++
		}
	}
	w.ops = append(w.ops, ops...)
	if w.submitted != nil {
		w.submitted(ops)
	}
}
