// Package torture runs a real cluster under real clients while everything around it breaks, and judges what the clients
// saw with the checkers of the simulator.
//
// Servers are processes of their own, on a network of their own where the machine allows that (package-level type
// fabric). Clients are those of nats.go: they publish with ids and expectations, ask again after an unknown outcome and
// long after a known one, use a bucket, watch it, and consume with confirmed acknowledgements. Others stay with one server
// whatever happens to it and read and write there without waiting for answers, so that a deposed leader is asked while
// its successor is written to. A nemesis kills, pauses, cuts off, and asks leaders to step down, by a schedule that a seed
// draws. In the end everything heals, the
// streams are read back from every replica, and the history is judged: linearizable, nothing acknowledged lost, no id
// stored twice, nothing redelivered after a confirmed acknowledgement.
//
// The package promises that equal seeds draw equal schedules of faults. It does not promise equal runs: processes,
// network and disk are real.
package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"weir/sim/workload"
)

// Options is what a run is made of.
type Options struct {
	// Nodes is the number of servers.
	Nodes int
	// Duration is how long faults happen; set-up, healing and judging come on top.
	Duration time.Duration
	// Seed draws the faults and what clients do.
	Seed uint64
	// Dir holds configurations, data and logs, and in the end the history when something is wrong; it holds none of an
	// earlier run. "" is a temporary directory that is removed when nothing is wrong.
	Dir string
	// History has the history written in any case.
	History bool
	// Network is "on" for network namespaces, "off" for loopback with proxies between the servers, "auto" for namespaces
	// where they can be had.
	Network string
	// Command starts a server when "-c" and a configuration file follow. Env is added to its environment.
	Command, Env []string
	// Port is the first of the ports that are used with proxies; about 200 follow.
	Port int
	// Faults names the kinds of faults to draw from; none are all.
	Faults []string
	// Quiet is the mean time between the end of a fault and the next one, Hold the mean time that a fault lasts.
	Quiet, Hold time.Duration
	// Out receives progress lines.
	Out io.Writer
}

// Bounds of a run.
const (
	// NodesMax bounds the servers.
	NodesMax = 9
	// startMax is how long a new cluster may take until its streams exist.
	startMax = 2 * time.Minute
	// healMax is how long a healed cluster may take until all replicas are current, drainMax until consumers and
	// watchers have seen everything.
	healMax  = 60 * time.Second
	drainMax = 90 * time.Second
	// lateMax is how long the rest may take when one of these has taken too long.
	lateMax = 5 * time.Second
	// progressEvery is the time between progress lines.
	progressEvery = 10 * time.Second
)

// run is one run.
type run struct {
	options Options
	started time.Time
	cluster *cluster
	log     *recorder
	outages *outages
	nemesis *nemesis
	load    *load
	report  *Report
	leaders leaders
	storm   chan struct{}      // asks for a storm of publishes
	enough  context.CancelFunc // ends the faults: something is wrong already

	// What was found after the load: read-backs by stream, states of consumers, and what did not happen in time.
	finals map[string]*workload.Final
	states []*workload.ConsumerState
	mu     sync.Mutex // of late
	late   []string
}

// Run starts a cluster, tortures it, and judges it. The error is about the run itself; what is wrong with the servers is
// in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Nodes < 1 || o.Nodes > NodesMax {
		return nil, fmt.Errorf("torture: between 1 and %d servers, not %d", NodesMax, o.Nodes)
	}
	temporary := o.Dir == ""
	if temporary {
		dir, err := os.MkdirTemp("", "weir-torture-")
		if err != nil {
			return nil, err
		}
		o.Dir = dir
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	r := &run{options: o, started: time.Now(), log: newRecorder(), outages: newOutages(), enough: enough,
		storm: make(chan struct{}, stormers)}
	r.report = &Report{Seed: o.Seed, Nodes: o.Nodes, Dir: o.Dir}
	err = r.whole(ctx)
	if temporary && err == nil && len(r.report.Files) == 0 {
		return r.report, os.RemoveAll(o.Dir)
	}
	return r.report, err
}

// whole is the run from the first server to the verdict.
func (r *run) whole(ctx context.Context) (err error) {
	r.cluster, err = newCluster(r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.cluster.close()) }()
	r.report.Network = r.cluster.net.describe()
	r.say("%d servers, %s, seed %d, in %s", r.options.Nodes, r.report.Network, r.options.Seed, r.options.Dir)
	if err := r.cluster.startAll(); err != nil {
		return err
	}
	load, err := r.setUp(ctx)
	if err != nil {
		return fmt.Errorf("set up the streams: %w\n%s", err, r.cluster.tails())
	}
	r.say("the cluster serves after %v", time.Since(r.started).Round(time.Millisecond))
	r.load = load
	load.start()
	r.nemesis = newNemesis(r)
	stop := r.progress()
	r.nemesis.torture(ctx, r.options.Duration)
	close(stop)
	r.say("everything heals")
	r.nemesis.heal()
	r.settle(load)
	r.report.count(r)
	r.judge(load)
	return r.report.write(r)
}

// progress prints lines until the channel that it returns is closed.
func (r *run) progress() chan struct{} {
	stop := make(chan struct{})
	go r.pulse(stop)
	go func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.say("%s", r.log.summary())
			case <-stop:
				return
			}
		}
	}()
	return stop
}

// The watch over the machine itself: a clock that is looked at every so often, and what is more than late.
const (
	pulseEvery = 50 * time.Millisecond
	pulseMax   = 500 * time.Millisecond
)

// pulse notes when this process did not run for a while, because the machine was overloaded or stood still, until the
// channel is closed. What could not be published meanwhile is not the cluster's fault.
func (r *run) pulse(stop chan struct{}) {
	tick := time.NewTicker(pulseEvery)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-tick.C:
		case <-stop:
			return
		}
		now := time.Now()
		r.outages.alive(r.log.now(), now.Sub(last))
		last = now
	}
}

// say prints one line with the time since the start.
func (r *run) say(format string, args ...any) {
	if r.options.Out == nil {
		return
	}
	// Who does not read any more misses nothing.
	_, _ = fmt.Fprintf(r.options.Out, "%7.1fs %s\n", time.Since(r.started).Seconds(), fmt.Sprintf(format, args...))
}
