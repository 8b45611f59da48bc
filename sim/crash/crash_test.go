package crash

import "testing"

func TestCrashesAndDamageBreakNoPromise(t *testing.T) {
	r, err := Run(Options{Workloads: 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d workloads, %d calls, %d recovered disks", r.Workloads, r.Calls, r.States)
	for _, f := range r.Failures {
		t.Error(f)
	}
	if r.States < 1000 {
		t.Errorf("only %d states", r.States)
	}
}

func TestEveryPlantIsCaught(t *testing.T) {
	for _, plant := range Plants() {
		r, err := Run(Options{Workloads: 40, Plant: plant})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Failures) == 0 {
			t.Errorf("%s is not caught in %d states", plant, r.States)
			continue
		}
		t.Logf("%s: %s", plant, r.Failures[0])
	}
}

func TestUnknownPlantIsRefused(t *testing.T) {
	if _, err := Run(Options{Plant: "nonsense"}); err == nil {
		t.Fatal("accepted")
	}
}
