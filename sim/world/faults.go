package world

import (
	"slices"

	"weir/disk/memfs"
	"weir/disk/vfs"
	"weir/disk/wal"
	"weir/node/event"
	"weir/sim/plan"
	"weir/sim/sched"
	"weir/sim/trace"
)

// hit returns the machines that a fault is about: those of its mask, and the one that leads the group it names.
func (w *World) hit(f *plan.Fault) []*machine {
	mask := f.Nodes
	if f.Leads != 0 {
		if leader := w.leaderOf(wal.GroupID(f.Leads)); leader >= 0 {
			mask |= 1 << leader
		}
	} else if mask == 0 {
		mask = 1
	}
	var all []*machine
	for i, m := range w.machines {
		if mask>>i&1 == 1 && !m.gone && (!m.absent || f.Kind == plan.FaultJoin) {
			all = append(all, m)
		}
	}
	return all
}

// beginFault carries out a fault of the plan.
func (w *World) beginFault(i int) {
	f := &w.plan.Faults[i]
	w.trace.Add(trace.Fault, uint64(i), 0, nil)
	w.trace.Note(f.Kind + " " + f.Disk)
	if f.Between() {
		w.cutLinks(i)
		return
	}
	machines := w.hit(f)
	w.struck[i] = machines
	if f.Kind == plan.FaultBlind {
		if w.blind(i, machines) {
			w.endLater(i)
		}
		return
	}
	ends := false
	for _, m := range machines {
		ends = m.beginFault(i) || ends
	}
	if ends {
		w.endLater(i)
	}
}

func (w *World) endLater(i int) {
	f := &w.plan.Faults[i]
	w.queue.Push(sched.Event{At: w.now + f.DurMillis*1_000_000, Kind: evFaultEnd, N: uint64(i)})
}

// beginFault carries out a fault on one machine and reports whether it lasts.
func (m *machine) beginFault(i int) bool {
	f := &m.w.plan.Faults[i]
	if (f.Damages() || f.Kind == plan.FaultLeave) && m.w.mesh != nil && !m.w.bearable(m) {
		m.w.trace.Note("not now: " + f.Kind)
		return false
	}
	down := max(f.DurMillis, 1) * 1_000_000
	switch f.Kind {
	case plan.FaultCrash:
		if f.On != "" {
			m.armed = append(m.armed, i)
		} else {
			m.crash(f)
		}
	case plan.FaultStop:
		if m.node != nil && !m.paused {
			m.stop()
			m.restartAfter(down, 0)
		}
	case plan.FaultRot:
		if m.node != nil {
			m.kill(memfs.KeepAll)
			m.rot(f)
			m.restartAfter(down, 0)
		}
	case plan.FaultWipe:
		if m.node != nil {
			m.wipe()
			m.restartAfter(down, 0)
		}
	case plan.FaultLeave:
		m.retire()
	case plan.FaultStray, plan.FaultLie:
		m.active = append(m.active, i)
		m.applyDiskFaults()
		return true
	case plan.FaultMemory:
		m.spoil()
	case plan.FaultJoin:
		if m.absent {
			m.absent = false
			m.boot(0)
		}
	case plan.FaultError, plan.FaultNoSpace:
		m.active = append(m.active, i)
		m.applyDiskFaults()
		m.failed = m.failed || f.Kind == plan.FaultError && f.Disk != "read"
		return true
	case plan.FaultSlow:
		m.slow = max(f.N, 1)
		return true
	case plan.FaultClock:
		m.wallOffset += f.N * 1_000_000
	case plan.FaultReset:
		m.w.reset(int(f.N))
	case plan.FaultPause:
		m.paused = m.node != nil
		return true
	}
	return false
}

// crash ends the process, if it runs, and lets it start again later.
func (m *machine) crash(f *plan.Fault) {
	if m.node != nil {
		m.kill(strategyNamed(f.Disk))
		m.restartAfter(max(f.DurMillis, 1)*1_000_000, f.Again)
	}
}

