package sim

import (
	"testing"

	"weir/sim/plan"
	"weir/sim/world"
)

// caughtBy is a seed that catches each planted fault of clusters. A change of the generator or of the node may need others:
// `weir sim --plant NAME` finds them.
var caughtBy = map[string]uint64{
	"commit-earlier-term": 0, "forgotten-vote": 2, "read-before-noop": 2, "read-old-leader": 203,
	"read-without-quorum": 203, "skip-catch-up-entry": 0, "learner-votes": 0, "removed-counts": 2, "two-changes": 0,
	"accept-gap": 0, "ack-before-commit": 0, "snapshot-without-deletes": 7, "snapshot-without-dedup": 0,
	"damaged-checkpoint-is-empty": 24, "deliver-before-commit": 0, "own-clock": 9, "failed-id-kept": 6,
	"purge-moves-cursor": 19, "digest-without-consumers": 0, "stale-incarnation": 211,
	"damaged-block-is-end": 13, "lease-jump": 148, "no-space-is-success": 111, "vote-before-sync": 0, "wiped-keeps-identity": 0,
}

func TestPlantedFaultsOfClustersAreStillCaught(t *testing.T) {
	for _, planted := range world.Plants() {
		if !planted.Cluster {
			continue
		}
		t.Run(planted.Name, func(t *testing.T) {
			seed, known := caughtBy[planted.Name]
			if !known {
				t.Fatal("no seed is known that catches it")
			}
			options := plan.Options{Plant: planted.Name, Swarm: true, Nodes: world.PlantNodes(planted.Name)}
			r := Run(plan.Generate(seed, options), Options{})
			if r.Class() == "" {
				t.Fatalf("not caught by seed %d: a node that %s", seed, planted.What)
			}
			t.Logf("%s: %s", r.Class(), r.Findings[0].Detail)
		})
	}
}
