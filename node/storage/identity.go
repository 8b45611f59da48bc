package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"weir/disk/record"
	"weir/disk/vfs"
)

// Server is the identity of the data directory, made with it and never changed. A directory that was wiped has another.
func (s *Storage) Server() uint64 { return s.server }

const (
	// IdentityFile is the name of the file that holds the identity of a data directory.
	IdentityFile = "identity"
	// loneServer is the identity that a directory gets when the owner gives none.
	loneServer = 1
)

// identify reads the identity of the directory, or writes it before anything else into one that is new.
func (s *Storage) identify() error {
	name := path.Join(s.dir, IdentityFile)
	data, err := vfs.ReadFile(s.fs, name)
	if err == nil {
		if s.server, err = ParseIdentity(data); err == nil {
			return s.settleIdentity(name)
		}
	}
	if errors.Is(err, vfs.ErrIO) {
		return fmt.Errorf("identity of the data directory: %w: %w", record.ErrCorrupt, err)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, record.ErrCorrupt) {
		return fmt.Errorf("identity of the data directory: %w", err)
	}
	names, listErr := s.fs.List(s.dir)
	if listErr != nil {
		return fmt.Errorf("list the data directory: %w", listErr)
	}
	for _, other := range []string{"format", "wal", "groups"} {
		if slices.Contains(names, other) {
			return fmt.Errorf("the data directory has %q, but its identity is missing or damaged; restore it from a copy, "+
				"or begin with an empty directory, as a new server: %w", other, record.ErrCorrupt)
		}
	}
	s.server = s.options.NewServer
	if s.server == 0 {
		s.server = loneServer
	}
	return s.writeDurably(name, appendIdentity(nil, s.server)) // nothing but a first start that was cut off is replaced
}

// settleIdentity makes durable what a killed process may have left un-synced: what follows depends on it.
func (s *Storage) settleIdentity(name string) error {
	file, err := s.fs.Open(name)
	if err == nil {
		err = errors.Join(file.Sync(), file.Close())
	}
	if err != nil {
		return fmt.Errorf("sync %s: %w", name, err)
	}
	return s.fs.SyncDir(s.dir)
}

// appendIdentity appends the text of the identity file: the id, and the CRC-32C of the line before it.
func appendIdentity(dst []byte, server uint64) []byte {
	line := fmt.Sprintf("weir server %016x", server)
	return fmt.Appendf(dst, "%s %08x\n", line, record.Checksum(0, []byte(line)))
}

// ParseIdentity reads the text of an identity file. The error wraps record.ErrCorrupt.
func ParseIdentity(data []byte) (uint64, error) {
	bad := fmt.Errorf("identity %q: %w", data[:min(len(data), 64)], record.ErrCorrupt)
	var server uint64
	var sum uint32
	if n, err := fmt.Sscanf(string(data), "weir server %016x %08x\n", &server, &sum); n != 2 || err != nil || server == 0 {
		return 0, bad
	}
	if text := string(appendIdentity(nil, server)); text != string(data) || !strings.HasSuffix(text, fmt.Sprintf(" %08x\n", sum)) {
		return 0, bad
	}
	return server, nil
}

// writeDurably writes a small file that is new, or a part of it that a crash left.
func (s *Storage) writeDurably(name string, data []byte) error {
	file, err := s.fs.Create(name)
	if errors.Is(err, fs.ErrExist) {
		file, err = s.fs.Open(name)
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	_, err = file.WriteAt(data, 0)
	if size, sizeErr := file.Size(); err == nil && sizeErr == nil && size > int64(len(data)) {
		err = file.Truncate(int64(len(data)))
	}
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return s.fs.SyncDir(path.Dir(name))
}
