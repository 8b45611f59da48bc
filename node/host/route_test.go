package host

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"weir/node/event"
	"weir/transport/peerwire"
)

// TestSessionsComeAndGoInTurn ends random sessions of servers that all dial each other: for each of them the sessions with
// another begin and end in turn, and at the end each pair has one.
func TestSessionsComeAndGoInTurn(t *testing.T) {
	const servers, rounds = 4, 8
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	addresses := make([]string, servers)
	var routes []Route
	for i := range addresses {
		addresses[i] = free(t)
		routes = append(routes, Route{Address: addresses[i]})
	}
	all := make([]*linked, servers)
	for i := range all {
		all[i] = link(t, who{name: fmt.Sprint("s", i+1), id: event.ServerID(i + 1), boot: r.Uint64()}, Cluster{Listen: addresses[i], Routes: routes})
	}
	for range rounds {
		awaitMesh(t, all)
		for range 1 + r.IntN(servers) {
			s := all[r.IntN(servers)]
			s.mu.Lock()
			for _, other := range s.links.sessions {
				other.conn.Close(errors.New("ended by the test"))
				break
			}
			s.mu.Unlock()
		}
	}
	awaitMesh(t, all)
	for _, s := range all {
		up := map[string]bool{}
		s.mu.Lock()
		for len(s.events) > 0 {
			switch kind, of, _ := strings.Cut(<-s.events, " "); kind {
			case "up":
				if up[of[1:]] {
					t.Errorf("%s: a session with %s begins before another ends", s.options.Node.Engine.ServerName, of)
				}
				up[of[1:]] = true
			case "down":
				if !up[of] {
					t.Errorf("%s: a session with %s ends that did not begin", s.options.Node.Engine.ServerName, of)
				}
				up[of] = false
			}
		}
		for of, now := range up {
			if !now {
				t.Errorf("%s: no session with %s", s.options.Node.Engine.ServerName, of)
			}
		}
		s.mu.Unlock()
	}
}

// awaitMesh waits until each pair of servers has one session that both know.
func awaitMesh(t *testing.T, all []*linked) {
	t.Helper()
	limit := reflect.ValueOf(time.After(patience))
	for {
		waits := []reflect.SelectCase{{Dir: reflect.SelectRecv, Chan: limit}}
		for _, s := range all {
			s.mu.Lock()
			waits = append(waits, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(s.links.changed)})
			s.mu.Unlock()
		}
		if meshed(all) {
			return
		}
		if which, _, _ := reflect.Select(waits); which == 0 {
			t.Fatalf("the servers do not find each other again:\n%s", all[0].lines.text.String())
		}
	}
}

func meshed(all []*linked) bool {
	numbers := map[[2]event.ServerID]uint64{}
	for _, s := range all {
		own := s.options.Node.Engine.Server
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.links.sessions) != len(all)-1 {
			return false
		}
		for id, with := range s.links.sessions {
			pair := [2]event.ServerID{min(own, id), max(own, id)}
			if n, seen := numbers[pair]; seen && n != with.number || with.conn.Err() != nil {
				return false
			}
			numbers[pair] = with.number
		}
	}
	return true
}

// TestLearnedServersAreForgottenAfterTheirRetries has a server told of one that is not there.
func TestLearnedServersAreForgottenAfterTheirRetries(t *testing.T) {
	a := link(t, who{name: "a", id: 1, boot: 1}, Cluster{Retries: 2})
	other := dialAs(t, a)
	hello := who{name: "b", id: 2}.hello()
	nobody := free(t)
	hello.Addresses = []string{nobody}
	other.say(&peerwire.Greeting{Hello: hello, Boot: 2})
	other.say(&peerwire.Greeting{})
	a.expect("up b")
	a.lines.await(t, "Error trying to connect to route "+nobody+" (attempt 2)")
	a.lines.await(t, "Route "+nobody+", which another server told of, is given up")
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.links.routes[nobody] != nil {
		t.Error("it is still dialed")
	}
}

func TestServerLearnsNeitherOfItselfNorOfNonsense(t *testing.T) {
	a := link(t, who{name: "a", id: 1, boot: 1}, Cluster{})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.links.learn(0, a.ClusterAddr().String())
	a.links.learn(1, "elsewhere:1")
	for _, wrong := range []string{"", "h", ":1", "h:x", "h:0", "h:70000", "h\n[INF] all is well:1", strings.Repeat("h", addressBytesMax) + ":1"} {
		a.links.learn(0, wrong)
	}
	if len(a.links.routes) != 0 {
		t.Errorf("it dials %v", a.links.routes)
	}
}

