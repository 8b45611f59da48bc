// Package plan is what a simulation does, as data.
//
// A seed is turned into a Plan by Generate; a Plan is run without any further look at the generator. So a failing run
// can be written down, made smaller by leaving things out, and replayed after the generator has changed. The package
// promises that equal seeds and options give equal plans, and that a plan survives being written and read. It does not
// run anything.
package plan

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Version is the version of the schema. A change of meaning raises it.
const Version = 1

// Bounds of what a plan may hold; they bound the memory and the time of a run.
const (
	// NodesMax bounds the machines.
	NodesMax = 9
	// ClientsMax bounds the clients.
	ClientsMax = 64
	// OpsMax bounds the operations.
	OpsMax = 20_000
	// FaultsMax bounds the faults.
	FaultsMax = 200
	// HealMillisMax bounds the phase with faults: one virtual hour.
	HealMillisMax = 3_600_000
)

// Plan is one run.
type Plan struct {
	// V is Version.
	V int `json:"v"`
	// Seed keys every draw of the run that the plan does not fix.
	Seed uint64 `json:"seed"`
	// Profile names the part of the generator that made the plan; advice only.
	Profile string `json:"profile,omitempty"`
	// Plant is the deliberate fault that the node runs with; "" is none.
	Plant string `json:"plant,omitempty"`
	// Porcupine says that the second judge is to search this history too: few clients, few operations.
	Porcupine bool `json:"porcupine,omitempty"`
	// Tie is how events of one instant are ordered: "fifo", "random" or "priorities".
	Tie string `json:"tie"`
	// Nodes is the number of servers that found the cluster; 0 or 1 is a single server. Spares are further machines, which
	// join when a fault says so.
	Nodes  int `json:"nodes,omitempty"`
	Spares int `json:"spares,omitempty"`
	// Cluster, Node, Net and Disk are the knobs of the world.
	Cluster Cluster `json:"cluster,omitzero"`
	Node    Node    `json:"node"`
	Net     Net     `json:"net"`
	Disk    Disk    `json:"disk"`
	// Streams and Consumers are created before the first operation, by the API.
	Streams   []Stream   `json:"streams"`
	Consumers []Consumer `json:"consumers,omitempty"`
	// Mirrors and Rebirths are created during the run.
	Mirrors  []Mirror  `json:"mirrors,omitempty"`
	Rebirths []Rebirth `json:"rebirths,omitempty"`
	// Clients is the number of sequential clients, AnswerMillis how long each waits for an answer; 0 is four seconds.
	Clients      int   `json:"clients"`
	AnswerMillis int64 `json:"answer_ms,omitempty"`
	// Ops are what the clients do, in the order of their times.
	Ops []Op `json:"ops"`
	// Faults are what goes wrong, in the order of their times.
	Faults []Fault `json:"faults,omitempty"`
	// HealMillis is when faults end; then the run must come to rest within bounds. Gone is the set of servers that end then
	// and never come back.
	HealMillis int64  `json:"heal_ms"`
	Gone       uint64 `json:"gone,omitempty"`
}

// Node holds the knobs of the node.
type Node struct {
	// CheckpointBytes is how much log a group gathers before a checkpoint; BlockBytes is the size of a message block,
	// SegmentBytes that of a log segment, CacheBytes bounds the messages kept in memory.
	CheckpointBytes int `json:"checkpoint_bytes"`
	BlockBytes      int `json:"block_bytes"`
	SegmentBytes    int `json:"segment_bytes"`
	CacheBytes      int `json:"cache_bytes"`
	// ReserveBytes is the room held in readiness for a full disk, for the log and again for checkpoints.
	ReserveBytes int `json:"reserve_bytes,omitempty"`
	// DriftPPM is how much faster than true time the monotone clock runs, in millionths.
	DriftPPM int64 `json:"drift_ppm,omitempty"`
}

