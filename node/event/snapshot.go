package event

import (
	"weir/disk/msgstore"
	"weir/disk/snapshot"
)

// PieceBytesMax bounds the bytes of a ReadPart or StagePart.
const PieceBytesMax = 1 << 20

// SectionsPart is the part of a snapshot that holds the sections of the checkpoint; every other part is the message
// block with that id.
const SectionsPart = uint64(0)

// PinID identifies a pinned checkpoint while the node runs; 0 is none.
type PinID uint64

// Snapshot is the order of an operation about a snapshot of a group; the kinds of operations say which fields count.
type Snapshot struct {
	// Pin is the pinned checkpoint.
	Pin PinID
	// Manifest describes the snapshot that is staged or installed.
	Manifest snapshot.Manifest
	// Verify asks to read whole the local blocks that could stand for parts of the snapshot. Without it a look at the
	// table of each is enough, which finds no damage to messages.
	Verify bool
	// Part, Offset and Max say which bytes of which part; Max is in [1, PieceBytesMax].
	Part   uint64
	Offset uint64
	Max    int
	// Data are the bytes of a StagePart. They are not changed until the completion.
	Data []byte
	// Scrub is the order of a Scrub.
	Scrub msgstore.Scrub
}

// Pinned is the outcome of a Pin.
type Pinned struct {
	// Pin is to be given back by an Unpin.
	Pin PinID
	// Manifest describes the snapshot for the receiver.
	Manifest snapshot.Manifest
}

// Staged is the outcome of a Stage or StagePart.
type Staged struct {
	// Missing are the parts that are still to be brought, ascending; for a StagePart, the part that it was about unless it
	// is complete now. A part is brought from its offset on, without gaps.
	Missing []MissingPart
	// More says that a Stage has done a bounded piece of its work and is to be ordered again before Missing counts.
	More bool
}

// MissingPart is a part of a snapshot that is not staged.
type MissingPart struct {
	// Part is the part, Bytes its length.
	Part, Bytes uint64
	// Offset is how many of its bytes are there already.
	Offset uint64
}
