package plan

import (
	"cmp"
	"math/bits"
	"slices"

	"weir/sim/keyed"
)

// Some plans of clusters have occasions: a group changes its leader while clients look closely: those of a
// set of their own, a reader and a writer for each server, do nothing else. Without that the moments in which a leader may
// answer wrongly pass unseen: clients with a request that got lost wait for its time-out.

// occasionsOf is how many of 1000 plans have occasions.
const occasionsOf = 400

// formedMillis is about how long it takes until the cluster has formed and its streams have leaders, beside elections:
// before that there is nothing to look at.
const formedMillis = 1_500

// occasion is a time and a group to look at closely.
type occasion struct {
	at     int64 // milliseconds
	stream int
	key    int
	base   int   // the first client of the set
	term   int64 // the election timeout
}

// occasions adds them to a plan of a cluster. They draw from a source of their own, so that other plans stay as they are.
func (p *Plan) occasions() {
	r := keyed.Key(p.Seed).Rand("occasions")
	if !r.Chance(occasionsOf) || p.Porcupine || p.Clients+2*p.Nodes > ClientsMax {
		return
	}
	o := occasion{base: p.Clients, term: p.Cluster.TickMillis * int64(p.Cluster.ElectionTicks)}
	p.Clients += 2 * p.Nodes
	leases := r.Chance(400)
	if leases && !p.Cluster.ReadLease {
		p.Cluster.ReadLease = true // it trusts that clocks differ by less than a tenth
		for i := range p.Cluster.DriftsPPM {
			p.Cluster.DriftsPPM[i] /= 4
		}
	}
	o.at = 3*o.term + formedMillis
	for range r.Between(1, 3) {
		o.at += int64(r.Below(int(max(p.HealMillis/3, 1))))
		o.stream = r.Below(len(p.Streams))
		o.key = r.Below(p.Streams[o.stream].Keys)
		p.Streams[o.stream].Replicas = max(p.Streams[o.stream].Replicas, 3)
		var end int64
		if r.Chance(600) {
			end = p.strand(r, &o, leases && r.Chance(700))
		} else {
			end = p.succeed(r, &o)
		}
		p.HealMillis = max(p.HealMillis, end+10)
		o.at = end
	}
	p.inOrder()
}

func (p *Plan) inOrder() {
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return cmp.Compare(a.AtMillis, b.AtMillis) })
	slices.SortStableFunc(p.Ops, func(a, b Op) int { return cmp.Compare(a.AtMillis, b.AtMillis) })
}

// decays is how many of 1000 plans have blocks of messages decay on a server that is to lead then.
const decays = 120

// decay lets blocks of messages on one server be damaged, before anybody reads them there: the messages are not to be found
// in memory. victims chooses the server.
func (p *Plan) decay() bool {
	r := keyed.Key(p.Seed).Rand("decay")
	if !r.Chance(decays) || p.Porcupine {
		return false
	}
	p.Node.CacheBytes = 1
	p.Node.CheckpointBytes = min(p.Node.CheckpointBytes, 8<<10)
	for range r.Between(2, 4) {
		p.Faults = append(p.Faults, Fault{
			AtMillis: p.HealMillis/2 + int64(r.Below(int(p.HealMillis/2))), Kind: FaultRot, Disk: "blocks",
			DurMillis: int64(r.LogBetween(1, 300)), N: int64(r.Uint64() >> 1),
		})
	}
	p.HealMillis += 500
	p.inOrder()
	return true
}

// leadDecayed has the server whose blocks were damaged lead the streams, and then read.
func (p *Plan) leadDecayed() {
	victim, at := 0, p.HealMillis-400
	for i := range p.Faults {
		if f := &p.Faults[i]; f.Kind == FaultRot {
			victim = bits.TrailingZeros64(f.Nodes)
		}
	}
	for i := range p.Streams {
		p.Ops = append(p.Ops, Op{AtMillis: at, Client: i % p.Clients, Kind: OpStepDown, Stream: i, N: victim + 1})
	}
	p.inOrder()
}

// pauseMillisMax is less than clients wait for an answer.
const pauseMillisMax = 3_500

// strand cuts a leader off and lets it stand still until the others have another one. When it goes on it takes itself for
// the leader for a while. back steps its wall clock back by the time that it has missed.
func (p *Plan) strand(r *keyed.Rand, o *occasion, back bool) (end int64) {
	leads := uint64(firstGroup + o.stream)
	still := min(o.term*int64(r.Between(3, 6)), pauseMillisMax)
	after := 2 * o.term
	p.Faults = append(p.Faults,
		Fault{AtMillis: o.at, Kind: FaultPause, DurMillis: still, Leads: leads},
		Fault{AtMillis: o.at, Kind: FaultPartition, DurMillis: still + after, Leads: leads, Hold: r.Chance(500)})
	if back {
		p.Faults = append(p.Faults, Fault{AtMillis: o.at, Kind: FaultClock, N: -still - int64(r.Below(2000)), Leads: leads})
	}
	writes := o.term * 5 / 2
	for i := range p.Nodes {
		p.look(o, 2*i, OpPub, span{o.at + min(writes, still*3/4), o.at + still + after, max(o.term/3, 5)})
		p.look(o, 2*i+1, OpGet, span{o.at - o.term/2, o.at, max(o.term/8, 3)})
		p.look(o, 2*i+1, OpGet, span{o.at + still - 1, o.at + still + after, max(o.term/8, 3)})
	}
	return o.at + still + after
}

// succeed ends a leader that has just answered writers, so that its successor does not know what was committed last, while
// the disks of the others are slow.
func (p *Plan) succeed(r *keyed.Rand, o *occasion) (end int64) {
	end = o.at + 3*o.term
	p.Faults = append(p.Faults,
		Fault{AtMillis: o.at, Kind: FaultSlow, DurMillis: end - o.at, Nodes: 1<<p.Nodes - 1, N: int64(r.Between(5, 50))},
		Fault{AtMillis: o.at, Kind: FaultCrash, DurMillis: end - o.at, Disk: "keep-all", Leads: uint64(firstGroup + o.stream)})
	for i := range p.Nodes {
		p.look(o, 2*i, OpPub, span{o.at - o.term, o.at, max(o.term/20, 3)})
		p.look(o, 2*i+1, OpGet, span{o.at + o.term/2, end, max(o.term/20, 5)})
	}
	return end
}

// span is a time in milliseconds, and the distance between two operations in it.
type span struct{ from, to, step int64 }

// looksMax bounds the operations that one client carries out at an occasion.
const looksMax = 40

// look lets a client of the set repeat an operation.
func (p *Plan) look(o *occasion, client int, kind string, s span) {
	at := max(s.from, 0)
	for n := 0; at < s.to && n < looksMax && len(p.Ops) < OpsMax; n++ {
		op := Op{AtMillis: at, Client: o.base + client, Kind: kind, Stream: o.stream, Key: o.key}
		if kind == OpPub {
			op.N = 10
		}
		p.Ops = append(p.Ops, op)
		at += s.step
	}
}
