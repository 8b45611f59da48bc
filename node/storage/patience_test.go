package storage

import (
	"errors"
	"testing"

	"weir/disk/memfs"
	"weir/disk/vfs"
	"weir/disk/wal"
	"weir/node/event"
)

// reads returns the numbers of the disk's calls by which an Open of what the disk holds reads, counted from the present.
func reads(t *testing.T, fs *memfs.FS) []uint64 {
	before := fs.Ops()
	var at []uint64
	fs.OnOp(func(op memfs.Op) {
		if op.Kind == memfs.OpRead {
			at = append(at, op.Number-before)
		}
	})
	defer fs.OnOp(nil)
	s, _ := open(t, fs)
	must(t, s.Close())
	return at
}

func TestPatientOpenTakesNoReadErrorForDamage(t *testing.T) {
	fs := memfs.New(memfs.Options{})
	s, _ := open(t, fs)
	must(t, do(t, s, event.Op{Kind: event.Persist, Writes: []wal.Write{{Group: 5, Entries: entries(1, 9)}}}))
	save(t, s, 5, 4)
	must(t, s.Close())
	at := reads(t, fs)
	if len(at) < 3 {
		t.Fatalf("an open reads %d times, that is not log and checkpoint", len(at))
	}
	refused := 0
	for _, failing := range at {
		fs.Inject(memfs.Fault{On: memfs.OpRead, From: fs.Ops() + failing, To: fs.Ops() + failing, Err: vfs.ErrIO})
		s, groups, err := Open(fs, "data", Options{Patient: true})
		fs.Heal()
		switch {
		case err == nil: // what was not read did not matter
			must(t, s.Close())
			if len(groups) != 1 || groups[0].Damage != nil {
				t.Fatalf("call %d: opened with %+v", failing, groups)
			}
		case !errors.Is(err, vfs.ErrIO):
			t.Fatalf("call %d: %v, want ErrIO", failing, err)
		default:
			refused++
		}
		s, groups = open(t, fs)
		if len(groups) != 1 || groups[0].Damage != nil || len(groups[0].Log.Entries) != 9 || groups[0].Checkpoint.Index != 4 {
			t.Fatalf("call %d: afterwards %+v", failing, groups)
		}
		must(t, s.Close())
	}
	if refused < 3 {
		t.Fatalf("%d of %d failed reads were found out", refused, len(at))
	}
}
