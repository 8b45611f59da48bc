package world

import (
	"weir/sim/plan"
	"weir/sim/sched"
)

// direction is one way between two machines.
type direction struct{ from, to int }

// cut is what a fault between servers does to one direction while it lasts.
type cutState struct {
	ways []direction
	on   bool
}

// cutLinks begins a fault between servers.
func (w *World) cutLinks(i int) {
	f := &w.plan.Faults[i]
	if w.mesh == nil {
		return
	}
	if f.Kind == plan.FaultSessions {
		for _, m := range w.hit(f) {
			w.mesh.Reset(m.index)
		}
		return
	}
	w.cuts[i] = &cutState{ways: w.ways(f)}
	w.toggle(i)
	w.endLater(i)
	if f.Kind == plan.FaultPartition && f.N > 0 {
		w.queue.Push(sched.Event{At: w.now + f.N*1_000_000, Kind: evFlap, N: uint64(i)})
	}
}

// flap turns a partition that comes and goes.
func (w *World) flap(i int) {
	if w.cuts[i] == nil {
		return
	}
	w.toggle(i)
	w.queue.Push(sched.Event{At: w.now + w.plan.Faults[i].N*1_000_000, Kind: evFlap, N: uint64(i)})
}

// mendLinks ends a fault between servers.
func (w *World) mendLinks(i int) {
	if c := w.cuts[i]; c != nil {
		if c.on {
			w.toggle(i)
		}
		delete(w.cuts, i)
	}
}

// toggle begins what a fault does to its directions, or takes it back.
func (w *World) toggle(i int) {
	f, c := &w.plan.Faults[i], w.cuts[i]
	c.on = !c.on
	for _, d := range c.ways {
		switch {
		case f.Kind == plan.FaultPartition && c.on:
			w.mesh.Cut(d.from, d.to, f.Hold)
		case f.Kind == plan.FaultPartition:
			w.mesh.Mend(d.from, d.to, f.Hold)
		case f.Kind == plan.FaultGray && c.on:
			w.mesh.Slow(d.from, d.to, f.N)
		case f.Kind == plan.FaultGray:
			w.mesh.Unslow(d.from, d.to, f.N)
		case f.Kind == plan.FaultLoss && c.on:
			w.mesh.Lossy(d.from, d.to, uint64(f.N))
		case f.Kind == plan.FaultLoss:
			w.mesh.Unlossy(d.from, d.to, uint64(f.N))
		}
	}
}

// ways returns the directions that a fault between servers is about.
func (w *World) ways(f *plan.Fault) []direction {
	in := make([]bool, len(w.machines))
	for _, m := range w.hit(f) {
		in[m.index] = true
	}
	n := len(w.machines)
	var all []direction
	for from := range n {
		for to := range n {
			if from != to && concerned(f.On, in, direction{from, to}) {
				all = append(all, direction{from, to})
			}
		}
	}
	return all
}

// concerned says whether a shape takes in a direction; in says which machines the fault is about.
func concerned(shape string, in []bool, d direction) bool {
	n := len(in)
	switch shape {
	case plan.ShapeOut:
		return in[d.from] && !in[d.to]
	case plan.ShapeIn:
		return !in[d.from] && in[d.to]
	case plan.ShapeBridge:
		// Those it is about reach everybody, of the others the even ones do not reach the odd ones.
		return !in[d.from] && !in[d.to] && (d.from+d.to)%2 == 1
	case plan.ShapeRing:
		// Each reaches its two neighbours only; three are a line then.
		if n == 3 {
			return d.from+d.to == 2 && d.from != 1
		}
		gap := (d.from - d.to + n) % n
		return gap != 1 && gap != n-1
	default:
		return in[d.from] != in[d.to]
	}
}
