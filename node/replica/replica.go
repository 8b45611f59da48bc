// Package replica is one member of one Raft group: a RawNode of go.etcd.io/raft/v3, the tail of its log, and the state
// machine that the log drives. Read this file first, then advance.go.
//
// It promises that a command's effects are handed out once, after the command is committed and applied; that a read
// sees everything acknowledged by anyone before it and everything that was proposed here before it; and that neither
// happens before an entry of the leader's own term has been applied. Votes and acknowledgements of appends leave after
// they are durable. It does no I/O: appends and messages leave through a Sink, appends come back as Persisted, messages
// of others as Receive. Messages may be lost, repeated, reordered or late.
//
// A group of one member needs no ticks and sends no messages; everything else about it is the same.
package replica

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"

	"weir/disk/checkpoint"
	"weir/disk/wal"
	"weir/model/effect"
	"weir/node/event"
	"weir/spec/assert"
)

// Machine is a deterministic state machine driven by a log.
type Machine interface {
	// Apply applies one entry and appends its effects to out. It is total: it neither fails nor looks at anything but
	// its state and the entry. index is the entry's, one more than that of the entry before. An empty entry changes
	// nothing but Applied.
	Apply(index uint64, entry []byte, out *effect.List)
	// Applied is the index of the last applied entry.
	Applied() uint64
	// LastTime is the newest timestamp applied, in unix nanoseconds.
	LastTime() int64
	// Deadline is the unix nanoseconds from which a Tick has something to do; 0: never.
	Deadline() int64
	// Digest is a hash of the complete logical state; equal states have equal digests.
	Digest() uint64
	Sections
}

// Sections is the state of a machine cut into pieces for incremental checkpoints.
type Sections interface {
	// DirtySections appends the ids of the sections that changed since the last MarkClean, ascending.
	DirtySections(dst []uint64) []uint64
	// AppendSection appends the canonical bytes of a section; false means that the section no longer exists.
	AppendSection(dst []byte, id uint64) ([]byte, bool)
	// MarkClean notes that the dirty sections have been taken.
	MarkClean()
	// MarkDirty takes back MarkClean for sections that could not be saved.
	MarkDirty(ids []uint64)
	// RestoreSection loads a section into a fresh machine.
	RestoreSection(id uint64, data []byte) error
	// Restored validates the whole after the last RestoreSection.
	Restored() error
}

// Sink takes what a replica asks for while it advances. Its methods may propose and read; they must not flush.
type Sink interface {
	// Persist adds a write to the step's append to the log; the ticket comes back through Persisted.
	Persist(w wal.Write) event.Ticket
	// Applied hands out the effects of one applied entry. batch holds the callers that wait for its results; it is nil
	// when the entry was not proposed here in this run. Both are valid during the call only.
	Applied(r *Replica, batch *Batch, effects *effect.List)
	// Undone tells that none of the commands of a batch will ever be carried out: it was not proposed, or other entries have
	// taken its place in the log. The batch is valid during the call only; Done of its callers is called behind it.
	Undone(r *Replica, batch *Batch)
	// Send sends a message to another replica of the group. It may be lost, unlike m, which is never changed.
	Send(r *Replica, to Member, m *pb.Message)
	// Role tells that the replica leads now, or no longer, or knows another leader.
	Role(r *Replica)
	// Members tells that an applied entry, or a snapshot, changed the members.
	Members(r *Replica)
	// Woke tells that the replica rests no longer: from now on it has to be ticked.
	Woke(r *Replica)
}

