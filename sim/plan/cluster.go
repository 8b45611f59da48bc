package plan

import (
	"cmp"
	"slices"

	"weir/sim/keyed"
)

// allClusterFaults and allClusterOps extend the groups of a single server.
var (
	allClusterFaults = append(allFaults[:len(allFaults):len(allFaults)],
		FaultPartition, FaultGray, FaultLoss, FaultSessions, FaultWipe, FaultStray)
	allClusterOps = append(allOps[:len(allOps):len(allOps)], OpStepDown, OpScale, OpPeerRemove, OpMetaStepDown)
)

// everyClusterOp is everyOp with the operations of administrators.
func everyClusterOp() map[string]int {
	mix := everyOp()
	mix[OpStepDown], mix[OpMetaStepDown], mix[OpScale], mix[OpPeerRemove] = 1, 1, 1, 1
	return mix
}

// clusterDensity is how many times more operations a cluster gets: what matters of them happens while leadership moves.
const clusterDensity = 3

// Profiles of clusters that change knobs as well.
const (
	reads     = "reads"
	snapshots = "snapshots"
	members   = "members"
)

// clusterTuned returns the profiles made for one kind of trouble of clusters each.
func clusterTuned() []profile {
	return []profile{
		{"crashes", 8, 200, map[string]int{FaultCrash: 10, FaultReset: 1, FaultSessions: 1, FaultStop: 1}, everyClusterOp()},
		{"partitions", 8, 200, map[string]int{FaultPartition: 10, FaultSessions: 2, FaultLoss: 1}, everyClusterOp()},
		{"crashes-and-partitions", 10, 200, map[string]int{FaultCrash: 5, FaultPartition: 5, FaultPause: 2}, everyClusterOp()},
		{"pauses", 7, 180, map[string]int{FaultPause: 6, FaultGray: 3, FaultSlow: 3, FaultCrash: 1}, everyClusterOp()},
		{"disk-trouble", 5, 160, map[string]int{FaultCrash: 3, FaultError: 4, FaultNoSpace: 3, FaultSlow: 3}, everyClusterOp()},
		{"clocks", 7, 180, map[string]int{FaultClock: 5, FaultCrash: 2, FaultPause: 2, FaultPartition: 2}, everyClusterOp()},
		{snapshots, 7, 220, map[string]int{FaultCrash: 4, FaultPartition: 4, FaultWipe: 1}, everyClusterOp()},
		{reads, 12, 260, map[string]int{FaultPartition: 6, FaultPause: 4, FaultCrash: 3, FaultClock: 1},
			map[string]int{OpPub: 40, OpGet: 40, OpMsgGet: 5, OpInfo: 10, OpSeq: 5, OpStepDown: 2}},
		{"consumers", 7, 240, map[string]int{FaultCrash: 5, FaultPartition: 4, FaultReset: 3, FaultPause: 2},
			map[string]int{OpPub: 40, OpFetch: 60, OpInfo: 1, OpDelete: 1, OpPurge: 1, OpConsumer: 10, OpStepDown: 2}},
		{members, 6, 180, map[string]int{FaultCrash: 4, FaultPartition: 3, FaultPause: 1},
			map[string]int{OpPub: 60, OpGet: 10, OpFetch: 15, OpInfo: 2, OpScale: 8, OpStepDown: 4, OpMetaStepDown: 2, OpPeerRemove: 4, OpScratch: 2}},
		{"damage", 5, 160, map[string]int{FaultRot: 5, FaultStray: 2, FaultCrash: 3, FaultWipe: 2, FaultPartition: 1}, everyClusterOp()},
		{"calm", 0, 260, map[string]int{FaultSlow: 1}, everyClusterOp()},
	}
}

