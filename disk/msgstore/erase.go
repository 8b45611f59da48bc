package msgstore

import (
	"errors"
	"fmt"
	"slices"
)

// copying is the newest copy of blocks: as long as the old blocks are there, their messages lie in two places.
type copying struct {
	from []RewriteSource
	to   table
	id   BlockID
	size int // bytes of header and messages of the new block
}

// note takes the tables of an order, which nobody changes, and a copy of the new block's table, which the index changes.
func (c *copying) note(r *Rewrite, done *Rewritten) {
	*c = copying{from: r.From, id: done.To, size: done.Size}
	c.to = table{first: done.copied.first, places: slices.Clone(done.copied.places), seqs: slices.Clone(done.copied.seqs)}
}

// other returns the other place of a message.
func (c *copying) other(loc Loc) (Loc, bool) {
	if loc.Block == c.id {
		for i := range c.from {
			from := &c.from[i]
			if at, ok := from.living.living(loc.Seq); ok {
				return Loc{Block: from.Block, Offset: from.living.places[at], Seq: loc.Seq}, true
			}
		}
		return Loc{}, false
	}
	if !slices.ContainsFunc(c.from, func(from RewriteSource) bool { return from.Block == loc.Block }) {
		return Loc{}, false
	}
	at, ok := c.to.living(loc.Seq)
	if !ok {
		return Loc{}, false
	}
	return Loc{Block: c.id, Offset: c.to.places[at], Seq: loc.Seq}, true
}

// Erase overwrites subject, header and payload of a message with zeros. Its place, sequence and time stay, so that the
// block can still be read; the index must not hand the place out any more. Where a Rewrite has just copied the message,
// both places are overwritten, whichever of them is given. It is durable after the next Sync.
func (f *Files) Erase(loc Loc) error {
	if other, ok := f.copied.other(loc); ok {
		// The old block may be gone already, or be damaged: the place that was given counts.
		if size, err := f.sizeAt(other); err == nil {
			other.Size = size
			if err := f.erase(other); err != nil && !errors.Is(err, ErrCorrupt) {
				return err
			}
		}
	}
	return f.erase(loc)
}

// sizeAt reads the size of the message at a place.
func (f *Files) sizeAt(loc Loc) (uint32, error) {
	var head [headBytes]byte
	loc.Size = headBytes
	if data, ok := f.held(loc); ok {
		copy(head[:], data)
	} else {
		file, err := f.file(loc.Block)
		if err != nil {
			return 0, err
		}
		if err := readFull(file, head[:], int64(loc.Offset)); err != nil {
			return 0, err
		}
	}
	size := uint32(head[4]) | uint32(head[5])<<8 | uint32(head[6])<<16 | uint32(head[7])<<24
	if size < headBytes || size > blockBytesMax || sequenceOf(head[:]) != loc.Seq {
		return 0, fmt.Errorf("message %d at offset %d of block %d: %w", loc.Seq, loc.Offset, loc.Block, ErrCorrupt)
	}
	return size, nil
}

func (f *Files) erase(loc Loc) error {
	data, ok := f.held(loc)
	if !ok {
		file, err := f.file(loc.Block)
		if err != nil {
			return missing(loc.Block, err)
		}
		data = make([]byte, loc.Size)
		if err := readFull(file, data, int64(loc.Offset)); err != nil {
			return fmt.Errorf("read message %d at offset %d of block %d: %w", loc.Seq, loc.Offset, loc.Block, err)
		}
		if err := checkMessage(data, loc.Block, int(loc.Offset)); err != nil {
			return err
		}
	}
	return f.Write([]BlockWrite{{Block: loc.Block, Offset: int64(loc.Offset), Bytes: eraseMessage(data, loc)}})
}
