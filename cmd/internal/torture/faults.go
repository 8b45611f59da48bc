package torture

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
)

// The bounds of faults that ask instead of breaking.
const (
	// scaleMax is how long a change of replicas may take while other things break, mendMax how long it may take until
	// what was destroyed on one server is whole again, while nothing else breaks.
	scaleMax = 60 * time.Second
	mendMax  = 60 * time.Second
	// flapEvery is the time between two changes of a link that flaps.
	flapEvery = 300 * time.Millisecond
)

// kinds are all kinds of faults.
var kinds = []kind{
	{"kill", 10, 1, false, func(n *nemesis, f fault) (string, func() error, error) { return n.kill(n.some(f, 1)) }},
	{"kill-leader", 12, 1, false, func(n *nemesis, f fault) (string, func() error, error) { return n.kill([]int{n.leader(f)}) }},
	{"kill-two", 4, 3, false, func(n *nemesis, f fault) (string, func() error, error) { return n.killMany(f, 2) }},
	{"kill-all", 5, 1, false, func(n *nemesis, f fault) (string, func() error, error) { return n.killMany(f, n.run.options.Nodes) }},
	{"restart", 5, 1, false, (*nemesis).restart},
	{"pause", 6, 1, false, func(n *nemesis, f fault) (string, func() error, error) { return n.pause(n.some(f, 1)) }},
	{"pause-leader", 12, 1, false, func(n *nemesis, f fault) (string, func() error, error) { return n.pause([]int{n.leader(f)}) }},
	{"isolate", 6, 2, false, func(n *nemesis, f fault) (string, func() error, error) { return n.apartFrom(n.some(f, 1)) }},
	{"isolate-leader", 14, 2, false, func(n *nemesis, f fault) (string, func() error, error) { return n.apartFrom([]int{n.leader(f)}) }},
	{"isolate-kill-leader", 8, 2, false, (*nemesis).isolateAndKill},
	{"split", 4, 4, false, func(n *nemesis, f fault) (string, func() error, error) {
		return n.apartFrom(n.some(f, n.run.options.Nodes/2))
	}},
	{"shatter", 3, 3, false, (*nemesis).shatter},
	{"bridge", 6, 3, false, (*nemesis).bridge},
	{"one-way", 6, 2, false, (*nemesis).oneWay},
	{"mute-leader", 5, 2, false, func(n *nemesis, f fault) (string, func() error, error) { return n.deaf(n.leader(f), false) }},
	{"deaf-leader", 5, 2, false, func(n *nemesis, f fault) (string, func() error, error) { return n.deaf(n.leader(f), true) }},
	{"flap", 5, 2, false, (*nemesis).flap},
	{"unplug", 5, 2, false, (*nemesis).pull},
	{"slow", 4, 2, false, (*nemesis).slowDown},
	{"step-down", 8, 2, true, (*nemesis).stepDown},
	{"meta-step-down", 4, 2, true, (*nemesis).metaStepDown},
	{"consumer-step-down", 3, 2, true, (*nemesis).consumerStepDown},
	{"wipe", 3, 3, false, (*nemesis).wipe},
	{"rot", 3, 3, false, (*nemesis).rot},
	{"scale", 5, 3, true, (*nemesis).scale},
}

// kill ends processes at once and starts them again.
func (n *nemesis) kill(servers []int) (string, func() error, error) {
	for _, i := range servers {
		n.run.cluster.servers[i].signal(syscall.SIGKILL)
	}
	for _, i := range servers {
		<-n.run.cluster.servers[i].ended
	}
	return names(servers), func() error {
		var all error
		for _, i := range servers {
			all = errors.Join(all, n.run.cluster.start(n.run.cluster.servers[i]))
		}
		return all
	}, nil
}

// stormMax is how long a storm of publishes goes on at most before servers are killed.
const stormMax = 40 * time.Millisecond

// killMany kills servers in the midst of a storm of publishes: what waits for a disk is most then.
func (n *nemesis) killMany(f fault, count int) (string, func() error, error) {
	for range stormers {
		select {
		case n.run.storm <- struct{}{}:
		default: // the one before has not ended
		}
	}
	time.Sleep(time.Duration(f.at % uint64(stormMax)))
	return n.kill(n.some(f, count))
}

// restart ends a process in order and starts it again at once.
func (n *nemesis) restart(f fault) (string, func() error, error) {
	s := n.run.cluster.servers[n.some(f, 1)[0]]
	if !s.end() {
		n.run.wrong("%s did not end within %v", s.name, endMax)
	}
	return s.name, nil, n.run.cluster.start(s)
}

