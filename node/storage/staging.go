package storage

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"weir/disk/checkpoint"
	"weir/disk/msgstore"
	"weir/disk/snapshot"
	"weir/disk/vfs"
	"weir/node/event"
)

// A snapshot is received in the directory "incoming-N" of its group: its parts, and the manifest for the next start. N is
// above the generation of every checkpoint that the group had when the directory was made, so that a checkpoint that names
// N can only be the one that this snapshot became (see install.go).
const (
	incomingPrefix = "incoming-"
	sectionsName   = "sections"
	manifestName   = "manifest"
)

// staging is a snapshot that a group receives.
type staging struct {
	fs       vfs.FS
	number   uint64
	dir      string
	manifest snapshot.Manifest
	blocks   *msgstore.Files
	sections vfs.File // part 0
	have     uint64   // bytes of part 0 that are there
	whole    bool     // part 0 is there and is what the manifest describes
	// states are the blocks of the snapshot, ascending by id, and found says for each where it is; once part 0 is whole.
	states []msgstore.BlockState
	found  []stagedBlock
	looked int // how many blocks were looked for
	swept  bool
	verify bool // blocks of the replica are read whole
	// local are blocks of the replica that stand for parts; they are pinned.
	local []msgstore.BlockID
}

// stagedBlock says what is there of a block.
type stagedBlock struct {
	whole bool
	local bool   // in the directory of the replica
	have  uint64 // bytes, of one that is not whole
}

func incomingDir(number uint64) string { return incomingPrefix + strconv.FormatUint(number, 16) }

