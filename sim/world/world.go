// Package world is the other world that nodes live in during a simulation: virtual time, machines whose disks and clocks
// fail, connections of clients made of byte streams, and a network between the servers of a cluster (package mesh).
//
// It runs the same node.New as production, with simulated implementations of the node's interfaces, and injects the
// faults of a plan. It promises that a run is a function of its plan: there is no goroutine, no clock and no draw that
// is not keyed by content. It knows nothing of what clients say or of what is right; see packages workload and verdict.
package world

import (
	"weir/node/event"
	"weir/sim/keyed"
	"weir/sim/mesh"
	"weir/sim/plan"
	"weir/sim/sched"
	"weir/sim/trace"
	"weir/transport/peerwire"
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
	evFlap
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

// EventsMax is how many events a run may have; with more, somebody answers somebody for ever. Long runs have a tenth of it.
const EventsMax = 5_000_000

// Livelock is the panic of a run that makes no progress in time, or too little.
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

	events int // so far

	clients Clients
	links   map[event.ConnID]*Link
	nextID  event.ConnID

	machines []*machine
	mesh     *mesh.Mesh                   // nil for a single server
	servers  map[peerwire.ServerID]int    // by the identities that were seen so far
	disks    map[peerwire.ServerID]uint64 // how often the disk had been replaced
	struck   map[int][]*machine           // by faults, by number
	cuts     map[int]*cutState            // faults between servers that are under way, by number
	healed   bool

	digests   digests
	ledgers   ledgers
	inspector inspector
	// incarnations is for groups that the world does not look at otherwise.
	incarnations incarnations
	decisions    decisions
	blinded      map[int][]blinded // catalogs that are damaged, by number of the fault
	catalogOf    peerwire.ServerID // who founded the catalog; 0: nobody yet
	violation    *Violation
}

// New returns the world of a plan, with no node started yet.
func New(p *plan.Plan, tr *trace.Trace) *World {
	modes := map[string]sched.Mode{"fifo": sched.FIFO, "random": sched.Random, "priorities": sched.Priorities}
	key := keyed.Key(p.Seed)
	w := &World{
		plan: p, key: key, trace: tr, queue: sched.New(modes[p.Tie], key),
		links: map[event.ConnID]*Link{}, servers: map[peerwire.ServerID]int{}, disks: map[peerwire.ServerID]uint64{},
		struck: map[int][]*machine{}, cuts: map[int]*cutState{},
	}
	w.machines = make([]*machine, p.Machines())
	for i := range w.machines {
		w.machines[i] = newMachine(w, i)
		w.machines[i].absent = i >= max(p.Nodes, 1)
	}
	if len(w.machines) > 1 {
		w.mesh = mesh.New(w.meshConfig(), key, (*peers)(w))
	}
	w.inspector = newInspector(len(w.machines))
	w.digests, w.ledgers = digests{map[applied]uint64{}, map[applied]uint64{}}, newLedgers()
	w.incarnations = newIncarnations()
	w.decisions, w.blinded = newDecisions(len(w.machines)), map[int][]blinded{}
	for i := range p.Faults {
		w.queue.Push(sched.Event{At: p.Faults[i].AtMillis * 1_000_000, Kind: evFault, N: uint64(i)})
	}
	return w
}

// Start boots the nodes; clients are told what happens from then on. Servers of a cluster start one after the other.
func (w *World) Start(clients Clients) {
	w.clients = clients
	w.machines[0].boot(0)
	for i, m := range w.machines[1:] {
		if !m.absent {
			m.restartAfter(w.key.Exp(50_000_000, "first start", uint64(i)), 0)
		}
	}
}

// Now is the virtual time in nanoseconds.
func (w *World) Now() int64 { return w.now }

// Key is the key of the run's draws.
func (w *World) Key() keyed.Key { return w.key }

// Machines is the number of machines, those included that have not joined yet.
func (w *World) Machines() int { return len(w.machines) }

// Up says how many nodes run.
func (w *World) Up() int {
	n := 0
	for _, m := range w.machines {
		if m.node != nil {
			n++
		}
	}
	return n
}

// Refused is why a node does not start, nil while all may still come up.
func (w *World) Refused() error {
	for _, m := range w.machines {
		if m.refused != nil {
			return m.refused
		}
	}
	return nil
}

// Rotten says whether bytes at rest have been damaged that no other server has, so that refusing to serve them is right.
func (w *World) Rotten() bool { return len(w.machines) == 1 && w.machines[0].rotten }

// Heal ends what waits for an occasion: no fault begins any more.
func (w *World) Heal() {
	w.healed = true
	for _, m := range w.machines {
		m.armed = nil
	}
	if w.mesh != nil {
		w.mesh.Calm()
	}
}

// Retire ends servers for good, those that a cluster is promised to bear the loss of: bit i is the i-th. The others have to
// do without them from now on.
func (w *World) Retire(nodes uint64) {
	for i, m := range w.machines {
		if nodes>>i&1 == 1 && w.bearable(m) {
			m.retire()
		}
	}
}

// Gone returns the names of the servers that have left for good.
func (w *World) Gone() []string {
	var names []string
	for _, m := range w.machines {
		if m.gone {
			names = append(names, m.name())
		}
	}
	return names
}

// Boots is how often nodes have been started.
func (w *World) Boots() int {
	n := 0
	for _, m := range w.machines {
		n += m.boots
	}
	return n
}

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
		count++
		w.events++
		if count > EventsPerInstantMax || w.events > EventsMax {
			panic(Livelock{At: w.now})
		}
		w.handle(&e)
	}
}

func (w *World) handle(e *sched.Event) {
	m := w.machines[e.Node]
	switch e.Kind {
	case evOpened, evToNode, evHangup, evClosed, evWake, evDisk, evIdle:
		if e.Gen != m.gen || m.node == nil {
			return
		}
		if m.paused {
			m.held = append(m.held, *e)
			return
		}
		m.handle(e)
	case mesh.Opened, mesh.Broken, mesh.Deliver:
		if m.paused {
			m.held = append(m.held, *e)
			return
		}
		w.mesh.Handle(e)
	case mesh.Connect, mesh.Suspect:
		w.mesh.Handle(e)
	case evToClient, evLost:
		w.toClient(e)
	case evTimer:
		w.clients.Timer(e.Conn, e.N)
	case evFault:
		w.beginFault(int(e.N))
	case evFlap:
		w.flap(int(e.N))
	case evFire:
		if e.Gen == m.gen && !w.healed {
			m.sprung = true
			m.crash(&w.plan.Faults[e.N])
			m.sprung = false
		}
	case evFaultEnd:
		w.endFault(int(e.N))
	case evRestart:
		if m.node == nil && m.refused == nil && !m.gone {
			m.absent = false
			m.boot(e.N)
		}
	}
}

// handle brings an event to the node.
func (m *machine) handle(e *sched.Event) {
	switch e.Kind {
	case evOpened:
		m.open(e)
	case evToNode:
		m.feed(e)
	case evHangup, evClosed:
		m.close(e)
	case evWake:
		if e.N == m.wakes {
			m.wakeAt = 0
			m.w.trace.Add(trace.Woke, uint64(m.mono()), 0, nil)
			m.step(event.Input{Kind: event.Woke})
		}
	case evDisk:
		m.diskEnd(int(e.Conn))
	case evIdle:
		m.idle(e.N)
	}
}