// pause stops processes for longer than an election takes.
func (n *nemesis) pause(servers []int) (string, func() error, error) {
	for _, i := range servers {
		n.run.cluster.servers[i].signal(syscall.SIGSTOP)
	}
	return names(servers), func() error {
		for _, i := range servers {
			n.run.cluster.servers[i].signal(syscall.SIGCONT)
		}
		return nil
	}, nil
}

// apartFrom separates servers from the others.
func (n *nemesis) apartFrom(servers []int) (string, func() error, error) {
	end, err := n.split(servers)
	return names(servers), end, err
}

// aloneMax is how long a leader is cut off at most before it is killed: less than an election takes.
const aloneMax = 900 * time.Millisecond

// isolateAndKill cuts a leader off, but not from its clients, and kills it while it may still think that it leads. What
// it alone has acknowledged is gone then.
func (n *nemesis) isolateAndKill(f fault) (string, func() error, error) {
	server := n.leader(f)
	whole, err := n.isolate(server)
	if err != nil {
		return serverName(server), whole, err
	}
	time.Sleep(time.Duration(f.at % uint64(aloneMax)))
	_, back, err := n.kill([]int{server})
	return serverName(server), func() error { return errors.Join(whole(), back()) }, err
}

// shatter leaves every server alone.
func (n *nemesis) shatter(fault) (string, func() error, error) {
	set := func(on bool) error {
		var all error
		for a := range n.run.options.Nodes {
			for b := range n.run.options.Nodes {
				if a != b {
					all = errors.Join(all, n.cut(a, b, on))
				}
			}
		}
		return all
	}
	return "all", func() error { return set(false) }, set(true)
}

// bridge cuts the link of two servers, while both still reach the others.
func (n *nemesis) bridge(f fault) (string, func() error, error) {
	pair := n.some(f, 2)
	set := func(on bool) error {
		return errors.Join(n.cut(pair[0], pair[1], on), n.cut(pair[1], pair[0], on))
	}
	return names(pair), func() error { return set(false) }, set(true)
}

// oneWay stops what one server sends to another.
func (n *nemesis) oneWay(f fault) (string, func() error, error) {
	pair := n.some(f, 2)
	return fmt.Sprintf("%s to %s", serverName(pair[0]), serverName(pair[1])),
		func() error { return n.cut(pair[0], pair[1], false) }, n.cut(pair[0], pair[1], true)
}

// deaf stops everything that a server hears from the others, or, when it is to be mute, everything that it says.
func (n *nemesis) deaf(server int, hears bool) (string, func() error, error) {
	set := func(on bool) error {
		var all error
		for other := range n.run.options.Nodes {
			switch {
			case other == server:
			case hears:
				all = errors.Join(all, n.cut(other, server, on))
			default:
				all = errors.Join(all, n.cut(server, other, on))
			}
		}
		return all
	}
	return serverName(server), func() error { return set(false) }, set(true)
}

// flap isolates a server again and again.
func (n *nemesis) flap(f fault) (string, func() error, error) {
	server := n.some(f, 1)[0]
	for range 2 + f.at%6 {
		end, err := n.isolate(server)
		if err != nil {
			return serverName(server), end, err
		}
		time.Sleep(flapEvery)
		if err := end(); err != nil {
			return serverName(server), nil, err
		}
		time.Sleep(flapEvery)
	}
	return serverName(server), nil, nil
}

// pull takes a server off the network altogether.
func (n *nemesis) pull(f fault) (string, func() error, error) {
	server := n.some(f, 1)[0]
	if f.at%2 == 0 {
		server = n.leader(f)
	}
	return serverName(server), func() error { return n.unplug(server, false) }, n.unplug(server, true)
}

// slowDown makes a server slow to be heard.
func (n *nemesis) slowDown(f fault) (string, func() error, error) {
	server := n.some(f, 1)[0]
	if err := n.run.cluster.net.slow(server, true); err != nil {
		return serverName(server), nil, err
	}
	n.slows[server] = true
	return serverName(server), func() error {
		delete(n.slows, server)
		return n.run.cluster.net.slow(server, false)
	}, nil
}

