// Package snapshot is the form in which the checkpoint of a group travels from one server to another.
//
// A snapshot is a manifest and parts. Part 0 is the sections of the checkpoint as one stream of bytes; every further part
// is a message block, numbered by its id, whose bytes are as long as the sections of the message index say. The manifest
// binds the sections by a digest; a block binds itself, as every message and the table of the block carry checksums bound
// to the id of the block and to their places.
//
// The package promises that a stream of sections is accepted only when it is, section for section, the one that the
// manifest describes. It does no I/O and keeps nothing.
package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"

	"weir/disk/record"
)

// Manifest describes a snapshot. The zero Manifest describes none.
type Manifest struct {
	// Index and Term are the newest log entry that the snapshot includes.
	Index, Term uint64
	// Sections is the number of sections, Bytes the length of part 0, Digest the digest of the sections.
	Sections, Bytes, Digest uint64
	// Blocks is the number of message blocks.
	Blocks uint64
}

// ErrCorrupt says that bytes are not those of the snapshot that the manifest describes. It is record.ErrCorrupt.
var ErrCorrupt = record.ErrCorrupt

// ErrVersion says that a manifest was written in a format that this program does not know.
var ErrVersion = errors.New("unknown version of a snapshot")

const (
	version       = 1
	manifestBytes = 4 + 2 + 6*8
)

// AppendManifest appends the manifest: CRC-32C of what follows (4 bytes), version (2), then the fields in their order (8
// bytes each), little-endian.
func AppendManifest(dst []byte, m *Manifest) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.LittleEndian.AppendUint16(dst, version)
	for _, n := range [...]uint64{m.Index, m.Term, m.Sections, m.Bytes, m.Digest, m.Blocks} {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	}
	binary.LittleEndian.PutUint32(dst[start:], record.Checksum(0, dst[start+4:]))
	return dst
}

// ParseManifest reads what AppendManifest wrote. The error wraps ErrCorrupt or ErrVersion.
func ParseManifest(data []byte) (Manifest, error) {
	if len(data) < 6 || record.Checksum(0, data[4:]) != binary.LittleEndian.Uint32(data) {
		return Manifest{}, fmt.Errorf("manifest of %d bytes: %w", len(data), ErrCorrupt)
	}
	if v := binary.LittleEndian.Uint16(data[4:]); v != version {
		return Manifest{}, fmt.Errorf("manifest of version %d: %w", v, ErrVersion)
	}
	if len(data) != manifestBytes {
		return Manifest{}, fmt.Errorf("manifest of %d bytes: %w", len(data), ErrCorrupt)
	}
	n := func(i int) uint64 { return binary.LittleEndian.Uint64(data[6+8*i:]) }
	m := Manifest{Index: n(0), Term: n(1), Sections: n(2), Bytes: n(3), Digest: n(4), Blocks: n(5)}
	if m.Index == 0 || m.Bytes < m.Sections*headBytes || m.Blocks > m.Sections {
		return Manifest{}, fmt.Errorf("manifest of index %d with %d sections in %d bytes and %d blocks: %w",
			m.Index, m.Sections, m.Bytes, m.Blocks, ErrCorrupt)
	}
	return m, nil
}
