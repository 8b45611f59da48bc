package msgstore

import (
	"fmt"
	"slices"
)

// Scrub orders the bytes of a block to be verified. The zero Scrub is about no block.
type Scrub struct {
	// Block is the block.
	Block BlockID
	// Size is the bytes of its header and messages.
	Size int
	// living says where the living messages are.
	living table
}

// TakeScrub returns an order to verify what was handed out to be written of the next block behind the given one, in
// ascending order of ids; false when there is none. 0 asks for the first.
func (x *Index) TakeScrub(after BlockID) (Scrub, bool) {
	if x.options.Volatile {
		return Scrub{}, false
	}
	var next *block
	for _, b := range x.blocks {
		if b.id > after && b.written > 0 && (next == nil || b.id < next.id) {
			next = b
		}
	}
	if next == nil {
		return Scrub{}, false
	}
	// Writes hand out whole messages, and are carried out before what is ordered after them.
	order := Scrub{Block: next.id, Size: min(next.size, next.written), living: next.livingOnly()}
	n, _ := slices.BinarySearch(order.living.places, uint32(order.Size))
	order.living.places, order.living.seqs = order.living.places[:n], order.living.seqs[:n]
	return order, true
}

// Scrub verifies the messages of a block that were there when the order was made. The error wraps ErrCorrupt when one is
// damaged, and names the first and how many there are.
func (f *Files) Scrub(s *Scrub) error {
	if err := f.flush(); err != nil {
		return err
	}
	file, err := f.file(s.Block)
	if err != nil {
		return missing(s.Block, err)
	}
	data := make([]byte, s.Size)
	if err := readFull(file, data, 0); err != nil {
		return fmt.Errorf("read block %d: %w", s.Block, err)
	}
	if err := checkBlockHeader(data, s.Block); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	damaged := 0
	var first error
	for i := range s.living.places {
		if err := checkPlace(data, &s.living, i, s.Block); err != nil {
			if damaged == 0 {
				first = err
			}
			damaged++
		}
	}
	if damaged > 1 {
		first = fmt.Errorf("%d messages of block %d are damaged, the first: %w", damaged, s.Block, first)
	}
	return first
}

// checkPlace verifies the message of an entry of a table, in the bytes of its block.
func checkPlace(data []byte, t *table, i int, id BlockID) error {
	place, seq := int(t.places[i]&^dead), t.seqAt(i)
	if place >= len(data) {
		return fmt.Errorf("message %d lies behind the end of block %d: %w", seq, id, ErrCorrupt)
	}
	if err := checkMessage(data[place:], id, place); err != nil {
		return err
	}
	if got := sequenceOf(data[place:]); got != seq {
		return fmt.Errorf("message %d lies at the place of message %d in block %d: %w", got, seq, id, ErrCorrupt)
	}
	return nil
}
