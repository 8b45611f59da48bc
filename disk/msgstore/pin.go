package msgstore

import (
	"errors"
	"fmt"

	"weir/spec/assert"
)

// Pin keeps blocks beside those that the checkpoint refers to, until Unpin.
func (f *Files) Pin(ids []BlockID) {
	if f.pinned == nil {
		f.pinned, f.spared = map[BlockID]int{}, map[BlockID]bool{}
	}
	for _, id := range ids {
		f.pinned[id]++
	}
}

// Unpin takes back a Pin, and removes what RemoveExcept would have removed without it.
func (f *Files) Unpin(ids []BlockID) error {
	var errs []error
	for _, id := range ids {
		assert.True(f.pinned[id] > 0, "a block that is unpinned is pinned", uint64(id))
		if f.pinned[id]--; f.pinned[id] > 0 {
			continue
		}
		delete(f.pinned, id)
		if f.spared[id] {
			delete(f.spared, id)
			errs = append(errs, f.remove(id))
		}
	}
	return errors.Join(errs...)
}

// spare reports whether a block is pinned, and remembers that nothing else needs it.
func (f *Files) spare(id BlockID) bool {
	if f.pinned[id] == 0 {
		return false
	}
	f.spared[id] = true
	return true
}

// ReadRange reads len(p) bytes of a block from the offset, as they are. The error wraps ErrCorrupt when they are not
// there.
func (f *Files) ReadRange(id BlockID, offset int64, p []byte) error {
	file, err := f.file(id)
	if err != nil {
		return missing(id, err)
	}
	if err := readFull(file, p, offset); err != nil {
		return fmt.Errorf("read %d bytes at offset %d of block %d: %w", len(p), offset, id, err)
	}
	return nil
}