// Config says which replica of which group this is and where it starts.
type Config struct {
	// Group is the Raft group.
	Group wal.GroupID
	// ID is the Raft id of this replica in its group; not 0.
	ID uint64
	// Members are the members of the group, ascending by id: those of the checkpoint (section event.MembersSection), and
	// without it those that the group was born with. A replica that joins later is not among the latter.
	Members []Member
	// Machine is the state machine, restored from the newest checkpoint.
	Machine Machine
	// Log is what the write-ahead log holds of the group.
	Log wal.Group
	// Snapshot is the index and term of the checkpoint that Machine was restored from; zero without one.
	Snapshot checkpoint.Mark
	// Wanted is called when a follower needs a snapshot and no checkpoint is new enough for that: the owner takes one soon.
	// It may be called often. Nil ignores it.
	Wanted func(r *Replica)
	// Meta are bytes that the log keeps for the group; they are written with the first append. Nil when the log has them.
	Meta []byte
	// Volatile groups keep their log in memory only: the group ends with the process. They have one member.
	Volatile bool
	// Boot distinguishes this run of the process from earlier ones; batch tokens are made from it.
	Boot uint64
	// Load is shared by all replicas of the node.
	Load *Load
	// ElectionTicks is the number of ticks without a leader after which a follower campaigns, up to twice of it at random;
	// 0 means ElectionTicksDefault. Heartbeats are sent with each tick.
	ElectionTicks int
	// Pin gives the election timeout, in ticks, of a term and a role. Nil lets Raft draw it.
	Pin func(term uint64, role Role) int
	// LeaseNanos, when it is not 0, is how long after the beginning of a round a leader answers reads without another one,
	// as long as Leases, if there is one, agrees. It is less than an election timeout; see lease.go for what it trusts.
	LeaseNanos int64
	Leases     func() bool
	// Asked, when it is not nil, is told of every read as it is asked, and what that returns is called when the read is answered
	// with true. It is for the simulator.
	Asked func(r *Replica) (answered func())
	// LogTailBytes bounds the applied entries that are kept for followers; 0 means LogTailBytesDefault.
	LogTailBytes int
	// Plant holds deliberate faults for the simulator; empty in production.
	Plant Plant
}

// Role is what a replica is in its group.
type Role uint8

// The closed set of roles.
const (
	Follower Role = iota
	Candidate
	Leader
)

// ElectionTicksDefault is the default of Config.ElectionTicks.
const ElectionTicksDefault = 10

// InFlightMax bounds the appends of one replica that may be under way; while it is reached commands gather in the open
// batch, so that batches grow with the latency of the disk.
const InFlightMax = 2

// Bounds of what Raft does at a time.
const (
	messageBytesMax     = 1 << 20  // entries of one message
	committedBytesMax   = 64 << 20 // entries applied at a time
	messagesInFlightMax = 256      // to one follower
	bytesInFlightMax    = 32 << 20 // to one follower
)

// idMax is above every Raft id; Raft uses the ids from here on for itself.
const idMax = min(raft.LocalAppendThread, raft.LocalApplyThread)

// Replica is one member of a Raft group. It is not safe for concurrent use.
type Replica struct {
	config  Config
	node    *raft.RawNode
	pin     *int // Raft's election timeout, where the configuration gives it
	log     *logTail
	machine Machine
	effects effect.List

	hard     wal.HardState // as handed out to the log
	detached bool          // the log that was found does not reach the checkpoint
	meta     []byte        // not nil until it has been written
	kept     []byte        // the same, for the time when the log begins anew
	inFlight []appendInFlight

	term, commit uint64
	last         uint64 // index of the newest entry of the log, durable or not
	raftApplied  uint64 // index up to which Raft's entries have been applied; below the machine's during an Install
	leaderID     uint64 // 0: unknown
	leader       bool
	serving      bool // Invariant: serving implies leader and that an entry of the current term is applied.
	advancing    bool
	quiesced     bool
	started      bool // it has started, and stands for election when it is the only voter
	broken       error

	members      []Member
	membersIndex uint64 // of the newest entry that changed them
	membersDirty bool   // no checkpoint has them
	strangers    []Member
	changing     uint64 // index of a change that is not applied; 0: none
	unsettled    int    // writes under way that make changes of the members known
	settledBy    uint64 // index of the entry that tells others that the members' newest change is committed
	rounds       bool   // reads need a round of messages
	sole         bool   // this is the only member

	holdTicks     int      // for Plant.CommitEarlierTerm
	snapshotTicks int      // since members that install a snapshot were looked for
	told          []uint64 // scratch memory of that

	propose *pb.Message // see proposal
	open    *Batch
	waiting []*Batch // proposed or to be proposed, oldest first
	spare   []*Batch
	token   uint64
	time    int64    // of the newest proposed batch
	ledTerm uint64   // in which this replica led last
	late    []*Batch // proposed in terms that have ended, oldest first
	// lateTicks counts ticks since the newest of late.
	lateTicks int
	asking
	lease lease

	taken, saved snapshot // the newest checkpoint under way, and the newest durable one
	tail         tail
	proposed     int // of waiting
	waitingBytes int // of waiting and open
	gathering

	unsavedBytes   int
	lastBatchBytes int // size of the last batch, a guess at that of the next
	takenBytes     int // that the last Snapshot took from unsavedBytes
	lastBytes      int
}

