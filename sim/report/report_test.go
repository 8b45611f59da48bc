package report

import (
	"bytes"
	"testing"

	"weir/sim"
	"weir/sim/plan"
)

func TestPageShowsTheRunAndNeedsNothingElse(t *testing.T) {
	p := plan.Generate(0, plan.Options{Plant: "ack-before-sync"})
	result := sim.Run(p, sim.Options{Keep: true})
	page := HTML(result)
	for _, want := range []string{"<svg", "client 1", "faults", "node: log", "ack-before-sync"} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, unwanted := range []string{"http://", "https://", "src="} {
		if bytes.Contains(page, []byte(unwanted)) {
			t.Errorf("the page refers to %q", unwanted)
		}
	}
	if result.Class() != "" && !bytes.Contains(page, []byte(result.Class())) {
		t.Errorf("the page lacks the class %s", result.Class())
	}
}
