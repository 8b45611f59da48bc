package inspect

import (
	"errors"
	"io"
	"maps"
	"path"
	"slices"

	"weir/disk/vfs"
)

// pageBytes is the unit in which changed bytes are kept.
const pageBytes = 64 << 10

// shadow is a vfs.FS on which everything can be changed and nothing changes: writes stay in memory. It lets the very code
// that recovers a data directory look at one without touching it.
type shadow struct {
	real  vfs.FS
	files map[string]*shadowFile // opened or made so far
	gone  map[string]bool        // removed or renamed away
}

func newShadow(real vfs.FS) *shadow {
	return &shadow{real: real, files: map[string]*shadowFile{}, gone: map[string]bool{}}
}

// close releases the files that were opened for reading.
func (s *shadow) close() error {
	var err error
	for _, f := range s.files {
		if f.base != nil {
			err = errors.Join(err, f.base.Close())
		}
	}
	return err
}

// Create implements vfs.FS.
func (s *shadow) Create(name string) (vfs.File, error) {
	if _, err := s.Open(name); err == nil {
		return nil, vfs.ErrExist
	} else if !errors.Is(err, vfs.ErrNotExist) {
		return nil, err
	}
	f := &shadowFile{pages: map[int64][]byte{}}
	s.files[name] = f
	delete(s.gone, name)
	return f, nil
}

// Open implements vfs.FS.
func (s *shadow) Open(name string) (vfs.File, error) {
	if f := s.files[name]; f != nil {
		return f, nil
	}
	if s.gone[name] {
		return nil, vfs.ErrNotExist
	}
	base, err := s.real.Open(name)
	if err != nil {
		return nil, err
	}
	size, err := base.Size()
	if err != nil {
		return nil, errors.Join(err, base.Close())
	}
	f := &shadowFile{base: base, baseSize: size, size: size, pages: map[int64][]byte{}}
	s.files[name] = f
	return f, nil
}

// Rename implements vfs.FS, for files.
func (s *shadow) Rename(from, to string) error {
	if _, err := s.Open(from); err != nil {
		return err
	}
	s.files[to] = s.files[from]
	delete(s.files, from)
	delete(s.gone, to)
	s.gone[from] = true
	return nil
}

// Remove implements vfs.FS, for files.
func (s *shadow) Remove(name string) error {
	if _, err := s.Open(name); err != nil {
		return err
	}
	delete(s.files, name)
	s.gone[name] = true
	return nil
}

// List implements vfs.FS.
func (s *shadow) List(dir string) ([]string, error) {
	names, err := s.real.List(dir)
	if err != nil {
		return nil, err
	}
	present := map[string]bool{}
	for _, name := range names {
		present[name] = !s.gone[path.Join(dir, name)]
	}
	for name := range s.files {
		if path.Dir(name) == dir {
			present[path.Base(name)] = true
		}
	}
	maps.DeleteFunc(present, func(_ string, there bool) bool { return !there })
	return slices.Sorted(maps.Keys(present)), nil
}

// MkdirAll implements vfs.FS; directories that exist are all that is needed.
func (s *shadow) MkdirAll(string) error { return nil }

// SyncDir implements vfs.FS.
func (s *shadow) SyncDir(string) error { return nil }

// Free implements vfs.FS.
func (s *shadow) Free() (int64, error) { return s.real.Free() }

// Lock implements vfs.FS; who inspects takes the real lock.
func (s *shadow) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

// shadowFile is a file of a shadow: the real one below the pages that were changed.
type shadowFile struct {
	base     vfs.File // nil for a file that was made
	baseSize int64    // how much of base still counts
	size     int64
	pages    map[int64][]byte // by number; a page covers pageBytes
}

// ReadAt implements vfs.File.
func (f *shadowFile) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) && off+int64(n) < f.size {
		at := off + int64(n)
		number, within := at/pageBytes, at%pageBytes
		part := p[n:min(int64(len(p)), int64(n)+pageBytes-within, int64(n)+f.size-at)]
		if page := f.pages[number]; page != nil {
			copy(part, page[within:])
		} else if err := f.readBase(part, at); err != nil {
			return n, err
		}
		n += len(part)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// readBase fills p from the real file, and with zeros behind it.
func (f *shadowFile) readBase(p []byte, off int64) error {
	real := max(min(int64(len(p)), f.baseSize-off), 0)
	if real > 0 {
		if err := vfs.ReadFull(f.base, p[:real], off); err != nil {
			return err
		}
	}
	clear(p[real:])
	return nil
}

// WriteAt implements vfs.File.
func (f *shadowFile) WriteAt(p []byte, off int64) (int, error) {
	for n := 0; n < len(p); {
		at := off + int64(n)
		number, within := at/pageBytes, at%pageBytes
		page := f.pages[number]
		if page == nil {
			page = make([]byte, pageBytes)
			if err := f.readBase(page, number*pageBytes); err != nil {
				return n, err
			}
			f.pages[number] = page
		}
		n += copy(page[within:], p[n:])
	}
	f.size = max(f.size, off+int64(len(p)))
	return len(p), nil
}

// Truncate implements vfs.File.
func (f *shadowFile) Truncate(size int64) error {
	f.baseSize = min(f.baseSize, size)
	for number, page := range f.pages {
		start := number * pageBytes
		if start >= size {
			delete(f.pages, number)
		} else if start+pageBytes > size {
			clear(page[size-start:])
		}
	}
	f.size = size
	return nil
}

// Size implements vfs.File.
func (f *shadowFile) Size() (int64, error) { return f.size, nil }

// Sync implements vfs.File.
func (f *shadowFile) Sync() error { return nil }

// Close implements vfs.File; the shadow keeps the file, changed as it is.
func (f *shadowFile) Close() error { return nil }

var _ vfs.FS = (*shadow)(nil)