// incoming returns the numbers of the directories in which snapshots of the group were received.
func (s *Storage) incoming(g *groupFiles) ([]uint64, error) {
	names, err := s.fs.List(g.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", g.dir, err)
	}
	var numbers []uint64
	for _, name := range names {
		if text, ok := strings.CutPrefix(name, incomingPrefix); ok {
			if n, err := strconv.ParseUint(text, 16, 64); err == nil && incomingDir(n) == name {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// beginStaging opens the directory for a snapshot: one that an earlier attempt has left, or a new one.
func (s *Storage) beginStaging(g *groupFiles, m snapshot.Manifest) (*staging, error) {
	number, err := s.stagingNumber(g)
	if err != nil {
		return nil, err
	}
	st := &staging{fs: s.fs, number: number, dir: g.dir + "/" + incomingDir(number), manifest: m}
	st.blocks = msgstore.NewFiles(s.fs, st.dir, s.options.Plant.Blocks)
	if err := s.fs.MkdirAll(st.dir); err != nil {
		return nil, fmt.Errorf("make directory %s: %w", st.dir, err)
	}
	if err := s.writeDurably(st.dir+"/"+manifestName, snapshot.AppendManifest(nil, &m)); err != nil {
		return nil, err
	}
	st.sections, err = s.fs.Create(st.path(sectionsName))
	if errors.Is(err, fs.ErrExist) {
		st.sections, err = s.fs.Open(st.path(sectionsName))
	}
	if err != nil {
		return nil, fmt.Errorf("open the sections of the snapshot: %w", err)
	}
	size, err := st.sections.Size()
	if err == nil && uint64(size) == m.Bytes && st.complete() == nil {
		return st, nil
	}
	if err == nil {
		err = st.sections.Truncate(0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the sections of the snapshot: %w", err), st.close())
	}
	return st, nil
}

// stagingNumber chooses the directory for a snapshot. One that the newest checkpoint names is not used again, nor is any
// as long as that checkpoint can not be read, unless its number is too high for it.
func (s *Storage) stagingNumber(g *groupFiles) (uint64, error) {
	numbers, err := s.incoming(g)
	if err != nil {
		return 0, err
	}
	next, err := g.checkpoints.NextGeneration()
	if err != nil {
		return 0, err
	}
	readable := g.checkpoints.Known()
	chosen := uint64(0)
	for _, n := range slices.Backward(numbers) {
		switch {
		case g.half || n < next && (!readable || n == installNumber(g.checkpoints.Meta())):
			next = max(next, n+1)
		case chosen == 0:
			chosen = n
		default:
			if err := s.removeIncoming(g, n); err != nil {
				return 0, err
			}
		}
	}
	if chosen == 0 {
		chosen = next
	}
	return chosen, nil
}

// removeIncoming removes a directory in which a snapshot was received.
func (s *Storage) removeIncoming(g *groupFiles, number uint64) error {
	dir := g.dir + "/" + incomingDir(number)
	names, err := s.fs.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	for _, name := range names {
		if err := s.fs.Remove(dir + "/" + name); err != nil {
			return err
		}
	}
	return s.fs.Remove(dir)
}

func (st *staging) path(name string) string { return st.dir + "/" + name }

// close releases the files.
func (st *staging) close() error { return errors.Join(st.sections.Close(), st.blocks.Close()) }

// complete verifies part 0, all of whose bytes are there, and learns from it which blocks there are.
func (st *staging) complete() error {
	var index []msgstore.StateSection
	for section, err := range st.allSections() {
		if err != nil {
			return err
		}
		if section.ID >= event.IndexSections {
			index = append(index, msgstore.StateSection{ID: section.ID - event.IndexSections, Data: slices.Clone(section.Data)})
		}
	}
	states, _, err := msgstore.DecodeState(index)
	if err != nil {
		return fmt.Errorf("%w: %w", snapshot.ErrCorrupt, err)
	}
	if uint64(len(states)) != st.manifest.Blocks {
		return fmt.Errorf("the sections list %d blocks, the manifest %d: %w", len(states), st.manifest.Blocks, snapshot.ErrCorrupt)
	}
	slices.SortFunc(states, func(a, b msgstore.BlockState) int { return cmp.Compare(a.ID, b.ID) })
	st.states, st.found, st.whole = states, make([]stagedBlock, len(states)), true
	return nil
}

// allSections reads the sections of part 0, ascending by id. The data of a section are valid until the next. The last
// thing it yields is an error when the sections are not those of the manifest.
func (st *staging) allSections() func(yield func(checkpoint.Section, error) bool) {
	return func(yield func(checkpoint.Section, error) bool) {
		var r snapshot.Reader
		var data []byte
		for at := uint64(0); ; {
			section, rest, ok, err := r.Next(data)
			if err != nil {
				yield(section, err)
				return
			}
			if ok {
				data = rest
				if !yield(section, nil) {
					return
				}
				continue
			}
			if at == st.manifest.Bytes {
				break
			}
			n := min(st.manifest.Bytes-at, uint64(max(event.PieceBytesMax, len(data))))
			data = append(make([]byte, 0, len(data)+int(n)), data...)
			data = data[:len(data)+int(n)]
			if err := vfs.ReadFull(st.sections, data[len(data)-int(n):], int64(at)); err != nil {
				yield(section, fmt.Errorf("read the sections of the snapshot: %w: %w", snapshot.ErrCorrupt, err))
				return
			}
			at += n
		}
		if err := r.Finish(&st.manifest); err != nil {
			yield(checkpoint.Section{}, err)
		}
	}
}

// leave lets go of a snapshot that is being received; what was staged stays for a later one.
func (g *groupFiles) leave() error {
	st := g.staging
	if st == nil {
		return nil
	}
	g.staging = nil
	// The files are the replica's: what nothing else needs is removed.
	return errors.Join(st.close(), g.blocks.Unpin(st.local))
}

// unstage gives up what was staged.
func (s *Storage) unstage(g *groupFiles) error {
	if err := g.leave(); err != nil {
		return err
	}
	numbers, err := s.incoming(g)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		if n == installNumber(g.checkpoints.Meta()) {
			continue // what it became may not be durable yet without it
		}
		if err := s.removeIncoming(g, n); err != nil {
			return err
		}
	}
	g.leftover = 0
	return nil
}

// noteLeftover finds out which snapshot an earlier process was receiving.
func (s *Storage) noteLeftover(g *groupFiles) error {
	numbers, err := s.incoming(g)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		g.leftover = max(g.leftover, 1)
		data, err := vfs.ReadFile(s.fs, g.dir+"/"+incomingDir(n)+"/"+manifestName)
		if err != nil {
			continue
		}
		if m, err := snapshot.ParseManifest(data); err == nil {
			g.leftover = max(g.leftover, m.Index)
		}
	}
	return nil
}

// installMeta is what a checkpoint says that was received in the directory with the number.
func installMeta(number uint64) []byte { return binary.LittleEndian.AppendUint64([]byte{'I'}, number) }

// installNumber reads installMeta; 0 where a checkpoint was not received.
func installNumber(meta []byte) uint64 {
	if len(meta) != 9 || meta[0] != 'I' {
		return 0
	}
	return binary.LittleEndian.Uint64(meta[1:])
}
