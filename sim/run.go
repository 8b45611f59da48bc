// Package sim runs a node through seeded failure schedules and says whether it kept its promises.
//
// A seed gives a plan (package plan), the plan runs in a simulated world (package world) under simulated clients
// (package workload), and what they saw is judged (package verdict). The package promises that Run is a pure function of
// its plan: the same plan gives the same result, hash included, on any machine, and any number of runs may go on at the
// same time as long as each stays on its own goroutine. It starts no goroutine itself.
package sim

import (
	"fmt"

	"weir/sim/plan"
	"weir/sim/trace"
	"weir/sim/verdict"
	"weir/sim/workload"
	"weir/sim/world"
	"weir/spec/assert"
)

// Bounds in virtual nanoseconds on how long the run may take to come to rest after its faults have ended.
const (
	second = 1_000_000_000
	// OperationsMax bounds the time until every client has carried out its operations.
	OperationsMax = 120 * second
	// DrainMax bounds the time until every consumer has delivered and had acknowledged what it owes.
	DrainMax = 180 * second
	// ReadBackMax bounds the time to read back everything stored.
	ReadBackMax = 60 * second
	// MirrorMax bounds the time until mirrors have what their streams have, and to read them back.
	MirrorMax = 60 * second
	// WatchMax bounds the time until watches have caught up.
	WatchMax = 60 * second
	// SettleMax bounds the time until all replicas of a cluster are members as the catalog wants and equal.
	SettleMax = 90 * second
	// ResidueMax bounds the time until the node has nothing left to do on the disk.
	ResidueMax = 60 * second
)

// Result is the outcome of one run.
type Result struct {
	// Plan is what was run.
	Plan *plan.Plan
	// Hash covers every event of the run and its verdict.
	Hash uint64
	// Findings are what was wrong, the first one naming the class of the failure; none when the run passed.
	Findings []verdict.Finding
	// Events and VirtualNanos are the size of the run.
	Events       uint64
	VirtualNanos int64
	// Trace holds the records when they were kept, Seen what the clients saw.
	Trace *trace.Trace
	Seen  *workload.Observations
}

// Class is the class of the failure; "" for a run that passed.
func (r *Result) Class() string {
	if len(r.Findings) == 0 {
		return ""
	}
	return r.Findings[0].Class
}

// Options are how to run.
type Options struct {
	// Keep keeps the trace's records.
	Keep bool
	// Crash lets a panic of the node end the process, with its stack, instead of becoming a finding.
	Crash bool
}

// run is one run while it goes on.
type run struct {
	plan  *plan.Plan
	world *world.World
	load  *workload.Workload
	trace *trace.Trace
}

// Run runs a plan.
func Run(p *plan.Plan, options Options) *Result {
	tr := &trace.Trace{Keep: options.Keep}
	w := world.New(p, tr)
	r := &run{plan: p, world: w, trace: tr, load: workload.New(p, w, tr)}
	result := &Result{Plan: p, Trace: tr, Seen: &r.load.Observations}
	result.Findings = r.guarded(options.Crash)
	result.Hash, result.Events, result.VirtualNanos = tr.Hash(), tr.Events, w.Now()
	return result
}

// guarded turns a panic into a finding: an assertion that failed is a verdict on the node.
func (r *run) guarded(crash bool) (found []verdict.Finding) {
	if !crash {
		defer func() {
			if v := recover(); v != nil {
				found = []verdict.Finding{{Class: panicClass(v), Detail: fmt.Sprint(v), At: r.world.Now()}}
				r.trace.Add(trace.Phase, 4, 0, []byte(found[0].Class))
			}
		}()
	}
	found = r.phases()
	for i := range found {
		r.trace.Add(trace.Phase, 4, 0, []byte(found[i].Class))
	}
	return found
}

func panicClass(v any) string {
	switch v.(type) {
	case assert.Failure:
		return "assertion"
	case world.Livelock:
		return "livelock"
	default:
		return "panic"
	}
}

