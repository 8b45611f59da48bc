package memfs

import (
	"fmt"
	"io"

	"weir/disk/vfs"
	"weir/spec/assert"
)

// content is a file without its name.
type content struct {
	data   []byte  // what readers see
	synced []byte  // what survives every crash
	writes []write // un-synced changes in order
	bad    map[int64]bool

	claimed int    // how many of writes a lying Sync has said to be durable
	truth   []byte // what readers would see had no write been lost or gone astray; nil: what they see
}

// write is one un-synced change: whole sectors with their content after the write, or a new size.
type write struct {
	off      int64  // a multiple of the sector size
	bytes    []byte // content from off on; the last sector may be partial at the end of the file; nil for a truncation
	truncate int64  // the size where bytes is nil
}

// resize sets the length of a slice; grown parts are zero.
func resize(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b[:size]
	}
	if size <= int64(cap(b)) {
		old := len(b)
		b = b[:size]
		clear(b[old:])
		return b
	}
	grown := make([]byte, size, size+size/4)
	copy(grown, b)
	return grown
}

// put copies bytes over b at the offset and grows b where needed.
func put(b []byte, off int64, bytes []byte) []byte {
	if end := off + int64(len(bytes)); end > int64(len(b)) {
		b = resize(b, end)
	}
	copy(b[off:], bytes)
	return b
}

type handle struct {
	fs     *FS
	name   string
	c      *content
	closed bool
}

func (h *handle) enter(op Op) error {
	assert.True(!h.closed, "the file is open")
	op.Name = h.name
	return h.fs.enter(op)
}

// ReadAt implements vfs.File.
func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	if err := h.enter(Op{Kind: OpRead, Off: off, Len: len(p)}); err != nil {
		return 0, err
	}
	assert.True(off >= 0, "offset is not negative")
	if off >= int64(len(h.c.data)) {
		return 0, io.EOF
	}
	sector := int64(h.fs.opts.SectorBytes)
	end := min(off+int64(len(p)), int64(len(h.c.data)))
	if len(h.c.bad) > 0 {
		for s := off / sector; s*sector < end; s++ {
			if h.c.bad[s] {
				n := copy(p, h.c.data[off:max(off, s*sector)])
				return n, fmt.Errorf("read %s at %d: %w", h.name, s*sector, vfs.ErrIO)
			}
		}
	}
	n := copy(p, h.c.data[off:end])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt implements vfs.File. A failing write leaves a part of its sectors behind, chosen by its place and length.
func (h *handle) WriteAt(p []byte, off int64) (int, error) {
	err := h.enter(Op{Kind: OpWrite, Off: off, Len: len(p)})
	if err == ErrStopped { //nolint:errorlint // enter returns it bare
		return 0, err
	}
	assert.True(off >= 0, "offset is not negative")
	if err == errLose || err == errAstray { //nolint:errorlint // enter returns it bare
		h.deceive(p, off, err == errAstray) //nolint:errorlint // as above
		return len(p), nil
	}
	if err != nil {
		sectors := uint64(len(p)/h.fs.opts.SectorBytes + 1)
		p = p[:int(Hash(h.fs.opts.Seed, h.name, uint64(off), uint64(len(p)))%sectors)*h.fs.opts.SectorBytes]
	} else if room := h.fs.room(h.c, off, len(p)); room < len(p) {
		err = fmt.Errorf("write %s at %d: %w", h.name, off, vfs.ErrNoSpace)
		p = p[:room]
	}
	if len(p) > 0 {
		h.put(p, off)
		if h.c.truth != nil {
			h.c.truth = put(h.c.truth, off, p)
		}
	}
	return len(p), err
}

// deceive loses a write, or with astray makes it land at another place of the file, as far as there is one.
func (h *handle) deceive(p []byte, off int64, astray bool) {
	h.c.deceived(p, off)
	sector := int64(h.fs.opts.SectorBytes)
	if places := (int64(len(h.c.data)) - int64(len(p))) / sector; astray && places > 0 {
		h.put(p, int64(Hash(h.fs.opts.Seed, h.name, uint64(off), uint64(len(p)))%uint64(places))*sector+off%sector)
	}
}

func (h *handle) put(p []byte, off int64) {
	sector := int64(h.fs.opts.SectorBytes)
	before := int64(len(h.c.data))
	h.c.data = put(h.c.data, off, p)
	h.fs.used += int64(len(h.c.data)) - before
	lo := off / sector * sector
	if before < off {
		lo = min(lo, before/sector*sector) // the gap is written as zeros
	}
	hi := min((off+int64(len(p))+sector-1)/sector*sector, int64(len(h.c.data)))
	h.c.writes = append(h.c.writes, write{off: lo, bytes: append([]byte(nil), h.c.data[lo:hi]...)})
	for s := off / sector; s*sector < off+int64(len(p)) && len(h.c.bad) > 0; s++ {
		delete(h.c.bad, s)
	}
}

// room returns how many of n bytes at the offset the disk can take.
func (f *FS) room(c *content, off int64, n int) int {
	if f.opts.CapacityBytes == 0 {
		return n
	}
	grow := off + int64(n) - int64(len(c.data))
	free := max(0, f.opts.CapacityBytes-f.used)
	if grow <= free {
		return n
	}
	return int(max(0, int64(n)-(grow-free)))
}

// Truncate implements vfs.File.
func (h *handle) Truncate(size int64) error {
	if err := h.enter(Op{Kind: OpTruncate, Off: size}); err != nil {
		return err
	}
	assert.True(size >= 0, "size is not negative")
	h.fs.used += size - int64(len(h.c.data))
	h.c.data = resize(h.c.data, size)
	if h.c.truth != nil {
		h.c.truth = resize(h.c.truth, size)
	}
	h.c.writes = append(h.c.writes, write{truncate: size})
	return nil
}

// Size implements vfs.File.
func (h *handle) Size() (int64, error) {
	if err := h.enter(Op{Kind: OpSize}); err != nil {
		return 0, err
	}
	return int64(len(h.c.data)), nil
}

// Sync implements vfs.File. A failing Sync forgets the un-synced sectors: readers go on seeing them, a crash loses
// them, and a later Sync does not bring them back, as on Linux.
func (h *handle) Sync() error {
	err := h.enter(Op{Kind: OpSync})
	if err == errLie { //nolint:errorlint // enter returns it bare
		h.c.claimed = len(h.c.writes)
		return nil
	}
	if err == ErrStopped { //nolint:errorlint // enter returns it bare
		return err
	}
	h.c.claimed = 0
	if err != nil {
		h.c.writes = nil
		return err
	}
	for i := range h.c.writes {
		h.c.synced = h.c.writes[i].apply(h.c.synced)
	}
	h.c.writes = h.c.writes[:0]
	return nil
}

func (w *write) apply(b []byte) []byte {
	if w.bytes == nil {
		return resize(b, w.truncate)
	}
	return put(b, w.off, w.bytes)
}

// Close implements vfs.File.
func (h *handle) Close() error {
	assert.True(!h.closed, "the file is closed once")
	h.closed = true
	return nil
}
