package node_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/disk/wal"
	"weir/model/meta"
	"weir/node/engine"
	"weir/node/event"
	"weir/node/replica"
	"weir/transport/peerwire"
)

// cluster is several rigs whose frames are carried from one to another at once, in order.
type cluster struct {
	t     *testing.T
	rigs  []*rig
	down  map[int]bool
	cut   map[[2]int]bool
	queue []transit
	// unaware is a server that gets nothing of the catalog's group, nor gives; -1 for none.
	unaware int
}

// pass returns the frames that go from one server to another.
func (c *cluster) pass(from, to int, frames []byte) []byte {
	if c.unaware < 0 || from != c.unaware && to != c.unaware {
		return frames
	}
	var passed []byte
	for len(frames) > 0 {
		frame, rest, err := peerwire.Split(frames)
		var f peerwire.Frame
		if err == nil {
			err = peerwire.Parse(frame, &f)
		}
		if err != nil {
			c.t.Fatal(err)
		}
		if f.Kind != peerwire.Beat && (f.Kind != peerwire.Raft || f.Group != meta.Group) {
			passed = append(passed, frame...)
		}
		frames = rest
	}
	return passed
}

type transit struct {
	from, to int
	frames   []byte
}

func newCluster(t *testing.T, n int) *cluster {
	t.Helper()
	return newClusterOf(t, n, func(*engine.Config) {})
}

// newClusterOf is newCluster with a change to the configuration of every server.
func newClusterOf(t *testing.T, n int, change func(*engine.Config)) *cluster {
	t.Helper()
	c := &cluster{t: t, unaware: -1, down: map[int]bool{}, cut: map[[2]int]bool{}}
	for range n {
		c.add(func(config *engine.Config) {
			config.Cluster.Expected = n
			change(config)
		})
	}
	for i := range c.rigs {
		for j := range i {
			c.connect(i, j)
		}
	}
	c.run(40)
	return c
}

// add starts another server, which has no sessions yet.
func (c *cluster) add(change func(*engine.Config)) {
	c.t.Helper()
	i := len(c.rigs)
	r := newRig(c.t, func(config *engine.Config) {
		config.ServerName = fmt.Sprintf("n%d", i+1)
		config.ServerID = fmt.Sprintf("NTEST%d", i+1)
		config.Server = event.ServerID(101 + i)
		config.Seed, config.Boot = uint64(7+i), uint64(1+100*i)
		config.Cluster = engine.Cluster{Name: "C"}
		change(config)
	})
	r.peers = func(out []event.PeerOut) {
		for _, o := range out {
			to := int(o.To) - 101
			c.queue = append(c.queue, transit{i, to, c.pass(i, to, o.Frames)})
		}
	}
	c.rigs = append(c.rigs, r)
}

func (c *cluster) connect(i, j int) {
	hi, hj := c.rigs[i].node.Engine().Hello(), c.rigs[j].node.Engine().Hello()
	c.rigs[i].node.Step(event.Input{Kind: event.PeerUp, Peer: hj.ID, Hello: &hj})
	c.rigs[j].node.Step(event.Input{Kind: event.PeerUp, Peer: hi.ID, Hello: &hi})
	c.settle()
}

// settle carries frames and storage operations until there are none.
func (c *cluster) settle() {
	for {
		for i, r := range c.rigs {
			if !c.down[i] {
				r.settle()
			}
		}
		if len(c.queue) == 0 {
			return
		}
		queue := c.queue
		c.queue = nil
		for _, q := range queue {
			if c.down[q.to] || c.down[q.from] {
				continue
			}
			c.rigs[q.to].node.Step(event.Input{Kind: event.FromPeer, Peer: peerwire.ServerID(101 + q.from), Frames: q.frames})
			c.rigs[q.to].settle()
		}
	}
}

// run lets time pass, in ticks of Raft.
func (c *cluster) run(ticks int) {
	for range ticks {
		for i, r := range c.rigs {
			r.now.Mono += engine.TickNanosDefault
			r.now.Wall += engine.TickNanosDefault
			if !c.down[i] {
				r.node.Step(event.Input{Kind: event.Woke})
			}
		}
		c.settle()
	}
}