// phases runs the plan: faults, then rest within bounds, then the read-back, then the judgement.
func (r *run) phases() []verdict.Finding {
	heal := r.plan.HealMillis * 1_000_000
	r.world.Start(r.load)
	r.load.Start()
	r.world.RunUntil(heal, r.stopped)
	r.world.Heal()
	r.world.Retire(r.plan.Gone)
	r.phase(1)
	r.world.RunUntil(heal+OperationsMax, func() bool { return r.load.Done() || r.stopped() })
	if f := r.trouble("operations", r.load.Done()); f != nil {
		return f
	}
	if r.world.Refused() != nil {
		return verdict.Judge(r.plan, &r.load.Observations)
	}
	r.load.Settle()
	drained, read := false, false
	r.load.Drain(&drained)
	r.world.RunUntil(r.world.Now()+DrainMax, func() bool { return drained || r.stopped() })
	if f := r.trouble("consumers", drained); f != nil {
		return f
	}
	r.phase(2)
	if f := r.repair(); f != nil {
		return f
	}
	if f := r.settle(); f != nil {
		return f
	}
	r.load.ReadBack(&read)
	r.world.RunUntil(r.world.Now()+ReadBackMax, func() bool { return read || r.stopped() })
	if f := r.trouble("read-back", read); f != nil {
		return f
	}
	mirrored := false
	r.load.ReadMirrors(&mirrored)
	r.world.RunUntil(r.world.Now()+MirrorMax, func() bool { return mirrored || r.stopped() })
	if f := r.trouble("mirrors", mirrored); f != nil {
		return f
	}
	r.world.RunUntil(r.world.Now()+WatchMax, func() bool { return r.load.CaughtUp() || r.stopped() })
	r.phase(3)
	r.load.Close()
	found := r.residue()
	if f := r.trouble("everything", true); f != nil {
		found = append(f, found...)
	}
	return append(found, verdict.Judge(r.plan, &r.load.Observations)...)
}

// repair lets the operator remove servers that left for good while others joined; without spares a quorum has to do
// without them.
func (r *run) repair() []verdict.Finding {
	done := r.plan.Spares == 0
	if !done {
		r.load.Repair(&done)
	}
	r.world.RunUntil(r.world.Now()+OperationsMax, func() bool { return done || r.stopped() })
	return r.trouble("the removal of servers", done)
}

// settleEvery is how much time passes between two looks at whether a cluster is at rest, which cost much.
const settleEvery = second / 10

// settle lets a cluster come to rest.
func (r *run) settle() []verdict.Finding {
	limit := r.world.Now() + SettleMax
	missing := ""
	for r.world.Now() < limit && !r.stopped() {
		if missing = r.world.Unsettled(); missing == "" {
			return nil
		}
		r.world.RunUntil(r.world.Now()+settleEvery, func() bool { return r.world.Violated() != nil })
	}
	if f := r.trouble("replicas", true); f != nil {
		return f
	}
	return []verdict.Finding{{Class: "not-settled", Detail: missing, At: r.world.Now()}}
}

// residue lets the node finish what it does on the disk, and returns what it has left there that nobody needs.
func (r *run) residue() []verdict.Finding {
	r.world.RunUntil(r.world.Now()+ResidueMax, func() bool { return r.world.Idle() || r.stopped() })
	if left := r.world.Residue(); left != "" && !r.stopped() {
		return []verdict.Finding{{Class: "residue", Detail: left, At: r.world.Now()}}
	}
	return nil
}

func (r *run) phase(n uint64) { r.trace.Add(trace.Phase, n, 0, nil) }

// stopped says that going on is pointless.
func (r *run) stopped() bool { return r.world.Refused() != nil || r.world.Violated() != nil }

// trouble returns what ended a phase early, or that it did not end in time.
func (r *run) trouble(what string, done bool) []verdict.Finding {
	finding := verdict.Finding{At: r.world.Now()}
	switch {
	case r.world.Violated() != nil:
		finding.Class, finding.Detail = r.world.Violated().Class, r.world.Violated().Detail
	case r.world.Refused() != nil && !r.world.Rotten():
		finding.Class, finding.Detail = "refuses-to-start", r.world.Refused().Error()
	case r.world.Refused() != nil || done:
		return nil
	default:
		finding.Class = "no-progress"
		finding.Detail = fmt.Sprintf("%s did not come to rest; nodes up: %d;%s", what, r.world.Up(), r.load.Waiting())
		if unsettled := r.world.Unsettled(); unsettled != "" {
			finding.Detail += "; " + unsettled
		}
	}
	return []verdict.Finding{finding}
}
