package plan

import (
	"bytes"
	"testing"
)

func TestPlansOfClustersAreEqualValidAndSurviveBeingWritten(t *testing.T) {
	profiles, kinds, ops := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for seed := range uint64(300) {
		options := Options{Swarm: true, Nodes: 3 + 2*int(seed%2)}
		a, b := Generate(seed, options), Generate(seed, options)
		if !bytes.Equal(a.Encode(), b.Encode()) {
			t.Fatalf("seed %d gives two plans", seed)
		}
		if q, err := Decode(a.Encode()); err != nil || !bytes.Equal(a.Encode(), q.Encode()) {
			t.Fatalf("seed %d: %v", seed, err)
		}
		profiles[a.Profile] = true
		for i := range a.Faults {
			kinds[a.Faults[i].Kind] = true
		}
		for i := range a.Ops {
			ops[a.Ops[i].Kind] = true
		}
	}
	if len(profiles) != len(clusterTuned())+1 {
		t.Errorf("only the profiles %v come up", profiles)
	}
	for _, kind := range append(allClusterFaults, FaultLeave, FaultJoin, FaultMemory, FaultBlind) {
		if !kinds[kind] {
			t.Errorf("no plan has the fault %s", kind)
		}
	}
	for _, kind := range allClusterOps {
		if !ops[kind] {
			t.Errorf("no plan has the operation %s", kind)
		}
	}
}

// TestDurableDamageStaysWithinWhatStreamsCanLose: what takes or spoils durable bytes is on one server, and no stream has
// all its replicas there.
func TestDurableDamageStaysWithinWhatStreamsCanLose(t *testing.T) {
	for seed := range uint64(250) {
		p := Generate(seed, Options{Swarm: true, Nodes: 3})
		victims := p.Gone
		for i := range p.Faults {
			if f := &p.Faults[i]; f.Damages() || f.Kind == FaultLeave {
				victims |= f.Nodes
				if f.Leads != 0 {
					t.Fatalf("seed %d: damage of whoever leads", seed)
				}
			}
		}
		if victims == 0 {
			continue
		}
		if victims&(victims-1) != 0 {
			t.Fatalf("seed %d: damage on the servers %b", seed, victims)
		}
		for i := range p.Streams {
			if p.Streams[i].Replicas < 3 {
				t.Fatalf("seed %d: a stream with %d replicas meets durable damage", seed, p.Streams[i].Replicas)
			}
		}
		for i := range p.Ops {
			if op := &p.Ops[i]; op.Kind == OpScale && op.N < 3 {
				t.Fatalf("seed %d: a stream is made smaller than durable damage allows", seed)
			}
		}
	}
}
