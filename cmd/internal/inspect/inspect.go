// Package inspect prints what a stopped server has stored: its log, its checkpoints, its message blocks, and the state
// that a start would arrive at from them.
//
// It promises to change nothing but the lock, which keeps servers away meanwhile: everything is read through a file system
// that keeps changes in memory. It repairs nothing and hides nothing; damage is printed where it is found.
package inspect

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"weir/disk/checkpoint"
	"weir/disk/msgstore"
	"weir/disk/osfs"
	"weir/disk/vfs"
	"weir/disk/wal"
	"weir/model/meta"
	"weir/node/event"
	"weir/node/storage"
)

// Options says what to print.
type Options struct {
	// Dir is a data directory, or the store directory that holds it as "jetstream".
	Dir string
	// Group limits the output to one group; 0 prints all.
	Group uint64
	// Log prints every entry of the log, Messages every message of the blocks.
	Log, Messages bool
	// Out receives the text.
	Out io.Writer
}

// look is an inspection under way.
type look struct {
	Options
	fs      *shadow
	catalog *meta.Machine
	damaged map[wal.GroupID]error
}

// Run prints. The error says that the directory could not be read at all; damage inside of it is part of the output.
func Run(o Options) (err error) {
	dir, err := find(o.Dir)
	if err != nil {
		return err
	}
	real, err := osfs.Existing(dir)
	if err != nil {
		return err
	}
	lock, err := real.Lock("lock")
	if err != nil {
		return fmt.Errorf("a server uses %s, stop it first: %w", dir, err)
	}
	l := &look{Options: o, fs: newShadow(real), catalog: meta.New(), damaged: map[wal.GroupID]error{}}
	defer func() { err = errors.Join(err, l.fs.close(), lock.Close()) }()
	format, err := vfs.ReadFile(l.fs, "format")
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "data directory %s: %s\n", dir, strings.TrimSpace(string(format)))
	log, found, err := wal.Open(l.fs, "wal", wal.Options{})
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	l.segments(&found)
	l.groups(&found)
	return nil
}