// TestAddressesWithoutHostAreCompleted are those of servers that listen everywhere.
func TestAddressesWithoutHostAreCompleted(t *testing.T) {
	a := link(t, who{name: "a", id: 1, boot: 1}, Cluster{Listen: "0.0.0.0:0"})
	own := a.options.Node.Engine.Cluster
	if !strings.HasPrefix(own.Address, ":") || len(own.ClientURLs) != 1 || own.ClientURLs[0] != "127.0.0.1:4222" {
		t.Errorf("it is to be found at %q, by clients at %v", own.Address, own.ClientURLs)
	}
	b := link(t, who{name: "b", id: 2, boot: 2}, Cluster{Routes: []Route{{Address: "localhost" + own.Address}}})
	b.expect("up a")
	b.mu.Lock()
	defer b.mu.Unlock()
	if got := b.links.sessions[1].hello.Address; got != "127.0.0.1"+own.Address {
		t.Errorf("the other one takes it to be at %q", got)
	}
}

// TestEndDoesNotWaitForHandshakes ends a server to which others are connected that say nothing.
func TestEndDoesNotWaitForHandshakes(t *testing.T) {
	a := link(t, who{name: "a", id: 1, boot: 1}, Cluster{Timeout: time.Hour})
	silent := []*stranger{dialAs(t, a), dialAs(t, a)}
	last := dialAs(t, a) // connections are accepted one after the other
	last.say(&peerwire.Greeting{Hello: who{name: "b", id: 2}.hello(), Boot: 2})
	if busy := len(a.links.pending); busy < len(silent) {
		t.Fatalf("%d of %d handshakes have begun", busy, len(silent))
	}
	a.links.stop()
	for _, s := range silent {
		if _, err := s.conn.Greeted(); err == nil {
			t.Error("a server that ended greets")
		}
	}
}

// TestHandshakesAreBounded keeps all places for handshakes busy.
func TestHandshakesAreBounded(t *testing.T) {
	a := link(t, who{name: "a", id: 1, boot: 1}, Cluster{Timeout: time.Hour})
	for range HandshakesMax {
		dialAs(t, a)
	}
	// Connections are accepted one after the other: the next one finds all places taken.
	if _, err := dialAs(t, a).conn.Greeted(); err == nil {
		t.Error("one more is greeted")
	}
}

// TestStrangersAreNotBelieved sends greetings in random order and with random contents, and what is no greeting.
func TestStrangersAreNotBelieved(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	a := link(t, who{name: "a", id: 100, boot: 1}, Cluster{User: "u", Password: "p", Timeout: time.Second})
	believable := 0
	for i := range 150 {
		s := dialAs(t, a)
		right := false
		for turn := range 1 + r.IntN(4) {
			g := &peerwire.Greeting{Boot: r.Uint64N(3), Session: r.Uint64N(3), Verdict: r.Uint64N(3)}
			if r.IntN(3) > 0 {
				g.Hello = who{name: []string{"a", "b", ""}[r.IntN(3)], id: event.ServerID(r.IntN(3) * 100)}.hello()
				g.Hello.User, g.Hello.Password = "u", []string{"p", "q"}[r.IntN(2)]
			}
			if r.IntN(5) == 0 {
				g.Refused = peerwire.RefusedName
			}
			if i == 0 && turn == 0 { // one in any case
				g.Hello, g.Refused = who{name: "b", id: 200}.hello(), ""
				g.Hello.User, g.Hello.Password = "u", "p"
			}
			right = right || turn == 0 && g.Hello != nil && g.Hello.Name == "b" && g.Hello.ID == 200 && g.Hello.Password == "p" && g.Refused == ""
			if s.conn.Greet(g) != nil {
				break
			}
			if _, err := s.conn.Greeted(); err != nil {
				break
			}
		}
		s.conn.Close(errors.New("ended by the test"))
		if right {
			believable++
		}
	}
	a.links.stop()
	begun := 0
	for len(a.events) > 0 {
		switch e := <-a.events; e {
		case "up b":
			begun++
		case "down 200":
		default:
			t.Fatalf("a stranger caused %q", e)
		}
	}
	if begun > believable || believable == 0 {
		t.Errorf("%d sessions began with %d strangers to be believed", begun, believable)
	}
}
