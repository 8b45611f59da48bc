package osfs

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// directUnit is the unit of size, place and memory that every device takes.
	directUnit = 4096
	// directBytesMax bounds a write that goes past the cache. The cache hands a larger one to the device in pieces, of which
	// the first is written while the last is still copied.
	directBytesMax = 256 << 10
)

// direct writes whole pages of a file past the cache of the operating system. The cache would take new memory for them,
// look for them at the next sync, and give the memory back some day, though nobody reads them.
type direct struct {
	f      *os.File
	memory []byte // its place is a multiple of directUnit
}

// openDirect returns nil where the file system has no such writes.
func openDirect(path string) *direct {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_DIRECT, fileMode)
	if err != nil {
		return nil
	}
	return &direct{f: f}
}

// takes reports whether a write of so many bytes can go past the cache.
func (d *direct) takes(bytes int, off int64) bool {
	return d != nil && bytes%directUnit == 0 && off%directUnit == 0 && bytes <= directBytesMax
}

// write writes bytes that it takes. EINVAL says that the device can not, after all.
func (d *direct) write(p []byte, off int64) (int, error) {
	if len(d.memory) < len(p) {
		n := directUnit
		for n < len(p) {
			n *= 2
		}
		memory := make([]byte, n+directUnit)
		skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(memory)))) & (directUnit - 1)
		d.memory = memory[skip : skip+n]
	}
	n := copy(d.memory, p)
	return d.f.WriteAt(d.memory[:n], off)
}

func (d *direct) close() error {
	if d == nil {
		return nil
	}
	return d.f.Close()
}
