package msgstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"weir/disk/vfs"
)

// FilesOpenMax bounds the block files of one stream that are kept open.
const FilesOpenMax = 8

// blockSuffix ends the name of a block file: "000000000000000a.blk" is block 10.
const blockSuffix = ".blk"

// Files are the block files of one stream, in one directory. It is not safe for concurrent use.
type Files struct {
	fs      vfs.FS
	dir     string
	open    []openFile // least recently used first
	dirty   []BlockID  // written since the last Sync
	newDir  bool       // the directory has entries that are not durable
	exists  bool       // the directory exists
	newDirs bool       // the directory and its parents may not be durable
	failed  error      // of a write or sync; nothing is durable any more through these files
	plant   Plant
	// unwritten are ranges that a full disk refused, in order. They are written before anything else.
	unwritten []BlockWrite
	// copies are blocks made by Rewrite that no list given to RemoveExcept has named yet.
	copies []BlockID
	copied copying
	looked []byte // memory for what Suits reads
	// pinned counts for each block who needs it beside the checkpoint; spared are those that would have been removed.
	pinned map[BlockID]int
	spared map[BlockID]bool
}

// Plant names deliberate faults of this package, for checking that the simulator finds them.
type Plant struct {
	// NoSyncDir forgets to make the directory entries of new blocks durable.
	NoSyncDir bool
	// NoSync forgets to make the bytes of blocks durable.
	NoSync bool
	// EndAtDamage takes damage in a block for its end, when the messages in it are looked for.
	EndAtDamage bool
}

type openFile struct {
	id   BlockID
	file vfs.File
}

// NewFiles returns the block files in the directory, which is made when the first block is written.
func NewFiles(fsys vfs.FS, dir string, plant Plant) *Files {
	return &Files{fs: fsys, dir: dir, plant: plant}
}

// FileName is the name of a block's file in its stream's directory.
func FileName(id BlockID) string { return fmt.Sprintf("%016x%s", uint64(id), blockSuffix) }

// ParseFileName returns the block that a file name stands for.
func ParseFileName(name string) (BlockID, bool) {
	hex, ok := strings.CutSuffix(name, blockSuffix)
	if !ok || len(hex) != 16 {
		return 0, false
	}
	id, err := strconv.ParseUint(hex, 16, 64)
	return BlockID(id), err == nil
}

// Write writes ranges of blocks. They are durable after Sync. The bytes are kept, and written before anything else later,
// when the error wraps vfs.ErrNoSpace: nobody has to give them again. After any other error the files fail for good.
func (f *Files) Write(writes []BlockWrite) error {
	f.unwritten = append(f.unwritten, writes...)
	return f.flush()
}

// flush writes what is still to be written.
func (f *Files) flush() error {
	for len(f.unwritten) > 0 && f.failed == nil {
		w := &f.unwritten[0]
		if err := f.write(w); errors.Is(err, vfs.ErrNoSpace) {
			return err
		} else if err != nil {
			f.failed = err
			break
		}
		f.unwritten = f.unwritten[1:]
	}
	if len(f.unwritten) == 0 {
		f.unwritten = nil
	}
	return f.failed
}

func (f *Files) write(w *BlockWrite) error {
	file, err := f.fileForWriting(w.Block)
	if err != nil {
		return err
	}
	if _, err := file.WriteAt(w.Bytes, w.Offset); err != nil {
		return fmt.Errorf("write %d bytes at offset %d of block %d: %w", len(w.Bytes), w.Offset, w.Block, err)
	}
	return nil
}

func (f *Files) fileForWriting(id BlockID) (vfs.File, error) {
	if !f.exists {
		if err := f.fs.MkdirAll(f.dir); err != nil {
			return nil, fmt.Errorf("make directory %s: %w", f.dir, err)
		}
		f.exists, f.newDir, f.newDirs = true, true, true // a killed process may have left entries that are not durable
	}
	file, err := f.file(id)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = f.fs.Create(f.path(id))
		if err != nil {
			return nil, fmt.Errorf("create block %d: %w", id, err)
		}
		f.newDir = true
		f.keepOpen(id, file)
	}
	if err != nil {
		return nil, err
	}
	if !slices.Contains(f.dirty, id) {
		f.dirty = append(f.dirty, id)
	}
	return file, nil
}

func (f *Files) path(id BlockID) string { return f.dir + "/" + FileName(id) }

// file returns the open file of a block.
func (f *Files) file(id BlockID) (vfs.File, error) {
	for i := range f.open {
		if o := f.open[i]; o.id == id {
			copy(f.open[i:], f.open[i+1:])
			f.open[len(f.open)-1] = o
			return o.file, nil
		}
	}
	file, err := f.fs.Open(f.path(id))
	if err != nil {
		return nil, fmt.Errorf("open block %d: %w", id, err)
	}
	f.keepOpen(id, file)
	return file, nil
}

// keepOpen adds a file to the open ones, closing one that has nothing to be synced when there are many.
func (f *Files) keepOpen(id BlockID, file vfs.File) {
	f.open = append(f.open, openFile{id, file})
	for i := 0; i < len(f.open)-1 && len(f.open) > FilesOpenMax; {
		if slices.Contains(f.dirty, f.open[i].id) {
			i++
			continue
		}
		// Nothing of the file is un-synced, so that closing has nothing to lose.
		_ = f.open[i].file.Close()
		f.open = slices.Delete(f.open, i, i+1)
	}
}

