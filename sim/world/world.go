// Package world is the other world that a node lives in during a simulation: virtual time, a disk that fails, and
// connections made of byte streams.
//
// It runs the same node.New as production, with simulated implementations of the node's interfaces, and injects the
// faults of a plan. It promises that a run is a function of its plan: there is no goroutine, no clock and no draw that
// is not keyed by content. It knows nothing of what clients say or of what is right; see packages workload and verdict.
package world

import (
	"weir/disk/memfs"
	"weir/node"
	"weir/node/event"
	"weir/sim/keyed"
	"weir/sim/plan"
	"weir/sim/sched"
	"weir/sim/trace"
)

// Epoch is the wall clock at virtual time 0, in unix nanoseconds: 2026-01-01T00:00:00Z.
const Epoch int64 = 1_767_225_600 * 1_000_000_000

// The kinds of events.
const (
	evOpened uint8 = iota + 1
	evToNode
	evHangup
	evClosed
	evToClient
	evLost
	evWake
	evDisk
	evTimer
	evFault
	evFaultEnd
	evRestart
	evFire
	evIdle
)

// Clients is the other end of the connections.
type Clients interface {
	// Receive brings bytes to the client's end of a link. They are valid during the call.
	Receive(link *Link, data []byte)
	// Lost reports that a link can no longer be used.
	Lost(link *Link)
	// Timer reports that the time asked for by World.After has come.
	Timer(owner, token uint64)
}

// EventsPerInstantMax is how many events may pass without any progress of virtual time; more is a livelock.
const EventsPerInstantMax = 200_000

// Livelock is the panic of a run that makes no progress in time.
type Livelock struct {
	// At is the virtual time at which it stands.
	At int64
}

// Error describes the livelock.
func (l Livelock) Error() string { return "virtual time does not advance" }

// World is one run.
type World struct {
	plan  *plan.Plan
	key   keyed.Key
	trace *trace.Trace
	queue *sched.Queue
	now   int64

	clients Clients
	links   map[event.ConnID]*Link
	nextID  event.ConnID

	disk    *memfs.FS
	machine machine
	// lastLogWrite is the last write to a segment of the log.
	lastLogWrite memfs.Op
	syncsLeft    uint64 // of a cut; 0: none
	healed       bool
	sprung       bool  // the crash under way was waiting for this work
	armed        []int // crashes that wait for the disk, by number
	active       []int // faults under way that the disk must know of, by number

	digests digests
}

// machine is the process of the node.
type machine struct {
	node   *node.Node
	gen    uint32 // incarnation; events of earlier ones are dropped
	bootAt int64
	wakeAt int64 // world time of the timer that is armed, 0: none
	wakes  uint64

	paused bool
	held   []sched.Event

	wallOffset int64
	slow       int64
	workers    [2]worker
	inputs     []event.Input
	written    []written
	spare      [][]byte

	// refused is why the node does not start although nothing but time could mend it.
	refused error
	rotten  bool // bytes at rest were damaged: refusing is right
	failed  bool // a disk error may have stopped the node; it is restarted when the error has gone
	boots   int
}

// written is what a connection has handed to the kernel since the last step.
type written struct {
	conn event.ConnID
	n    int
}

// New returns the world of a plan, with the node not yet started.
func New(p *plan.Plan, tr *trace.Trace) *World {
	modes := map[string]sched.Mode{"fifo": sched.FIFO, "random": sched.Random, "priorities": sched.Priorities}
	key := keyed.Key(p.Seed)
	w := &World{
		plan: p, key: key, trace: tr, queue: sched.New(modes[p.Tie], key),
		links: map[event.ConnID]*Link{},
		disk:  memfs.New(memfs.Options{SectorBytes: p.Disk.SectorBytes, Seed: p.Seed}),
	}
	w.machine.slow = 1
	w.watchDisk()
	w.digests.seen = map[applied]uint64{}
	for i := range p.Faults {
		w.queue.Push(sched.Event{At: p.Faults[i].AtMillis * 1_000_000, Kind: evFault, N: uint64(i)})
	}
	return w
}

// Start boots the node; clients are told what happens from then on.
func (w *World) Start(clients Clients) {
	w.clients = clients
	w.boot(0)
}

// Now is the virtual time in nanoseconds.
func (w *World) Now() int64 { return w.now }

// Key is the key of the run's draws.
func (w *World) Key() keyed.Key { return w.key }

// Up says whether the node runs.
func (w *World) Up() bool { return w.machine.node != nil }

// Refused is why the node does not start, nil while it may still come up.
func (w *World) Refused() error { return w.machine.refused }

// Rotten says whether bytes at rest have been damaged, so that refusing to serve them is right.
func (w *World) Rotten() bool { return w.machine.rotten }

// Heal ends what waits for an occasion: no fault begins any more.
func (w *World) Heal() { w.armed, w.healed = nil, true }

// Boots is how often the node has been started.
func (w *World) Boots() int { return w.machine.boots }

// DigestMismatch describes a group whose recovered state differed from what it was at the same applied index before, or
// is empty.
func (w *World) DigestMismatch() string { return w.digests.mismatch }

// After asks for Clients.Timer at a virtual time, now at the earliest.
func (w *World) After(at int64, owner, token uint64) {
	w.queue.Push(sched.Event{At: max(at, w.now), Kind: evTimer, Conn: owner, N: token})
}

// RunUntil runs events until done says so after one of them, or virtual time would pass the limit; it reports whether
// done said so.
func (w *World) RunUntil(limit int64, done func() bool) bool {
	count := 0
	for {
		if done() {
			return true
		}
		if w.queue.Len() == 0 || w.queue.Next() > limit {
			w.now = max(w.now, limit)
			w.trace.Time = w.now
			return false
		}
		e, _ := w.queue.Pop()
		if e.At > w.now {
			w.now, w.trace.Time, count = e.At, e.At, 0
		}
		if count++; count > EventsPerInstantMax {
			panic(Livelock{At: w.now})
		}
		w.handle(&e)
	}
}

func (w *World) handle(e *sched.Event) {
	switch e.Kind {
	case evOpened, evToNode, evHangup, evClosed, evWake, evDisk, evIdle:
		if e.Gen != w.machine.gen || w.machine.node == nil {
			return
		}
		if w.machine.paused {
			w.machine.held = append(w.machine.held, *e)
			return
		}
		w.toNode(e)
	case evToClient, evLost:
		w.toClient(e)
	case evTimer:
		w.clients.Timer(e.Conn, e.N)
	case evFault:
		w.beginFault(int(e.N))
	case evFire:
		if e.Gen == w.machine.gen && !w.healed {
			w.sprung = true
			w.crash(&w.plan.Faults[e.N])
			w.sprung = false
		}
	case evFaultEnd:
		w.endFault(int(e.N))
	case evRestart:
		if w.machine.node == nil && w.machine.refused == nil {
			w.boot(e.N)
		}
	}
}

// toNode brings an event to the node.
func (w *World) toNode(e *sched.Event) {
	switch e.Kind {
	case evOpened:
		w.open(e)
	case evToNode:
		w.feed(e)
	case evHangup, evClosed:
		w.close(e)
	case evWake:
		if e.N == w.machine.wakes {
			w.machine.wakeAt = 0
			w.trace.Add(trace.Woke, uint64(w.mono()), 0, nil)
			w.step(event.Input{Kind: event.Woke})
		}
	case evDisk:
		w.diskEnd(int(e.Conn))
	case evIdle:
		w.idle(e.N)
	}
}
