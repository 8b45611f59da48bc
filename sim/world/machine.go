package world

import (
	"fmt"

	"weir/disk/memfs"
	"weir/disk/wal"
	"weir/model/jsapi"
	"weir/node"
	"weir/node/auth"
	"weir/node/engine"
	"weir/node/event"
	"weir/node/storage"
	"weir/sim/sched"
	"weir/sim/trace"
	"weir/spec/assert"
	"weir/transport/wire"
)

// Dir is the data directory on the simulated disk.
const Dir = "data"

// boot starts the node on what the disk holds. again, when it is not 0, ends the process at that disk call of the
// recovery.
func (w *World) boot(again uint64) {
	m := &w.machine
	m.gen++
	m.boots++
	m.bootAt, m.wakeAt = w.now, 0
	m.workers = [2]worker{}
	m.written, m.spare = nil, nil
	if again > 0 {
		w.disk.StopAfter(w.disk.Ops() + again)
	}
	n, err := node.New(w.env(), w.config())
	w.disk.StopAfter(0)
	switch {
	case again > 0:
		// The process ends here, wherever it has come to; what it handed out is gone with it.
		m.gen++
		w.crashDisk(w.strategy("again", uint64(m.boots)))
		w.restartAfter(1_000_000, 0)
	case err == nil:
		m.node = n
		w.trace.Add(trace.Boot, uint64(m.gen), 0, nil)
	case len(w.active) > 0:
		// The disk fails at the moment: somebody tries again later.
		w.restartAfter(100_000_000, 0)
	default:
		m.refused = fmt.Errorf("incarnation %d does not start: %w", m.gen, err)
	}
}

func (w *World) restartAfter(delay int64, again uint64) {
	w.queue.Push(sched.Event{At: w.now + delay, Kind: evRestart, N: again})
}

func (w *World) env() node.Env {
	return node.Env{
		Clock: (*clock)(w), Network: (*network)(w), Worker: (*submitter)(w), Disk: w.disk,
		Log: func(line event.LogLine) { w.trace.Add(trace.Log, uint64(line.Level), 0, []byte(line.Text)) },
	}
}

// config is the configuration of the next incarnation: what production uses, with the plan's knobs.
func (w *World) config() node.Config {
	id := fmt.Sprintf("NSIM%052d", w.machine.gen)
	limits := jsapi.Limits{Account: jsapi.Unlimited()}
	everybody, err := auth.New(auth.Config{})
	if err != nil {
		assert.Unreachable("no users cannot be wrong: " + err.Error())
	}
	c := node.Config{
		Engine: engine.Config{
			ServerID: id, ServerName: "sim", Host: "127.0.0.1", Port: 4222, GoVersion: "go", Auth: everybody,
			Limits: engine.Limits{
				ControlLineBytes: 4096, PayloadBytes: 1 << 20, PendingBytes: 64 << 20, Connections: 1 << 16,
				PingIntervalNanos: 120_000_000_000, PingsOut: 2, AuthTimeoutNanos: 2_000_000_000,
			},
			JetStream: engine.JetStream{
				Enabled: true, StoreDir: Dir, Limits: limits, Strict: true,
				CacheBytes: w.plan.Node.CacheBytes, CheckpointBytes: w.plan.Node.CheckpointBytes,
				BlockBytes: w.plan.Node.BlockBytes,
			},
			Seed:    w.key.Draw("node", uint64(w.machine.gen)),
			Boot:    uint64(w.machine.gen),
			Observe: w.observe,
		},
		Storage: storage.Options{Log: wal.Options{SegmentBytes: int64(w.plan.Node.SegmentBytes)}},
		Dir:     Dir,
	}
	plant(w.plan.Plant, &c)
	return c
}

// step brings inputs to the node, behind what its connections have written since the last one.
func (w *World) step(in ...event.Input) {
	m := &w.machine
	m.inputs = m.inputs[:0]
	for _, wr := range m.written {
		m.inputs = append(m.inputs, event.Input{Kind: event.Flushed, Conn: wr.conn, N: wr.n})
	}
	m.written = m.written[:0]
	m.inputs = append(m.inputs, in...)
	m.node.StepAll(m.inputs)
	clear(m.inputs)
}

// clock is the world as a node.Clock.
type clock World

// million is the scale of the drift.
const million = 1_000_000

// mono is the node's monotone clock: nanoseconds since its start, at the rate of its drift.
func (w *World) mono() int64 {
	elapsed := w.now - w.machine.bootAt
	rate := w.plan.Node.DriftPPM
	return 1 + elapsed + elapsed/million*rate + elapsed%million*rate/million
}

// Now implements node.Clock.
func (c *clock) Now() event.Time {
	w := (*World)(c)
	return event.Time{Mono: w.mono(), Wall: Epoch + w.now + w.machine.wallOffset}
}

// Wake implements node.Clock.
func (c *clock) Wake(at int64) {
	w := (*World)(c)
	m := &w.machine
	if at == 0 {
		m.wakes++
		m.wakeAt = 0
		return
	}
	scale := million + w.plan.Node.DriftPPM
	ticks := max(at-1, 0)
	when := m.bootAt + ticks/scale*million + (ticks%scale*million+scale-1)/scale
	when = max(when, w.now)
	if when == m.wakeAt {
		return
	}
	m.wakes++
	m.wakeAt = when
	w.queue.Push(sched.Event{At: when, Kind: evWake, Gen: m.gen, N: m.wakes})
}

// kill ends the process: batches under way are carried out in part, and the disk is left as the strategy says.
func (w *World) kill(strategy memfs.Strategy) {
	m := &w.machine
	gen := uint64(m.gen)
	first := int(w.key.Below(2, "first worker", gen))
	for i := range m.workers {
		at := (first + i) % len(m.workers)
		if m.workers[at].busy() && w.key.Chance(800, "partial", gen, uint64(at)) {
			w.partly(at, w.cutOf(at))
		}
	}
	w.end(strategy)
}

// stop ends the process in order: clients are told and let go, what the workers have is carried out, files are closed.
func (w *World) stop() {
	m := &w.machine
	w.step(event.Input{Kind: event.Shutdown})
	for id := event.ConnID(1); id <= w.nextID; id++ {
		if l := w.links[id]; l != nil && l.nodeOpen && l.parser != nil {
			w.step(event.Input{Kind: event.Closed, Conn: id, Reason: wire.ServerShutdown})
		}
	}
	for at := 0; at < len(m.workers); {
		if !m.workers[at].busy() {
			at++
			continue
		}
		w.diskEnd(at)
		at = 0
	}
	if err := m.node.Storage().Close(); err != nil {
		w.trace.Add(trace.Log, uint64(event.Error), 0, []byte("close: "+err.Error()))
	}
	w.end(memfs.KeepAll)
}

// end removes the process; the disk is left as the strategy says.
func (w *World) end(strategy memfs.Strategy) {
	m := &w.machine
	w.trace.Add(trace.Crash, uint64(m.gen), 1+uint64(strategy), nil)
	m.node = nil
	m.gen++
	m.paused, m.held = false, nil
	w.crashDisk(strategy)
	w.loseLinks()
}
