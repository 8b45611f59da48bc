// Package replica is one member of one Raft group: a RawNode of go.etcd.io/raft/v3, the tail of its log, and the state
// machine that the log drives.
//
// It promises that a command's effects are handed out once, after the command is committed and applied; that a read
// sees everything that was proposed here before it; and that neither happens before an entry of the leader's own term
// has been applied. It does no I/O: appends leave through a Sink and come back as Persisted.
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

// Sink takes what a replica asks for while it advances.
type Sink interface {
	// Persist adds a write to the step's append to the log; the ticket comes back through Persisted.
	Persist(w wal.Write) event.Ticket
	// Applied hands out the effects of one applied entry. batch holds the callers that wait for its results; it is nil
	// when the entry was not proposed here. Both are valid during the call only.
	Applied(r *Replica, batch *Batch, effects *effect.List)
}

// Config says which replica of which group this is and where it starts.
type Config struct {
	// Group is the Raft group.
	Group wal.GroupID
	// ID is the Raft id of this replica in its group; not 0.
	ID uint64
	// Voters are the Raft ids of the group's voters.
	Voters []uint64
	// Machine is the state machine, restored from the newest checkpoint.
	Machine Machine
	// Log is what the write-ahead log holds of the group.
	Log wal.Group
	// Snapshot is the index and term of the checkpoint that Machine was restored from; zero without one.
	Snapshot checkpoint.Mark
	// Meta are bytes that the log keeps for the group; they are written with the first append.
	Meta []byte
	// Volatile groups keep their log in memory only: the group ends with the process.
	Volatile bool
	// Boot distinguishes this run of the process from earlier ones; batch tokens are made from it.
	Boot uint64
	// Load is shared by all replicas of the node.
	Load *Load
	// Plant holds deliberate faults for the simulator; empty in production.
	Plant Plant
}

// Plant names the deliberate faults of this package, for checking that the simulator finds them.
type Plant struct {
	// AckBeforeSync treats an append as durable when it is handed out.
	AckBeforeSync bool
	// ReadBeforeTerm serves reads before an entry of the leader's term is applied.
	ReadBeforeTerm bool
}

// InFlightMax bounds the appends of one replica that may be under way; while it is reached commands gather in the open
// batch, so that batches grow with the latency of the disk.
const InFlightMax = 2

// Replica is one member of a Raft group. It is not safe for concurrent use.
type Replica struct {
	config  Config
	node    *raft.RawNode
	log     *logTail
	machine Machine
	effects effect.List

	hard     wal.HardState
	meta     []byte // not nil until it has been written
	inFlight []appendInFlight

	leader  bool
	serving bool // Invariant: serving implies leader and that an entry of the current term is applied.
	broken  error

	open    *Batch
	waiting []*Batch // proposed or to be proposed, oldest first
	spare   []*Batch
	token   uint64
	time    int64 // of the newest proposed batch
	reads   []read

	tail         tail
	proposed     int // of waiting
	waitingBytes int // of waiting and open

	unsavedBytes   int
	lastBatchBytes int // size of the last batch, a guess at that of the next
	takenBytes     int // that the last Snapshot took from unsavedBytes
	lastBytes      int
}

type appendInFlight struct {
	ticket    event.Ticket
	entries   []*pb.Entry
	responses []*pb.Message
}

// New starts a replica. The caller calls Start next.
func New(config Config) (*Replica, error) {
	assert.True(config.ID != 0, "replica id is not 0")
	r := &Replica{config: config, machine: config.Machine, token: config.Boot << 24}
	r.hard = config.Log.HardState
	r.meta = config.Meta
	r.log = newLogTail(config)
	applied := config.Machine.Applied()
	assert.True(applied == config.Snapshot.Index, "machine starts at its checkpoint", applied, config.Snapshot.Index)
	if r.hard.Commit < applied {
		// Commit is written lazily; what a checkpoint covers was committed.
		r.hard.Commit = applied
	}
	r.log.hard = r.hard
	if n := len(config.Log.Entries); n > 0 && config.Log.Entries[n-1].Term > r.hard.Term {
		// A term that was used and is forgotten would be used twice.
		return nil, fmt.Errorf("the log has an entry of term %d, its newest term is %d: %w",
			config.Log.Entries[n-1].Term, r.hard.Term, wal.ErrCorrupt)
	}
	r.config.Log = wal.Group{} // its entries keep whole segments of the log in memory
	r.time = config.Machine.LastTime()
	node, err := raft.NewRawNode(&raft.Config{
		ID:                        config.ID,
		ElectionTick:              10,
		HeartbeatTick:             2,
		Storage:                   r.log,
		Applied:                   applied,
		AsyncStorageWrites:        true,
		MaxSizePerMsg:             1 << 20,
		MaxCommittedSizePerReady:  64 << 20,
		MaxInflightMsgs:           256,
		CheckQuorum:               true,
		PreVote:                   true,
		ReadOnlyOption:            raft.ReadOnlySafe,
		Logger:                    quiet{},
		DisableProposalForwarding: true,
		StepDownOnRemoval:         true,
	})
	if err != nil {
		return nil, err
	}
	r.node = node
	return r, nil
}

// Start lets the only voter of a group stand for election at once; replicas of larger groups wait for their timers.
func (r *Replica) Start(sink Sink) error {
	if len(r.config.Voters) == 1 {
		if err := r.node.Campaign(); err != nil {
			return err
		}
	}
	r.Advance(sink)
	return nil
}

// Group is the Raft group of the replica.
func (r *Replica) Group() wal.GroupID { return r.config.Group }