// stepDown asks the leader of a stream to step down, now and then for a certain server.
func (n *nemesis) stepDown(f fault) (string, func() error, error) {
	stream, to := mainStream, "anybody"
	if f.at%3 == 0 {
		stream = bucket.name
	}
	var request any
	if f.at%2 == 0 {
		to = serverName(int(f.at / 2 % uint64(n.run.options.Nodes)))
		request = map[string]any{"placement": map[string]any{"preferred": to}}
	}
	return stream + " for " + to, nil, n.request("STREAM.LEADER.STEPDOWN."+stream, request)
}

// consumerStepDown asks the leader of a consumer to step down.
func (n *nemesis) consumerStepDown(f fault) (string, func() error, error) {
	name := consumers[f.at%uint64(len(consumers))].Name
	return name, nil, n.request("CONSUMER.LEADER.STEPDOWN."+mainStream+"."+name, nil)
}

// request sends a request whose outcome is nobody's promise.
func (n *nemesis) request(subject string, body any) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerMax)
	defer cancel()
	return ask(ctx, n.client.nc, call{subject, body, nil})
}

// metaStepDown asks the leader of the catalog to step down, as the operator.
func (n *nemesis) metaStepDown(fault) (string, func() error, error) {
	if n.system == nil {
		var urls []string
		for i := range n.run.options.Nodes {
			urls = append(urls, n.run.cluster.url(i))
		}
		nc, err := nats.Connect(strings.Join(urls, ","), nats.UserInfo(systemUser, systemUser), nats.MaxReconnects(-1),
			nats.ReconnectWait(50*time.Millisecond), nats.RetryOnFailedConnect(true), nats.PingInterval(time.Second),
			nats.MaxPingsOutstanding(2), nats.IgnoreDiscoveredServers())
		if err != nil {
			return "", nil, err
		}
		n.system = nc
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerMax)
	defer cancel()
	return "", nil, ask(ctx, n.system, call{"META.LEADER.STEPDOWN", nil, nil})
}

// scale takes the main stream down to fewer replicas, mostly one, and back to all, under load.
func (n *nemesis) scale(f fault) (string, func() error, error) {
	fewer := 1
	if most := n.run.options.most(); f.at%3 == 0 {
		fewer = max(1, most-2)
	}
	what := fmt.Sprintf("%s to R%d and back", mainStream, fewer)
	n.whole.Lock()
	n.run.outages.excuse(n.run.log.now(), true)
	back := func() error {
		defer n.whole.Unlock()
		defer func() { n.run.outages.excuse(n.run.log.now(), false) }()
		return n.replicas(n.run.options.most())
	}
	return what, back, n.replicas(fewer)
}

// replicas changes how many replicas the main stream has and waits until all are there.
func (n *nemesis) replicas(count int) error {
	ctx, cancel := context.WithTimeout(context.Background(), scaleMax)
	defer cancel()
	err := until(ctx, func(ctx context.Context) error {
		s, err := n.client.js.Stream(ctx, mainStream)
		if err != nil {
			return err
		}
		config := s.CachedInfo().Config
		config.Replicas = count
		_, err = n.client.js.UpdateStream(ctx, config)
		return err
	})
	if err != nil {
		return fmt.Errorf("ask for %d replicas: %w", count, err)
	}
	err = until(ctx, func(ctx context.Context) error { return n.current(ctx, mainStream, count) })
	if err != nil {
		return fmt.Errorf("wait for %d replicas: %w", count, err)
	}
	return nil
}

// steadyCurrent returns an error unless the streams that are always there have all their replicas, all of them current.
func (n *nemesis) steadyCurrent(ctx context.Context) error {
	for _, stream := range n.run.options.steadyStreams() {
		if err := n.current(ctx, stream, n.run.options.replicasOf(stream)); err != nil {
			return err
		}
	}
	return nil
}

// current returns an error unless the stream has a leader and so many replicas, all of them current.
func (n *nemesis) current(ctx context.Context, stream string, count int) error {
	s, err := n.client.js.Stream(ctx, stream)
	if err != nil {
		return err
	}
	info := s.CachedInfo().Cluster
	if count == 1 && info == nil {
		return nil
	}
	if info == nil || info.Leader == "" || len(info.Replicas) != count-1 {
		return fmt.Errorf("%s is led and followed by %+v, not by %d servers", stream, info, count)
	}
	for _, p := range info.Replicas {
		if !p.Current || p.Offline {
			return fmt.Errorf("%s: the replica on %s is not current: %+v", stream, p.Name, *p)
		}
	}
	return nil
}
