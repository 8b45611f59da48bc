package replica

import "testing"

// TestPlantsAreFound plays seeds with each fault until a property breaks, for a rare one from where it is known to. Those that
// need a rarer order of events have tests of their own.
func TestPlantsAreFound(t *testing.T) {
	plants := []struct {
		name        string
		plant       Plant
		from, seeds uint64
	}{
		{"AckBeforeSync", Plant{AckBeforeSync: true}, 0, 100},
		{"VoteBeforeSync", Plant{VoteBeforeSync: true}, 0, 100},
		{"ForgetVote", Plant{ForgetVote: true}, 0, 1000},
		{"ReadBeforeTerm", Plant{ReadBeforeTerm: true}, 0, 1000},
		{"SkipCatchUpEntry", Plant{SkipCatchUpEntry: true}, 0, 100},
		{"LearnerVotes", Plant{LearnerVotes: true}, 2200, 100},
		{"RemovedStillCounts", Plant{RemovedStillCounts: true}, 0, 1000},
		{"TwoChanges", Plant{TwoChanges: true}, 0, 1000},
		{"AcceptGap", Plant{AcceptGap: true}, 0, 300},
		{"AckBeforeCommit", Plant{AckBeforeCommit: true}, 0, 100},
	}
	if testing.Short() {
		t.Skip("plays many seeds")
	}
	for _, p := range plants {
		t.Run(p.name, func(t *testing.T) {
			for seed := p.from; seed < p.from+p.seeds; seed++ {
				o := options{members: []int{3, 5, 1, 2}[seed%4], lossy: seed%5 > 0, resize: seed%3 > 0, plant: p.plant}
				if _, broken := run(t, seed, o, 3000); broken != "" {
					t.Logf("found: %s", broken)
					return
				}
			}
			t.Errorf("%d seeds do not find it", p.seeds)
		})
	}
}
