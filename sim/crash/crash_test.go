package crash

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(800)    // little is kept, much is thrown away
	runtime.MemProfileRate = 0 // a long run comes by so many stacks that each collection would take longer than the last
	os.Exit(m.Run())
}

// number reads a setting of a long run from the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// batch is how many workloads a part of the long run has: with -v each part reports when it is through.
const batch = 20

// TestCrashesAndDamageBreakNoPromise runs a few workloads; CRASH_WORKLOADS=1000 and CRASH_FROM ask for others.
func TestCrashesAndDamageBreakNoPromise(t *testing.T) {
	from, workloads := number(t, "CRASH_FROM", 0), number(t, "CRASH_WORKLOADS", 4)
	for first := from; first < from+workloads; first += batch {
		last := min(first+batch, from+workloads) - 1
		t.Run(fmt.Sprintf("%d-%d", first, last), func(t *testing.T) {
			t.Parallel()
			r, err := Run(Options{Workloads: int(last - first + 1), From: first, FailuresMax: 3})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d workloads, %d calls, %d images, %d recovered disks", r.Workloads, r.Calls, r.Images, r.States)
			for _, f := range r.Failures {
				t.Error(f)
			}
			if r.States < 100*r.Workloads {
				t.Errorf("only %d states", r.States)
			}
		})
	}
}

// TestWorkloadsThatFailedOnce runs workloads that have found a fault of the storage:
// 529: of a block pieces were staged, then the replica wrote it itself; the pieces were installed over it.
func TestWorkloadsThatFailedOnce(t *testing.T) {
	for _, number := range []uint64{529} {
		r, err := Run(Options{Workloads: 1, From: number})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Failures {
			t.Error(f)
		}
	}
}

// caughtBy are workloads that catch a fault that few others do, to save the time of finding them.
var caughtBy = map[string]uint64{"switch-early": 8, "move-early": 1}

func TestEveryPlantIsCaught(t *testing.T) {
	for _, plant := range Plants() {
		r, err := Run(Options{Workloads: 40, From: caughtBy[plant], Plant: plant})
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
