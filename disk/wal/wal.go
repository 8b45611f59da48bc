// Package wal is the write-ahead log of a node: one log for all its Raft groups.
//
// It promises that after Append returns nil (and, in lazy mode, after Sync returns nil) every write given survives any
// power loss; that what Open recovers for a group is what was appended, possibly followed by writes whose Append never
// returned, and nothing else; and that damage to bytes that were durable is reported as damage of the groups that it can
// concern, never read as the end of the log. It does not know what entries mean, keeps no entries in memory, and gives
// none back after Open: the owner keeps the tail of each group. A Log is used by one caller at a time.
//
// # Files
//
//	0000000000000007.seg   segments; the name is the id of the segment, an id is never used twice
//	mark                   two slots with the newest known synced position
//
// A segment is a sequence of frames of package record, bound to the id of the segment and to their offsets:
//
//	+--------+-------+- - -+--------+-------+-------+--------+-------+- - -
//	| header | table |     | append | group | group | append | group |
//	+--------+-------+- - -+--------+-------+-------+--------+-------+- - -
//	                       \_______ one Append _____/
//
// The header names the segment before it and where that one ends; the table repeats, for every live group, its hard
// state, its opaque bytes, its compaction mark, its last index and how many records it has written. So a segment can be
// given up as soon as no group needs its entries, without copying anything. A file that is given up is renamed to a new
// id and overwritten: its old frames are bound to the old id and no longer frames.
//
// Each append begins with an append frame: the offset up to which the segment was synced before the append was written,
// how many groups the log has had, and which groups the appends before it wrote, back to two pages before. A group frame
// carries a record number, counting the records of its group.
//
// # Crash and damage
//
// A bad frame at offset b of the newest segment is the torn end of the log unless something says that b was synced:
// an append frame behind it with a synced offset above b, a mark slot above b, or an unreadable sector at or behind b.
// In an older segment everything before the end stated by the next header was synced. What nothing contradicts is cut:
// the log goes on at b, after the frames that the torn append may have left behind b have been zeroed and synced. So no
// hole ever stands before a later append. The states that can be told apart are:
//
//   - append n damaged, append n+1 or a later segment or a mark behind it: damage, reported;
//   - the last append damaged after it was synced, before the next append and before SaveMark: reads as torn. SaveMark
//     narrows this window; Open, Close and the start of a segment call it, and the owner calls it when idle.
//
// Damage is attributed by record numbers, which no two groups with one id share: a group whose next record or table entry
// continues its count lost nothing. The
// append frame behind the damage gives the numbers of the groups written shortly before it. Groups for which nothing
// behind the damage speaks are reported as well when the damage reaches further back. What is reported once is written into the table of
// a new segment, and reported until the group is dropped or reset. The segments that hold records of a damaged group are
// set aside under another name when no other group needs them. Recovery of the other groups is not affected.
package wal

import (
	"errors"

	"weir/disk/record"
	"weir/spec/assert"
)

// GroupID identifies a Raft group of the node. An id may be used again once its group has ended with a Drop.
type GroupID uint64

// Entry is a Raft entry.
type Entry struct {
	Term, Index uint64
	Type        uint8
	Data        []byte
}

// HardState is what a Raft replica must remember: its term, whom it voted for in it, and a lower bound of its commit.
type HardState struct {
	Term, Vote, Commit uint64
}

// Write is what one group appends. The slices are read during Append only.
type Write struct {
	Group GroupID
	// Entries have consecutive indexes and follow or overwrite what the group has: the first is at most one above the
	// last index (or above Compact, if that is higher). Entries of the group from the first index on are superseded.
	Entries []Entry
	// HardState replaces the hard state of the group if HasHardState is set.
	HardState    HardState
	HasHardState bool
	// Meta replaces the opaque bytes of the group unless it is nil.
	Meta []byte
	// Compact says that the entries with index <= Compact are no longer needed. Zero, or a value not above the current
	// mark, says nothing. A mark above the last index moves the last index there.
	Compact uint64
	// Reset makes this write the whole state of the group: everything before it is forgotten, damage included. It needs
	// HasHardState and Meta. A replica that installs a snapshot uses it with Compact.
	Reset bool
	// Drop removes the group. Nothing else may be set.
	Drop bool
}