// Sync makes everything written so far durable. After an error that is not a lack of space it fails for good: which bytes
// are durable is unknown.
func (f *Files) Sync() error {
	if err := f.flush(); err != nil {
		return err
	}
	for _, id := range f.dirty {
		if f.plant.NoSync {
			break
		}
		file, err := f.file(id)
		if err == nil {
			err = file.Sync()
		}
		if err != nil {
			f.failed = fmt.Errorf("sync block %d: %w", id, err)
			return f.failed
		}
	}
	f.dirty = f.dirty[:0]
	if f.newDirs {
		if err := vfs.MakeDir(f.fs, f.dir); err != nil {
			if !errors.Is(err, vfs.ErrNoSpace) {
				f.failed = err
			}
			return err
		}
		f.newDirs = false
	}
	if f.newDir && !f.plant.NoSyncDir {
		if err := f.fs.SyncDir(f.dir); err != nil {
			f.failed = fmt.Errorf("sync directory %s: %w", f.dir, err)
			return f.failed
		}
	}
	f.newDir = false
	return nil
}

// Read reads a message. The error wraps ErrCorrupt when the bytes are not those of the message.
func (f *Files) Read(loc Loc) (Msg, error) {
	if data, ok := f.held(loc); ok {
		return decodeMessage(data)
	}
	file, err := f.file(loc.Block)
	if err != nil {
		return Msg{}, missing(loc.Block, err)
	}
	data := make([]byte, loc.Size)
	if err := readFull(file, data, int64(loc.Offset)); err != nil {
		return Msg{}, fmt.Errorf("read message %d at offset %d of block %d: %w", loc.Seq, loc.Offset, loc.Block, err)
	}
	if err := checkMessage(data, loc.Block, int(loc.Offset)); err != nil {
		return Msg{}, err
	}
	m, err := decodeMessage(data)
	if err == nil && m.Seq != loc.Seq {
		err = fmt.Errorf("message %d lies at the place of message %d in block %d: %w", m.Seq, loc.Seq, loc.Block, ErrCorrupt)
	}
	return m, err
}

// held returns the bytes of a message that a full disk refused.
func (f *Files) held(loc Loc) ([]byte, bool) {
	for i := range f.unwritten {
		w := &f.unwritten[i]
		from := int64(loc.Offset) - w.Offset
		if w.Block == loc.Block && from >= 0 && from+int64(loc.Size) <= int64(len(w.Bytes)) {
			return w.Bytes[from:], true
		}
	}
	return nil, false
}

// readFull fills p from the offset. A file that ends before p is full, or does not give its bytes, is damaged.
func readFull(file vfs.File, p []byte, off int64) error {
	err := vfs.ReadFull(file, p, off)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, vfs.ErrIO) {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

// Rewrite carries out an order: the new block is written, and durable after the next Sync.
func (f *Files) Rewrite(r *Rewrite) (Rewritten, error) {
	if err := f.flush(); err != nil {
		return Rewritten{}, err
	}
	done := Rewritten{To: r.To}
	done.copied.first = r.From[0].living.first
	out := appendBlockHeader(nil, r.To)
	for i := range r.From {
		from := &r.From[i]
		file, err := f.file(from.Block)
		if err != nil {
			return Rewritten{}, missing(from.Block, err)
		}
		data := make([]byte, from.Size)
		if err := readFull(file, data, 0); err != nil {
			return Rewritten{}, fmt.Errorf("read block %d: %w", from.Block, err)
		}
		if out, err = done.copyBlock(out, data, from); err != nil {
			return Rewritten{}, err
		}
		done.From = append(done.From, from.Block)
	}
	done.copied.pack()
	done.Size = len(out)
	// The index has seen the outcome of the order before: every list from now on names that copy if it is in use.
	f.copies = append(f.copies[:0], r.To)
	f.copied.note(r, &done)
	out = appendFooter(out, r.To, done.Size, &done.copied)
	return done, f.Write([]BlockWrite{{Block: r.To, Bytes: out}})
}

// missing tells a block that is not there from other failures.
func missing(id BlockID, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("block %d is missing: %w", id, ErrCorrupt)
	}
	return err
}

// RemoveExcept removes the blocks that are not listed, but for pinned ones, and for the outcome of a Rewrite as long as no
// list has named it: the list may be older than the outcome. Only blocks that no durable checkpoint refers to may go.
func (f *Files) RemoveExcept(keep []BlockID) error {
	names, err := f.fs.List(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", f.dir, err)
	}
	f.copies = slices.DeleteFunc(f.copies, func(id BlockID) bool { return slices.Contains(keep, id) })
	keep = slices.Sorted(slices.Values(append(slices.Clone(keep), f.copies...)))
	for _, name := range names {
		id, ok := ParseFileName(name)
		if !ok {
			continue
		}
		if _, kept := slices.BinarySearch(keep, id); kept {
			continue
		}
		if f.spare(id) {
			continue
		}
		if err := f.remove(id); err != nil {
			return err
		}
	}
	return nil
}

func (f *Files) remove(id BlockID) error {
	f.forget(id)
	if err := f.fs.Remove(f.path(id)); err != nil {
		return fmt.Errorf("remove block %d: %w", id, err)
	}
	return nil
}

func (f *Files) forget(id BlockID) {
	f.dirty = slices.DeleteFunc(f.dirty, func(d BlockID) bool { return d == id })
	f.open = slices.DeleteFunc(f.open, func(o openFile) bool {
		if o.id == id {
			_ = o.file.Close() // the file is about to be removed
		}
		return o.id == id
	})
}

// Release closes the files until they are needed again. What was written is synced before, so that no failure of the
// device can go unnoticed between two openings of a file.
func (f *Files) Release() error {
	var err error
	if len(f.dirty) > 0 {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Close closes the files without syncing them.
func (f *Files) Close() error {
	var errs []error
	for _, o := range f.open {
		errs = append(errs, o.file.Close())
	}
	f.open = nil
	return errors.Join(errs...)
}