// Cluster holds the knobs of a cluster.
type Cluster struct {
	// TickMillis is the time between two ticks of Raft, ElectionTicks how many without a leader make a follower campaign,
	// LogTailBytes what a group keeps in memory for followers that lag behind.
	TickMillis    int64 `json:"tick_ms"`
	ElectionTicks int   `json:"election_ticks"`
	LogTailBytes  int   `json:"log_tail_bytes"`
	// LatencyMinMicros and LatencyMeanMicros shape the delay between servers: a minimum and an exponential part.
	LatencyMinMicros  int64 `json:"lat_min_us"`
	LatencyMeanMicros int64 `json:"lat_mean_us"`
	// LossPerMille, DupPerMille and LatePerMille are how often a datagram is lost, repeated, or late by LateMeanMillis.
	LossPerMille   uint64 `json:"loss_pm,omitempty"`
	DupPerMille    uint64 `json:"dup_pm,omitempty"`
	LatePerMille   uint64 `json:"late_pm,omitempty"`
	LateMeanMillis int64  `json:"late_mean_ms,omitempty"`
	// ResetPerMille is how often an ordered frame is lost, and its session with it.
	ResetPerMille uint64 `json:"reset_pm,omitempty"`
	// Ordered keeps everything between two servers in order, as one connection does.
	Ordered bool `json:"ordered,omitempty"`
	// DriftsPPM are how much faster than true time the monotone clocks of the servers run, in millionths.
	DriftsPPM []int64 `json:"drifts_ppm,omitempty"`
	// ReadLease has leaders answer reads under leases.
	ReadLease bool `json:"read_lease,omitempty"`
	// Bare is the number, from 1, of a server without JetStream; 0: none.
	Bare int `json:"bare,omitempty"`
}

// Net holds the knobs of the connections.
type Net struct {
	// LatencyMinMicros and LatencyMeanMicros shape the delay of bytes: a minimum and an exponential part.
	LatencyMinMicros  int64 `json:"lat_min_us"`
	LatencyMeanMicros int64 `json:"lat_mean_us"`
	// CutPerMille is how often what a client writes arrives in pieces.
	CutPerMille uint64 `json:"cut_pm"`
}

// Disk holds the knobs of the disk.
type Disk struct {
	// SyncMinMicros and SyncMeanMicros shape how long a batch of the log takes, WorkMeanMicros one of the other worker.
	SyncMinMicros  int64 `json:"sync_min_us"`
	SyncMeanMicros int64 `json:"sync_mean_us"`
	WorkMeanMicros int64 `json:"work_mean_us"`
	// SectorBytes is 512 or 4096.
	SectorBytes int `json:"sector"`
}

// Stream is a stream of the run.
type Stream struct {
	// Name is its name; a bucket's begins with "KV_".
	Name string `json:"name"`
	// Prefix is the subject prefix; the stream captures Prefix + ".>".
	Prefix string `json:"prefix"`
	// Keys is the number of subjects that the operations use.
	Keys int `json:"keys"`
	// MaxMsgs, MaxMsgsPerSubject and MaxBytes are limits; 0 is none.
	MaxMsgs           int `json:"max_msgs,omitempty"`
	MaxMsgsPerSubject int `json:"max_per_subject,omitempty"`
	MaxBytes          int `json:"max_bytes,omitempty"`
	// MaxAgeMillis and WindowMillis are the age limit and the duplicate window; 0 is no limit and the default window.
	MaxAgeMillis int64 `json:"max_age_ms,omitempty"`
	WindowMillis int64 `json:"window_ms,omitempty"`
	// Replicas is how many servers hold the stream at first; 0 is one.
	Replicas int `json:"replicas,omitempty"`
	// KV says that the stream is configured as a bucket.
	KV bool `json:"kv,omitempty"`
}

// Subject is the i-th subject that operations on the stream use.
func (s *Stream) Subject(i int) string { return fmt.Sprintf("%s.k%d", s.Prefix, i) }

// Consumer is a durable pull consumer of the run.
type Consumer struct {
	// Stream is the index of its stream.
	Stream int `json:"stream"`
	// Name is its name.
	Name string `json:"name"`
	// Key is the number of the one subject it wants; -1 is all.
	Key int `json:"key"`
	// AckWaitMillis, MaxDeliver (-1: no bound) and MaxAckPending are its configuration.
	AckWaitMillis int64 `json:"ack_wait_ms"`
	MaxDeliver    int   `json:"max_deliver"`
	MaxAckPending int   `json:"max_ack_pending"`
	// BackoffMillis, when there are any, replace the ack wait.
	BackoffMillis []int64 `json:"backoff_ms,omitempty"`
	// VanishPerMille, NakPerMille and TermPerMille are how often the client that got a message loses it, refuses it or
	// ends it instead of acknowledging it.
	VanishPerMille uint64 `json:"vanish_pm"`
	NakPerMille    uint64 `json:"nak_pm"`
	TermPerMille   uint64 `json:"term_pm"`
}

