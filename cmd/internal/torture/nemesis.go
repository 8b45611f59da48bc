package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// fault is one fault of the schedule, before it meets the state of the cluster.
type fault struct {
	kind string
	// quiet passes before it, hold until it ends.
	quiet, hold time.Duration
	// at picks servers: the leader-seeking kinds use it only when there is no leader to be found.
	at uint64
}

// kind is a kind of fault.
type kind struct {
	name   string
	weight int
	// nodes is how many servers a cluster needs for it.
	nodes int
	// asks says that it breaks nothing but asks the cluster for something, so that it may happen while something is broken.
	asks bool
	// begin lets it happen, says to whom, and returns what ends it.
	begin func(n *nemesis, f fault) (what string, end func() error, err error)
}

// event is a fault that happened.
type event struct {
	Kind, What string
	From, To   int64
	Error      string `json:",omitempty"`
}

// schedule draws faults.
type schedule struct {
	rng         *rand.Rand
	kinds       []kind
	weight      int
	quiet, hold time.Duration
}

// nemesis breaks things by one schedule and mends them again, and asks the cluster for things by another.
type nemesis struct {
	run    *run
	breaks schedule
	asks   schedule
	client *client // of the application's account
	system *nats.Conn
	// whole is held by what destroys a replica until it is whole again, and by what leaves a stream with so few replicas
	// that it would not survive that.
	whole sync.Mutex

	mu     sync.Mutex
	events []event
	// What is broken: only what breaks things looks at it.
	cuts  map[[2]int]bool
	apart map[int]bool // unplugged
	slows map[int]bool
}

func newNemesis(r *run) *nemesis {
	n := &nemesis{
		run: r, client: r.newClient("nemesis", 0), cuts: map[[2]int]bool{}, apart: map[int]bool{}, slows: map[int]bool{},
	}
	o := &r.options
	n.breaks = schedule{rng: rand.New(rand.NewPCG(o.Seed, 1)), quiet: o.Quiet, hold: o.Hold}
	n.asks = schedule{rng: rand.New(rand.NewPCG(o.Seed, 2)), quiet: askEvery * o.Quiet, hold: o.Hold}
	for _, k := range kinds {
		if !o.wants(k.name) || k.nodes > o.Nodes {
			continue
		}
		s := &n.breaks
		if k.asks {
			s = &n.asks
		}
		s.kinds = append(s.kinds, k)
		s.weight += k.weight
	}
	return n
}

// askEvery is how much rarer the cluster is asked for something than something breaks.
const askEvery = 3

// wants says whether a kind of faults is to happen.
func (o *Options) wants(kind string) bool {
	return len(o.Faults) == 0 || slices.Contains(o.Faults, kind)
}

// Kinds are the names of all kinds of faults.
func Kinds() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// draw makes up the next fault.
func (s *schedule) draw() (kind, fault) {
	roll := s.rng.IntN(s.weight)
	spread := func(mean time.Duration) time.Duration { return mean/2 + time.Duration(s.rng.Int64N(int64(mean)+1)) }
	f := fault{quiet: spread(s.quiet), hold: spread(s.hold), at: s.rng.Uint64()}
	for _, k := range s.kinds {
		if roll -= k.weight; roll < 0 {
			f.kind = k.name
			return k, f
		}
	}
	panic("torture: the weights do not add up")
}

// torture lets faults happen until the time is over: what breaks things one at a time, and beside it what asks.
func (n *nemesis) torture(ctx context.Context, d time.Duration) {
	over, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if err := n.client.connect(); err != nil {
		n.run.wrong("nemesis: %v", err)
	}
	n.run.outages.change(n.run.log.now(), true, "nothing")
	var asking sync.WaitGroup
	asking.Go(func() {
		for n.asks.weight > 0 {
			k, f := n.asks.draw()
			if !wait(over, f.quiet) {
				return
			}
			n.one(over, k, f)
		}
	})
	for n.breaks.weight > 0 {
		k, f := n.breaks.draw()
		if !wait(over, f.quiet) {
			break
		}
		n.revive()
		n.one(over, k, f)
	}
	<-over.Done()
	asking.Wait()
}

