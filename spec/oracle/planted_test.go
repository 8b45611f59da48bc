package oracle_test

import (
	"flag"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"weir/model/consumer"
	"weir/model/stream"
)

// verdict stands in for the test of a check that is meant to fail.
type verdict struct {
	testing.TB
	failed bool
}

func (v *verdict) Helper()               {}
func (v *verdict) Name() string          { return "planted" }
func (v *verdict) Logf(string, ...any)   {}
func (v *verdict) Log(...any)            {}
func (v *verdict) Errorf(string, ...any) { v.failed = true }
func (v *verdict) Error(...any)          { v.failed = true }
func (v *verdict) Fail()                 { v.failed = true }
func (v *verdict) Failed() bool          { return v.failed }
func (v *verdict) Fatalf(string, ...any) { v.FailNow() }
func (v *verdict) Fatal(...any)          { v.FailNow() }

func (v *verdict) FailNow() {
	v.failed = true
	runtime.Goexit()
}

// TestPlantedFaultsAreFound proves that the comparison of machine and oracle is able to fail.
func TestPlantedFaultsAreFound(t *testing.T) {
	shrink := flag.Lookup("rapid.shrinktime").Value
	before := shrink.String()
	if err := shrink.Set("0s"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := shrink.Set(before); err != nil {
			t.Error(err)
		}
	}()
	plants := map[string]stream.Plant{
		"duplicate window lost at restart":        {LoseDedup: true},
		"limit per subject off by one":            {LoosePerSubject: true},
		"entry applied twice after restart":       {ApplyTwice: true},
		"ack floor ahead of its acknowledgements": {Consumer: consumer.Plant{AckFloorAhead: true}},
	}
	for name, plant := range plants { // order-free: the cases are independent
		v := &verdict{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			// Twice the usual number of runs: a fault that this many do not find is as good as hidden.
			for range 2 {
				rapid.Check(v, func(t *rapid.T) { runMachine(t, plant) })
			}
		}()
		<-done
		if !v.failed {
			t.Errorf("not found: %s", name)
		}
	}
}
