package world

import (
	"errors"
	"fmt"

	"weir/disk/memfs"
	"weir/disk/vfs"
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
	"weir/transport/peerwire"
	"weir/transport/wire"
)

// Dir is the data directory on the simulated disks.
const Dir = "data"

// machine is one computer: a disk, clocks, and the process of a node when it runs.
type machine struct {
	w     *World
	index int

	node   *node.Node
	gen    uint32 // incarnation; events of earlier ones are dropped
	bootAt int64
	wakeAt int64 // world time of the timer that is armed, 0: none
	wakes  uint64
	absent bool // it has not joined yet, or is gone
	gone   bool // it never runs again

	paused bool
	held   []sched.Event

	wallOffset int64
	slow       int64
	workers    [2]worker
	inputs     []event.Input
	written    []written
	spare      [][]byte

	disk  *memfs.FS
	wipes uint64 // how often the disk was replaced
	// lastLogWrite is the last write to a segment of the log.
	lastLogWrite memfs.Op
	syncsLeft    uint64 // of a cut; 0: none
	sprung       bool   // the crash under way was waiting for this work
	armed        []int  // crashes that wait for the disk, by number
	active       []int  // faults under way that the disk must know of, by number

	// refused is why the node does not start although nothing but time could mend it.
	refused error
	rotten  bool // bytes at rest were damaged: refusing is right
	mayLose bool // the others can bear the loss of what is durable here
	forgot  bool // the disk has lost, without a trace, what it had said is durable
	unread  int  // starts in a row that ended as the disk did not read something
	failed  bool // a disk error may have stopped the node; it is restarted when the error has gone
	boots   int
	spoiled bool // its catalog is not what its log leads to
}

// written is what a connection has handed to the kernel since the last step.
type written struct {
	conn event.ConnID
	n    int
}

func newMachine(w *World, index int) *machine {
	m := &machine{w: w, index: index, slow: 1}
	m.newDisk()
	return m
}

// newDisk gives the machine an empty disk.
func (m *machine) newDisk() {
	seed := m.w.plan.Seed
	if m.index > 0 || m.wipes > 0 {
		seed = m.w.key.Draw("disk of", uint64(m.index), m.wipes)
	}
	m.disk = memfs.New(memfs.Options{SectorBytes: m.w.plan.Disk.SectorBytes, Seed: seed})
	m.lastLogWrite = memfs.Op{}
	m.watchDisk()
}

// life identifies the present incarnation in draws.
func (m *machine) life() uint64 { return uint64(m.index)<<32 | uint64(m.gen) }

// serverID is the identity that a server makes when its data directory is made.
func (m *machine) serverID() peerwire.ServerID {
	wipes := m.wipes
	if m.w.plan.Plant == wipedKeepsIdentity {
		wipes = 0
	}
	return peerwire.ServerID(m.w.key.Draw("server", uint64(m.index), wipes) | 1)
}

// boot starts the node on what the disk holds. again, when it is not 0, ends the process at that disk call of the
// recovery.
func (m *machine) boot(again uint64) {
	w := m.w
	m.gen++
	m.spoiled = false
	m.boots++
	m.bootAt, m.wakeAt = w.now, 0
	m.workers = [2]worker{}
	m.written, m.spare = nil, nil
	if again > 0 {
		m.disk.StopAfter(m.disk.Ops() + again)
	}
	w.decisions.startsAgain(m.index, w.inspector.commits[catalogGroup])
	n, err := node.New(m.env(), m.config())
	m.disk.StopAfter(0)
	switch {
	case again > 0:
		// The process ends here, wherever it has come to; what it handed out is gone with it.
		m.gen++
		m.crashDisk(m.strategy("again", uint64(m.boots)))
		m.restartAfter(1_000_000, 0)
	case err == nil:
		m.node, m.unread = n, 0
		w.trace.Add(trace.Boot, m.life(), 0, nil)
		m.recovered()
		w.joined(m)
	case m.patient() && errors.Is(err, vfs.ErrIO):
		m.unread++
		m.restartAfter(node.PatienceNanos, 0)
	case len(m.active) > 0:
		// The disk fails at the moment: somebody tries again later.
		m.restartAfter(100_000_000, 0)
	default:
		m.refused = fmt.Errorf("incarnation %d of node %d does not start: %w", m.gen, m.index, err)
	}
}

