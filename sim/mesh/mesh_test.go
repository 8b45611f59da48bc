package mesh

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"weir/sim/keyed"
	"weir/sim/sched"
	"weir/transport/peerwire"
)

// server is what a host of the tests knows of one server.
type server struct {
	gen   uint32
	up    map[peerwire.ServerID]bool
	got   map[peerwire.ServerID]uint64 // the number of the last ordered frame of the session
	pings int
}

// host is a world of servers that number what they send.
type host struct {
	t       interface{ Fatalf(string, ...any) }
	now     int64
	queue   *sched.Queue
	mesh    *Mesh
	servers []server
	lives   uint32
	sent    map[[2]int]uint64
}

func newHost(t interface{ Fatalf(string, ...any) }, c Config) *host {
	h := &host{t: t, queue: sched.New(sched.FIFO, 7), servers: make([]server, c.Nodes), sent: map[[2]int]uint64{}}
	h.mesh = New(c, keyed.Key(7), h)
	for i := range h.servers {
		h.boot(i)
	}
	return h
}

func (h *host) boot(node int) {
	h.lives++
	h.servers[node] = server{gen: h.lives, up: map[peerwire.ServerID]bool{}, got: map[peerwire.ServerID]uint64{}}
	h.mesh.Boot(node)
}

func (h *host) end(node int) {
	h.mesh.Ended(node)
	h.servers[node].gen = 0
}

func (h *host) Now() int64              { return h.now }
func (h *host) Push(e sched.Event)      { h.queue.Push(e) }
func (h *host) Running(node int) uint32 { return h.servers[node].gen }

func (h *host) Hello(node int) *peerwire.Hello {
	return &peerwire.Hello{ID: peerwire.ServerID(node + 1), Name: fmt.Sprint(node)}
}

func (h *host) Up(node int, peer *peerwire.Hello) {
	s := &h.servers[node]
	if s.gen == 0 || s.up[peer.ID] {
		h.t.Fatalf("server %d, running %d, learns twice of a session with %d", node, s.gen, peer.ID)
	}
	s.up[peer.ID], s.got[peer.ID] = true, 0
}

func (h *host) Down(node int, peer peerwire.ServerID) {
	s := &h.servers[node]
	if s.gen == 0 || !s.up[peer] {
		h.t.Fatalf("server %d learns of the end of a session with %d that it has not", node, peer)
	}
	s.up[peer] = false
}

// Frames checks that ordered frames continue where those before them ended: the numbers of one session have no gap.
func (h *host) Frames(node int, peer peerwire.ServerID, frames []byte) {
	s := &h.servers[node]
	if s.gen == 0 || !s.up[peer] {
		h.t.Fatalf("server %d gets frames of %d without a session", node, peer)
	}
	for len(frames) > 0 {
		frame, rest, err := peerwire.Split(frames)
		if err != nil {
			h.t.Fatalf("%v", err)
		}
		var f peerwire.Frame
		if err := peerwire.Parse(frame, &f); err != nil {
			h.t.Fatalf("%v", err)
		}
		if f.Kind == peerwire.Ping {
			s.pings++
		} else {
			if last := s.got[peer]; last != 0 && f.Token != last+1 {
				h.t.Fatalf("server %d gets frame %d of %d behind %d", node, f.Token, peer, last)
			}
			s.got[peer] = f.Token
		}
		frames = rest
	}
}

// send sends an ordered frame with the next number, a ping, and another ordered frame.
func (h *host) send(from, to int) {
	if h.servers[from].gen == 0 || !h.servers[from].up[peerwire.ServerID(to+1)] {
		return
	}
	way := [2]int{from, to}
	var out []byte
	for _, kind := range []peerwire.Kind{peerwire.Lead, peerwire.Ping, peerwire.Lead} {
		token := uint64(0)
		if kind == peerwire.Lead {
			h.sent[way]++
			token = h.sent[way]
		}
		out = peerwire.Append(out, &peerwire.Frame{Kind: kind, Token: token, Payload: bytes.Repeat([]byte{1}, 10)})
	}
	h.mesh.Send(from, to, peerwire.ServerID(to+1), out)
}

func (h *host) run(nanos int64) {
	limit := h.now + nanos
	for h.queue.Len() > 0 && h.queue.Next() <= limit {
		e, _ := h.queue.Pop()
		h.now = e.At
		h.mesh.Handle(&e)
	}
	h.now = limit
}

func (h *host) connected() bool {
	for a := range h.servers {
		for b := range a {
			if !h.mesh.Connected(a, b) {
				return false
			}
		}
	}
	return true
}

func quick(nodes int) Config {
	return Config{Nodes: nodes, LatencyMinNanos: 100_000, LatencyMeanNanos: millisecond}
}