func (c *cluster) kill(i int) {
	c.down[i] = true
	for j, r := range c.rigs {
		if j != i && !c.down[j] {
			r.node.Step(event.Input{Kind: event.PeerDown, Peer: event.ServerID(101 + i)})
		}
	}
	c.settle()
}

func (c *cluster) restart(i int) {
	c.rigs[i].restart()
	c.down[i] = false
	for j := range c.rigs {
		if j != i && !c.down[j] {
			c.connect(i, j)
		}
	}
}

// request has a client of a server ask and returns the answer.
func (c *cluster) request(i int, subject, body string) string {
	c.t.Helper()
	r := c.rigs[i]
	id := event.ConnID(900)
	if r.out[id] == nil {
		r.open(id, `"headers":true,"no_responders":true`)
		r.send(id, "SUB _INBOX.q.* 1\r\n")
		c.settle()
	}
	r.out[id].Reset()
	r.pub(id, subject, "_INBOX.q.1", body)
	c.settle()
	for range 60 {
		if r.out[id].Len() > 0 {
			break
		}
		c.run(1)
	}
	return r.read(id)
}

func TestThreeServersFoundOneCatalogAndReplicateAStream(t *testing.T) {
	c := newCluster(t, 3)
	for i, r := range c.rigs {
		if h := r.node.Engine().Hello(); h.Catalog != 101 {
			t.Fatalf("server %d has catalog %d", i, h.Catalog)
		}
	}
	got := c.request(1, "$JS.API.STREAM.CREATE.S", `{"name":"S","subjects":["s.>"],"num_replicas":3,"storage":"file","retention":"limits","discard":"old"}`)
	if !strings.Contains(got, `"did_create":true`) {
		t.Fatalf("create: %s", got)
	}
	for i := range c.rigs {
		if got := c.request(i, fmt.Sprintf("s.%d", i), "hello"); !strings.Contains(got, fmt.Sprintf(`"seq":%d`, i+1)) {
			t.Fatalf("publish through %d: %s", i, got)
		}
	}
	for i := range c.rigs {
		if got := c.request(i, "$JS.API.STREAM.INFO.S", ""); !strings.Contains(got, `"messages":3`) {
			t.Fatalf("info through %d: %s", i, got)
		}
	}
	for i := range c.rigs {
		c.kill(i)
		c.run(40)
		j := (i + 1) % 3
		if got := c.request(j, "s.x", "hello"); !strings.Contains(got, `"seq":`) {
			t.Fatalf("publish through %d without %d: %s", j, i, got)
		}
		delete(c.rigs[i].out, 900)
		c.restart(i)
		c.run(40)
	}
	if got := c.request(0, "$JS.API.STREAM.INFO.S", ""); !strings.Contains(got, `"messages":6`) {
		t.Fatalf("info: %s", got)
	}
}

func TestSessionEndsWithTheFirstFrameThatIsNone(t *testing.T) {
	c := newCluster(t, 2)
	r := c.rigs[0]
	var closed bool
	r.peers = func(out []event.PeerOut) {
		for _, o := range out {
			closed = closed || o.Close && o.To == 102
		}
	}
	whole := peerwire.Append(nil, &peerwire.Frame{Kind: peerwire.Interest, Account: []byte("$G"), Subject: []byte("after"), Count: 1})
	broken := peerwire.Append(nil, &peerwire.Frame{Kind: peerwire.Ping, Token: 7})
	broken[len(broken)-1] ^= 1
	r.node.Step(event.Input{Kind: event.FromPeer, Peer: 102, Frames: append(broken, whole...)})
	if !closed {
		t.Fatal("the session goes on behind a damaged frame")
	}
	r.node.Step(event.Input{Kind: event.FromPeer, Peer: 102, Frames: whole})
	r.open(1, `"headers":true,"no_responders":true`)
	r.send(1, "SUB answers 1\r\n")
	r.pub(1, "after", "answers", "")
	if got := r.read(1); !strings.Contains(got, "503") {
		t.Fatalf("what came behind the damaged frame counts: %q", got)
	}
}

