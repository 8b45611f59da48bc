package plan

import (
	"cmp"
	"fmt"
	"slices"

	"weir/disk/memfs"
	"weir/sim/keyed"
)

// Options steer the generator.
type Options struct {
	// Plant is put into the plan.
	Plant string
	// Nodes is the number of servers; 0 is one.
	Nodes int
	// Profile makes every seed use the tuned profile with the name; "" is all of them.
	Profile string
	// Swarm says whether half of the seeds draw which kinds of faults and operations they use at all (swarm testing,
	// Groce et al. 2012). Without it every seed uses a tuned profile.
	Swarm bool
}

// profile weighs what a plan is made of. Weights are relative within their group.
type profile struct {
	name   string
	faults int // mean number
	ops    int // mean number
	kinds  map[string]int
	mix    map[string]int
}

// allFaults and allOps are the groups in a fixed order, because the order of draws must not come from a map.
var (
	allFaults = []string{FaultCrash, FaultError, FaultNoSpace, FaultSlow, FaultClock, FaultReset, FaultPause, FaultRot, FaultStop}
	allOps    = []string{OpPub, OpGet, OpMsgGet, OpSeq, OpInfo, OpPurge, OpDelete, OpFetch, OpWatch, OpConsumer, OpScratch, OpUpdate}
)

func everyOp() map[string]int {
	return map[string]int{OpPub: 50, OpGet: 12, OpMsgGet: 4, OpSeq: 4, OpInfo: 5, OpPurge: 1, OpDelete: 1, OpFetch: 20, OpWatch: 2, OpConsumer: 4, OpScratch: 1, OpUpdate: 1}
}

// checkpoints is the profile whose crashes fall into checkpoints.
const checkpoints = "checkpoints"

// tuned returns the profiles made for one kind of trouble each.
func tuned() []profile {
	return []profile{
		{"crash-storm", 8, 220, map[string]int{FaultCrash: 10, FaultReset: 2, FaultSlow: 1, FaultStop: 2}, everyOp()},
		{"disk-trouble", 5, 160, map[string]int{FaultCrash: 3, FaultError: 4, FaultNoSpace: 3, FaultSlow: 3}, everyOp()},
		{"consumer-storm", 5, 260, map[string]int{FaultCrash: 5, FaultReset: 5, FaultPause: 2, FaultClock: 1},
			map[string]int{OpPub: 40, OpFetch: 60, OpInfo: 1, OpDelete: 1, OpConsumer: 10}},
		{"cas-storm", 4, 260, map[string]int{FaultCrash: 5, FaultReset: 3, FaultPause: 1},
			map[string]int{OpPub: 70, OpGet: 25, OpMsgGet: 5}},
		{"restart-reads", 8, 200, map[string]int{FaultCrash: 1}, map[string]int{OpPub: 40, OpGet: 40, OpInfo: 10, OpSeq: 10}},
		{"clocks", 6, 200, map[string]int{FaultClock: 5, FaultCrash: 2, FaultPause: 2}, everyOp()},
		{checkpoints, 6, 240, map[string]int{FaultCrash: 1}, everyOp()},
		{"rot", 3, 160, map[string]int{FaultRot: 3, FaultCrash: 2}, everyOp()},
		{"calm", 0, 300, map[string]int{FaultSlow: 1}, everyOp()},
	}
}

// Generate makes the plan of a seed.
func Generate(seed uint64, options Options) *Plan {
	r := keyed.Key(seed).Rand("plan")
	p := &Plan{V: Version, Seed: seed, Plant: options.Plant}
	chosen := p.choose(r, options)
	p.Profile = chosen.name
	p.Porcupine = r.Chance(100)
	p.knobs(r)
	if p.Profile == checkpoints {
		p.Node.CheckpointBytes, p.Node.CacheBytes = 1<<10, 1
	}
	p.streams(r)
	if options.Nodes > 1 {
		p.cluster(r, options.Nodes)
	}
	p.consumers(r)
	p.Clients = r.Between(3, 9)
	count := max(10, chosen.ops/2+r.Below(chosen.ops))
	if p.Nodes > 1 {
		count *= clusterDensity
		p.Clients = r.Between(4, 12)
		p.AnswerMillis = int64(keyed.Pick(r, 400, 1_000, 4_000))
	}
	if p.Porcupine {
		p.Clients, count = r.Between(2, 4), r.Between(30, 120)
	}
	p.operations(r, &chosen, count)
	p.faults(r, &chosen)
	if p.Porcupine {
		p.calm()
	}
	p.reserve()
	if p.Nodes > 1 {
		p.occasions()
		decayed := p.decay()
		p.deceive()
		p.comeAndGo()
		p.fill()
		p.victims(r)
		if decayed {
			p.leadDecayed()
		}
		p.bare()
		p.spoil()
		p.blind()
	}
	p.mirrors()
	return p
}