// cluster draws the knobs of a cluster and the replicas of its streams.
func (p *Plan) cluster(r *keyed.Rand, nodes int) {
	p.Nodes = nodes
	p.Cluster = Cluster{
		TickMillis: int64(r.LogBetween(10, 100)), ElectionTicks: r.Between(5, 12),
		LogTailBytes:     keyed.Pick(r, 1<<10, 8<<10, 64<<10, 1<<20),
		LatencyMinMicros: int64(r.LogBetween(20, 500)), LatencyMeanMicros: int64(r.LogBetween(50, 5_000)),
		Ordered: r.Chance(500),
	}
	c := &p.Cluster
	if !c.Ordered {
		c.LossPerMille = uint64(keyed.Pick(r, 0, 0, r.LogBetween(1, 200)))
		c.DupPerMille = uint64(keyed.Pick(r, 0, 0, r.LogBetween(1, 300)))
		if r.Chance(400) {
			c.LatePerMille, c.LateMeanMillis = uint64(r.LogBetween(1, 50)), int64(r.LogBetween(100, 10_000))
		}
	}
	if r.Chance(200) {
		c.ResetPerMille = uint64(r.LogBetween(1, 5))
	}
	if p.Node.DriftPPM != 0 {
		p.Node.DriftPPM = 0
		for range nodes {
			c.DriftsPPM = append(c.DriftsPPM, int64(r.Between(-200_000, 200_000)))
		}
	}
	if r.Chance(200) {
		c.ReadLease = true // it trusts that clocks differ by less than a tenth
		for i := range c.DriftsPPM {
			c.DriftsPPM[i] /= 4
		}
	}
	for i := range p.Streams {
		p.Streams[i].Replicas = keyed.Pick(r, 1, 3, 3, 3, nodes)
	}
	if p.Profile == reads {
		p.Streams[0].Keys, p.Streams[0].Replicas = min(p.Streams[0].Keys, 3), 3
	}
	if p.Profile == snapshots {
		p.Node.CheckpointBytes, c.LogTailBytes = keyed.Pick(r, 1<<10, 4<<10), 1<<10
	}
}

// victims keeps damage of what is durable to as few servers as every stream can lose: half of its replicas, rounded down.
// Streams that could lose none get more replicas, and are not made smaller.
func (p *Plan) victims(r *keyed.Rand) {
	damaged := false
	for i := range p.Faults {
		damaged = damaged || p.Faults[i].Damages()
	}
	victim := uint64(1) << r.Below(p.Nodes)
	if r.Chance(150) {
		damaged = true
		p.replace(r, victim)
	} else if r.Chance(200) {
		damaged = true
		p.Gone = victim
	}
	if !damaged {
		return
	}
	for i := range p.Faults {
		if f := &p.Faults[i]; f.Damages() {
			f.Nodes, f.Leads = victim, 0
		}
	}
	for i := range p.Streams {
		p.Streams[i].Replicas = max(p.Streams[i].Replicas, 3)
	}
	for i := range p.Ops {
		if op := &p.Ops[i]; op.Kind == OpScale {
			op.N = max(op.N, 3)
		}
	}
}

// replace lets a server leave for good, and another one, that nobody has seen before, join in its place.
func (p *Plan) replace(r *keyed.Rand, victim uint64) {
	p.Spares = 1
	leave := Fault{AtMillis: int64(r.Below(int(p.HealMillis))), Kind: FaultLeave, Nodes: victim}
	join := Fault{AtMillis: int64(r.Below(int(p.HealMillis))), Kind: FaultJoin, Nodes: 1 << p.Nodes}
	// A cluster is founded by all its servers: none leaves before that.
	leave.AtMillis = max(leave.AtMillis, p.HealMillis/2)
	// One that joins before that would found it with some of the others.
	join.AtMillis = max(join.AtMillis, p.HealMillis/4)
	p.Faults = append(p.Faults, leave, join)
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return cmp.Compare(a.AtMillis, b.AtMillis) })
}

// The smallest cluster with a server that has no JetStream, and how often of 1000 times there is one.
const (
	bareNodes = 5
	bareOf    = 250
)