// find returns the data directory that a path means.
func find(dir string) (string, error) {
	for _, candidate := range []string{dir, filepath.Join(dir, "jetstream")} {
		if _, err := os.Stat(filepath.Join(candidate, "format")); err == nil {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("%s is no data directory of weir: there is no file \"format\" in it or in %s", dir, filepath.Join(dir, "jetstream"))
}

// segments prints the files of the log.
func (l *look) segments(found *wal.Recovered) {
	fmt.Fprintf(l.Out, "log: %d segments, %d groups\n", len(found.Segments), len(found.Groups)+len(found.Damaged))
	w := tabwriter.NewWriter(l.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "segment\tfile bytes\tused bytes\tappends\trecords\t  damage at\t")
	for _, s := range found.Segments {
		fmt.Fprintf(w, "%016x\t%d\t%d\t%d\t%d\t  %v\t\n", s.ID, s.FileBytes, s.End, s.Appends, s.Records, s.Damage)
	}
	if err := w.Flush(); err != nil {
		return // the reader of the output is gone
	}
	for _, note := range found.Notes {
		fmt.Fprintln(l.Out, "note:", note)
	}
	if found.Incomplete {
		fmt.Fprintln(l.Out, "DAMAGE: the log may have held groups that nothing else names")
	}
	for _, d := range found.Damaged {
		l.damaged[d.Group] = d.Err
	}
}

// groups prints every group, the catalog first: it names the others.
func (l *look) groups(found *wal.Recovered) {
	for i := range found.Groups {
		if found.Groups[i].ID == wal.GroupID(meta.Group) {
			l.showCatalog(&found.Groups[i])
		}
	}
	if err := l.damaged[wal.GroupID(meta.Group)]; err != nil {
		fmt.Fprintf(l.Out, "\ncatalog (group %x)\n  DAMAGE: %v\n", meta.Group, err)
	}
	for i := range found.Groups {
		if g := &found.Groups[i]; g.ID != wal.GroupID(meta.Group) && l.wanted(g.ID) {
			l.showStream(g)
		}
	}
	for _, d := range found.Damaged {
		if d.Group != wal.GroupID(meta.Group) && l.wanted(d.Group) {
			l.title(d.Group)
			fmt.Fprintf(l.Out, "  DAMAGE: %v\n", d.Err)
			l.files(d.Group)
		}
	}
}

func (l *look) wanted(id wal.GroupID) bool { return l.Group == 0 || uint64(id) == l.Group }

// title prints the heading of a group.
func (l *look) title(id wal.GroupID) *meta.Stream {
	entry := l.catalog.ByGroup(uint64(id))
	if entry == nil {
		fmt.Fprintf(l.Out, "\ngroup %x: not in the catalog\n", uint64(id))
		return nil
	}
	fmt.Fprintf(l.Out, "\nstream '%s > %s' (group %x), created %s\n  config: %s\n", entry.Account, entry.Name, uint64(id),
		stamp(entry.Created), entry.JSON)
	return entry
}

// raft prints what the log holds of a group.
func (l *look) raft(g *wal.Group) {
	fmt.Fprintf(l.Out, "  raft: term %d, vote %d, commit %d\n", g.HardState.Term, g.HardState.Vote, g.HardState.Commit)
	bytes := 0
	for i := range g.Entries {
		bytes += len(g.Entries[i].Data)
	}
	if n := len(g.Entries); n > 0 {
		fmt.Fprintf(l.Out, "  log: entries [%d,%d], %d bytes, compacted up to %d\n", g.Entries[0].Index, g.Entries[n-1].Index, bytes, g.Compact)
	} else {
		fmt.Fprintf(l.Out, "  log: no entries, compacted up to %d\n", g.Compact)
	}
	if l.Log && l.wanted(g.ID) {
		for i := range g.Entries {
			l.entry(&g.Entries[i])
		}
	}
}

// checkpoint prints and returns the checkpoint of a group.
func (l *look) checkpoint(id wal.GroupID) (checkpoint.State, error) {
	state, err := checkpoint.Load(l.fs, storage.GroupDir(id)+"/checkpoint")
	switch {
	case err != nil:
		fmt.Fprintf(l.Out, "  checkpoint: DAMAGE: %v\n", err)
	case state.Index == 0:
		fmt.Fprintln(l.Out, "  checkpoint: none")
	default:
		bytes := 0
		for _, s := range state.Sections {
			bytes += len(s.Data)
		}
		fmt.Fprintf(l.Out, "  checkpoint: at index %d of term %d, %d sections, %d bytes\n", state.Index, state.Term, len(state.Sections), bytes)
	}
	return state, err
}

// files prints checkpoint and blocks of a group and returns the checkpoint.
func (l *look) files(id wal.GroupID) (checkpoint.State, bool) {
	state, err := l.checkpoint(id)
	if err != nil {
		return state, false
	}
	var sections []msgstore.StateSection
	for _, s := range state.Sections {
		if s.ID >= event.IndexSections {
			sections = append(sections, msgstore.StateSection{ID: s.ID - event.IndexSections, Data: s.Data})
		}
	}
	states, next, err := msgstore.DecodeState(sections)
	if err != nil {
		fmt.Fprintf(l.Out, "  blocks: DAMAGE: %v\n", err)
		return state, false
	}
	files := msgstore.NewFiles(l.fs, storage.GroupDir(id)+"/msgs", msgstore.Plant{})
	blocks, err := files.Load(states)
	if err != nil {
		fmt.Fprintf(l.Out, "  blocks: DAMAGE: %v\n", err)
		return state, false
	}
	fmt.Fprintf(l.Out, "  blocks: %d in the checkpoint, the next is %d\n", len(blocks), next)
	sound := true
	for i := range blocks {
		sound = l.block(files, &blocks[i]) && sound
	}
	if err := files.Close(); err != nil {
		fmt.Fprintf(l.Out, "  blocks: %v\n", err)
	}
	return state, sound
}

// block prints a block, and its messages when they are asked for. Every message is read, so that damage shows.
func (l *look) block(files *msgstore.Files, b *msgstore.BlockInfo) bool {
	messages, sound := 0, true
	for _, loc := range b.Locs(nil) {
		messages++
		seq := loc.Seq
		m, err := files.Read(loc)
		if err != nil {
			sound = false
			fmt.Fprintf(l.Out, "    DAMAGE: block %d, sequence %d: %v\n", b.State.ID, seq, err)
			continue
		}
		if l.Messages {
			fmt.Fprintf(l.Out, "    %d %s %s header %d bytes, payload %d bytes\n", seq, stamp(m.Time), m.Subject, len(m.Header), len(m.Payload))
		}
	}
	kind := "open"
	if b.State.Sealed {
		kind = "sealed"
	}
	fmt.Fprintf(l.Out, "    block %s: sequences [%d,%d], %d messages, %d bytes, %s\n", msgstore.FileName(b.State.ID), b.State.First,
		b.State.Last, messages, b.State.Size, kind)
	return sound
}

// stamp writes unix nanoseconds for a person.
func stamp(nanos int64) string {
	if nanos == 0 {
		return "never"
	}
	return time.Unix(0, nanos).UTC().Format("2006-01-02T15:04:05.000000Z")
}
