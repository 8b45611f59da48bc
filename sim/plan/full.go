package plan

import "weir/sim/keyed"

// fullOf is how many of 1000 plans of clusters have disks that fill up: what does not fit has to be kept, refused, or
// written later, and never to be taken for done.
const fullOf = 120

// fill adds such faults to a plan of a cluster. The draws are their own, so that other plans stay as they are.
func (p *Plan) fill() {
	r := keyed.Key(p.Seed).Rand("full")
	if !r.Chance(fullOf) || p.Porcupine {
		return
	}
	for range r.Between(1, 3) {
		f := Fault{
			AtMillis: formedMillis + int64(r.Below(int(max(p.HealMillis, 1)))), Kind: FaultNoSpace, On: keyed.Pick(r, "log", "log", ""),
			DurMillis: int64(r.LogBetween(10, 1_000)), N: int64(r.LogBetween(1, 8<<10)), Nodes: 1 << r.Below(p.Nodes),
		}
		p.Faults = append(p.Faults, f)
		p.HealMillis = max(p.HealMillis, f.AtMillis+f.DurMillis+10)
	}
	p.inOrder()
}
