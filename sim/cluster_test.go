package sim

import (
	"testing"

	"weir/linearizability/history"
	"weir/sim/plan"
	"weir/sim/shrink"
	"weir/sim/world"
)

// clusterSeeds is how many seeds of clusters the test runs; `weir sim --nodes 3` runs more.
const clusterSeeds = 8

func TestClustersPassAndRepeatByteForByte(t *testing.T) {
	for seed := range uint64(clusterSeeds) {
		options := plan.Options{Swarm: true, Nodes: 3 + 2*int(seed%4/3)}
		first := Run(plan.Generate(seed, options), Options{})
		if class := first.Class(); class != "" {
			t.Errorf("seed %d on %d nodes: %s: %s", seed, options.Nodes, class, first.Findings[0].Detail)
			continue
		}
		if second := Run(plan.Generate(seed, options), Options{Keep: true}); second.Hash != first.Hash {
			t.Errorf("seed %d on %d nodes has the hashes %016x and %016x", seed, options.Nodes, first.Hash, second.Hash)
		}
	}
}

// TestCalmClusterLosesNothing runs plans without faults: what clients of any server ask is answered.
func TestCalmClusterLosesNothing(t *testing.T) {
	calmly(t, plan.Generate(3, plan.Options{Nodes: 3, Profile: "calm"}))
}

// TestClientsOfAServerWithoutJetStreamAreAnswered has one of five servers without JetStream, to which a fifth of the clients
// are connected.
func TestClientsOfAServerWithoutJetStreamAreAnswered(t *testing.T) {
	for bare := 1; bare <= 5; bare += 2 {
		p := plan.Generate(3, plan.Options{Nodes: 5, Profile: "calm"})
		p.Cluster.Bare = bare
		for i := range p.Streams {
			p.Streams[i].Replicas = min(p.Streams[i].Replicas, p.Founders())
		}
		calmly(t, p)
	}
}

// TestPublishesAreAnsweredWhileLeadersStepDown has leaders of streams and of the catalog asked to step down all the time,
// without any fault.
func TestPublishesAreAnsweredWhileLeadersStepDown(t *testing.T) {
	publishes := 0
	for seed := range uint64(4) {
		p := plan.Generate(seed, plan.Options{Nodes: 3, Profile: "calm"})
		p.Faults, p.Gone, p.Spares, p.AnswerMillis = nil, 0, 0, 4_000
		p.Cluster.LossPerMille, p.Cluster.LatePerMille, p.Cluster.ResetPerMille = 0, 0, 0
		for i := range p.Streams {
			p.Streams[i].Replicas = 3
		}
		for i := range p.Ops {
			if op := &p.Ops[i]; i%9 == 0 {
				op.Kind, op.N = plan.OpStepDown, p.Nodes
			} else if i%2 == 0 {
				op.Kind, op.Key, op.N, op.Expect = plan.OpPub, 0, 10, ""
			}
		}
		r := Run(p, Options{})
		if class := r.Class(); class != "" {
			t.Fatalf("seed %d: %s: %s", seed, class, r.Findings[0].Detail)
		}
		for i := range r.Seen.History.Records {
			record := &r.Seen.History.Records[i]
			if record.Kind != history.Publish {
				continue
			}
			publishes++
			if record.Outcome == history.Unknown {
				t.Errorf("seed %d: publish %d at %d has no answer", seed, record.ID, record.Call)
			}
		}
	}
	if publishes < 100 {
		t.Fatalf("%d publishes", publishes)
	}
}

// calmly runs a plan without its faults, and fails when more than a few operations stay without an answer.
func calmly(t *testing.T, p *plan.Plan) {
	t.Helper()
	p.Faults, p.Gone, p.Spares = nil, 0, 0
	p.Cluster.LossPerMille, p.Cluster.LatePerMille, p.Cluster.ResetPerMille = 0, 0, 0
	r := Run(p, Options{})
	if class := r.Class(); class != "" {
		t.Fatalf("%s: %s", class, r.Findings[0].Detail)
	}
	answered := 0
	for i := range r.Seen.History.Records {
		if r.Seen.History.Records[i].Outcome != 0 {
			answered++
		}
	}
	if answered == 0 || answered*100 < len(r.Seen.History.Records)*95 {
		t.Fatalf("%d of %d operations have an answer", answered, len(r.Seen.History.Records))
	}
}

// sentinels are planted faults of clusters that a few seeds have to catch.
var sentinels = []string{"forgotten-vote", "skip-catch-up-entry", "learner-votes", "two-changes", "accept-gap", "ack-before-commit",
	"digest-without-consumers"}

// sentinelSeeds is within how many seeds they have to be caught here; the promise for all is 300.
const sentinelSeeds = 20

func TestSentinelFaultsOfClustersAreCaughtSoon(t *testing.T) {
	for _, name := range sentinels {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(sentinelSeeds) {
				options := plan.Options{Plant: name, Swarm: true, Nodes: world.PlantNodes(name)}
				if r := Run(plan.Generate(seed, options), Options{}); r.Class() != "" {
					return
				}
			}
			t.Fatalf("not caught within %d seeds", sentinelSeeds)
		})
	}
}

// TestFailingClusterIsMadeSmaller shrinks a plan of five nodes that a planted fault fails.
func TestFailingClusterIsMadeSmaller(t *testing.T) {
	p := plan.Generate(0, plan.Options{Plant: "accept-gap", Nodes: 5})
	class := Run(p, Options{}).Class()
	if class == "" {
		t.Fatal("the plan does not fail")
	}
	small, _ := shrink.Shrink(p, class, 60, func(p *plan.Plan) string { return Run(p, Options{}).Class() })
	if small.Nodes >= p.Nodes && len(small.Ops) >= len(p.Ops) {
		t.Fatalf("%d nodes and %d operations are left", small.Nodes, len(small.Ops))
	}
}
