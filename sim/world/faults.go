package world

import (
	"slices"
	"strings"

	"weir/disk/memfs"
	"weir/disk/vfs"
	"weir/node/event"
	"weir/sim/plan"
	"weir/sim/sched"
	"weir/sim/trace"
)

// beginFault carries out a fault of the plan.
func (w *World) beginFault(i int) {
	f := &w.plan.Faults[i]
	w.trace.Add(trace.Fault, uint64(i), 0, nil)
	w.trace.Note(f.Kind + " " + f.Disk)
	m := &w.machine
	ends := false
	switch f.Kind {
	case plan.FaultCrash:
		if f.On != "" {
			w.armed = append(w.armed, i)
		} else {
			w.crash(f)
		}
	case plan.FaultStop:
		if m.node != nil && !m.paused {
			w.stop()
			w.restartAfter(max(f.DurMillis, 1)*1_000_000, 0)
		}
	case plan.FaultRot:
		if m.node != nil {
			w.kill(memfs.KeepAll)
			w.rot(f)
			w.restartAfter(max(f.DurMillis, 1)*1_000_000, 0)
		}
	case plan.FaultError, plan.FaultNoSpace:
		w.active = append(w.active, i)
		w.applyDiskFaults()
		m.failed = m.failed || f.Kind == plan.FaultError && f.Disk != "read"
		ends = true
	case plan.FaultSlow:
		m.slow = max(f.N, 1)
		ends = true
	case plan.FaultClock:
		m.wallOffset += f.N * 1_000_000
	case plan.FaultReset:
		w.reset(int(f.N))
	case plan.FaultPause:
		m.paused = m.node != nil
		ends = true
	}
	if ends {
		w.queue.Push(sched.Event{At: w.now + f.DurMillis*1_000_000, Kind: evFaultEnd, N: uint64(i)})
	}
}

// crash ends the process, if it runs, and lets it start again later.
func (w *World) crash(f *plan.Fault) {
	if w.machine.node != nil {
		w.kill(strategyNamed(f.Disk))
		w.restartAfter(max(f.DurMillis, 1)*1_000_000, f.Again)
	}
}

// spring lets a crash that waits for this kind of disk work fall into it.
func (w *World) spring(at int, took int64) {
	saves := slices.ContainsFunc(w.machine.workers[at].batch, func(op event.Op) bool { return op.Kind == event.Save })
	for n, i := range w.armed {
		f := &w.plan.Faults[i]
		if f.On == "append" && at == 0 || f.On == "save" && saves {
			w.armed = slices.Delete(w.armed, n, n+1)
			w.queue.Push(sched.Event{At: w.now + took/2, Kind: evFire, Gen: w.machine.gen, N: uint64(i)})
			return
		}
	}
}

// endFault ends a fault that lasts.
func (w *World) endFault(i int) {
	f := &w.plan.Faults[i]
	w.trace.Add(trace.FaultEnd, uint64(i), 0, nil)
	m := &w.machine
	switch f.Kind {
	case plan.FaultError, plan.FaultNoSpace:
		w.active = slices.DeleteFunc(w.active, func(n int) bool { return n == i })
		w.applyDiskFaults()
		if len(w.active) == 0 && m.failed && m.node != nil {
			// A node does not go on after a failed sync: somebody restarts it.
			w.kill(memfs.KeepAll)
			w.restartAfter(20_000_000, 0)
		}
		m.failed = m.failed && len(w.active) > 0
	case plan.FaultSlow:
		m.slow = 1
	case plan.FaultPause:
		w.resume()
	}
}

// resume lets a paused node go on: its timers first, then everything that was held, in a burst.
func (w *World) resume() {
	m := &w.machine
	m.paused = false
	held := m.held
	m.held = nil
	slices.SortStableFunc(held, func(a, b sched.Event) int { return rank(a.Kind) - rank(b.Kind) })
	for i := range held {
		w.handle(&held[i])
	}
}

func rank(kind uint8) int {
	if kind == evWake {
		return 0
	}
	return 1
}

// reset cuts the links of one client, or of all.
func (w *World) reset(client int) {
	for id := event.ConnID(1); id <= w.nextID; id++ {
		if l := w.links[id]; l != nil && l.clientOpen && (client < 0 || l.Client == client) {
			w.Cut(l)
		}
	}
}

// applyDiskFaults makes the disk fail as the faults under way say.
func (w *World) applyDiskFaults() {
	w.disk.Heal()
	w.disk.SetCapacity(0)
	for _, i := range w.active {
		f := &w.plan.Faults[i]
		under := ""
		if f.On == "groups" {
			under = Dir + "/groups"
		}
		if f.Kind == plan.FaultNoSpace && under != "" {
			w.disk.Inject(memfs.Fault{On: memfs.OpWrite, Under: under, Err: vfs.ErrNoSpace})
			continue
		}
		if f.Kind == plan.FaultNoSpace {
			w.disk.SetCapacity(w.disk.Used() + f.N)
			continue
		}
		kinds := map[string]memfs.OpKind{"write": memfs.OpWrite | memfs.OpTruncate, "sync": memfs.OpSync | memfs.OpSyncDir, "read": memfs.OpRead}
		w.disk.Inject(memfs.Fault{On: kinds[f.Disk], Under: under, Times: int(f.N), Err: vfs.ErrIO})
	}
}

func strategyNamed(name string) memfs.Strategy {
	for _, s := range memfs.Strategies() {
		if s.String() == name {
			return s
		}
	}
	return memfs.KeepAll
}

// rot damages a byte of one file of the kind that the fault names, if there is one with content. What the last write to
// the log put there is spared: nothing can tell damage of the newest append, with no mark behind it, from a write that
// the power cut short, and with a single copy that loss is beyond what the server promises.
func (w *World) rot(f *plan.Fault) {
	parts := map[string]string{"log": "/wal/", "blocks": "/msgs", "checkpoint": "/checkpoint"}
	var names []string
	var sizes []uint64
	for _, name := range w.disk.Files(Dir) {
		size := w.disk.Size(name)
		if name == w.lastLogWrite.Name {
			size = min(size, w.lastLogWrite.Off)
		}
		if strings.HasSuffix(name, "/mark") && f.N%8 != 0 {
			continue // Two small slots of many files: damaged less often than its share.
		}
		if strings.Contains(name, parts[f.Disk]) && size > 0 {
			names, sizes = append(names, name), append(sizes, uint64(size))
		}
	}
	if len(names) == 0 {
		return
	}
	n := uint64(f.N)
	at := n % uint64(len(names))
	kind := memfs.Rot(n / 3 % 4)
	if err := w.disk.Damage(names[at], kind, int64(n/7%sizes[at])); err == nil {
		w.machine.rotten = true
		w.trace.Note("rot of " + names[at])
	}
}