// patient says whether the next start waits for a disk that does not read.
func (m *machine) patient() bool { return m.unread < node.PatienceMax }

func (m *machine) restartAfter(delay int64, again uint64) {
	m.push(sched.Event{At: m.w.now + delay, Kind: evRestart, N: again})
}

// push schedules an event of the machine.
func (m *machine) push(e sched.Event) {
	e.Node = uint32(m.index)
	m.w.queue.Push(e)
}

// pushLife schedules an event of the present incarnation.
func (m *machine) pushLife(e sched.Event) {
	e.Gen = m.gen
	m.push(e)
}

func (m *machine) env() node.Env {
	tag := ""
	if len(m.w.machines) > 1 {
		tag = fmt.Sprintf("%d: ", m.index)
	}
	return node.Env{
		Clock: (*clock)(m), Network: (*network)(m), Worker: (*submitter)(m), Disk: m.disk,
		Log: func(line event.LogLine) { m.w.trace.Add(trace.Log, uint64(line.Level), 0, []byte(tag+line.Text)) },
	}
}

// name is the configured name of the server.
func (m *machine) name() string {
	if len(m.w.machines) == 1 {
		return "sim"
	}
	return Name(m.index)
}

// Name is the name of the server on a machine of a cluster.
func Name(node int) string { return fmt.Sprintf("sim-%d", node+1) }

// config is the configuration of the next incarnation: what production uses, with the plan's knobs.
func (m *machine) config() node.Config {
	w := m.w
	id := fmt.Sprintf("NSIM%052d", m.life())
	limits := jsapi.Limits{Account: jsapi.Unlimited()}
	everybody, err := auth.New(w.users())
	if err != nil {
		assert.Unreachable("the users are right: " + err.Error())
	}
	c := node.Config{
		Engine: engine.Config{
			ServerID: id, ServerName: m.name(), Host: "127.0.0.1", Port: 4222, GoVersion: "go", Auth: everybody,
			Limits: engine.Limits{
				ControlLineBytes: 4096, PayloadBytes: 1 << 20, PendingBytes: 64 << 20, Connections: 1 << 16,
				PingIntervalNanos: 120_000_000_000, PingsOut: 2, AuthTimeoutNanos: 2_000_000_000,
			},
			JetStream: engine.JetStream{
				Enabled: m.index+1 != w.plan.Cluster.Bare, StoreDir: Dir, Limits: limits, Strict: true,
				CacheBytes: w.plan.Node.CacheBytes, CheckpointBytes: w.plan.Node.CheckpointBytes,
				BlockBytes: w.plan.Node.BlockBytes, ReadLease: w.plan.Cluster.ReadLease,
			},
			Seed:   w.key.Draw("node", m.life()),
			Boot:   uint64(m.gen),
			Server: m.serverID(),
			Observe: func(group wal.GroupID, index uint64, digest func() uint64) {
				w.observe(m, applied{group, index}, digest)
			},
			Reads: m.asked,
		},
		Storage: storage.Options{
			Log: wal.Options{SegmentBytes: int64(w.plan.Node.SegmentBytes)}, Patient: m.patient(),
			ReserveBytes: int64(w.plan.Node.ReserveBytes), LogReserveBytes: int64(w.plan.Node.ReserveBytes),
		},
		Dir: Dir,
	}
	if len(w.machines) > 1 {
		m.clustered(&c)
	}
	plant(w.plan.Plant, &c)
	return c
}

// SystemUser is the user of the system account of a cluster, which has no password that matters; everybody else is a user
// of the account with the streams.
const SystemUser = "sys"

