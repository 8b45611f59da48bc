package simulate

import (
	"context"
	"fmt"
	"iter"

	"weir/sim"
	"weir/sim/plan"
)

// nondeterministic is the class of a seed whose two runs differ.
const nondeterministic = "nondeterministic"

// inOrder runs the seeds on several goroutines, each run on one of them, and yields the outcomes in the order of the
// seeds. It stops early when the caller does or the context ends.
func inOrder(ctx context.Context, o Options, generate func(uint64) *plan.Plan) iter.Seq[outcome] {
	return func(yield func(outcome) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		// The queue of results is what bounds how far the workers run ahead.
		queue := make(chan chan outcome, 4*o.Procs)
		jobs := make(chan func())
		for range o.Procs {
			go func() {
				for job := range jobs {
					job()
				}
			}()
		}
		go func() {
			defer close(queue)
			defer close(jobs)
			for i := range o.Seeds {
				result := make(chan outcome, 1)
				seed := o.From + i
				select {
				case queue <- result:
				case <-ctx.Done():
					return
				}
				select {
				case jobs <- func() { result <- judge(generate(seed), o.Twice || seed%twiceEach == 0) }:
				case <-ctx.Done():
					return
				}
			}
		}()
		for result := range queue {
			select {
			case r := <-result:
				if !yield(r) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// judge runs a plan once, or twice when that is asked for or the first run fails.
func judge(p *plan.Plan, twice bool) outcome {
	result := sim.Run(p, sim.Options{})
	r := outcome{seed: p.Seed, hash: result.Hash, profile: p.Profile}
	if len(result.Findings) > 0 {
		f := result.Findings[0]
		r.class, r.detail, r.atNanos = f.Class, f.Detail, f.At
	}
	if twice || r.class != "" {
		if again := sim.Run(p, sim.Options{}); again.Hash != r.hash {
			r.class = nondeterministic
			r.detail = fmt.Sprintf("one run has the hash %016x, the other %016x", r.hash, again.Hash)
		}
	}
	return r
}