// The kinds of operations.
const (
	// OpPub publishes on key K of stream T with ID, Expect and Delta, and N bytes of padding.
	OpPub = "pub"
	// OpGet reads the last message of key K (-1: of the whole stream) by direct get; OpMsgGet by the stream's API.
	OpGet    = "get"
	OpMsgGet = "msgget"
	// OpSeq reads one message by sequence: the last known one less Delta.
	OpSeq = "seq"
	// OpInfo asks for the stream's state.
	OpInfo = "info"
	// OpPurge purges key K (-1: all), keeping N.
	OpPurge = "purge"
	// OpDelete deletes the last known sequence less Delta.
	OpDelete = "delete"
	// OpFetch pulls N messages for consumer W; Wait is its expiry in milliseconds, 0 is no_wait.
	OpFetch = "fetch"
	// OpConsumer asks for the state of consumer W.
	OpConsumer = "consumer"
	// OpScratch lives through the whole life of a stream of its own, twice under one name, with N messages each time.
	OpScratch = "scratch"
	// OpUpdate gives the stream another description.
	OpUpdate = "update"
	// OpStepDown asks the leader of stream T to step down, for server N-1 unless N is 0. OpScale asks for N replicas,
	// OpPeerRemove to take the replica from server N.
	// OpMetaStepDown asks the leader of the catalog to step down, for server N-1 unless N is 0.
	OpStepDown     = "stepdown"
	OpMetaStepDown = "meta-stepdown"
	OpScale        = "scale"
	OpPeerRemove   = "peer-remove"
	// OpWatch watches key K (-1: all) of stream T with an ordered push consumer until the connection ends.
	OpWatch = "watch"
)

// The expectations of a publish.
const (
	// ExpectNone asks for nothing, ExpectLast for the last sequence of the stream, ExpectSubject for that of the subject.
	// ExpectWrong for a stream of another name, which must be refused.
	ExpectNone    = ""
	ExpectLast    = "last"
	ExpectSubject = "subject"
	ExpectWrong   = "wrong"
)

// Op is one operation of one client. A client begins it at AtMillis or when the one before has ended, whichever is
// later.
type Op struct {
	AtMillis int64  `json:"at_ms"`
	Client   int    `json:"c"`
	Kind     string `json:"k"`
	Stream   int    `json:"t,omitempty"`
	Key      int    `json:"s,omitempty"`
	// ID is the message id; the same id may come again.
	ID string `json:"id,omitempty"`
	// Expect is what is expected, Delta how far it is from the newest sequence that any client has seen.
	Expect string `json:"exp,omitempty"`
	Delta  int    `json:"d,omitempty"`
	N      int    `json:"n,omitempty"`
	Rollup bool   `json:"rollup,omitempty"`
	// Consumer is the index of the consumer of a fetch, Wait its expiry in milliseconds.
	Consumer int   `json:"w,omitempty"`
	Wait     int64 `json:"wait_ms,omitempty"`
}

