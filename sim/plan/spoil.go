package plan

import "weir/sim/keyed"

// spoils is how many of 1000 plans of clusters have a server whose memory fails: its catalog is not what its log leads to. The
// others have to tell it, as they are the majority, and it has to mend itself while it runs, whoever leads.
const spoils = 100

// scratchesAfter is how many streams come and go once all is well, so that the servers compare what they have.
const (
	scratchesAfter = 8
	spoilGapMillis = 100
)

// spoil adds that to a plan of a cluster in which three servers at least have the catalog in the end. The draws are their own,
// so that other plans stay as they are.
func (p *Plan) spoil() {
	r := keyed.Key(p.Seed).Rand("spoil")
	left := p.Founders()
	for gone := p.Gone; gone != 0; gone &= gone - 1 {
		left--
	}
	if !r.Chance(spoils) || p.Porcupine || left < 3 {
		return
	}
	f := Fault{AtMillis: p.HealMillis/4 + int64(r.Below(int(p.HealMillis))), Kind: FaultMemory, Nodes: 1 << r.Below(p.Nodes)}
	if r.Chance(400) {
		f.Nodes, f.Leads = 0, 1 // whoever leads the catalog
	}
	p.Faults = append(p.Faults, f)
	p.HealMillis = max(p.HealMillis, f.AtMillis+10)
	client := r.Below(p.Clients)
	for i := range scratchesAfter {
		if len(p.Ops) < OpsMax {
			p.Ops = append(p.Ops, Op{AtMillis: p.HealMillis + int64(i*spoilGapMillis), Client: client, Kind: OpScratch, N: r.Between(0, 3)})
		}
	}
	p.inOrder()
}
