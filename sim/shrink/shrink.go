// Package shrink makes failing plans smaller by leaving things out (delta debugging, Zeller and Hildebrandt 2002).
//
// Draws are keyed by content, so that what is left of a plan mostly goes on as before. The package promises a plan that
// fails in the same way as the one given, by no more runs than the budget. It does not promise the smallest one.
package shrink

import (
	"weir/sim/plan"
)

// shrinker is one search.
type shrinker struct {
	best   *plan.Plan
	class  string
	judge  func(*plan.Plan) string
	budget int
	runs   int
}

// Shrink returns a smaller plan that fails with the same class, and how many runs that took. judge runs a plan and
// returns the class of its failure, "" when it passes.
func Shrink(p *plan.Plan, class string, budget int, judge func(*plan.Plan) string) (*plan.Plan, int) {
	s := &shrinker{best: p.Clone(), class: class, judge: judge, budget: budget}
	s.best.Profile += "-shrunk"
	for before := -1; before != s.size() && s.runs < s.budget; {
		before = s.size()
		s.cut(func(p *plan.Plan) int { return len(p.Faults) }, func(p *plan.Plan, lo, hi int) {
			p.Faults = append(p.Faults[:lo:lo], p.Faults[hi:]...)
		})
		s.cut(func(p *plan.Plan) int { return len(p.Ops) }, func(p *plan.Plan, lo, hi int) {
			p.Ops = append(p.Ops[:lo:lo], p.Ops[hi:]...)
		})
		s.cut(func(p *plan.Plan) int { return len(p.Mirrors) }, func(p *plan.Plan, lo, hi int) {
			p.Mirrors = append(p.Mirrors[:lo:lo], p.Mirrors[hi:]...)
		})
		s.cut(func(p *plan.Plan) int { return len(p.Rebirths) }, func(p *plan.Plan, lo, hi int) {
			p.Rebirths = append(p.Rebirths[:lo:lo], p.Rebirths[hi:]...)
		})
		s.nodes()
		s.clients()
		s.consumers()
		s.knobs()
	}
	return s.best, s.runs
}

func (s *shrinker) size() int {
	return len(s.best.Ops) + len(s.best.Faults) + len(s.best.Consumers) + len(s.best.Mirrors) + len(s.best.Rebirths) + s.best.Clients + s.best.Machines()
}

// try keeps a candidate if it can be run and fails in the same way.
func (s *shrinker) try(candidate *plan.Plan) bool {
	if s.runs >= s.budget || candidate.Validate() != nil {
		return false
	}
	s.runs++
	if s.judge(candidate) != s.class {
		return false
	}
	s.best = candidate
	return true
}

// cut leaves out ranges of a list, halving the range until single elements.
func (s *shrinker) cut(length func(*plan.Plan) int, remove func(p *plan.Plan, lo, hi int)) {
	for chunk := length(s.best); chunk >= 1; chunk /= 2 {
		for lo := 0; lo < length(s.best); {
			candidate := s.best.Clone()
			remove(candidate, lo, min(lo+chunk, length(s.best)))
			if !s.try(candidate) {
				lo += chunk
			}
			if s.runs >= s.budget {
				return
			}
		}
	}
}

// quorumNodes is the smallest cluster that can lose a server.
const quorumNodes = 3

// nodes takes servers away, two at a time at first, as long as the rest fails in the same way.
func (s *shrinker) nodes() {
	for fewer := 2; fewer > 0; {
		candidate := s.best.Clone()
		if candidate.Spares > 0 {
			candidate.Spares--
		} else {
			candidate.Nodes -= fewer
		}
		if candidate.Nodes < quorumNodes {
			fewer--
			continue
		}
		all := uint64(1)<<candidate.Machines() - 1
		candidate.Gone &= all
		for i := range candidate.Faults {
			if f := &candidate.Faults[i]; f.Nodes != 0 {
				f.Nodes = max(f.Nodes&all, 1)
			}
		}
		for i := range candidate.Streams {
			candidate.Streams[i].Replicas = min(candidate.Streams[i].Replicas, candidate.Nodes)
		}
		for i := range candidate.Mirrors {
			candidate.Mirrors[i].Replicas = min(candidate.Mirrors[i].Replicas, candidate.Nodes)
		}
		for i := range candidate.Rebirths {
			candidate.Rebirths[i].Replicas = min(candidate.Rebirths[i].Replicas, candidate.Nodes)
		}
		for i := range candidate.Ops {
			if op := &candidate.Ops[i]; op.Kind == plan.OpScale || op.Kind == plan.OpPeerRemove {
				op.N = min(op.N, candidate.Nodes)
			}
		}
		if !s.try(candidate) {
			fewer--
		}
	}
}

// clients moves the operations of the last client to the first one, as long as that still fails.
func (s *shrinker) clients() {
	for s.best.Clients > 1 {
		candidate := s.best.Clone()
		candidate.Clients--
		for i := range candidate.Ops {
			if candidate.Ops[i].Client == candidate.Clients {
				candidate.Ops[i].Client = 0
			}
		}
		if !s.try(candidate) {
			return
		}
	}
}

// consumers leaves out consumers at the end of the list with their operations.
func (s *shrinker) consumers() {
	for n := len(s.best.Consumers) - 1; n >= 0; n-- {
		candidate := s.best.Clone()
		candidate.Consumers = candidate.Consumers[:n]
		var ops []plan.Op
		for _, op := range candidate.Ops {
			if op.Kind != plan.OpFetch && op.Kind != plan.OpConsumer || op.Consumer < n {
				ops = append(ops, op)
			}
		}
		candidate.Ops = ops
		if !s.try(candidate) {
			return
		}
	}
}

// knobs brings single settings to their plain values.
func (s *shrinker) knobs() {
	for _, plain := range []func(*plan.Plan){
		func(p *plan.Plan) { p.Tie = "fifo" },
		func(p *plan.Plan) { p.Net.CutPerMille = 0 },
		func(p *plan.Plan) { p.Node.DriftPPM, p.Cluster.DriftsPPM = 0, nil },
		func(p *plan.Plan) { p.Gone = 0 },
		func(p *plan.Plan) { p.Cluster.LossPerMille, p.Cluster.DupPerMille = 0, 0 },
		func(p *plan.Plan) { p.Cluster.LatePerMille, p.Cluster.ResetPerMille = 0, 0 },
		func(p *plan.Plan) { p.Cluster.Ordered = true },
		func(p *plan.Plan) { p.Cluster.LogTailBytes = 1 << 20 },
		func(p *plan.Plan) { p.Node.CheckpointBytes = 1 << 20 },
		func(p *plan.Plan) {
			for i := range p.Faults {
				if p.Faults[i].Kind == plan.FaultCrash {
					p.Faults[i].Disk, p.Faults[i].Again = "lose-all", 0
				}
			}
		},
		func(p *plan.Plan) {
			for i := range p.Ops {
				p.Ops[i].N = min(p.Ops[i].N, 1)
			}
		},
	} {
		candidate := s.best.Clone()
		plain(candidate)
		if string(candidate.Encode()) != string(s.best.Encode()) {
			s.try(candidate)
		}
	}
}
