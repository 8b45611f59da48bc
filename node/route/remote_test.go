package route

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir/model/subject"
	"weir/node/event"
)

// cluster is a few servers, each with the table of one account, whose sessions carry everything at once.
type cluster struct {
	servers []*server
	up      map[[2]int]bool // by the numbers of both, the lower first
	frames  int             // messages between servers
	slow    map[int]bool    // servers that the last message went to although a client there is slow
}

type server struct {
	cluster *cluster
	number  int
	table   *Table
	subs    []*Sub
	got     []*Sub // of the last message, in order
	known   map[interestKey]Interest
}

func newCluster(servers int, seed uint64) *cluster {
	c := &cluster{up: map[[2]int]bool{}}
	for i := range servers {
		s := &server{cluster: c, number: i, table: NewTable(rand.NewPCG(seed, uint64(i))), known: map[interestKey]Interest{}}
		s.table.Join(s)
		c.servers = append(c.servers, s)
	}
	return c
}

func id(number int) event.ServerID { return event.ServerID(number + 1) }

func (c *cluster) linked(a, b int) bool { return c.up[[2]int{min(a, b), max(a, b)}] }

// link begins or ends the session of two servers.
func (c *cluster) link(a, b int, up bool) {
	if a == b || c.linked(a, b) == up {
		return
	}
	c.up[[2]int{min(a, b), max(a, b)}] = up
	for _, pair := range [][2]int{{a, b}, {b, a}} {
		from, to := c.servers[pair[0]].table, c.servers[pair[1]].table
		if !up {
			to.DropPeer(id(pair[0]))
			continue
		}
		from.Announced(func(i *Interest) { to.SetInterest(id(pair[0]), i) })
	}
}

func (s *server) Announce(i *Interest) {
	key := interestKey{i.Pattern, i.Queue}
	if s.known[key] == *i {
		panic(fmt.Sprintf("%v announced twice", *i))
	}
	s.known[key] = *i
	for _, other := range s.cluster.servers {
		if s.cluster.linked(s.number, other.number) {
			other.table.SetInterest(id(s.number), i)
		}
	}
}

func (s *server) Forward(to event.ServerID, out *Outgoing) bool {
	s.cluster.frames++
	s.cluster.slow[int(to-1)] = out.Slow
	s.cluster.servers[to-1].table.RouteLocal(out)
	return true
}

func (s *server) Deliver(sub *Sub, _ *Message) bool {
	s.got = append(s.got, sub)
	return true
}

func (s *server) subscribe(pattern, queue string, home bool) *Sub {
	sub := &Sub{Conn: 1, Receiver: s, Pattern: pattern, Queue: queue, Home: home}
	s.subs = append(s.subs, sub)
	s.table.Subscribe(sub)
	return sub
}

// publish routes a message from a server, and returns what Route counted.
func (c *cluster) publish(from int, to string) int {
	for _, s := range c.servers {
		s.got = nil
	}
	c.frames, c.slow = 0, map[int]bool{}
	return c.servers[from].table.Route([]byte(to), &Message{Subject: []byte(to)})
}

// check publishes and compares who got the message with who had to.
func (c *cluster) check(t *rapid.T, from int, to string) {
	wanted := map[*Sub]bool{}
	groups := map[string][]*Sub{} // the candidates: local ones if there are any
	local := map[string]bool{}
	peers := map[int]bool{}
	for _, s := range c.servers {
		if s.number != from && !c.linked(from, s.number) {
			continue
		}
		for _, sub := range s.subs {
			if !subject.Matches(to, sub.Pattern) || sub.Home && s.number != from {
				continue
			}
			if sub.Queue == "" {
				wanted[sub] = true
				if s.number != from {
					peers[s.number] = true
				}
			} else {
				groups[sub.Queue] = append(groups[sub.Queue], sub)
				local[sub.Queue] = local[sub.Queue] || s.number == from
			}
		}
	}
	anybody := len(wanted)+len(groups) > 0
	if got := c.servers[from].table.HasInterest([]byte(to)); got != anybody {
		t.Fatalf("interest in %q is %v", to, got)
	}
	taken := c.publish(from, to)
	if (taken > 0) != anybody {
		t.Fatalf("%d took %q", taken, to)
	}
	for _, s := range c.servers {
		for _, sub := range s.got {
			switch {
			case sub.Queue == "":
				if !wanted[sub] {
					t.Fatalf("server %d: %q went to %q once too often", s.number, to, sub.Pattern)
				}
				delete(wanted, sub)
			case !slices.Contains(groups[sub.Queue], sub) || local[sub.Queue] && s.number != from:
				t.Fatalf("server %d: %q went to a wrong member of %q", s.number, to, sub.Queue)
			default:
				delete(groups, sub.Queue)
				if s.number != from {
					peers[s.number] = true
				}
			}
		}
	}
	if len(wanted)+len(groups) > 0 {
		t.Fatalf("%q missed %d subscriptions and %d groups", to, len(wanted), len(groups))
	}
	c.checkSlow(t, to)
	if c.frames != len(peers) {
		t.Fatalf("%q took %d frames to %d servers", to, c.frames, len(peers))
	}
}

