package plan

import (
	"fmt"

	"weir/sim/keyed"
)

// Mirror is a mirror of a stream of the run.
type Mirror struct {
	// Name is its name, Stream the index of the stream that it copies.
	Name   string `json:"name"`
	Stream int    `json:"stream"`
	// Replicas is how many servers hold it; 0 is one.
	Replicas int `json:"replicas,omitempty"`
	// Key is the number of the one subject that it copies; -1 is all. StartSeq is the first sequence; 0 is the first that
	// there is.
	Key      int    `json:"key"`
	StartSeq uint64 `json:"start_seq,omitempty"`
	// AtMillis is when it is created, StepMillis are times at which its leader is asked to step down.
	AtMillis   int64   `json:"at_ms"`
	StepMillis []int64 `json:"step_ms,omitempty"`
}

// Rebirth is a stream that is deleted and created again while it has a mirror.
type Rebirth struct {
	// Name is the name of the stream, that of the mirror is "M" before it. Count is how many messages its first life has; the
	// second has one more.
	Name  string `json:"name"`
	Count int    `json:"count"`
	// Replicas is how many servers hold each of the two; 0 is one.
	Replicas int `json:"replicas,omitempty"`
	// AtMillis is when it is created, PurgeMirror says that the mirror is purged in the end.
	AtMillis    int64 `json:"at_ms"`
	PurgeMirror bool  `json:"purge,omitempty"`
}

// mirrorsMax bounds the mirrors of a plan.
const mirrorsMax = 8

// The planted faults that are about mirrors.
const (
	MirrorOfCached = "mirror-of-cached"
	MirrorByName   = "mirror-by-name"
)

// mirrors draws whether streams have mirrors. The draws have a key of their own, so that other plans stay what they were, and
// those with a planted fault have mirrors only when the fault is about them.
func (p *Plan) mirrors() {
	r := keyed.Key(p.Seed).Rand("mirrors")
	if p.Plant != MirrorOfCached && p.Plant != MirrorByName && (p.Plant != "" || p.Porcupine || !r.Chance(300)) {
		return
	}
	if r.Chance(300) {
		b := Rebirth{Name: "PHOENIX", Count: r.Below(6), AtMillis: int64(r.Below(int(p.HealMillis) + 1)), PurgeMirror: r.Chance(300)}
		if p.Nodes > 1 {
			b.Replicas = 3
		}
		p.Rebirths = append(p.Rebirths, b)
	}
	for i := range r.Between(1, 2) {
		m := Mirror{
			Name: fmt.Sprintf("MIRROR%d", i), Stream: r.Below(len(p.Streams)), Key: -1,
			AtMillis: int64(r.Below(int(p.HealMillis*3/4) + 1)),
		}
		if p.Nodes > 1 {
			m.Replicas = keyed.Pick(r, 1, 3, 3)
			if p.lasting() {
				m.Replicas = 3
			}
			for range r.Below(4) {
				m.StepMillis = append(m.StepMillis, int64(r.Below(int(p.HealMillis)+1)))
			}
		}
		if r.Chance(250) {
			m.Key = r.Below(p.Streams[m.Stream].Keys)
		}
		if r.Chance(150) {
			m.StartSeq = uint64(r.Between(1, 40))
		}
		p.Mirrors = append(p.Mirrors, m)
	}
}

// lasting says whether something of what is durable goes for good, so that one replica is not enough.
func (p *Plan) lasting() bool {
	for i := range p.Faults {
		if p.Faults[i].Damages() {
			return true
		}
	}
	return p.Gone != 0 || p.Spares > 0
}

func (p *Plan) validateMirrors() error {
	if len(p.Mirrors) > mirrorsMax || len(p.Rebirths) > 1 {
		return fmt.Errorf("%w: %d mirrors", ErrInvalid, len(p.Mirrors))
	}
	for i := range p.Mirrors {
		m := &p.Mirrors[i]
		if m.Stream < 0 || m.Stream >= len(p.Streams) || m.Key >= p.Streams[m.Stream].Keys || m.AtMillis < 0 || m.AtMillis > HealMillisMax {
			return fmt.Errorf("%w: mirror %d of stream %d", ErrInvalid, i, m.Stream)
		}
	}
	return nil
}
