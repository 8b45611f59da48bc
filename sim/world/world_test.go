package world

import (
	"testing"

	"weir/disk/memfs"
	"weir/sim/plan"
	"weir/sim/trace"
)

// recorder is a client that keeps what reaches it.
type recorder struct {
	got  []byte
	lost int
}

func (r *recorder) Receive(_ *Link, data []byte) { r.got = append(r.got, data...) }
func (r *recorder) Lost(*Link)                   { r.lost++ }
func (r *recorder) Timer(uint64, uint64)         {}

func newWorld(spoil func(*plan.Plan)) (*World, *recorder) {
	p := plan.Generate(1, plan.Options{})
	p.Faults, p.Node.DriftPPM = nil, 0
	if spoil != nil {
		spoil(p)
	}
	w, r := New(p, &trace.Trace{}), &recorder{}
	w.Start(r)
	return w, r
}

func never() bool { return false }

func TestBytesInPiecesReachTheNodeInOrder(t *testing.T) {
	w, r := newWorld(func(p *plan.Plan) { p.Net.CutPerMille = 1000 })
	l := w.Dial(0, 0)
	w.RunUntil(1_000_000_000, func() bool { return len(r.got) > 0 })
	before := len(r.got)
	w.Send(l, []byte("CONNECT {\"verbose\":false}\r\nPING\r\nPING\r\n"))
	w.RunUntil(2_000_000_000, never)
	if got := string(r.got[before:]); got != "PONG\r\nPONG\r\n" {
		t.Fatalf("the node answered %q", got)
	}
}

func TestClocksFollowDriftAndSteps(t *testing.T) {
	w, _ := newWorld(func(p *plan.Plan) {
		p.Node.DriftPPM = 100_000
		p.Faults = []plan.Fault{{AtMillis: 500, Kind: plan.FaultClock, N: -10_000}}
	})
	w.RunUntil(1_000_000_000, never)
	now := (*clock)(w.machines[0]).Now()
	if now.Mono != 1_100_000_001 {
		t.Errorf("monotone time after one second with a drift of 10 %% is %d", now.Mono)
	}
	if want := Epoch + 1_000_000_000 - 10_000_000_000; now.Wall != want {
		t.Errorf("wall time is %d, want %d", now.Wall, want)
	}
}

func TestTimersAreNotEarlyForAnyDrift(t *testing.T) {
	for _, drift := range []int64{-200_000, -1, 0, 1, 333_333} {
		w, _ := newWorld(func(p *plan.Plan) { p.Node.DriftPPM = drift })
		for _, at := range []int64{2, 999_999, 1_000_001, 79_200_000_000_001} {
			(*clock)(w.machines[0]).Wake(at)
			when := w.machines[0].wakeAt
			w.now = when
			if got := w.machines[0].mono(); got < at {
				t.Errorf("drift %d: a timer for %d fires at %d", drift, at, got)
			}
			w.now = 0
		}
	}
}

func TestCrashEndsConnectionsAndRestarts(t *testing.T) {
	w, r := newWorld(func(p *plan.Plan) {
		p.Faults = []plan.Fault{{AtMillis: 100, DurMillis: 50, Kind: plan.FaultCrash, Disk: memfs.KeepAll.String()}}
	})
	for range 20 {
		w.Dial(0, 0)
	}
	w.RunUntil(120_000_000, never)
	if w.Up() > 0 {
		t.Fatal("the node is up during its crash")
	}
	w.RunUntil(2_000_000_000, never)
	if w.Up() == 0 || w.Boots() != 2 {
		t.Fatalf("%d up after %d starts", w.Up(), w.Boots())
	}
	if r.lost == 0 {
		t.Fatal("no client learned of the crash")
	}
}

func TestPausedNodeGetsEverythingAfterwards(t *testing.T) {
	w, r := newWorld(func(p *plan.Plan) {
		p.Faults = []plan.Fault{{AtMillis: 100, DurMillis: 500, Kind: plan.FaultPause}}
	})
	l := w.Dial(0, 0)
	w.RunUntil(100_000_000, never)
	before := len(r.got)
	w.Send(l, []byte("CONNECT {\"verbose\":false}\r\nPING\r\n"))
	w.RunUntil(590_000_000, never)
	if len(r.got) != before {
		t.Fatalf("a paused node answered %q", r.got[before:])
	}
	w.RunUntil(2_000_000_000, never)
	if got := string(r.got[before:]); got != "PONG\r\n" {
		t.Fatalf("after the pause the node answered %q", got)
	}
}