// checkSlow compares what the publisher's server knows of slow clients of those that it sent the message to.
func (c *cluster) checkSlow(t *rapid.T, to string) {
	for number, got := range c.slow { // order-free: any failure will do
		must, may := false, false
		for _, sub := range c.servers[number].subs {
			if subject.Matches(to, sub.Pattern) && !sub.Home && sub.Lag() == Slow {
				may = true
				must = must || sub.Queue == ""
			}
		}
		if got && !may || must && !got {
			t.Fatalf("that a client of server %d for %q is slow is said to be %v", number, to, got)
		}
	}
}

// checkBehind compares whether somebody keeps up with what is known of the clients.
func (c *cluster) checkBehind(t *rapid.T, from int, to string) {
	here := func(s *Sub) bool { return s.Lag() == KeepsUp }
	keepsUp := false
	for _, s := range c.servers {
		for _, sub := range s.subs {
			if (s.number == from || c.linked(from, s.number) && !sub.Home) && subject.Matches(to, sub.Pattern) && sub.Lag() == KeepsUp {
				keepsUp = true
			}
		}
	}
	if got := c.servers[from].table.Match([]byte(to)).KeepsUp(here, func(event.ServerID) bool { return true }); got != keepsUp {
		t.Fatalf("server %d: somebody keeps up with %q is %v", from, to, got)
	}
}

// checkWatch compares the interest that a watch counts with a recount.
func (c *cluster) checkWatch(t *rapid.T, from int, w *Watch) {
	interested := false
	for _, s := range c.servers {
		for _, sub := range s.subs {
			if (s.number == from || c.linked(from, s.number) && !sub.Home) && sub.Queue == w.Group &&
				subject.Matches(w.Subject, sub.Pattern) {
				interested = true
			}
		}
	}
	if w.Interested() != interested {
		t.Fatalf("server %d: interest in %q is %v", from, w.Subject, w.Interested())
	}
}

// The subjects and patterns are few, so that they match often.
var (
	literals = rapid.SampledFrom([]string{"a", "b", "a.a", "a.b", "b.a", "b.b"})
	patterns = rapid.SampledFrom([]string{"a", "b", "a.a", "a.b", "b.a", "b.b", "*", ">", "a.*", "*.a", "*.*", "b.>"})
)

func TestClusterDeliversAsANaiveSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const servers = 3
		c := newCluster(servers, rapid.Uint64().Draw(t, "seed"))
		any := rapid.IntRange(0, servers-1)
		if rapid.Bool().Draw(t, "linked") {
			c.link(0, 1, true)
			c.link(0, 2, true)
			c.link(1, 2, true)
		}
		watches := make([][]*Watch, servers)
		t.Repeat(map[string]func(*rapid.T){
			"subscribe": func(t *rapid.T) {
				queue := rapid.SampledFrom([]string{"", "", "q", "r"}).Draw(t, "queue")
				home := queue == "" && rapid.IntRange(0, 2).Draw(t, "home") == 0
				c.servers[any.Draw(t, "server")].subscribe(patterns.Draw(t, "pattern"), queue, home)
			},
			"unsubscribe": func(t *rapid.T) {
				s := c.servers[any.Draw(t, "server")]
				if len(s.subs) == 0 {
					return
				}
				at := rapid.IntRange(0, len(s.subs)-1).Draw(t, "at")
				s.table.Unsubscribe(s.subs[at])
				s.subs = slices.Delete(s.subs, at, at+1)
			},
			"link": func(t *rapid.T) {
				c.link(any.Draw(t, "a"), any.Draw(t, "b"), rapid.IntRange(0, 3).Draw(t, "up") > 0)
			},
			"behind": func(t *rapid.T) {
				if s := c.servers[any.Draw(t, "server")]; len(s.subs) > 0 {
					sub := s.subs[rapid.IntRange(0, len(s.subs)-1).Draw(t, "at")]
					s.table.SetLag(sub, rapid.SampledFrom([]Lag{KeepsUp, Behind, Slow}).Draw(t, "lag"))
				}
			},
			"watch": func(t *rapid.T) {
				at := any.Draw(t, "server")
				if len(watches[at]) < 5 {
					queue := rapid.SampledFrom([]string{"", "q"}).Draw(t, "queue")
					watches[at] = append(watches[at], c.servers[at].table.Watch(literals.Draw(t, "subject"), queue, 0))
				}
			},
			"keeps up": func(t *rapid.T) { c.checkBehind(t, any.Draw(t, "from"), literals.Draw(t, "subject")) },
			"publish":  func(t *rapid.T) { c.check(t, any.Draw(t, "from"), literals.Draw(t, "subject")) },
			"": func(t *rapid.T) {
				for at := range watches {
					for _, w := range watches[at] {
						c.checkWatch(t, at, w)
					}
				}
			},
		})
	})
}

