package sim

import (
	"os"
	"path/filepath"
	"testing"

	"weir/sim/plan"
	"weir/sim/world"
)

// seeds is how many seeds the test runs; `weir sim` runs more.
const seeds = 60

func TestSeedsPassAndRepeatByteForByte(t *testing.T) {
	for seed := range uint64(seeds) {
		options := plan.Options{Swarm: true}
		first := Run(plan.Generate(seed, options), Options{})
		if class := first.Class(); class != "" {
			t.Errorf("seed %d: %s: %s", seed, class, first.Findings[0].Detail)
			continue
		}
		if second := Run(plan.Generate(seed, options), Options{Keep: true}); second.Hash != first.Hash {
			t.Errorf("seed %d has the hashes %016x and %016x", seed, first.Hash, second.Hash)
		}
	}
}

func TestDifferentSeedsAreDifferentRuns(t *testing.T) {
	hashes := map[uint64]uint64{}
	for seed := range uint64(10) {
		hash := Run(plan.Generate(seed, plan.Options{}), Options{}).Hash
		if other, twice := hashes[hash]; twice {
			t.Fatalf("seeds %d and %d have one hash", other, seed)
		}
		hashes[hash] = seed
	}
}

// TestPlansThatFailedOnceStayFixed replays the corpus: plans that a defect once failed, made small.
func TestPlansThatFailedOnceStayFixed(t *testing.T) {
	files, err := filepath.Glob("testdata/seeds/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			if r := Run(p, Options{}); r.Class() != "" {
				t.Fatalf("%s: %s", r.Class(), r.Findings[0].Detail)
			}
		})
	}
}

// plantSeeds is within how many seeds each planted fault has to be caught here; the promise is 500.
const plantSeeds = 200

func TestPlantedFaultsAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("runs many seeds")
	}
	for _, planted := range world.Plants() {
		if planted.Cluster {
			continue // a known seed each in plants_test.go; sweeps take too long here
		}
		t.Run(planted.Name, func(t *testing.T) {
			for seed := range uint64(plantSeeds) {
				options := plan.Options{Plant: planted.Name, Swarm: true, Nodes: world.PlantNodes(planted.Name)}
				r := Run(plan.Generate(seed, options), Options{})
				if class := r.Class(); class != "" {
					t.Logf("caught by seed %d: %s: %s", seed, class, r.Findings[0].Detail)
					return
				}
			}
			t.Fatalf("not caught within %d seeds: a node that %s", plantSeeds, planted.What)
		})
	}
}