// one lets one fault happen and end.
func (n *nemesis) one(ctx context.Context, k kind, f fault) {
	e := event{Kind: k.name, From: n.run.log.now()}
	change := func(cause string) {
		if !k.asks {
			n.run.outages.change(n.run.log.now(), n.quorum(), cause)
		}
	}
	change(k.name)
	what, end, err := k.begin(n, f)
	if errors.Is(err, errUnsupported) {
		return
	}
	e.What = what
	change(k.name)
	n.run.say("%s %s", k.name, what)
	if end != nil {
		wait(ctx, f.hold)
		err = errors.Join(err, end())
		change("after " + k.name)
	}
	e.To = n.run.log.now()
	if err != nil {
		e.Error = err.Error()
		n.run.say("%s %s: %v", k.name, what, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, e)
}

// wait waits and reports false when the context has ended.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// quorum says whether some majority of the servers runs and can talk with each other both ways.
func (n *nemesis) quorum() bool {
	nodes := n.run.options.Nodes
	for center := range nodes {
		count := 0
		for other := range nodes {
			if n.able(other) && n.able(center) && !n.cuts[[2]int{center, other}] && !n.cuts[[2]int{other, center}] {
				count++
			}
		}
		if 2*count > nodes {
			return true
		}
	}
	return false
}

// able says whether a server runs and is connected at all.
func (n *nemesis) able(server int) bool {
	return n.run.cluster.servers[server].runs() && !n.apart[server]
}

// heal ends whatever still goes on.
func (n *nemesis) heal() {
	var all error
	for cut := range n.cuts {
		all = errors.Join(all, n.cut(cut[0], cut[1], false))
	}
	for server := range n.apart {
		all = errors.Join(all, n.unplug(server, false))
	}
	for server := range n.slows {
		all = errors.Join(all, n.run.cluster.net.slow(server, false))
	}
	for _, s := range n.run.cluster.servers {
		s.resume()
	}
	n.revive()
	n.run.outages.change(n.run.log.now(), true, "healing")
	if all != nil {
		n.run.wrong("heal: %v", all)
	}
}

// revive starts servers that have no process.
func (n *nemesis) revive() {
	for _, s := range n.run.cluster.servers {
		if s.runs() {
			continue
		}
		if err := n.run.cluster.start(s); err != nil {
			n.run.wrong("start %s: %v", s.name, err)
		}
	}
}

func (n *nemesis) cut(from, to int, on bool) error {
	if n.cuts[[2]int{from, to}] == on {
		return nil
	}
	if on {
		n.cuts[[2]int{from, to}] = true
	} else {
		delete(n.cuts, [2]int{from, to})
	}
	return n.run.cluster.net.cut(from, to, on)
}

func (n *nemesis) unplug(server int, on bool) error {
	if err := n.run.cluster.net.unplug(server, on); err != nil {
		return err
	}
	if on {
		n.apart[server] = true
	} else {
		delete(n.apart, server)
	}
	return nil
}

// isolate cuts a server off from all others, but not from its clients, and returns what ends that.
func (n *nemesis) isolate(server int) (func() error, error) {
	return n.split([]int{server})
}

// split cuts a group of servers off from the others.
func (n *nemesis) split(group []int) (func() error, error) {
	set := func(on bool) error {
		var all error
		for _, a := range group {
			for b := range n.run.options.Nodes {
				if !slices.Contains(group, b) {
					all = errors.Join(all, n.cut(a, b, on), n.cut(b, a, on))
				}
			}
		}
		return all
	}
	return func() error { return set(false) }, set(true)
}

// leader is the server that leads the main stream or, more often, another one, or some server when nobody says.
func (n *nemesis) leader(f fault) int {
	stream := mainStream
	if streams := n.run.options.steadyStreams(); f.at%3 != 0 {
		stream = streams[f.at/3%uint64(len(streams))]
	}
	name, err := n.leaderOf(stream)
	if err == nil {
		for i := range n.run.options.Nodes {
			if serverName(i) == name {
				return i
			}
		}
	}
	return int(f.at % uint64(n.run.options.Nodes))
}

// some are count different servers.
func (n *nemesis) some(f fault, count int) []int {
	order := rand.New(rand.NewPCG(f.at, 1)).Perm(n.run.options.Nodes)
	return order[:count]
}

// names are the names of servers.
func names(servers []int) string {
	text := ""
	for i, s := range servers {
		if i > 0 {
			text += " "
		}
		text += serverName(s)
	}
	return text
}

// leaderOf asks who leads a stream.
func (n *nemesis) leaderOf(stream string) (string, error) {
	var info struct {
		Cluster struct {
			Leader string `json:"leader"`
		} `json:"cluster"`
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := ask(ctx, n.client.nc, call{"STREAM.INFO." + stream, nil, &info}); err != nil {
		return "", err
	}
	if info.Cluster.Leader == "" {
		return "", fmt.Errorf("%s has no leader", stream)
	}
	return info.Cluster.Leader, nil
}
