package plan

import (
	"bytes"
	"errors"
	"testing"
)

func TestEqualSeedsGiveEqualPlans(t *testing.T) {
	profiles := map[string]bool{}
	for seed := range uint64(300) {
		a, b := Generate(seed, Options{Swarm: true}), Generate(seed, Options{Swarm: true})
		if !bytes.Equal(a.Encode(), b.Encode()) {
			t.Fatalf("seed %d gives two plans", seed)
		}
		if err := a.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		profiles[a.Profile] = true
	}
	if len(profiles) < 9 {
		t.Fatalf("only the profiles %v come up", profiles)
	}
}

func TestPlansSurviveBeingWritten(t *testing.T) {
	for seed := range uint64(50) {
		p := Generate(seed, Options{})
		q, err := Decode(p.Encode())
		if err != nil || !bytes.Equal(p.Encode(), q.Encode()) {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func TestPlansThatCannotRunAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(*Plan){
		"version":  func(p *Plan) { p.V = 2 },
		"clients":  func(p *Plan) { p.Clients = 0 },
		"client":   func(p *Plan) { p.Ops[0].Client = p.Clients },
		"stream":   func(p *Plan) { p.Ops[0].Stream = 9 },
		"streams":  func(p *Plan) { p.Streams = nil },
		"sector":   func(p *Plan) { p.Disk.SectorBytes = 100 },
		"consumer": func(p *Plan) { p.Ops[0].Kind, p.Ops[0].Consumer = OpFetch, 99 },
	} {
		p := Generate(1, Options{})
		spoil(p)
		if _, err := Decode(p.Encode()); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
