package msgstore

import "slices"

// Abandon forgets what a full disk refused of blocks that are not listed, as RemoveExcept does with their files, and
// returns how many bytes are still to be written.
func (f *Files) Abandon(keep []BlockID) (bytes int64) {
	f.unwritten = slices.DeleteFunc(f.unwritten, func(w BlockWrite) bool {
		return !slices.Contains(keep, w.Block) && !slices.Contains(f.copies, w.Block)
	})
	for i := range f.unwritten {
		bytes += int64(len(f.unwritten[i].Bytes))
	}
	return bytes
}

// Removable is how many bytes RemoveExcept would remove.
func (f *Files) Removable(keep []BlockID) (bytes int64, err error) {
	ids, err := f.List()
	if err != nil {
		return 0, err
	}
	keep = slices.Sorted(slices.Values(keep))
	for _, id := range ids {
		if _, kept := slices.BinarySearch(keep, id); kept || slices.Contains(f.copies, id) || f.pinned[id] > 0 {
			continue
		}
		file, err := f.file(id)
		if err != nil {
			return bytes, err
		}
		size, err := file.Size()
		if err != nil {
			return bytes, err
		}
		bytes += size
	}
	return bytes, nil
}
