package sim

import (
	"math/bits"
	"strings"
	"testing"

	"weir/sim/plan"
	"weir/sim/trace"
)

// TestNothingIsLostWhileCatalogsAreDamaged has the catalogs of most servers, and of all, damaged for a while: nobody takes that
// for absence, operators are told, and when the bytes are back so is everything that was acknowledged.
func TestNothingIsLostWhileCatalogsAreDamaged(t *testing.T) {
	struck := map[bool]int{}
	for seed := range uint64(12) {
		p := plan.Generate(seed, plan.Options{Nodes: 3, Profile: "calm"})
		nodes := uint64(0b111)
		if seed%2 == 0 {
			nodes = 0b011 << (seed / 2 % 2)
		}
		p.Porcupine, p.Gone, p.Spares = false, 0, 0
		blind := plan.Fault{AtMillis: p.HealMillis / 2, DurMillis: 2_500, Kind: plan.FaultBlind, Nodes: nodes}
		restart := plan.Fault{AtMillis: blind.AtMillis + 900, DurMillis: 100, Kind: plan.FaultCrash, Disk: "keep-all", Nodes: 0b111}
		p.Faults = []plan.Fault{blind, restart}
		p.HealMillis = max(p.HealMillis, blind.AtMillis+blind.DurMillis+500)
		r := Run(p, Options{Keep: true})
		if class := r.Class(); class != "" {
			t.Fatalf("seed %d: %s: %s", seed, class, r.Findings[0].Detail)
		}
		damaged, told := reports(r.Trace)
		if damaged == 0 {
			continue // no place was found whose damage costs nothing else
		}
		all := nodes == 0b111
		struck[all]++
		if want := bits.OnesCount64(nodes); damaged < want {
			t.Errorf("seed %d: %d reports of %d damaged catalogs", seed, damaged, want)
		}
		if all && told == 0 {
			t.Errorf("seed %d: nobody is told that no server has the catalog", seed)
		}
	}
	if struck[true] == 0 || struck[false] == 0 {
		t.Fatalf("the test does not reach what it is to test: %v", struck)
	}
}

// reports counts what the logs say about damaged catalogs, and about one that nobody has.
func reports(tr *trace.Trace) (damaged, told int) {
	for i := range tr.Records {
		text := tr.Records[i].Text
		if strings.Contains(text, "The catalog of streams is damaged here") {
			damaged++
		}
		if strings.Contains(text, "none is founded") {
			told++
		}
	}
	return damaged, told
}