// Profiles are the names of the tuned profiles for a number of servers.
func Profiles(nodes int) []string {
	profiles := tuned()
	if nodes > 1 {
		profiles = clusterTuned()
	}
	var names []string
	for i := range profiles {
		names = append(names, profiles[i].name)
	}
	return names
}

// choose picks the profile of the plan.
func (p *Plan) choose(r *keyed.Rand, options Options) profile {
	profiles := tuned()
	if options.Nodes > 1 {
		profiles = clusterTuned()
	}
	for _, chosen := range profiles {
		if chosen.name == options.Profile {
			return chosen
		}
	}
	swarms := options.Swarm && r.Chance(500)
	switch {
	case options.Nodes > 1 && swarms:
		return swarm(r, allClusterFaults, allClusterOps, everyClusterOp())
	case swarms:
		return swarm(r, allFaults, allOps, everyOp())
	default:
		return keyed.Pick(r, profiles...)
	}
}

// reserve lets most plans in which a disk is full have room in readiness.
func (p *Plan) reserve() {
	if slices.ContainsFunc(p.Faults, func(f Fault) bool { return f.Kind == FaultNoSpace }) {
		p.Node.ReserveBytes = keyed.Pick(keyed.Key(p.Seed).Rand("reserve"), 0, 8<<10, 64<<10)
	}
}

// porcupineFaults bounds the faults of a plan for the second judge.
const porcupineFaults = 3

// calm leaves out what makes many outcomes unknown, which the second judge's search cannot bear.
func (p *Plan) calm() {
	p.Faults = slices.DeleteFunc(p.Faults, func(f Fault) bool {
		return f.Kind == FaultError || f.Kind == FaultNoSpace || f.Kind == FaultRot || f.Kind == FaultPause || f.Kind == FaultWipe || f.Kind == FaultStray
	})
	p.Faults = p.Faults[:min(len(p.Faults), porcupineFaults)]
}

// swarm draws which kinds are on at all, each with one half, and their weights.
func swarm(r *keyed.Rand, faults, ops []string, base map[string]int) profile {
	s := profile{name: "swarm", faults: r.Below(12), ops: r.LogBetween(40, 320), kinds: map[string]int{}, mix: map[string]int{}}
	for _, kind := range faults {
		weight := r.Between(1, 20)
		if r.Chance(500) && (kind != FaultRot && kind != FaultWipe && kind != FaultStray || r.Chance(300)) {
			s.kinds[kind] = weight
		}
	}
	for _, kind := range ops {
		weight := r.Between(1, 2*base[kind])
		if r.Chance(500) || kind == OpPub {
			s.mix[kind] = weight
		}
	}
	return s
}

// draw picks one of the kinds by weight; "" when all weights are 0.
func draw(r *keyed.Rand, order []string, weights map[string]int) string {
	total := 0
	for _, kind := range order {
		total += weights[kind]
	}
	if total == 0 {
		return ""
	}
	at := r.Below(total)
	for _, kind := range order {
		if at -= weights[kind]; at < 0 {
			return kind
		}
	}
	panic("plan: a draw below the sum of weights hits none")
}

func (p *Plan) knobs(r *keyed.Rand) {
	p.Tie = keyed.Pick(r, "fifo", "random", "priorities")
	p.Node = Node{
		CheckpointBytes: keyed.Pick(r, 2<<10, 8<<10, 32<<10, 1<<20),
		BlockBytes:      keyed.Pick(r, 4<<10, 16<<10, 256<<10),
		SegmentBytes:    keyed.Pick(r, 16<<10, 64<<10, 256<<10),
		CacheBytes:      keyed.Pick(r, 1, 8<<10, 1<<20),
	}
	if r.Chance(300) {
		p.Node.DriftPPM = int64(r.Between(-200_000, 200_000))
	}
	p.Net = Net{
		LatencyMinMicros:  int64(r.LogBetween(20, 500)),
		LatencyMeanMicros: int64(r.LogBetween(50, 20_000)),
		CutPerMille:       uint64(keyed.Pick(r, 0, 100, 500)),
	}
	p.Disk = Disk{
		SyncMinMicros:  int64(r.LogBetween(50, 2_000)),
		SyncMeanMicros: int64(r.LogBetween(100, 50_000)),
		WorkMeanMicros: int64(r.LogBetween(50, 50_000)),
		SectorBytes:    keyed.Pick(r, 512, 512, 4096),
	}
}

