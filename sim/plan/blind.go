package plan

import (
	"slices"

	"weir/sim/keyed"
)

// blindOf is how many of 1000 plans of clusters have the catalogs of a majority of the servers, or of all, damaged for a while.
const blindOf = 80

// Bounds of how long that is, in milliseconds.
const (
	blindMillisMin = 200
	blindMillisMax = 4_000
)

// blind adds that to a plan of a cluster, and ends of processes meanwhile. Plans that damage something for good have none: the
// two together may be more than anybody can make good for. The draws are their own, so that other plans stay as they are.
func (p *Plan) blind() {
	r := keyed.Key(p.Seed).Rand("blind")
	damages := slices.ContainsFunc(p.Faults, func(f Fault) bool { return f.Damages() || f.Kind == FaultMemory })
	if !r.Chance(blindOf) || p.Porcupine || damages || p.Gone != 0 || p.Spares > 0 || p.Cluster.Bare > 0 {
		return
	}
	p.addBlind(r, int64(formedMillis+r.Below(int(max(p.HealMillis, 1)))))
}

// addBlind adds such a fault at a time.
func (p *Plan) addBlind(r *keyed.Rand, at int64) {
	count := p.Nodes
	if r.Chance(600) {
		count = p.Nodes/2 + 1
	}
	nodes, first := uint64(0), r.Below(p.Nodes)
	for i := range count {
		nodes |= 1 << ((first + i) % p.Nodes)
	}
	f := Fault{AtMillis: at, DurMillis: int64(r.LogBetween(blindMillisMin, blindMillisMax)), Kind: FaultBlind, Nodes: nodes}
	p.Faults = append(p.Faults, f)
	for range r.Below(4) {
		end := Fault{AtMillis: at + int64(r.Below(int(f.DurMillis))), Kind: FaultCrash, Disk: "keep-all", Nodes: 1 << r.Below(p.Nodes)}
		end.DurMillis = int64(r.LogBetween(1, 300))
		p.Faults = append(p.Faults, end)
	}
	p.HealMillis = max(p.HealMillis, at+f.DurMillis+500)
	p.inOrder()
}