// The kinds of faults.
const (
	// FaultCrash ends the process; the disk survives by the strategy named in Disk, and the node starts again after
	// DurMillis. On, when it is "save" or "append", lets it wait for the next checkpoint or append and fall into it. Again, when it is not 0, ends the process once more at that disk call of its recovery.
	FaultCrash = "crash"
	// FaultStop ends the server in order and starts it again after DurMillis.
	FaultStop = "stop"
	// FaultError makes disk calls of the kind named in Disk ("write", "sync", "read") fail for DurMillis, the next N of them
	// when N is not 0; a node that no longer serves because of it is restarted at the end. On, when it is "groups", spares
	// the log: only blocks and checkpoints are concerned.
	FaultError = "eio"
	// FaultNoSpace leaves N bytes of free space for DurMillis; with On "groups" none for blocks and checkpoints, and the log
	// has what it needs; with On "log" no write of the log goes well, also over what is there.
	FaultNoSpace = "nospace"
	// FaultSlow makes the disk N times slower for DurMillis.
	FaultSlow = "slow"
	// FaultClock steps the wall clock by N milliseconds.
	FaultClock = "clock"
	// FaultReset cuts the connection of client N (-1: all).
	FaultReset = "reset"
	// FaultPause stops the node for DurMillis; what arrives meanwhile comes in a burst afterwards.
	FaultPause = "pause"
	// FaultRot damages a byte of the files named in Disk ("log", "blocks", "checkpoint") while the node is down. A node
	// that then refuses to serve, and says so, is right. What was written to the log last is spared, unless On is "newest":
	// then it is damaged, if the others can make good for that.
	FaultRot = "rot"
	// FaultWipe ends the process and empties the disk; what starts after DurMillis is a new server of the same name.
	FaultWipe = "wipe"
	// FaultStray lets the next N writes be "lost" or go "stray", as Disk says, within DurMillis, though the disk reports
	// them as done; with On "groups" those of blocks and checkpoints only, with On "log" those of the log, and the process is
	// killed at the end.
	FaultStray = "stray"
	// FaultLie lets the disk report syncs as done that it does not carry out, and ends with a power loss by the strategy named
	// in Disk. What is lost is no more than the others can make good for; else the disk turns out to have told the truth.
	FaultLie = "lie"
	// FaultMemory makes the catalog in the memory of a server another one than its log leads to.
	FaultMemory = "memory"
	// FaultBlind damages the catalogs of servers, and nothing else there, for DurMillis: then the very bytes are put back. More
	// of them than the others can make good for may be concerned, and the damage is that of all or of none.
	FaultBlind = "blind"
	// FaultLeave ends a server for good, FaultJoin starts a spare machine.
	FaultLeave = "leave"
	FaultJoin  = "join"
	// FaultPartition cuts links between servers for DurMillis, in the Shape named in On. N, when it is not 0, lets it come
	// and go every N milliseconds. Hold keeps sessions from breaking meanwhile: nothing passes and nobody is told.
	FaultPartition = "partition"
	// FaultGray multiplies the latency of links by N for DurMillis, FaultLoss loses N of 1000 datagrams.
	FaultGray = "gray"
	FaultLoss = "loss"
	// FaultSessions breaks the sessions of servers with all others.
	FaultSessions = "sessions"
)

// The shapes of faults between servers. Nodes says which servers they are about.
const (
	// ShapeBoth is both directions between those and the others, ShapeOut only from them, ShapeIn only to them.
	ShapeBoth = ""
	ShapeOut  = "out"
	ShapeIn   = "in"
	// ShapeBridge leaves those connected with everybody and splits the others in two.
	ShapeBridge = "bridge"
	// ShapeRing leaves every server with two neighbours, of three one in the middle.
	ShapeRing = "ring"
)

// Fault is one thing that goes wrong.
type Fault struct {
	AtMillis  int64  `json:"at_ms"`
	DurMillis int64  `json:"dur_ms,omitempty"`
	Kind      string `json:"kind"`
	Disk      string `json:"disk,omitempty"`
	N         int64  `json:"n,omitempty"`
	On        string `json:"on,omitempty"`
	Again     uint64 `json:"again,omitempty"`
	// Nodes is the set of servers, bit i being the i-th; 0 is the first one. Leads, when it is not 0, adds the server that
	// leads that group when the fault begins.
	Nodes uint64 `json:"nodes,omitempty"`
	Leads uint64 `json:"leads,omitempty"`
	Hold  bool   `json:"hold,omitempty"`
}

// Between says whether the fault is about links between servers.
func (f *Fault) Between() bool {
	switch f.Kind {
	case FaultPartition, FaultGray, FaultLoss, FaultSessions:
		return true
	}
	return false
}

// Damages says whether the fault takes or spoils what is durable.
func (f *Fault) Damages() bool {
	switch f.Kind {
	case FaultRot, FaultWipe, FaultStray, FaultLie:
		return true
	}
	return false
}

