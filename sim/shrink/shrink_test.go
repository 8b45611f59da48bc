package shrink

import (
	"testing"

	"weir/sim/plan"
)

// TestOnlyWhatMattersIsLeft shrinks against a judge that needs one fault and two operations.
func TestOnlyWhatMattersIsLeft(t *testing.T) {
	p := plan.Generate(2, plan.Options{})
	p.Faults = append(p.Faults, plan.Fault{Kind: plan.FaultCrash, AtMillis: 77})
	p.Ops[10].ID, p.Ops[20].ID = "needed", "needed"
	judge := func(p *plan.Plan) string {
		crashes, needed := 0, 0
		for i := range p.Faults {
			if p.Faults[i].AtMillis == 77 {
				crashes++
			}
		}
		for i := range p.Ops {
			if p.Ops[i].ID == "needed" {
				needed++
			}
		}
		if crashes == 1 && needed == 2 {
			return "broken"
		}
		return ""
	}
	small, runs := Shrink(p, "broken", 600, judge)
	if len(small.Ops) != 2 || len(small.Faults) != 1 || small.Clients != 1 || len(small.Consumers) != 0 {
		t.Fatalf("%d operations, %d faults, %d clients, %d consumers are left after %d runs",
			len(small.Ops), len(small.Faults), small.Clients, len(small.Consumers), runs)
	}
	if judge(small) != "broken" {
		t.Fatal("the shrunk plan does not fail")
	}
}

func TestBudgetIsKept(t *testing.T) {
	count := 0
	_, runs := Shrink(plan.Generate(3, plan.Options{}), "x", 10, func(*plan.Plan) string { count++; return "" })
	if count > 10 || runs != count {
		t.Fatalf("%d runs counted, %d made, the budget is 10", runs, count)
	}
}