// Machine is the state machine; the caller may read it, and only Apply changes it.
func (r *Replica) Machine() Machine { return r.machine }

// Serving reports whether the replica leads its group and has applied an entry of its own term.
func (r *Replica) Serving() bool { return r.serving && r.broken == nil }

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
// here; reads of what is applied go on.
func (r *Replica) Fail(err error) {
	if r.broken == nil {
		r.broken = err
		r.abandon()
	}
}

// Retire ends the replica because its group has ended; who waits learns that the outcome is not known.
func (r *Replica) Retire() {
	r.leader, r.serving = false, false
	r.broken = ErrRetired
	r.abandon()
	r.tail.drop(&r.config)
}

// ErrRetired is why a replica of a deleted group makes no progress.
var ErrRetired = errors.New("the group has ended")

// Advance carries out everything that Raft has ready: appends leave through the sink, committed entries are applied.
func (r *Replica) Advance(sink Sink) {
	if r.broken != nil {
		return
	}
	for r.node.HasReady() {
		ready := r.node.Ready()
		if ready.SoftState != nil {
			r.follow(ready.RaftState)
		}
		for _, m := range ready.Messages {
			switch m.GetTo() {
			case raft.LocalAppendThread:
				r.persist(m, sink)
			case raft.LocalApplyThread:
				r.apply(m, sink)
			default:
				// A group of one has nobody to write to.
				assert.Unreachable("message to another replica", m.GetTo())
			}
		}
	}
}

// follow notes the role that Raft gives this replica.
func (r *Replica) follow(state raft.StateType) {
	was := r.leader
	r.leader = state == raft.StateLeader
	if was && !r.leader {
		r.serving = false
		r.abandon()
	}
	if r.leader && r.config.Plant.ReadBeforeTerm {
		r.serving = true
		r.runReads()
	}
}

// persist hands out one MsgStorageAppend. Raft asks that its responses leave after the write is durable, in order. A
// message that changes nothing but the commit index needs no write of its own: its responses ride with the append
// before it.
func (r *Replica) persist(m *pb.Message, sink Sink) {
	hard := r.hard
	if m.Term != nil {
		hard = wal.HardState{Term: m.GetTerm(), Vote: m.GetVote(), Commit: m.GetCommit()}
	}
	durable := len(m.Entries) > 0 || hard.Term != r.hard.Term || hard.Vote != r.hard.Vote
	r.hard = hard
	if !durable || r.config.Volatile {
		if n := len(r.inFlight); n > 0 {
			last := &r.inFlight[n-1]
			last.responses = append(last.responses, m.Responses...)
			return
		}
		r.log.append(m.Entries)
		r.respond(m.Responses)
		return
	}
	w := wal.Write{Group: r.config.Group, HasHardState: true, HardState: hard, Meta: r.meta}
	r.meta = nil
	w.Entries = make([]wal.Entry, len(m.Entries))
	for i, e := range m.Entries {
		w.Entries[i] = wal.Entry{Term: e.GetTerm(), Index: e.GetIndex(), Type: uint8(e.GetType()), Data: e.GetData()}
	}
	ticket := sink.Persist(w)
	if r.config.Plant.AckBeforeSync {
		r.log.append(m.Entries)
		r.respond(m.Responses)
		return
	}
	r.inFlight = append(r.inFlight, appendInFlight{ticket, m.Entries, m.Responses})
}

// Persisted notes that every append up to and including the one with the ticket is durable.
func (r *Replica) Persisted(ticket event.Ticket, sink Sink) {
	done := 0
	for done < len(r.inFlight) && r.inFlight[done].ticket <= ticket {
		r.log.append(r.inFlight[done].entries)
		r.respond(r.inFlight[done].responses)
		done++
	}
	rest := copy(r.inFlight, r.inFlight[done:])
	clear(r.inFlight[rest:])
	r.inFlight = r.inFlight[:rest]
	r.Advance(sink)
}

func (r *Replica) respond(responses []*pb.Message) {
	for _, m := range responses {
		assert.True(m.GetTo() == r.config.ID, "a group of one responds to itself", m.GetTo(), r.config.ID)
		if err := r.node.Step(m); err != nil {
			// Responses of an earlier term are ignored by Raft, as they should be.
			continue
		}
	}
}

// apply applies the committed entries of one MsgStorageApply.
func (r *Replica) apply(m *pb.Message, sink Sink) {
	for _, e := range m.Entries {
		assert.True(e.GetIndex() == r.machine.Applied()+1, "entries are applied one after the other",
			e.GetIndex(), r.machine.Applied())
		assert.True(e.GetType() == pb.EntryNormal, "a group of one has no membership entries", uint64(e.GetType()))
		r.log.noteTerm(e.GetIndex(), e.GetTerm())
		r.effects.Reset()
		r.machine.Apply(e.GetIndex(), e.GetData(), &r.effects)
		r.lastBytes = len(e.GetData()) + entryOverheadBytes
		r.unsavedBytes += r.lastBytes
		r.tail.add(e, r.lastBytes, &r.config)
		if r.leader && e.GetTerm() == r.hard.Term {
			r.serving = true
		}
		batch := r.resolve(e.GetData())
		sink.Applied(r, batch, &r.effects)
		if batch != nil {
			r.recycle(batch)
		}
		r.runReads()
	}
	r.log.trim(r.machine.Applied())
	r.respond(m.Responses)
}

// entryOverheadBytes is what an entry costs in the log beside its data.
const entryOverheadBytes = 40