type appendInFlight struct {
	ticket    event.Ticket
	entries   []*pb.Entry
	snapshot  *pb.Snapshot // that the log begins with
	settles   bool         // it makes a change of the members known
	responses []*pb.Message
}

// New starts a replica. The caller calls Start next.
func New(config Config) (*Replica, error) {
	assert.True(config.ID != 0 && config.ID < idMax, "replica id is one that Raft takes", config.ID)
	assert.True(!config.Volatile || len(config.Members) == 1, "a volatile group has one member", uint64(len(config.Members)))
	r := &Replica{config: config, machine: config.Machine, token: config.Boot << 24}
	r.asking.round = config.Boot << 24
	r.hard = config.Log.HardState
	r.meta, r.kept = config.Meta, config.Meta
	if r.kept == nil {
		r.kept = config.Log.Meta
	}
	applied := config.Machine.Applied()
	assert.True(applied == config.Snapshot.Index, "machine starts at its checkpoint", applied, config.Snapshot.Index)
	if config.Plant.ForgetVote {
		r.hard.Vote = 0
	}
	if r.hard.Commit < applied {
		// Commit is written lazily; what a checkpoint covers was committed.
		r.hard.Commit = applied
	}
	if n := len(config.Log.Entries); n > 0 && config.Log.Entries[n-1].Term > r.hard.Term {
		// A term that was used and is forgotten would be used twice.
		return nil, fmt.Errorf("the log has an entry of term %d, its newest term is %d: %w",
			config.Log.Entries[n-1].Term, r.hard.Term, wal.ErrCorrupt)
	}
	r.detached = detached(&config)
	r.log = newLogTail(&r.config, r.hard)
	r.log.replica = r
	r.config.Log = wal.Group{} // its entries keep whole segments of the log in memory
	r.time = config.Machine.LastTime()
	r.term, r.commit, r.raftApplied = r.hard.Term, r.hard.Commit, applied
	r.last, _ = r.log.LastIndex()
	if tail := r.log.entries; len(tail) > 0 {
		r.noteChanges(tail)
	}
	r.setMembers(config.Members)
	r.membersDirty = len(config.Members) > 1 && (applied == 0 || r.detached)
	r.saved = snapshot{mark: config.Snapshot, members: config.Members}
	if r.hard.Commit > r.last {
		return nil, fmt.Errorf("the log of group %d ends at %d, committed is %d: %w", config.Group, r.last, r.hard.Commit, wal.ErrCorrupt)
	}
	return r, r.startRaft(applied)
}

