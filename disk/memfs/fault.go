package memfs

import (
	"errors"
	"fmt"
	"strings"

	"weir/disk/vfs"
)

// OpKind is a kind of file-system call, usable as a bit set.
type OpKind uint32

// The kinds of calls. MkdirAll counts as OpCreate.
const (
	OpCreate OpKind = 1 << iota
	OpOpen
	OpRename
	OpRemove
	OpList
	OpSyncDir
	OpFree
	OpLock
	OpRead
	OpWrite
	OpTruncate
	OpSize
	OpSync

	// OpChanges are the calls that change what a crash leaves behind.
	OpChanges = OpCreate | OpRename | OpRemove | OpSyncDir | OpWrite | OpTruncate | OpSync
)

var opNames = []string{"create", "open", "rename", "remove", "list", "syncdir", "free", "lock", "read", "write", "truncate", "size", "sync"}

// String returns the name of a single kind.
func (k OpKind) String() string {
	for i, name := range opNames {
		if k == 1<<i {
			return name
		}
	}
	return fmt.Sprintf("kinds(%#x)", uint32(k))
}

// Op is one call on the disk.
type Op struct {
	// Number counts calls from 1.
	Number uint64
	Kind   OpKind
	Name   string
	// To is the new name of a rename.
	To string
	// Off is the offset of a read or write, the size of a truncation.
	Off int64
	// Len is the length of a read or write in bytes.
	Len int
}

// String returns the operation as one line of a trace.
func (o Op) String() string {
	switch o.Kind {
	case OpRename:
		return fmt.Sprintf("rename %s %s", o.Name, o.To)
	case OpRead, OpWrite:
		return fmt.Sprintf("%s %s off=%d len=%d", o.Kind, o.Name, o.Off, o.Len)
	case OpTruncate:
		return fmt.Sprintf("truncate %s size=%d", o.Name, o.Off)
	}
	return o.Kind.String() + " " + o.Name
}

// Fault is a rule that makes calls fail. A call fails by the first rule that matches it.
type Fault struct {
	// On is the set of kinds that the rule concerns.
	On OpKind
	// Under limits the rule to names with this prefix; empty means all.
	Under string
	// From and To limit the rule to the operation numbers [From, To]; To zero means without end.
	From, To uint64
	// Times limits how often the rule fires; zero means without limit.
	Times int
	// Err is the error, usually vfs.ErrIO or vfs.ErrNoSpace.
	Err error
	// Lie makes Sync and SyncDir return nil without making anything durable. Err is not used then.
	Lie bool
	// Lose makes a write return nil without having happened: the old content stays, as if it were new. Astray makes it
	// land at another place of the file, a keyed number of sectors away, and leaves its own place as it was. Err is not used
	// then.
	Lose, Astray bool
}

// errLie tells Sync that it is to lie, errLose and errAstray tell a write what becomes of it.
var (
	errLie    = errors.New("sync lies")
	errLose   = errors.New("write is lost")
	errAstray = errors.New("write goes astray")
)

// Inject adds a rule.
func (f *FS) Inject(rule Fault) { f.faults = append(f.faults, rule) }

// Heal removes all rules and makes unreadable sectors readable again.
func (f *FS) Heal() {
	f.faults = nil
	for _, name := range f.Files(".") {
		f.lookup(name).file.bad = nil
	}
}

// StopAfter turns the machine off after the operation with the given number: later calls have no effect and return
// ErrStopped. Zero lifts the limit.
func (f *FS) StopAfter(number uint64) { f.stop = number }

// Ops returns how many calls were made.
func (f *FS) Ops() uint64 { return f.ops }

// OnOp sets a function that is called before each call takes effect, or none with nil. It may call Crash.
func (f *FS) OnOp(before func(Op)) { f.before = before }

// Record starts or stops keeping every call for Trace.
func (f *FS) Record(on bool) { f.record = on }

// Trace returns the calls kept since Record.
func (f *FS) Trace() []Op { return f.trace }

// enter counts a call and decides whether it fails.
func (f *FS) enter(op Op) error {
	if f.stop > 0 && f.ops >= f.stop {
		return ErrStopped
	}
	op.Number = f.ops + 1
	if f.before != nil {
		f.before(op)
		if f.stop > 0 && f.ops >= f.stop {
			return ErrStopped
		}
	}
	f.ops++
	if f.record {
		f.trace = append(f.trace, op)
	}
	for i := range f.faults {
		rule := &f.faults[i]
		if rule.On&op.Kind == 0 || !strings.HasPrefix(op.Name, rule.Under) {
			continue
		}
		if op.Number < rule.From || rule.To > 0 && op.Number > rule.To || rule.Times < 0 {
			continue
		}
		if rule.Times > 0 {
			rule.Times--
			if rule.Times == 0 {
				rule.Times = -1 // used up
			}
		}
		switch {
		case rule.Lie && op.Kind&(OpSync|OpSyncDir) != 0:
			return errLie
		case rule.Lose && op.Kind == OpWrite:
			return errLose
		case rule.Astray && op.Kind == OpWrite:
			return errAstray
		case rule.Lie || rule.Lose || rule.Astray:
			continue
		}
		return fmt.Errorf("%s %s: %w", op.Kind, op.Name, rule.Err)
	}
	return nil
}

// Rot is a kind of damage to bytes at rest.
type Rot uint8

// The kinds of damage.
const (
	// RotBit flips one bit.
	RotBit Rot = iota
	// RotZeros overwrites one sector with zeros.
	RotZeros
	// RotNoise overwrites one sector with keyed noise.
	RotNoise
	// RotUnreadable makes reads of one sector fail with vfs.ErrIO until it is written again.
	RotUnreadable
)

// Damage spoils a file at rest, both what readers see and what survives crashes, at the byte off (for RotBit, the bit
// off*8 plus a keyed number). The file must reach past off. It counts no operation.
func (f *FS) Damage(name string, kind Rot, off int64) error {
	n := f.lookup(name)
	if n == nil || n.file == nil {
		return notExist("damage", name)
	}
	c, sector := n.file, int64(f.opts.SectorBytes)
	if off < 0 || off >= int64(len(c.data)) {
		return fmt.Errorf("damage %s: offset %d is past the end %d", name, off, len(c.data))
	}
	for _, b := range [][]byte{c.data, c.synced} {
		lo := off / sector * sector
		hi := min(lo+sector, int64(len(b)))
		if off >= int64(len(b)) {
			continue
		}
		switch kind {
		case RotBit:
			b[off] ^= 1 << (Hash(f.opts.Seed, name, uint64(off)) % 8)
		case RotZeros:
			clear(b[lo:hi])
		case RotNoise:
			for i := lo; i < hi; i++ {
				b[i] = byte(Hash(f.opts.Seed, name, uint64(i), 1))
			}
		case RotUnreadable:
			if c.bad == nil {
				c.bad = map[int64]bool{}
			}
			c.bad[off/sector] = true
		}
	}
	return nil
}

// Size returns the visible size of a file in bytes without counting an operation, or -1 where there is none.
func (f *FS) Size(name string) int64 {
	if vfs.CheckName(name) != nil {
		return -1
	}
	n := f.lookup(name)
	if n == nil || n.file == nil {
		return -1
	}
	return int64(len(n.file.data))
}
