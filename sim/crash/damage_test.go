package crash

import "testing"

// TestDamageAloneBreaksNoPromise tries much more damage on fewer workloads, without crashes.
func TestDamageAloneBreaksNoPromise(t *testing.T) {
	r, err := Run(Options{Workloads: int(number(t, "DAMAGE_WORKLOADS", 6)), From: 5000, Damages: 400, NoCrashes: true, FailuresMax: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d workloads, %d recovered disks", r.Workloads, r.States)
	for _, f := range r.Failures {
		t.Error(f)
	}
}