// users says who may connect: everybody, and in a cluster the operator too.
func (w *World) users() auth.Config {
	if len(w.machines) == 1 {
		return auth.Config{}
	}
	return auth.Config{
		Users:      []auth.User{{Name: "app"}, {Name: SystemUser, Password: SystemUser, Account: "$SYS"}},
		NoAuthUser: "app",
	}
}

// clustered makes the node one of a cluster.
func (m *machine) clustered(c *node.Config) {
	p := &m.w.plan.Cluster
	c.Engine.Cluster = engine.Cluster{
		Name: "SIM", Address: fmt.Sprintf("10.0.0.%d:6222", m.index+1), Expected: max(m.w.plan.Nodes, m.index+1),
		ClientURLs: []string{fmt.Sprintf("10.0.0.%d:4222", m.index+1)},
		TickNanos:  p.TickMillis * 1_000_000, ElectionTicks: p.ElectionTicks, LogTailBytes: p.LogTailBytes,
	}
	life, ticks := m.life(), uint64(p.ElectionTicks)
	c.Engine.Pin = func(group wal.GroupID, term uint64, role uint8) int {
		return int(ticks + m.w.key.Below(ticks, "election", life, uint64(group), term, uint64(role)))
	}
}

// step brings inputs to the node, behind what its connections have written since the last one.
func (m *machine) step(in ...event.Input) {
	m.inputs = m.inputs[:0]
	for _, wr := range m.written {
		m.inputs = append(m.inputs, event.Input{Kind: event.Flushed, Conn: wr.conn, N: wr.n})
	}
	m.written = m.written[:0]
	m.inputs = append(m.inputs, in...)
	m.node.StepAll(m.inputs)
	clear(m.inputs)
	m.w.inspect(m)
}

// kill ends the process: batches under way are carried out in part, and the disk is left as the strategy says.
func (m *machine) kill(strategy memfs.Strategy) {
	life := m.life()
	first := int(m.w.key.Below(2, "first worker", life))
	for i := range m.workers {
		at := (first + i) % len(m.workers)
		if m.workers[at].busy() && m.w.key.Chance(800, "partial", life, uint64(at)) {
			m.partly(at, m.cutOf(at))
		}
	}
	m.end(strategy)
}

// stop ends the process in order: clients are told and let go, what the workers have is carried out, files are closed.
func (m *machine) stop() {
	w := m.w
	m.step(event.Input{Kind: event.Shutdown})
	for id := event.ConnID(1); id <= w.nextID; id++ {
		if l := w.links[id]; l != nil && l.machine == m && l.nodeOpen && l.parser != nil {
			m.step(event.Input{Kind: event.Closed, Conn: id, Reason: wire.ServerShutdown})
		}
	}
	for at := 0; at < len(m.workers); {
		if !m.workers[at].busy() {
			at++
			continue
		}
		m.diskEnd(at)
		at = 0
	}
	if disk := m.node.Storage(); disk != nil {
		if err := disk.Close(); err != nil {
			w.trace.Add(trace.Log, uint64(event.Error), 0, []byte("close: "+err.Error()))
		}
	}
	m.end(memfs.KeepAll)
}

// end removes the process; the disk is left as the strategy says.
func (m *machine) end(strategy memfs.Strategy) {
	m.w.trace.Add(trace.Crash, m.life(), 1+uint64(strategy), nil)
	m.w.left(m)
	m.mayLose = m.w.mesh != nil && m.disk.Deceived(Dir+"/wal") && m.w.bearable(m)
	m.node = nil
	m.gen++
	m.paused, m.held = false, nil
	m.crashDisk(strategy)
	m.w.loseLinks(m)
}

// retire ends the server for good.
func (m *machine) retire() {
	if m.node != nil {
		m.end(memfs.LoseAll)
	}
	m.absent, m.gone = true, true
}

// wipe ends the process and replaces the disk by an empty one: the next incarnation is a new server.
func (m *machine) wipe() {
	if m.node != nil {
		m.end(memfs.LoseAll)
	}
	m.wipes++
	m.newDisk()
	m.applyDiskFaults()
}