// TestSessionsHoldWhatTheyPromise lets servers send, die, come back and lose each other at random, under rough knobs.
func TestSessionsHoldWhatTheyPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := quick(rapid.SampledFrom([]int{2, 3, 5}).Draw(t, "nodes"))
		c.LossPerMille = uint64(rapid.IntRange(0, 300).Draw(t, "loss"))
		c.DupPerMille = uint64(rapid.IntRange(0, 300).Draw(t, "dup"))
		c.LatePerMille, c.LateMeanNanos = uint64(rapid.IntRange(0, 300).Draw(t, "late")), second
		c.ResetPerMille = uint64(rapid.IntRange(0, 50).Draw(t, "reset"))
		c.Ordered = rapid.Bool().Draw(t, "ordered")
		h := newHost(t, c)
		type cut struct {
			from, to int
			hold     bool
		}
		var cuts []cut
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			a := rapid.IntRange(0, c.Nodes-1).Draw(t, "a")
			b := (a + 1 + rapid.IntRange(0, c.Nodes-2).Draw(t, "b")) % c.Nodes
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				if h.servers[a].gen != 0 {
					h.end(a)
				} else {
					h.boot(a)
				}
			case 1:
				cuts = append(cuts, cut{a, b, rapid.Bool().Draw(t, "hold")})
				h.mesh.Cut(a, b, cuts[len(cuts)-1].hold)
			case 2:
				if n := len(cuts); n > 0 {
					h.mesh.Mend(cuts[n-1].from, cuts[n-1].to, cuts[n-1].hold)
					cuts = cuts[:n-1]
				}
			case 3:
				h.mesh.Reset(a)
			case 4:
				h.run(second * int64(rapid.IntRange(1, 5).Draw(t, "seconds")))
			default:
				h.send(a, b)
				h.run(int64(rapid.IntRange(0, 20*millisecond).Draw(t, "nanos")))
			}
		}
		for _, c := range cuts {
			h.mesh.Mend(c.from, c.to, c.hold)
		}
		h.mesh.Calm()
		for i := range h.servers {
			if h.servers[i].gen == 0 {
				h.boot(i)
			}
		}
		h.run(60 * second)
		if !h.connected() {
			t.Fatalf("a minute after everything is whole some servers have no session")
		}
		h.send(0, 1)
		h.run(second)
		if got, want := h.servers[1].got[1], h.sent[[2]int{0, 1}]; got != want {
			t.Fatalf("the newest frame that arrived is %d, sent was %d", got, want)
		}
	})
}

func TestCutDirectionPassesNothingAndTheOtherDoes(t *testing.T) {
	h := newHost(t, quick(2))
	h.run(second)
	h.mesh.Cut(0, 1, true)
	h.send(0, 1)
	h.send(1, 0)
	h.run(20 * second)
	if h.servers[1].got[1] != 0 || h.servers[1].pings != 0 {
		t.Fatal("something passed the cut")
	}
	if h.servers[0].got[2] != 2 || h.servers[0].pings != 1 {
		t.Fatal("the other direction is cut too")
	}
	h.mesh.Mend(0, 1, true)
	h.run(second)
	if h.servers[1].got[1] != 2 {
		t.Fatal("what waited at a half-open session did not pass when it was whole")
	}
}

func TestSessionOverACutLinkEndsForBothUnlessItIsHeld(t *testing.T) {
	h := newHost(t, quick(2))
	h.run(second)
	h.mesh.Cut(0, 1, false)
	h.run(60 * second)
	if h.servers[0].up[2] || h.servers[1].up[1] {
		t.Fatal("a session lives on for a minute though nothing passes")
	}
	h.mesh.Mend(0, 1, false)
	h.run(10 * second)
	if !h.connected() {
		t.Fatal("no session begins after the link is whole")
	}
}

func TestLateDatagramsOutliveTheIncarnationOfTheirSender(t *testing.T) {
	c := quick(2)
	c.LatePerMille, c.LateMeanNanos = 1000, 2*second
	h := newHost(t, c)
	h.run(second)
	for range 50 {
		h.send(0, 1)
		h.run(millisecond)
	}
	h.end(0)
	h.boot(0)
	h.run(second)
	before := h.servers[1].pings
	h.run(20 * second)
	if !h.connected() || h.servers[1].pings == before {
		t.Fatal("no datagram of the former incarnation arrived")
	}
}

func TestEqualRunsAreEqual(t *testing.T) {
	run := func() string {
		c := quick(3)
		c.LossPerMille, c.DupPerMille, c.LatePerMille, c.LateMeanNanos = 100, 100, 100, second
		h := newHost(t, c)
		for i := range 300 {
			h.run(10 * millisecond)
			h.send(i%3, (i+1)%3)
		}
		return fmt.Sprint(h.servers)
	}
	if a, b := run(), run(); a != b {
		t.Fatalf("%s\n%s", a, b)
	}
}
