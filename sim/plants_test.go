package sim

import (
	"testing"

	"weir/sim/plan"
	"weir/sim/world"
)

// caughtBy is a seed that catches each planted fault of clusters. A change of the generator or of the node may need others:
// `weir sim --plant NAME` finds them. Those that are missing are rare: sweeps look for them.
var caughtBy = map[string]uint64{
	"commit-earlier-term": 0, "forgotten-vote": 2, "read-before-noop": 34, "read-old-leader": 100,
	"read-without-quorum": 100, "skip-catch-up-entry": 0, "learner-votes": 0, "removed-counts": 4, "two-changes": 0,
	"accept-gap": 0, "ack-before-commit": 0, "snapshot-without-deletes": 59, "snapshot-without-dedup": 0,
	"damaged-checkpoint-is-empty": 24, "deliver-before-commit": 0, "own-clock": 9, "failed-id-kept": 56,
	"purge-moves-cursor": 19, "digest-without-consumers": 0, "stale-incarnation": 302,
	"damaged-block-is-end": 126, "lease-jump": 148, "no-space-is-success": 111,
}

func TestPlantedFaultsOfClustersAreStillCaught(t *testing.T) {
	for _, planted := range world.Plants() {
		seed, known := caughtBy[planted.Name]
		if !known {
			continue
		}
		t.Run(planted.Name, func(t *testing.T) {
			options := plan.Options{Plant: planted.Name, Swarm: true, Nodes: world.PlantNodes(planted.Name)}
			r := Run(plan.Generate(seed, options), Options{})
			if r.Class() == "" {
				t.Fatalf("not caught by seed %d: a node that %s", seed, planted.What)
			}
			t.Logf("%s: %s", r.Class(), r.Findings[0].Detail)
		})
	}
}
