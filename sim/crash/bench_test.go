package crash

import "testing"

func BenchmarkStates(b *testing.B) {
	states := 0
	for i := 0; b.Loop(); i++ {
		r, err := Run(Options{Workloads: 1, From: uint64(i)})
		if err != nil || len(r.Failures) > 0 {
			b.Fatal(err, r.Failures)
		}
		states += r.States
	}
	b.ReportMetric(float64(states)/b.Elapsed().Seconds(), "states/s")
}