func TestMembersOfOtherServersAreChosenByTheirNumber(t *testing.T) {
	c := newCluster(3, 1)
	c.link(0, 1, true)
	c.link(0, 2, true)
	for range 9 {
		c.servers[1].subscribe("a", "q", false)
	}
	c.servers[2].subscribe("*", "q", false)
	counts := [3]int{}
	for range 1000 {
		c.publish(0, "a")
		for i, s := range c.servers {
			counts[i] += len(s.got)
		}
	}
	if counts[0] != 0 || counts[1]+counts[2] != 1000 || counts[2] < 50 || counts[2] > 200 {
		t.Fatalf("members got %v", counts)
	}
}

func TestInterestOfAPeerIsCountedOnce(t *testing.T) {
	table := newTable(1)
	for i, step := range []struct {
		pattern, queue string
		count          uint64
		grows          int
	}{
		{"a", "", 1, 1}, {"a", "", 1, 0}, {"a", "q", 2, 1}, {"a", "q", 5, 0}, {"b", "", 0, 0}, {"a", "", 0, -1}, {"a", "", 0, 0},
	} {
		if grows := table.SetInterest(7, &Interest{Pattern: step.pattern, Queue: step.queue, Count: step.count}); grows != step.grows {
			t.Fatalf("step %d: grows by %d", i, grows)
		}
	}
	if table.DropPeer(7) != 1 || table.DropPeer(7) != 0 || table.Len() != 0 {
		t.Fatal("the interest of a peer that is gone is left")
	}
}

// drain is a mesh that notes nothing.
type drain struct{ sent int }

func (*drain) Announce(*Interest) {}
func (d *drain) Forward(_ event.ServerID, out *Outgoing) bool {
	d.sent += 1 + len(out.Queues)
	return true
}

func TestRoutingToOtherServersDoesNotAllocate(t *testing.T) {
	table, out := newTable(3), &drain{}
	table.Join(out)
	table.SetInterest(1, &Interest{Pattern: "orders.*", Queue: "", Count: 1})
	table.SetInterest(1, &Interest{Pattern: "orders.>", Queue: "q", Count: 2})
	table.SetInterest(2, &Interest{Pattern: ">", Queue: "q", Count: 2})
	table.SetInterest(2, &Interest{Pattern: ">", Queue: "r", Count: 1})
	subjects := make([][]byte, 5000)
	for i := range subjects {
		subjects[i] = fmt.Appendf(nil, "orders.%d", i)
	}
	m := &Message{Subject: subjects[0]}
	route := func() {
		for _, to := range subjects {
			table.Route(to, m)
		}
	}
	for range 40 { // Which server is chosen differs, and each has room to grow once.
		route()
	}
	if allocs := testing.AllocsPerRun(5, route); allocs > 0 {
		t.Errorf("%v allocations for %d messages", allocs, len(subjects))
	}
	if out.sent == 0 {
		t.Error("nothing was sent")
	}
}

func BenchmarkRouteRemote(b *testing.B) {
	table := newTable(12)
	table.Join(&drain{})
	table.SetInterest(1, &Interest{Pattern: "orders.*", Queue: "", Count: 1})
	table.SetInterest(2, &Interest{Pattern: "orders.*", Queue: "q", Count: 1})
	to, m := []byte("orders.new"), &Message{}
	b.ReportAllocs()
	for range b.N {
		table.Route(to, m)
	}
}