// spring lets a crash that waits for this kind of disk work fall into it.
func (m *machine) spring(at int, took int64) {
	saves := slices.ContainsFunc(m.workers[at].batch, func(op event.Op) bool { return op.Kind == event.Save })
	for n, i := range m.armed {
		f := &m.w.plan.Faults[i]
		if f.On == "append" && at == 0 || f.On == "save" && saves {
			m.armed = slices.Delete(m.armed, n, n+1)
			m.pushLife(sched.Event{At: m.w.now + took/2, Kind: evFire, N: uint64(i)})
			return
		}
	}
}

// endFault ends a fault that lasts.
func (w *World) endFault(i int) {
	f := &w.plan.Faults[i]
	w.trace.Add(trace.FaultEnd, uint64(i), 0, nil)
	if f.Between() {
		w.mendLinks(i)
		return
	}
	if f.Kind == plan.FaultBlind {
		w.mend(i)
		return
	}
	for _, m := range w.struck[i] {
		m.endFault(i)
	}
}

func (m *machine) endFault(i int) {
	f := &m.w.plan.Faults[i]
	switch f.Kind {
	case plan.FaultLie:
		m.active = slices.DeleteFunc(m.active, func(n int) bool { return n == i })
		m.applyDiskFaults()
		m.crash(f)
	case plan.FaultError, plan.FaultNoSpace, plan.FaultStray:
		m.active = slices.DeleteFunc(m.active, func(n int) bool { return n == i })
		m.applyDiskFaults()
		if f.Kind == plan.FaultStray && f.On == "log" && m.node != nil {
			m.kill(memfs.KeepAll)
			m.restartAfter(1_000_000, 0)
		}
		if len(m.active) == 0 && m.failed && m.node != nil {
			// A node does not go on after a failed sync: somebody restarts it.
			m.kill(memfs.KeepAll)
			m.restartAfter(20_000_000, 0)
		}
		m.failed = m.failed && len(m.active) > 0
	case plan.FaultSlow:
		m.slow = 1
	case plan.FaultPause:
		m.resume()
	}
}

// resume lets a paused node go on: its timers first, then everything that was held, in a burst.
func (m *machine) resume() {
	m.paused = false
	held := m.held
	m.held = nil
	slices.SortStableFunc(held, func(a, b sched.Event) int { return rank(a.Kind) - rank(b.Kind) })
	for i := range held {
		m.w.handle(&held[i])
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
func (m *machine) applyDiskFaults() {
	m.disk.Heal()
	m.disk.SetCapacity(0)
	for _, i := range m.active {
		f := &m.w.plan.Faults[i]
		under := ""
		switch f.On {
		case "groups":
			under = Dir + "/groups"
		case "log":
			under = Dir + "/wal"
		}
		if f.Kind == plan.FaultLie {
			m.disk.Inject(memfs.Fault{On: memfs.OpSync | memfs.OpSyncDir, Lie: true})
			continue
		}
		if f.Kind == plan.FaultStray {
			m.disk.Inject(memfs.Fault{On: memfs.OpWrite, Under: under, Times: int(f.N), Lose: f.Disk == "lost", Astray: f.Disk != "lost"})
			continue
		}
		if f.Kind == plan.FaultNoSpace && under != "" {
			m.disk.Inject(memfs.Fault{On: memfs.OpWrite, Under: under, Err: vfs.ErrNoSpace})
			continue
		}
		if f.Kind == plan.FaultNoSpace {
			m.disk.SetCapacity(m.disk.Used() + f.N)
			continue
		}
		kinds := map[string]memfs.OpKind{"write": memfs.OpWrite | memfs.OpTruncate, "sync": memfs.OpSync | memfs.OpSyncDir, "read": memfs.OpRead}
		m.disk.Inject(memfs.Fault{On: kinds[f.Disk], Under: under, Times: int(f.N), Err: vfs.ErrIO})
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
