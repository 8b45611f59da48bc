package event

import (
	"weir/disk/checkpoint"
	"weir/disk/msgstore"
	"weir/disk/wal"
)

// IndexSections is the first section id of a checkpoint that belongs to the index of a stream's messages
// (msgstore.StateSection, with this added to its id); the ids below it are the state machine's.
const IndexSections = uint64(1) << 62

// Group is what storage found of one Raft group.
type Group struct {
	// ID is the group.
	ID wal.GroupID
	// Log is what the write-ahead log holds: hard state, meta and the entries behind the compaction mark.
	Log wal.Group
	// Checkpoint is the newest durable checkpoint; its Index is 0 without one.
	Checkpoint checkpoint.State
	// NextBlock and Blocks are the message blocks that the checkpoint refers to, for msgstore.Index.Restore.
	NextBlock msgstore.BlockID
	Blocks    []msgstore.BlockInfo
	// Damage is why the group can not be used: something that was durable is damaged or missing. The other fields are
	// what could be read.
	Damage error
}
