// Package crash enumerates what power losses can do to the storage of a node.
//
// For each generated workload it stops before every call that changes the disk, and for every way in which the un-synced
// bytes and names may survive it recovers a node, compares it with what had been acknowledged, lets it run a little,
// crashes it once more at a keyed call of the recovery or of what follows, and recovers and compares again. At the end
// of a workload it also damages bytes at rest: then every group must be as acknowledged or be reported, and every message
// must read as stored or be reported. Everything is a pure function of the number of the workload. It tests storage
// alone: protocols and engines are the simulator's business.
package crash

import (
	"errors"
	"fmt"

	"weir/disk/memfs"
	"weir/disk/vfs"
	"weir/disk/wal"
	"weir/node/storage"
)

// Options say what to run.
type Options struct {
	// Workloads is how many workloads are run, numbered from From.
	Workloads int
	From      uint64
	// Plant names a deliberate fault of the storage, one of Plants; empty for none.
	Plant string
	// FailuresMax ends the run after so many failures; 0 means 1.
	FailuresMax int
	// Damages is how many damages are tried at the end of each workload; 0 means 40.
	Damages int
	// NoCrashes leaves out the crashes and tries damage only.
	NoCrashes bool
}

// Report is the outcome of a run.
type Report struct {
	// Workloads, Images and States count what was run: an image is one way for a disk to survive a crash, a state is one
	// recovered disk. Equal images are recovered once.
	Workloads, Images, States int
	// Calls counts the calls of the disk at which crashes were tried.
	Calls    int
	Failures []Failure
}

// Failure is one broken promise.
type Failure struct {
	// Workload is the number of the workload: running it alone shows the failure again.
	Workload uint64
	// Call is the call of the disk before which the power went, Strategy how the disk survived; for damage, what was
	// damaged.
	Call     string
	Strategy string
	Err      error
}

// String describes the failure in one line.
func (f Failure) String() string {
	return fmt.Sprintf("workload %d, before %s, %s: %v", f.Workload, f.Call, f.Strategy, f.Err)
}

var plants = []struct {
	name string
	set  func(*storage.Options)
}{
	{"ack-before-sync", func(o *storage.Options) { o.Log.Plant.AckBeforeSync = true }},
	{"no-sync-dir", func(o *storage.Options) { o.Log.Plant.NoSyncDir, o.Plant.Blocks.NoSyncDir = true, true }},
	{"no-sync-blocks", func(o *storage.Options) { o.Plant.Blocks.NoSync = true }},
	{"checkpoint-before-blocks", func(o *storage.Options) { o.Plant.CheckpointBeforeBlocks = true }},
	{"switch-early", func(o *storage.Options) { o.Plant.SwitchEarly = true }},
	{"move-early", func(o *storage.Options) { o.Plant.MoveEarly = true }},
	{"install-keeps-old", func(o *storage.Options) { o.Plant.InstallKeepsOld = true }},
	{"stop-at-first-bad", func(o *storage.Options) { o.Log.Plant.StopAtFirstBad = true }},
}

// Plants returns the names of the deliberate faults.
func Plants() []string {
	var names []string
	for _, p := range plants {
		names = append(names, p.name)
	}
	return names
}

// segmentBytes is the size of log segments, small so that workloads fill several.
const segmentBytes = 8192

// Run enumerates. It returns an error for options that make no sense only.
func Run(o Options) (Report, error) {
	options := storage.Options{Log: wal.Options{SegmentBytes: segmentBytes, LiveSegmentsMax: 4}}
	known := o.Plant == ""
	for _, p := range plants {
		if p.name == o.Plant {
			p.set(&options)
			known = true
		}
	}
	if !known {
		return Report{}, fmt.Errorf("unknown fault %q", o.Plant)
	}
	o.FailuresMax = max(1, o.FailuresMax)
	if o.Damages == 0 {
		o.Damages = 40
	}
	var r Report
	for i := range uint64(max(0, o.Workloads)) {
		e := enumerator{number: o.From + i, options: options, report: &r, failuresMax: o.FailuresMax, seen: map[uint64]bool{}}
		if o.Plant == "" {
			e.workload(o.Damages, !o.NoCrashes)
		} else {
			e.planted(o.Damages)
		}
		r.Workloads++
		if len(r.Failures) >= o.FailuresMax {
			break
		}
	}
	return r, nil
}

// enumerator runs one workload.
type enumerator struct {
	number      uint64
	options     storage.Options
	report      *Report
	failuresMax int
	seen        map[uint64]bool // disks that were recovered already, with the ledger that they were held against
}

func (e *enumerator) fail(call, strategy string, err error) {
	e.report.Failures = append(e.report.Failures, Failure{e.number, call, strategy, err})
}

func (e *enumerator) done() bool { return len(e.report.Failures) >= e.failuresMax }

// planted runs a workload of a faulty storage, for which an assertion is a way of being caught.
func (e *enumerator) planted(damages int) {
	defer func() {
		if failed := recover(); failed != nil {
			e.fail("an assertion", "any", fmt.Errorf("%v", failed))
		}
	}()
	e.workload(damages, true)
}