// Founders is the number of servers that found the catalog together.
func (p *Plan) Founders() int {
	if p.Cluster.Bare > 0 && p.Cluster.Bare <= p.Nodes {
		return p.Nodes - 1
	}
	return p.Nodes
}

// Machines is the number of machines of the run.
func (p *Plan) Machines() int { return max(p.Nodes, 1) + p.Spares }

// Drift is how much faster than true time the monotone clock of a machine runs, in millionths.
func (p *Plan) Drift(node int) int64 {
	if node < len(p.Cluster.DriftsPPM) {
		return p.Cluster.DriftsPPM[node]
	}
	return p.Node.DriftPPM
}

// Drifts says whether a monotone clock runs at another rate than true time.
func (p *Plan) Drifts() bool {
	for node := range p.Machines() {
		if p.Drift(node) != 0 {
			return true
		}
	}
	return false
}

// ErrInvalid is wrapped by the errors of Decode for plans that cannot be run.
var ErrInvalid = errors.New("invalid plan")

// Decode reads a plan and checks that it can be run.
func Decode(data []byte) (*Plan, error) {
	p := new(Plan)
	if err := json.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return p, p.Validate()
}

// Encode writes a plan.
func (p *Plan) Encode() []byte {
	data, err := json.Marshal(p)
	if err != nil {
		panic("plan: a struct of plain fields cannot be encoded: " + err.Error())
	}
	return append(data, '\n')
}

// Clone returns a copy that shares nothing with the plan.
func (p *Plan) Clone() *Plan {
	c := new(Plan)
	if err := json.Unmarshal(p.Encode(), c); err != nil {
		panic("plan: what was encoded cannot be decoded: " + err.Error())
	}
	return c
}

// Validate returns an error that wraps ErrInvalid for a plan that cannot be run.
func (p *Plan) Validate() error {
	switch {
	case p.V != Version:
		return fmt.Errorf("%w: version %d, want %d", ErrInvalid, p.V, Version)
	case p.Nodes < 0 || p.Spares < 0 || p.Machines() > NodesMax:
		return fmt.Errorf("%w: %d nodes and %d spares, want at most %d", ErrInvalid, p.Nodes, p.Spares, NodesMax)
	case p.Machines() > 1 && p.Cluster.TickMillis <= 0:
		return fmt.Errorf("%w: a cluster with ticks of %d ms", ErrInvalid, p.Cluster.TickMillis)
	case p.Clients < 1 || p.Clients > ClientsMax:
		return fmt.Errorf("%w: %d clients, want 1 to %d", ErrInvalid, p.Clients, ClientsMax)
	case len(p.Ops) > OpsMax || len(p.Faults) > FaultsMax:
		return fmt.Errorf("%w: %d operations and %d faults", ErrInvalid, len(p.Ops), len(p.Faults))
	case p.HealMillis < 0 || p.HealMillis > HealMillisMax:
		return fmt.Errorf("%w: heal_ms %d", ErrInvalid, p.HealMillis)
	case len(p.Streams) == 0:
		return fmt.Errorf("%w: no streams", ErrInvalid)
	case p.Disk.SectorBytes != 512 && p.Disk.SectorBytes != 4096:
		return fmt.Errorf("%w: sector of %d bytes", ErrInvalid, p.Disk.SectorBytes)
	}
	for i := range p.Ops {
		op := &p.Ops[i]
		if op.Client < 0 || op.Client >= p.Clients || op.Stream < 0 || op.Stream >= len(p.Streams) {
			return fmt.Errorf("%w: operation %d of client %d on stream %d", ErrInvalid, i, op.Client, op.Stream)
		}
		if (op.Kind == OpFetch || op.Kind == OpConsumer) && (op.Consumer < 0 || op.Consumer >= len(p.Consumers)) {
			return fmt.Errorf("%w: operation %d is about consumer %d", ErrInvalid, i, op.Consumer)
		}
	}
	for i := range p.Consumers {
		if c := &p.Consumers[i]; c.Stream < 0 || c.Stream >= len(p.Streams) {
			return fmt.Errorf("%w: consumer %d of stream %d", ErrInvalid, i, c.Stream)
		}
	}
	return p.validateMirrors()
}
