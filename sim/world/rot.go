package world

import (
	"strings"

	"weir/disk/memfs"
	"weir/sim/plan"
)

// rot damages a byte of one file of the kind that the fault names, if there is one with content. What the last write to
// the log put there is spared: nothing can tell damage of the newest append, with no mark behind it, from a write that
// the power cut short, and with a single copy that loss is beyond what the server promises. A fault about the newest append
// is about nothing else, where the others can make good for it.
func (m *machine) rot(f *plan.Fault) {
	parts := map[string]string{"log": "/wal/", "blocks": "/msgs", "checkpoint": "/checkpoint"}
	newest := f.On == "newest"
	var names []string
	var sizes []uint64
	for _, name := range m.disk.Files(Dir) {
		size := m.disk.Size(name)
		if newest && name != m.lastLogWrite.Name {
			continue
		}
		if name == m.lastLogWrite.Name && !newest {
			size = min(size, m.lastLogWrite.Off)
		}
		if strings.HasSuffix(name, "/mark") && f.N%8 != 0 {
			continue // Two small slots of many files: damaged less often than its share.
		}
		if strings.Contains(name, parts[f.Disk]) && size > 0 {
			names, sizes = append(names, name), append(sizes, uint64(size))
		}
	}
	if len(names) == 0 {
		return
	}
	n := uint64(f.N)
	at := n % uint64(len(names))
	kind := memfs.Rot(n / 3 % 4)
	off := int64(n / 7 % sizes[at])
	if newest {
		off = m.lastLogWrite.Off + int64(n/7%uint64(max(m.lastLogWrite.Len, 1)))
	}
	if m.w.mesh != nil && f.Disk == "log" {
		image := m.disk.Crash(memfs.KeepAll, 0)
		if err := image.Damage(names[at], kind, off); err != nil || !m.forgettable(image) {
			return
		}
		m.forgot = true
	}
	if err := m.disk.Damage(names[at], kind, off); err == nil {
		m.rotten = true
		m.w.trace.Note("rot of " + names[at])
	}
}