func TestLeadershipComesBackToAServerThatWasAway(t *testing.T) {
	c := newCluster(t, 3)
	const streams = 6
	for i := range streams {
		body := fmt.Sprintf(`{"name":"S%d","subjects":["s%d"],"num_replicas":3,"storage":"file","retention":"limits","discard":"old"}`, i, i)
		if got := c.request(0, fmt.Sprintf("$JS.API.STREAM.CREATE.S%d", i), body); !strings.Contains(got, `"did_create":true`) {
			t.Fatalf("create: %s", got)
		}
	}
	led := func(server string) (n int) {
		for i := range streams {
			if strings.Contains(c.request(1, fmt.Sprintf("$JS.API.STREAM.INFO.S%d", i), ""), `"leader":"`+server+`"`) {
				n++
			}
		}
		return n
	}
	before := led("n1")
	if before == 0 {
		t.Fatal("a server leads nothing of what was placed evenly")
	}
	c.kill(0)
	c.run(40)
	delete(c.rigs[0].out, 900)
	c.restart(0)
	c.run(40)
	if got := led("n1"); got != 0 {
		t.Fatalf("the server leads %d streams as soon as it is back", got)
	}
	c.run(1500)
	if got := led("n1"); got == 0 {
		t.Fatal("the server leads nothing long after it is back")
	}
}

// replica is the replica of a group on a server, nil where there is none.
func (r *rig) replica(group uint64) (own *replica.Replica) {
	r.node.Engine().EachReplica(func(id wal.GroupID, other *replica.Replica) {
		if uint64(id) == group {
			own = other
		}
	})
	return own
}

// members are the members of the stream groups that a server has a replica of.
func (c *cluster) members(i int) map[wal.GroupID]int {
	members := map[wal.GroupID]int{}
	c.rigs[i].node.Engine().EachReplica(func(group wal.GroupID, r *replica.Replica) {
		if uint64(group) != meta.Group {
			members[group] = len(r.Members())
		}
	})
	return members
}

// TestLeaderOfAnOldCatalogBringsNobodyIn: the leader of a stream knows a placement that the others have given up since. It
// must not make members of servers that may have been told to end their replicas.
func TestLeaderOfAnOldCatalogBringsNobodyIn(t *testing.T) {
	c := newCluster(t, 3)
	body := func(name string, replicas int) string {
		return fmt.Sprintf(`{"name":%q,"subjects":[%q],"num_replicas":%d,"storage":"file","retention":"limits","discard":"old"}`, name, name, replicas)
	}
	leader, name := 0, ""
	for i := range 6 {
		s := fmt.Sprintf("S%d", i)
		got := c.request(0, "$JS.API.STREAM.CREATE."+s, body(s, 1))
		if at := strings.Index(got, `"leader":"n`); at >= 0 && got[at+len(`"leader":"n`)] != '1' {
			leader, name = int(got[at+len(`"leader":"n`)]-'1'), s
		}
	}
	if name == "" {
		t.Fatal("all streams are on the server that leads the catalog")
	}
	c.run(10)
	r := c.rigs[0]
	r.pub(900, "$JS.API.STREAM.UPDATE."+name, "_INBOX.q.2", body(name, 3))
	c.settle() // everybody knows that there are to be three, and no tick has passed to begin with it
	c.unaware = leader
	r.pub(900, "$JS.API.STREAM.UPDATE."+name, "_INBOX.q.3", body(name, 1))
	c.settle()
	c.run(100)
	for group, n := range c.members(leader) {
		if n != 1 {
			t.Fatalf("group %d has %d members at a leader that does not know the newest catalog", group, n)
		}
	}
	c.unaware = -1
	c.run(100)
	if got := c.request(leader, name, "hello"); !strings.Contains(got, `"seq":1`) {
		t.Fatalf("publish: %s", got)
	}
}
