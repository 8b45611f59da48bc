package event

import (
	"errors"

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
	// Probe looks whether space on the disk is still short: Ticket. The completion has Short.
	Probe
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
	// Pin keeps the files of the newest durable checkpoint of a group, and describes it: Ticket, Group. The completion has
	// Pinned. Pinned files outlive every Save and Rewrite; an Install or Drop of the group ends the pin, as does Unpin.
	// Each pin costs the disk what it keeps: the owner bounds their number and time (PinsMax). Without a checkpoint the
	// completion fails with ErrNoCheckpoint.
	Pin
	// ReadPart reads bytes of a pinned snapshot: Ticket, Group, Snapshot.Pin, Part, Offset, Max. The completion has Data,
	// which has Max bytes unless the part of the sections ends before. It fails with ErrUnpinned when the pin has ended,
	// and with an error that wraps ErrCorrupt when the bytes are damaged here.
	ReadPart
	// Unpin ends a pin, and removes what it alone kept: Group, Snapshot.Pin. It has no completion.
	Unpin
	// Stage begins to receive a snapshot, or goes on with one, also after a restart and also with the manifest of another
	// server: Ticket, Group, Snapshot.Manifest, Verify. The completion has Staged: while part 0 is not there, it alone is
	// missing; after that, the blocks that are neither staged nor among the blocks of this replica. The engine orders
	// Stage, brings what is missing by StagePart, and orders Stage again, until nothing is missing. What was staged for
	// another manifest and fits this one is used. The group may run meanwhile.
	Stage
	// StagePart brings the next bytes of a part: Ticket, Group, Snapshot.Part, Offset, Data. The completion has Staged: the
	// part is missing as long as more is to come. A part that is complete is verified and made durable; when it does not
	// stand the test it is thrown away and the completion fails with ErrCorrupt: the source is damaged, or was changed
	// while it was read (by an Erase), and the part has to be brought again from its start. Bytes that do not follow what
	// is there are ignored: the completion says what is missing.
	StagePart
	// Unstage gives up what was staged: Ticket, Group.
	Unstage
	// Install makes the staged snapshot the state of the group: Ticket, Group, Snapshot.Manifest. Nothing of it may be
	// missing. The completion has Installed, whose Log is empty. A crash leaves the old state or the new one. After the
	// order, operations on the message index of the old state must not be ordered any more (Keep, Erase, Save, Rewrite,
	// Fetch), and after the completion the engine appends a wal.Write with Reset, HardState, Meta and Compact at the
	// manifest's index. If the process ends between the two, the group is recovered with a checkpoint that is newer than
	// its log. The index may be below that of the checkpoint that is replaced only when that one, or the log, is damaged.
	// A failure before the switch leaves everything as it was, the staged parts too. A failure with ErrHalfInstalled
	// comes after the switch: the group is the new one, but what the disk has of it must not be used before an Install
	// succeeds, ordered again with the same manifest, or in a group without blocks with any.
	Install
	// Scrub verifies the checksums of one message block, or of the checkpoint: Ticket, Group, Snapshot.Scrub. The
	// completion fails with an error that wraps ErrCorrupt when something is damaged. It reads one block at most.
	Scrub
)

// PinsMax bounds the pins of a node.
const PinsMax = 16

// ErrNoCheckpoint says that a group has no durable checkpoint to be pinned.
var ErrNoCheckpoint = errors.New("the group has no checkpoint")

// ErrPinned says that PinsMax checkpoints are pinned already.
var ErrPinned = errors.New("too many snapshots are being sent")

// ErrUnpinned says that a pin has ended.
var ErrUnpinned = errors.New("the snapshot is no longer pinned")

// ErrNotStaged says that a snapshot can not be installed, or a part not taken, because parts before are missing.
var ErrNotStaged = errors.New("the snapshot is not staged")

// ErrHalfInstalled says that an Install failed behind the switch to the new state.
var ErrHalfInstalled = errors.New("the snapshot is installed in part")

// Log reports whether the operation is about the write-ahead log. Operations on the log and the others share nothing,
// so that each kind may be carried out by a worker of its own; each worker keeps the order of its operations.
func (k OpKind) Log() bool { return k == Persist || k == Probe }

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
	// Snapshot is the order of an operation about a snapshot.
	Snapshot Snapshot
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
	// Group is the group of the operation; 0 for a Persist or Probe.
	Group wal.GroupID
	// Err is why the operation failed. After a failed Persist nothing of it may be taken as durable, and every later
	// Persist fails as well.
	Err error
	// Short, of a Persist or Probe, says that the log has found no room, and uses that which is kept for freeing the disk.
	Short bool
	// Message is what a Fetch read. The slices belong to the receiver.
	Message msgstore.Msg
	// Rewritten says where the messages of a Rewrite are now.
	Rewritten msgstore.Rewritten
	// Pinned is the outcome of a Pin.
	Pinned Pinned
	// Data is what a ReadPart read. It belongs to the receiver.
	Data []byte
	// Staged is the outcome of a Stage or StagePart.
	Staged Staged
	// Installed is what an Install leaves, for restoring the group.
	Installed *Group
}
