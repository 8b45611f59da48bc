package msgstore

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"weir/disk/vfs"
)

// Length is the bytes of the block's file that count: header, messages and, of a sealed block, footer.
func (s *BlockState) Length() int64 {
	if !s.Sealed {
		return int64(s.Size)
	}
	return int64(s.Size + footerBytes(s.Count, s.Sparse))
}

// SealedAs reports whether a section of a checkpoint, without data where the checkpoint has none, says of the block that it
// was sealed with the same table: then its bytes are durable.
func (s *BlockState) SealedAs(section StateSection) bool {
	if section.Data == nil || !s.Sealed {
		return false
	}
	o, err := decodeBlockState(section)
	return err == nil && o.Sealed && o.ID == s.ID && o.First == s.First && o.Last == s.Last && o.Count == s.Count &&
		o.Size == s.Size && o.Sparse == s.Sparse && o.seqs == s.seqs
}

// Suits reports whether the file of a block is the one that a checkpoint, perhaps of another replica, describes: the
// same messages at the same places. Then its bytes are durable. Within one group the sequence of a message decides what
// it is, so that equal tables mean equal messages unless one is damaged; whole asks to verify each message that the
// checkpoint says is there. read is how many bytes were read. A file that is missing, damaged or another one does not
// suit; an error is a failure of the device.
func (f *Files) Suits(s *BlockState, whole bool) (suits bool, read int64, err error) {
	if f.failed != nil && slices.Contains(f.dirty, s.ID) {
		return false, 0, nil // what the device took of it is unknown
	}
	if err := f.flush(); err != nil && !errors.Is(err, vfs.ErrNoSpace) {
		return false, 0, nil
	}
	if slices.ContainsFunc(f.unwritten, func(w BlockWrite) bool { return w.Block == s.ID }) {
		return false, 0, nil
	}
	file, err := f.file(s.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return false, 0, nil
	}
	if err != nil {
		return false, 0, err
	}
	read, err = f.compare(s, file, whole || !s.Sealed)
	if errors.Is(err, ErrCorrupt) || errors.Is(err, ErrVersion) {
		return false, read, nil
	}
	if err == nil {
		if err = file.Sync(); err != nil { // a killed process may have left it un-synced
			err = fmt.Errorf("sync block %d: %w", s.ID, err)
		}
	}
	return err == nil, read, err
}

// compare holds the file of a block against its state. The error wraps ErrCorrupt when they differ.
func (f *Files) compare(s *BlockState, file vfs.File, whole bool) (read int64, err error) {
	from := 0
	if !whole {
		from = s.Size
	}
	data := f.lookMemory(int(s.Length()) - from)
	if err := readFull(file, data, int64(from)); err != nil {
		return 0, err
	}
	read = int64(len(data))
	var t table
	if s.Sealed {
		t, err = decodeFooter(data[s.Size-from:], s)
	} else {
		t, err = scanBlock(data, s, false)
	}
	if err != nil {
		return read, err
	}
	if s.Sparse && (!s.listed || s.seqs != t.seqsSum()) {
		return read, fmt.Errorf("block %d has other messages: %w", s.ID, ErrCorrupt)
	}
	at, there := 0, true
	for _, run := range s.runs {
		for i := at; i < at+run && there; i++ {
			if t.places[i] == 0 {
				return read, fmt.Errorf("message %d is not in block %d: %w", t.seqAt(i), s.ID, ErrCorrupt)
			}
			if !whole {
				continue
			}
			if err := checkPlace(data[:s.Size-from], &t, i, s.ID); err != nil {
				return read, err
			}
		}
		at += run
		there = !there
	}
	if whole {
		return read, checkBlockHeader(data, s.ID)
	}
	return read, nil
}

// lookMemory is memory for reading a block, the same for one after the other.
func (f *Files) lookMemory(bytes int) []byte {
	if cap(f.looked) < bytes {
		f.looked = make([]byte, bytes)
	}
	return f.looked[:bytes]
}

// EndLooking gives up memory that the next call of Suits could use.
func (f *Files) EndLooking() { f.looked = nil }

// Discard removes the file of a block, if there is one, and forgets what was written to it.
func (f *Files) Discard(id BlockID) error {
	f.unwritten = slices.DeleteFunc(f.unwritten, func(w BlockWrite) bool { return w.Block == id })
	err := f.remove(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// List returns the blocks that have files, ascending.
func (f *Files) List() ([]BlockID, error) {
	names, err := f.fs.List(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", f.dir, err)
	}
	var ids []BlockID
	for _, name := range names {
		if id, ok := ParseFileName(name); ok {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Adopt moves all blocks of other files here, in the place of those that have their ids, durably. A failure leaves some
// here and some there; Adopt can be called again. The other files must be synced.
func (f *Files) Adopt(other *Files) error {
	ids, err := other.List()
	if err != nil {
		return err
	}
	if err := vfs.MakeDir(f.fs, f.dir); err != nil {
		return err
	}
	for _, id := range ids {
		other.forget(id)
		f.forget(id)
		if err := f.fs.Rename(other.path(id), f.path(id)); err != nil {
			return fmt.Errorf("adopt block %d: %w", id, err)
		}
	}
	if err := f.fs.SyncDir(f.dir); err != nil {
		return fmt.Errorf("sync directory %s: %w", f.dir, err)
	}
	err = f.fs.SyncDir(other.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Anew returns the same files without what failed: nothing that was written to them and not synced counts any more.
func (f *Files) Anew() *Files {
	_ = f.Close() // nothing of them counts
	return NewFiles(f.fs, f.dir, f.plant)
}