// Bounds of the log.
const (
	// SegmentBytesDefault is the size of a segment.
	SegmentBytesDefault = 64 << 20
	// AppendBytesMax bounds the encoded size of one Append.
	AppendBytesMax = 256 << 20
	// LiveSegmentsDefault is how many segments may be live before Pinning names a group.
	LiveSegmentsDefault = 16

	pageBytes     = 4096    // unit of writing: whole pages need no read before the write
	keptBufBytes  = 8 << 20 // a larger append buffer is given back
	tableBytesMax = 256 << 10
	segmentsKept  = 2 // the newest segments stay, so that every table stands in two places or can be recounted
)

// Options configure a log. The zero value means the defaults.
type Options struct {
	// SegmentBytes is the size of a segment: a multiple of 4096. An append that is larger gets a larger segment.
	SegmentBytes int64
	// LiveSegmentsMax is the number of live segments above which Pinning names a group.
	LiveSegmentsMax int
	// Lazy leaves syncing to the caller: Append returns after the write, and only Sync makes it durable.
	Lazy bool
	// Patient ends Open with an error that wraps vfs.ErrIO when the device does not read something: it may do so later.
	// Without it, what is not readable is damaged.
	Patient bool
	// Plant switches on faults for the tests of the tests.
	Plant Plant
}

// Plant names faults that the crash enumerator must find. All are false in production.
type Plant struct {
	// AckBeforeSync makes Append return without having synced.
	AckBeforeSync bool
	// NoSyncDir forgets to sync the directory of a new segment.
	NoSyncDir bool
	// StopAtFirstBad makes recovery take the first bad frame for the end of the log.
	StopAtFirstBad bool
}

// ErrCorrupt says that data which was durable is damaged. It is record.ErrCorrupt.
var ErrCorrupt = record.ErrCorrupt

// ErrVersion says that the log was written in a format that this program does not know.
var ErrVersion = errors.New("unknown version of the write-ahead log")

// ErrTooLarge says that an append exceeds AppendBytesMax. The log is unchanged.
var ErrTooLarge = errors.New("append is too large")

// ErrDamaged says that a write goes to a group whose log is damaged and is neither a reset nor a drop. The log is
// unchanged.
var ErrDamaged = errors.New("the log of the group is damaged")

// ErrClosed says that the log was closed.
var ErrClosed = errors.New("the write-ahead log is closed")

// Recovered is what Open found.
type Recovered struct {
	// Groups are the sound groups, in ascending order of id.
	Groups []Group
	// Damaged are the groups that lost or may have lost something that was durable, in ascending order of id.
	Damaged []Damage
	// Incomplete says that damage may hide groups that are in neither list.
	Incomplete bool
	// Segments describe the files read, in order.
	Segments []SegmentInfo
	// Notes are remarks for a person, in the order of discovery.
	Notes []string
}

// Group is the recovered state of one group.
type Group struct {
	ID           GroupID
	HardState    HardState
	HasHardState bool
	// Meta is the newest opaque bytes, or nil.
	Meta []byte
	// Compact is the compaction mark; Entries start right above it.
	Compact uint64
	// Entries are consecutive. Their data belong to the receiver; those of one segment share a buffer.
	Entries []Entry
}

// Damage says that a group cannot be recovered from the log.
type Damage struct {
	Group GroupID
	// Err wraps ErrCorrupt and says what is missing and where.
	Err error
}

// SegmentInfo describes a segment for a person.
type SegmentInfo struct {
	ID uint64
	// End is the offset behind the last frame.
	End int64
	// FileBytes is the size of the file.
	FileBytes int64
	// Appends and Records count frames.
	Appends, Records int
	// Damage are the offsets of bad frames before End.
	Damage []int64
}

func (o Options) normalize() Options {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = SegmentBytesDefault
	}
	if o.LiveSegmentsMax == 0 {
		o.LiveSegmentsMax = LiveSegmentsDefault
	}
	assert.True(o.SegmentBytes > 0, "segments have a size")
	assert.True(o.SegmentBytes%pageBytes == 0, "a segment is a number of pages", uint64(o.SegmentBytes))
	assert.True(o.LiveSegmentsMax >= segmentsKept, "live segments >= segments always kept", uint64(o.LiveSegmentsMax))
	return o
}
