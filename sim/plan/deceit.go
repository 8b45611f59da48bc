package plan

import (
	"slices"

	"weir/disk/memfs"
	"weir/sim/keyed"
)

// deceits is how many of 1000 plans have a disk that says what is not so of the log.
const deceits = 150

// deceive adds to a plan of a cluster faults after which a replica has forgotten what it promised, without a trace on its
// disk. They draw from a source of their own, so that other plans stay as they are. victims chooses the server.
func (p *Plan) deceive() {
	r := keyed.Key(p.Seed).Rand("deceit")
	if !r.Chance(deceits) || p.Porcupine {
		return
	}
	losses := slices.DeleteFunc(memfs.Strategies(), func(s memfs.Strategy) bool { return s == memfs.KeepAll })
	for range r.Between(1, 4) {
		f := Fault{AtMillis: p.HealMillis/4 + int64(r.Below(int(p.HealMillis))), DurMillis: int64(r.LogBetween(1, 1_000))}
		switch r.Below(4) {
		case 0:
			f.Kind, f.Disk, f.On, f.N = FaultStray, keyed.Pick(r, "lost", "stray"), "log", int64(r.Between(1, 3))
		case 1:
			f.Kind, f.Disk, f.On, f.N = FaultRot, "log", "newest", int64(r.Uint64()>>1)
		default:
			f.Kind, f.Disk = FaultLie, memfs.LoseAll.String()
			if r.Chance(500) {
				f.Disk = keyed.Pick(r, losses...).String()
			}
		}
		p.Faults = append(p.Faults, f)
		p.HealMillis = max(p.HealMillis, f.AtMillis+f.DurMillis+10)
	}
	p.inOrder()
}