// workload runs a workload, if asked for with crashes at every call, then tries damage.
func (e *enumerator) workload(damages int, crashes bool) {
	seed := memfs.Hash(e.number, "crash")
	sector := 512
	if seed%4 == 0 {
		sector = 4096
	}
	fs := memfs.New(memfs.Options{Seed: seed, SectorBytes: sector})
	l := &ledger{seed: seed}
	busy := false
	fs.OnOp(func(op memfs.Op) {
		if !crashes || busy || e.done() || op.Kind&memfs.OpChanges == 0 {
			return
		}
		busy = true
		e.crashes(fs, op, l)
		busy = false
	})
	n, _, err := start(fs, seed, e.options)
	if err == nil {
		s := script{node: n, ledger: l, key: seed, steps: scriptSteps}
		err = s.run()
		if err == nil {
			err = l.verify(n, nil, false)
		}
		err = errors.Join(err, n.storage.Close())
	}
	if err != nil {
		e.fail("the end", "no crash", err)
		return
	}
	fs.OnOp(nil)
	for i := range uint64(damages) {
		if e.done() {
			return
		}
		e.damage(fs, l, memfs.Hash(seed, "damage", i))
	}
}

// crashes tries every way of surviving a power loss before the call.
func (e *enumerator) crashes(fs *memfs.FS, op memfs.Op, l *ledger) {
	e.report.Calls++
	strategies := memfs.Strategies()
	if sectors, names := fs.Unsynced(); sectors == 0 && names == 0 {
		strategies = strategies[:1] // all leave the same disk
	}
	known := l.digest()
	for _, strategy := range strategies {
		key := memfs.Hash(l.seed, "image", op.Number, uint64(strategy))
		image := fs.Crash(strategy, key)
		e.report.Images++
		digest := memfs.Hash(known, "disk", image.Digest())
		if e.seen[digest] {
			continue
		}
		e.seen[digest] = true
		if err := e.recover(image, l.clone(), key, true); err != nil {
			e.fail(fmt.Sprintf("call %d (%s)", op.Number, op), strategy.String(), err)
			return
		}
	}
}

// recoverySteps is how long a recovered node runs before it is compared again.
const recoverySteps = 4

// recover starts a node on a disk, compares it, runs it on, and compares it again after a further crash. With again set a
// further crash strikes at a keyed call on the way.
func (e *enumerator) recover(fs *memfs.FS, l *ledger, key uint64, again bool) (err error) {
	e.report.States++
	if again {
		at := 1 + memfs.Hash(key, "again")%40
		strategy := memfs.Strategies()[memfs.Hash(key, "strategy")%uint64(len(memfs.Strategies()))]
		var inner error
		fs.OnOp(func(op memfs.Op) {
			if op.Number == at {
				inner = e.recover(fs.Crash(strategy, key), l.clone(), memfs.Hash(key, "inner"), false)
				if inner != nil {
					inner = fmt.Errorf("again before call %d (%s), %s: %w", op.Number, op, strategy, inner)
				}
			}
		})
		defer func() { err = errors.Join(err, inner) }()
	}
	n, damaged, err := start(fs, l.seed, e.options)
	if err != nil {
		return err
	}
	if err := l.verify(n, damaged, false); err != nil {
		return err
	}
	l.adopt(n, damaged)
	s := script{node: n, ledger: l, key: key, steps: recoverySteps, nextID: l.newest()}
	if err := s.run(); err != nil {
		return err
	}
	n, damaged, err = start(fs.Crash(memfs.LoseAll, key), l.seed, e.options)
	if err != nil {
		return fmt.Errorf("after running on: %w", err)
	}
	if err := l.verify(n, damaged, false); err != nil {
		return fmt.Errorf("after running on: %w", err)
	}
	return nil
}

// damage spoils one place of the closed disk and checks that nothing goes wrong silently.
func (e *enumerator) damage(clean *memfs.FS, l *ledger, key uint64) {
	e.report.States++
	fs := clean.Crash(memfs.KeepAll, key)
	var files []string
	for _, name := range fs.Files(".") {
		if fs.Size(name) > 0 {
			files = append(files, name)
		}
	}
	name := files[memfs.Hash(key, "file")%uint64(len(files))]
	off := int64(memfs.Hash(key, "offset") % uint64(fs.Size(name)))
	kind := memfs.Rot(memfs.Hash(key, "kind") % 5)
	err := spoil(fs, name, kind, off)
	if err == nil {
		err = e.survivesDamage(fs, l)
	}
	if err != nil {
		e.fail(fmt.Sprintf("the start after damage to %s at %d", name, off), fmt.Sprintf("kind %d", kind), err)
	}
}

// spoil damages a file. The kind behind the last of memfs cuts it.
func spoil(fs *memfs.FS, name string, kind memfs.Rot, off int64) error {
	if kind <= memfs.RotUnreadable {
		return fs.Damage(name, kind, off)
	}
	f, err := fs.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(off), f.Sync(), f.Close())
}

func (e *enumerator) survivesDamage(fs *memfs.FS, l *ledger) error {
	n, damaged, err := start(fs, l.seed, e.options)
	if err != nil {
		if errCorrupt(err) || errors.Is(err, storage.ErrVersion) || errors.Is(err, vfs.ErrIO) {
			return nil // refused as a whole, with a reason
		}
		return err
	}
	return errors.Join(l.verify(n, damaged, true), n.storage.Close())
}

// adopt makes what a recovered node has the truth for what follows: it was there, so it stays.
func (l *ledger) adopt(n *node, damaged map[wal.GroupID]error) {
	for i := range l.groups {
		a := &l.groups[i]
		g := n.group(a.id)
		if g == nil {
			a.dropped = a.dropped || a.dropping
			a.dropping = true
			a.last, a.pending = 0, 0
			continue
		}
		a.last, a.pending, a.dropping = g.last, g.last, false
		a.term = g.hard.Term
	}
	_ = damaged
}

func (l *ledger) newest() wal.GroupID {
	var newest wal.GroupID
	for i := range l.groups {
		newest = max(newest, l.groups[i].id)
	}
	return newest
}