func (p *Plan) streams(r *keyed.Rand) {
	p.Streams = append(p.Streams, Stream{Name: "ORDERS", Prefix: "orders", Keys: r.LogBetween(1, 16)})
	if r.Chance(600) {
		p.Streams = append(p.Streams, Stream{
			Name: "KV_bucket", Prefix: "$KV.bucket", Keys: r.LogBetween(1, 8), KV: true,
			MaxMsgsPerSubject: keyed.Pick(r, 1, 1, 2, 5),
		})
	}
	if r.Chance(400) {
		s := Stream{Name: "LIMITS", Prefix: "limits", Keys: r.LogBetween(1, 8)}
		switch r.Below(4) {
		case 0:
			s.MaxMsgs = r.LogBetween(3, 60)
		case 1:
			s.MaxMsgsPerSubject = r.LogBetween(1, 10)
		case 2:
			s.MaxBytes = r.LogBetween(1<<10, 16<<10)
		case 3:
			s.MaxAgeMillis = int64(r.LogBetween(200, 4_000))
		}
		p.Streams = append(p.Streams, s)
	}
	for i := range p.Streams {
		if s := &p.Streams[i]; !s.KV && (s.MaxAgeMillis == 0 || s.MaxAgeMillis > 1000) && r.Chance(300) {
			s.WindowMillis = int64(r.LogBetween(100, 2_000))
			if s.MaxAgeMillis != 0 {
				s.WindowMillis = min(s.WindowMillis, s.MaxAgeMillis)
			}
		}
	}
}

func (p *Plan) consumers(r *keyed.Rand) {
	for i := range r.Below(4) {
		stream := r.Below(len(p.Streams))
		c := Consumer{
			Stream: stream, Name: fmt.Sprintf("c%d", i), Key: -1,
			AckWaitMillis: int64(r.LogBetween(50, 5_000)),
			MaxDeliver:    keyed.Pick(r, -1, -1, -1, r.Between(1, 5)),
			MaxAckPending: r.LogBetween(1, 100),
		}
		if r.Chance(300) {
			c.Key = r.Below(p.Streams[stream].Keys)
		}
		if r.Chance(200) {
			for n := range r.Between(1, 3) {
				c.BackoffMillis = append(c.BackoffMillis, int64(r.Between(50, 400)<<n))
			}
			c.MaxDeliver = keyed.Pick(r, -1, len(c.BackoffMillis)+1)
		}
		if r.Chance(700) {
			c.VanishPerMille, c.NakPerMille = uint64(r.Below(300)), uint64(r.Below(300))
			c.TermPerMille = uint64(r.Below(50))
		}
		p.Consumers = append(p.Consumers, c)
	}
}

// idReuse is how many of 1000 publishes with an id reuse a recent one.
const idReuse = 250

func (p *Plan) operations(r *keyed.Rand, chosen *profile, count int) {
	mix := make(map[string]int, len(chosen.mix))
	for _, kind := range allClusterOps {
		mix[kind] = chosen.mix[kind]
	}
	if len(p.Consumers) == 0 {
		mix[OpFetch], mix[OpConsumer] = 0, 0
	}
	gap := r.LogBetween(500, 60_000) // microseconds
	at, burst := 0, 0
	if p.Nodes > 1 {
		// A cluster forms first, and its faults need time to have consequences.
		gap = r.LogBetween(1_000, 30_000)
		at = int(p.Cluster.TickMillis) * p.Cluster.ElectionTicks * 3000
	}
	ids := 0
	for range count {
		if burst == 0 {
			at += r.Exp(gap)
			if r.Chance(50) {
				burst = r.Between(5, 30)
			}
		} else {
			burst--
		}
		op := Op{
			AtMillis: int64(at / 1000), Client: r.Below(p.Clients), Kind: draw(r, allClusterOps, mix),
			Stream: r.Below(len(p.Streams)),
		}
		stream := &p.Streams[op.Stream]
		op.Key = min(r.Exp(max(1, stream.Keys/2)), stream.Keys-1)
		switch op.Kind {
		case OpPub:
			p.publish(r, &op, &ids)
		case OpGet, OpMsgGet, OpWatch, OpPurge:
			if r.Chance(200) {
				op.Key = -1
			}
			if op.Kind == OpPurge && r.Chance(300) {
				op.N = r.Between(1, 5)
			}
		case OpUpdate:
			op.Key = 0
		case OpStepDown, OpMetaStepDown, OpScale, OpPeerRemove:
			p.administer(r, &op)
		case OpSeq, OpDelete:
			op.Key, op.Delta = 0, r.Exp(6)
		case OpScratch:
			op.Stream, op.Key, op.N = 0, 0, r.Between(0, 5)
		case OpConsumer:
			op.Consumer = r.Below(len(p.Consumers))
			op.Stream, op.Key = p.Consumers[op.Consumer].Stream, 0
		case OpFetch:
			op.Consumer = r.Below(len(p.Consumers))
			op.Stream, op.Key = p.Consumers[op.Consumer].Stream, 0
			op.N = r.LogBetween(1, 30)
			op.Wait = int64(keyed.Pick(r, 0, r.Between(20, 1500), r.Between(20, 1500)))
		}
		if stream.KV && op.Kind == OpDelete {
			op.Kind = OpGet // A bucket denies deletes.
		}
		p.Ops = append(p.Ops, op)
	}
	p.HealMillis = int64(at/1000) + 500
}

