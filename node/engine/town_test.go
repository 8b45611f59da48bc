package engine

import (
	"fmt"
	"strings"
	"testing"

	"weir/node/auth"
	"weir/node/event"
	"weir/transport/wire"
)

// town is a few servers without streams whose frames arrive at once, and their clients.
type town struct {
	t       testing.TB
	engines []*Engine
	up      [][]bool
	clients map[event.ConnID]*townsman
	now     event.Time
	last    event.ConnID
	// hold keeps frames on their way.
	hold bool
	held []parcel
	// session numbers the session that the first server has with the second, where sessions are numbered.
	session map[[2]int]int
	orders  map[event.ConnID]event.ConnOut // the last, without bytes
	logs    []string
}

// townsman is a client: a parser in front and text behind.
type townsman struct {
	id     event.ConnID
	at     int
	parser *wire.Parser
	text   strings.Builder
	// unread are bytes that have not been reported as written, with slow set.
	slow   bool
	unread int
}

func townID(at int) event.ServerID { return event.ServerID(100 + at) }

func newTown(t testing.TB, servers int) *town {
	t.Helper()
	town := &town{t: t, clients: map[event.ConnID]*townsman{}, orders: map[event.ConnID]event.ConnOut{}, session: map[[2]int]int{}, now: event.Time{Mono: 1, Wall: 1_700_000_000_000_000_000}}
	responder, err := auth.NewPermissions(auth.PermissionsConfig{
		Publish: auth.Rules{Deny: []string{">"}}, Subscribe: auth.Rules{Allow: []string{"service"}}, Responses: &auth.Responses{Max: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	users := []auth.User{
		{Name: "a", Password: "a", Account: "A"}, {Name: "b", Password: "b", Account: "B"}, {Name: "s", Password: "s", Account: "SYS"},
		{Name: "r", Password: "r", Account: "A", Permissions: responder},
	}
	for at := range servers {
		authenticator, err := auth.New(auth.Config{Users: users})
		if err != nil {
			t.Fatal(err)
		}
		url := fmt.Sprintf("10.0.0.%d:4222", servers-at)
		e, err := New(Config{
			ServerID: fmt.Sprintf("N%d", at), ServerName: fmt.Sprintf("n%d", at), Auth: authenticator, SystemAccount: "SYS",
			Accounts: []Account{{Name: "A"}, {Name: "B"}, {Name: "SYS"}}, Seed: uint64(at),
			Limits: Limits{
				ControlLineBytes: 4096, PayloadBytes: 1 << 20, PendingBytes: 64 << 20, Connections: 100,
				PingIntervalNanos: 120e9, PingsOut: 2, AuthTimeoutNanos: 2e9,
			},
			Server: townID(at), Cluster: Cluster{Name: "town", ClientURLs: []string{url}},
		}, nil, town.now, &event.Outputs{})
		if err != nil {
			t.Fatal(err)
		}
		town.engines = append(town.engines, e)
		town.up = append(town.up, make([]bool, servers))
	}
	return town
}

// parcel is frames on their way.
type parcel struct {
	from, to int
	frames   []byte
	session  int // of the sender, where sessions are numbered
}

// step gives one server an input and has everything that follows from it happen.
func (w *town) step(at int, in event.Input) {
	w.t.Helper()
	w.engines[at].Step(w.now, &in, &event.Outputs{})
	w.settle(at)
}

// settle has everything happen that follows from inputs of the servers.
func (w *town) settle(servers ...int) {
	w.t.Helper()
	var way []parcel
	for _, at := range servers {
		way = w.finish(at, way)
	}
	for len(way) > 0 {
		p := way[0]
		way = way[1:]
		if !w.up[p.from][p.to] {
			continue
		}
		if w.hold {
			w.held = append(w.held, p)
			continue
		}
		w.engines[p.to].Step(w.now, &event.Input{Kind: event.FromPeer, Peer: townID(p.from), Frames: p.frames}, &event.Outputs{})
		way = w.finish(p.to, way)
	}
}

// release lets frames arrive that were held back.
func (w *town) release() {
	w.t.Helper()
	w.hold = false
	for _, p := range w.held {
		w.step(p.to, event.Input{Kind: event.FromPeer, Peer: townID(p.from), Frames: p.frames})
	}
	w.held = nil
}

// finish hands out what a server has for clients, and adds what it has for others to the way.
func (w *town) finish(at int, way []parcel) []parcel {
	var out event.Outputs
	w.engines[at].Finish(w.now, &out)
	for _, o := range out.Conns {
		c := w.clients[o.Conn]
		c.text.Write(o.Bytes)
		n := len(o.Bytes)
		o.Bytes = nil
		w.orders[o.Conn] = o
		if c.slow {
			c.unread += n
			continue
		}
		w.engines[at].Step(w.now, &event.Input{Kind: event.Flushed, Conn: o.Conn, N: n}, &out)
	}
	for _, l := range out.Logs {
		w.logs = append(w.logs, l.Text)
	}
	for _, p := range out.Peers {
		to := int(p.To) - 100
		way = append(way, parcel{at, to, p.Frames, w.session[[2]int{at, to}]})
	}
	return way
}

// link begins or ends the session of two servers.
func (w *town) link(a, b int, up bool) {
	w.t.Helper()
	if a == b || w.up[a][b] == up {
		return
	}
	w.up[a][b], w.up[b][a] = up, up
	for _, pair := range [][2]int{{a, b}, {b, a}} {
		in := event.Input{Kind: event.PeerDown, Peer: townID(pair[1])}
		if up {
			hello := w.engines[pair[1]].Hello()
			in.Kind, in.Hello = event.PeerUp, &hello
		}
		w.engines[pair[0]].Step(w.now, &in, &event.Outputs{})
	}
	w.settle(a, b)
}

// linkAll begins all sessions.
func (w *town) linkAll() {
	w.t.Helper()
	for a := range w.engines {
		for b := range a {
			w.link(a, b, true)
		}
	}
}

// open connects a client of the account.
func (w *town) open(at int, user string) *townsman {
	w.t.Helper()
	w.last++
	c := &townsman{id: w.last, at: at, parser: wire.NewParser(wire.Limits{ControlLineBytes: 4096, PayloadBytes: 1 << 20})}
	w.clients[c.id] = c
	w.step(at, event.Input{Kind: event.Opened, Conn: c.id, Text: "127.0.0.1:5000"})
	w.send(c, `CONNECT {"verbose":false,"headers":true,"no_responders":true,"protocol":1,"user":"`+user+`","pass":"`+user+`"}`+"\r\n")
	c.text.Reset()
	return c
}

func (w *town) send(c *townsman, text string) {
	w.t.Helper()
	ops, used, err := c.parser.Feed([]byte(text), nil)
	if err != nil || used != len(text) {
		w.t.Fatalf("parse %q: %d bytes, %v", text, used, err)
	}
	w.step(c.at, event.Input{Kind: event.Ops, Conn: c.id, Ops: ops})
}

func (c *townsman) read() string {
	text := c.text.String()
	c.text.Reset()
	return text
}

func (c *townsman) expect(t *testing.T, want string) {
	t.Helper()
	if got := c.read(); got != want {
		t.Errorf("client %d at server %d got %q, want %q", c.id, c.at, got, want)
	}
}
