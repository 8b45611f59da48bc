package engine

import (
	"weir/disk/msgstore"
	"weir/disk/wal"
	"weir/model/meta"
	"weir/model/stream"
	"weir/node/event"
	"weir/node/replica"
	"weir/node/route"
)

// metaGroup is the Raft group of the catalog.
const metaGroup wal.GroupID = 1

// group is one Raft group that this server knows: the catalog, or a stream with the index of its messages. A stream that
// other servers hold has no replica here.
type group struct {
	id      wal.GroupID
	replica *replica.Replica
	// leader is the server that led the group last, in leaderTerm; 0: not known.
	leader     event.ServerID
	leaderTerm uint64
	// entry is the catalog's newest word about the stream, stream its machine and index the places of its messages; all
	// nil for the catalog.
	entry  *meta.Stream
	stream *stream.Machine
	index  *msgstore.Index
	// account is the stream's account; nil when it is not configured.
	account *account
	cached  int // bytes of index in memory that Engine.cached counts

	dirty    bool  // in Engine.dirty
	lazy     bool  // a timer is set for commands that nobody waits for
	gatherAt int64 // monotone time of the timer for messages that wait for company; 0: none
	touched  bool  // in Engine.touched: the index may have writes to hand out
	armed    int64 // monotone time of the timer that is set; 0: none
	ticking  bool  // a Tick is proposed and not yet applied
	lastTick int64 // monotone time at which the last Tick was proposed

	saving       bool  // a checkpoint is under way
	saveDue      bool  // in Engine.due
	active       bool  // in Engine.active
	lastActive   int64 // monotone time at which it last applied something
	saveFailed   error // why the last checkpoint failed
	readFailed   error // why a stored message could not be read
	foundBad     bool  // the search for damage has found some since it began with the group
	rewriting    bool  // blocks are being copied
	rewriteDue   bool  // in Engine.copies
	unwritten    int   // bytes of index that no Keep has handed out
	keepDue      bool  // they are to be handed out with the step
	moved        bool  // blocks were copied and no checkpoint knows yet
	firstUnsaved int64 // Engine.logBytes at the first entry that no checkpoint covers; 0: none

	mirror    *mirror     // what is known of a mirror that is led here; nil for others
	questions []*question // of mirrors, which wait for something new in the stream

	captures  []*route.Sub // the stream's subscriptions to its subjects
	started   bool         // the group has served since the start of the process
	following uint64       // the configuration version that is proposed to the stream
	damaged   error        // why the stream is not available

	installing             bool // a snapshot takes the place of its state: nothing more is written of that
	lastDigest, toldDigest digestAt

	damagedID     uint64 // Raft id of the replica that is damaged
	opened        *bool  // Engine.opened, for the streams of a cluster
	reconciling   bool   // what the catalog wants is being read
	ailing        error  // why what it has on the disk is not whole, while it is mended
	dispute       dispute
	ledSince      int64  // monotone time from which on this server leads it
	born          uint64 // the tick at which the group was created here, while this server is to lead it; 0 otherwise
	replacing     int64  // until when the catalog is not asked again for another replica
	awake         bool   // in Engine.awake: Raft ticks drive it
	settling      uint64 // the placement that the catalog is told to be reached
	settlingUntil int64  // until when it is not told again
}

// durable reports whether the group's messages are on the disk.
func (g *group) durable() bool { return g.replica != nil && !g.replica.Volatile() }

// markDirty notes that the group has commands to propose at the end of the step.
func (e *Engine) markDirty(g *group) {
	if !g.dirty {
		g.dirty = true
		e.dirty = append(e.dirty, g)
	}
}

// lazyNanos is how long a command that nobody waits for may stay in the open batch for the company of others.
const lazyNanos = int64(2e6)

// markLazy notes that the group has a command that nobody waits for: an acknowledgement without a reply. It goes with
// the next command that somebody waits for, or alone after lazyNanos, so that a stream of them does not keep the disk
// busy. Nothing was promised about it before it is durable.
func (e *Engine) markLazy(g *group) {
	if g.dirty || g.lazy {
		return
	}
	g.lazy = true
	e.timers.push(timer{at: e.now.Mono + lazyNanos, kind: lazyTimer, owner: uint64(g.id)})
}