func (r *Replica) startRaft(applied uint64) error {
	if r.config.ElectionTicks == 0 {
		r.config.ElectionTicks = ElectionTicksDefault
	}
	node, err := raft.NewRawNode(&raft.Config{
		ID:                          r.config.ID,
		ElectionTick:                r.config.ElectionTicks,
		HeartbeatTick:               1,
		Storage:                     r.log,
		Applied:                     applied,
		AsyncStorageWrites:          true,
		MaxSizePerMsg:               messageBytesMax,
		MaxCommittedSizePerReady:    committedBytesMax,
		MaxInflightMsgs:             messagesInFlightMax,
		MaxInflightBytes:            bytesInFlightMax,
		CheckQuorum:                 true,
		PreVote:                     true,
		ReadOnlyOption:              raft.ReadOnlySafe,
		Logger:                      quiet{},
		DisableProposalForwarding:   true,
		DisableConfChangeValidation: r.config.Plant.TwoChanges,
		StepDownOnRemoval:           true,
	})
	if err != nil {
		return fmt.Errorf("start replica %d of group %d: %w", r.config.ID, r.config.Group, err)
	}
	r.node = node
	if r.config.Pin != nil {
		r.pin = electionTimeout(node)
	}
	return nil
}

// Start applies what is known to be committed, and lets the only voter of a group stand for election at once; replicas of
// larger groups wait for their timers.
func (r *Replica) Start(sink Sink) {
	if r.detached {
		// An append can not leave a gap behind what the log has.
		w := r.resetTo(r.machine.Applied())
		r.inFlight = append(r.inFlight, appendInFlight{ticket: sink.Persist(w)})
	}
	r.Advance(sink)
	r.started = true
	r.standAlone()
	r.Advance(sink)
}

// Group is the Raft group of the replica.
func (r *Replica) Group() wal.GroupID { return r.config.Group }

// ID is the Raft id of the replica.
func (r *Replica) ID() uint64 { return r.config.ID }

// Machine is the state machine; the caller may read it, and only Apply changes it.
func (r *Replica) Machine() Machine { return r.machine }

// Serving reports whether the replica leads its group and has applied an entry of its own term.
func (r *Replica) Serving() bool { return r.serving && r.broken == nil }

// IsLeader reports whether the replica leads its group, as far as it knows.
func (r *Replica) IsLeader() bool { return r.leader && r.broken == nil }

// Leader is the Raft id of the leader of the current term; 0 when it is not known.
func (r *Replica) Leader() uint64 { return r.leaderID }

// Term is the current term.
func (r *Replica) Term() uint64 { return r.term }

// Commit is the index up to which the log is known to be committed.
func (r *Replica) Commit() uint64 { return r.commit }

// LastIndex is the index of the newest entry of the log, which need not be durable.
func (r *Replica) LastIndex() uint64 { return r.last }

// Volatile reports whether the group's log is kept in memory only.
func (r *Replica) Volatile() bool { return r.config.Volatile }

// Broken is why the replica can no longer make progress, or nil.
func (r *Replica) Broken() error { return r.broken }

// LastEntryBytes is the size of the newest applied entry in the log.
func (r *Replica) LastEntryBytes() int { return r.lastBytes }

// UnsavedBytes is the size of the entries applied since the last checkpoint was taken.
func (r *Replica) UnsavedBytes() int { return r.unsavedBytes }

// Applied is the index and term of the last applied entry.
func (r *Replica) Applied() checkpoint.Mark {
	index := r.machine.Applied()
	return checkpoint.Mark{Index: index, Term: r.log.termOf(index)}
}

// Idle reports whether nothing is proposed, under way or waiting.
func (r *Replica) Idle() bool {
	return r.open == nil && len(r.waiting) == 0 && len(r.inFlight) == 0 && len(r.reads) == 0
}

// Fail stops the replica for good: its log can no longer be appended to. Who waits learns that the outcome is not known
// here; reads of what is applied go on where no other replica could know more.
func (r *Replica) Fail(err error) {
	if r.broken == nil {
		r.broken = err
		r.abandon()
		r.failReads()
	}
}

// Retire ends the replica because its group has ended; who waits learns that the outcome is not known. It returns what they
// waited for.
func (r *Replica) Retire() []*Batch {
	r.leader, r.serving = false, false
	r.broken = ErrRetired
	waiting := r.abandon()
	r.failReads()
	r.tail.drop(&r.config)
	if r.log != nil {
		r.log.release()
	}
	return waiting
}

// ErrRetired is why a replica of a deleted group makes no progress.
var ErrRetired = errors.New("the group has ended")
