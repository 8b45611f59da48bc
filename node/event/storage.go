package event

import (
	"weir/disk/checkpoint"
	"weir/disk/msgstore"
	"weir/disk/wal"
)

// OpKind tells storage operations apart.
type OpKind uint8

// The closed set of storage operations.
const (
	// Persist appends to the log and makes it durable before it completes: Ticket, Writes. Consecutive operations may be
	// carried out as one append; their completions are delivered in order.
	Persist OpKind = iota
	// Keep writes ranges of message blocks behind the log, without making them durable: Group, Blocks. It has no
	// completion; a failure shows at the next Save of the group.
	Keep
	// Fetch reads one message: Ticket, Group, Loc.
	Fetch
	// Save makes a checkpoint durable: Ticket, Group, Save. In this order: the group's blocks, the checkpoint, then the
	// removal of blocks that it no longer refers to. The log is not touched: once the Save has completed the engine adds
	// the compaction mark to a later Persist.
	Save
	// Rewrite copies the live messages of a block into a new block: Ticket, Group, Block.
	Rewrite
	// Erase overwrites the bytes of a message that is about to be forgotten: Group, Loc. It has no completion; what it
	// writes is durable with the next Save.
	Erase
	// Drop removes the files of a group that has ended in the log: Ticket, Group. They are renamed to a quarantine and
	// reaped later.
	Drop
)

// Log reports whether the operation is about the write-ahead log. Operations on the log and the others share nothing,
// so that each kind may be carried out by a worker of its own; each worker keeps the order of its operations.
func (k OpKind) Log() bool { return k == Persist }

// Op is one storage operation.
type Op struct {
	// Kind says which fields count.
	Kind OpKind
	// Ticket pairs the operation with its completion.
	Ticket Ticket
	// Group is the Raft group that the operation is about.
	Group wal.GroupID
	// Writes are what a Persist appends, in order.
	Writes []wal.Write
	// Resume says that the engine knows of the failure of an earlier Persist and begins anew with this one. Without it
	// every Persist after a failed one fails as well, so that nothing is appended behind a gap.
	Resume bool
	// Blocks are the ranges that a Keep writes. The bytes are frozen: the engine does not change them any more.
	Blocks []msgstore.BlockWrite
	// Loc is the place of the message that a Fetch reads.
	Loc msgstore.Loc
	// Save is the checkpoint.
	Save Checkpoint
	// Block is the order of a Rewrite.
	Block msgstore.Rewrite
}

// Checkpoint is what a Save makes durable.
type Checkpoint struct {
	// Update holds the sections that changed since the last Save, and the log index that they stand for.
	Update checkpoint.Update
	// Blocks are the message blocks that the checkpoint refers to; others may be removed once it is durable.
	Blocks []msgstore.BlockID
}

// Completion is the end of a storage operation.
type Completion struct {
	// Ticket is the ticket of the operation.
	Ticket Ticket
	// Kind is the kind of the operation.
	Kind OpKind
	// Group is the group of the operation; 0 for a Persist.
	Group wal.GroupID
	// Err is why the operation failed. After a failed Persist nothing of it may be taken as durable, and every later
	// Persist fails as well.
	Err error
	// Message is what a Fetch read. The slices belong to the receiver.
	Message msgstore.Msg
	// Rewritten says where the messages of a Rewrite are now.
	Rewritten msgstore.Rewritten
}