func (p *Plan) publish(r *keyed.Rand, op *Op, ids *int) {
	op.N = r.Exp(120)
	switch r.Below(10) {
	case 0, 1:
		if *ids > 0 && r.Chance(idReuse) {
			op.ID = fmt.Sprintf("m%d", max(0, *ids-1-r.Exp(4)))
		} else {
			op.ID = fmt.Sprintf("m%d", *ids)
			*ids++
		}
	case 2, 3, 4:
		op.Expect = ExpectSubject
		if r.Chance(200) {
			op.Delta = r.Between(-2, 2)
		}
	case 5:
		if op.Expect = ExpectLast; r.Chance(50) {
			op.Expect = ExpectWrong
		}
		if r.Chance(200) {
			op.Delta = r.Between(-2, 2)
		}
	}
	if p.Streams[op.Stream].KV && r.Chance(40) {
		op.Rollup = true
	}
}

func (p *Plan) faults(r *keyed.Rand, chosen *profile) {
	if chosen.faults == 0 {
		return
	}
	for range r.Below(2*chosen.faults + 1) {
		kind := draw(r, allClusterFaults, chosen.kinds)
		if kind == "" {
			return
		}
		f := p.fault(r, kind)
		if p.Nodes > 1 {
			p.aim(r, &f)
		}
		p.Faults = append(p.Faults, f)
	}
	slices.SortStableFunc(p.Faults, func(a, b Fault) int { return cmp.Compare(a.AtMillis, b.AtMillis) })
	for i := range p.Faults {
		p.HealMillis = max(p.HealMillis, p.Faults[i].AtMillis+p.Faults[i].DurMillis+10)
	}
}

// sparesLog is how many of 1000 disk errors spare the log: those that do not, mostly end the process.
const sparesLog = 500

func (p *Plan) fault(r *keyed.Rand, kind string) Fault {
	f := Fault{AtMillis: int64(20 + r.Below(int(p.HealMillis))), Kind: kind}
	switch kind {
	case FaultPartition, FaultGray, FaultLoss, FaultSessions, FaultWipe, FaultStray: // aim draws the rest
	case FaultCrash:
		f.DurMillis = int64(r.LogBetween(1, 1_000))
		f.Disk = keyed.Pick(r, memfs.Strategies()...).String()
		if r.Chance(150) {
			f.Again = uint64(1 + r.Exp(20))
		}
		if p.Profile == checkpoints || r.Chance(400) {
			f.On = keyed.Pick(r, "save", "save", "save", "append")
		}
	case FaultError:
		f.DurMillis, f.Disk = int64(r.LogBetween(1, 500)), keyed.Pick(r, "write", "sync", "read")
		f.N = int64(keyed.Pick(r, 0, 0, 1, r.Between(2, 5)))
		if r.Chance(sparesLog) {
			f.On = "groups"
		}
	case FaultNoSpace:
		f.DurMillis, f.N = int64(r.LogBetween(10, 2_000)), int64(r.LogBetween(1, 32<<10))
		if r.Chance(sparesLog) {
			f.On = "groups"
		} else if f.N%3 == 0 {
			f.On = "log" // full for everything that is written there, also over what is there already
		}
	case FaultSlow:
		f.DurMillis, f.N = int64(r.LogBetween(10, 3_000)), int64(r.LogBetween(2, 100))
	case FaultClock:
		f.N = int64(keyed.Pick(r, -3_600_000, 3_600_000, r.Between(-5_000, 5_000), r.Between(-50, 50)))
	case FaultReset:
		f.N = int64(r.Between(-1, p.Clients-1))
	case FaultStop:
		f.DurMillis = int64(r.LogBetween(1, 300))
	case FaultPause:
		f.DurMillis = int64(r.LogBetween(1, 5_000))
	case FaultRot:
		f.DurMillis, f.Disk = int64(r.LogBetween(1, 300)), keyed.Pick(r, "log", "log", "log", "blocks", "checkpoint")
		f.N = int64(r.Uint64() >> 1)
	default:
		panic("plan: fault of kind " + kind)
	}
	return f
}