// bare leaves one server of some clusters without JetStream: its clients reach streams through the others. Its draws are its
// own, so that plans without such a server are what they were.
func (p *Plan) bare() {
	r := keyed.Key(p.Seed).Rand("bare")
	if p.Nodes < bareNodes || !r.Chance(bareOf) {
		return
	}
	p.Cluster.Bare = 1 + r.Below(p.Nodes)
	for i := range p.Streams {
		p.Streams[i].Replicas = min(p.Streams[i].Replicas, p.Founders())
	}
	for i := range p.Ops {
		if op := &p.Ops[i]; op.Kind == OpScale {
			op.N = min(op.N, p.Founders())
		}
	}
}

// The catalog and the first stream are the groups that faults aim at most.
const (
	catalogGroup = 1
	firstGroup   = 16
)

// aim draws which servers a fault of a cluster is about.
func (p *Plan) aim(r *keyed.Rand, f *Fault) {
	if p.Profile == reads && f.Kind != FaultClock {
		p.depose(r, f)
		return
	}
	switch r.Below(10) {
	case 0, 1, 2:
		f.Leads = uint64(firstGroup + r.Below(len(p.Streams)))
	case 3:
		f.Leads = catalogGroup
	case 4, 5, 6:
		f.Nodes = 1 << r.Below(p.Nodes)
	case 7:
		f.Nodes = 1<<p.Nodes - 1
	default:
		f.Nodes = 1 + uint64(r.Below(1<<p.Nodes-1))
	}
	switch f.Kind {
	case FaultPartition:
		f.On = keyed.Pick(r, ShapeBoth, ShapeBoth, ShapeBoth, ShapeIn, ShapeOut, ShapeBridge, ShapeRing)
		f.DurMillis = int64(r.LogBetween(50, 8_000))
		f.Hold = r.Chance(250)
		if r.Chance(200) {
			f.N = int64(r.LogBetween(50, 1_000))
		}
	case FaultGray:
		f.DurMillis, f.N = int64(r.LogBetween(100, 5_000)), int64(r.LogBetween(5, 100))
	case FaultLoss:
		f.DurMillis, f.N = int64(r.LogBetween(100, 5_000)), int64(r.Between(50, 700))
	case FaultStray:
		// Of the log the newest append is promised to none: nothing tells its loss from a write that was never made.
		f.DurMillis, f.N, f.Disk, f.On = int64(r.LogBetween(100, 3_000)), int64(r.Between(1, 3)), keyed.Pick(r, "lost", "stray"), "groups"
	case FaultWipe:
		f.DurMillis = int64(r.LogBetween(1, 1_000))
	case FaultCrash:
		f.DurMillis = int64(r.LogBetween(1, 6_000))
	}
}

// depose aims a fault at the leader of the first stream, for about as long as its followers take to find another one:
// what it answers then and later, not knowing better, must not be wrong.
func (p *Plan) depose(r *keyed.Rand, f *Fault) {
	f.Leads, f.Nodes = firstGroup, 0
	timeout := int(p.Cluster.TickMillis) * p.Cluster.ElectionTicks
	f.DurMillis = int64(r.Between(timeout/2, 5*timeout))
	if f.Kind == FaultPartition {
		f.On = keyed.Pick(r, ShapeBoth, ShapeBoth, ShapeIn, ShapeOut)
		f.Hold = r.Chance(500)
	}
}

// administer fills in the operations that only clusters have.
func (p *Plan) administer(r *keyed.Rand, op *Op) {
	op.Key = 0
	switch op.Kind {
	case OpStepDown, OpMetaStepDown:
		op.N = r.Below(p.Nodes + 1)
	case OpScale:
		op.N = keyed.Pick(r, 1, 3, 3, p.Nodes)
	case OpPeerRemove:
		op.N = r.Below(p.Nodes)
	}
}
