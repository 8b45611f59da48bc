package world

import (
	"strings"

	"weir/disk/memfs"
	"weir/node/storage"
	"weir/transport/peerwire"
)

// More catalogs than a cluster can do without may be damaged. Then nobody may take that for absence: streams stay as they are,
// no other catalog is founded, and once an operator has put back what was damaged everything goes on, with all that was
// acknowledged. The world puts back what the disk held then, as from a copy: while the catalog is damaged the server has no replica
// that could promise anything new.

// blinded is a damaged place on a machine's disk.
type blinded struct {
	machine *machine
	name    string
	off     int64
	whole   *memfs.FS // what the disk held before
}

// blindTries is how many places are looked at for one whose damage costs a server the catalog and nothing else.
const blindTries = 16

// blind damages the catalogs of all the machines, or of none.
func (w *World) blind(fault int, machines []*machine) bool {
	if !w.founded() {
		w.trace.Note("not now: blind")
		return false
	}
	var places []blinded
	for _, m := range machines {
		place, found := m.blindSpot(fault)
		if !found || m.node == nil || m.paused {
			w.trace.Note("not now: blind")
			return false
		}
		places = append(places, place)
	}
	all := true
	for i := range places {
		p := &places[i]
		p.machine.kill(memfs.KeepAll)
		p.whole = p.machine.disk.Crash(memfs.KeepAll, 0)
		// What was under way when the process ended may have moved the bytes.
		all = p.machine.disk.Damage(p.name, memfs.RotBit, p.off) == nil && p.machine.lacksCatalog(p.machine.disk) && all
	}
	for i := range places {
		if !all {
			places[i].putBack()
		}
		places[i].machine.restartAfter(1_000_000, 0)
	}
	if all {
		w.blinded[fault] = places
	}
	return all
}

// putBack gives the machine the disk that it had.
func (p *blinded) putBack() {
	p.machine.disk = p.whole
	p.machine.watchDisk()
	p.machine.applyDiskFaults()
}

// mend puts back what was damaged. Meanwhile nobody may have removed what is left of it.
func (w *World) mend(fault int) {
	for i := range w.blinded[fault] {
		p := &w.blinded[fault][i]
		m := p.machine
		if m.node != nil {
			m.kill(memfs.KeepAll)
		}
		if !m.lacksCatalog(m.disk) {
			w.violate("catalog-removed", "what is left of the damaged catalog on node %d is gone, or there is another one", m.index)
		}
		p.putBack()
		m.restartAfter(1_000_000, 0)
	}
	delete(w.blinded, fault)
}

// blindSpot looks for a place whose damage costs the server the catalog, and no stream.
func (m *machine) blindSpot(fault int) (blinded, bool) {
	var names []string
	for _, name := range m.disk.Files(Dir) {
		catalog := strings.Contains(name, "/"+storage.GroupDir(catalogGroup)+"/checkpoint")
		if size := m.disk.Size(name); size > 0 && (catalog || strings.Contains(name, "/wal/")) {
			names = append(names, name)
		}
	}
	for try := range uint64(blindTries) {
		if len(names) == 0 {
			break
		}
		name := names[m.w.key.Below(uint64(len(names)), "blind file", uint64(fault), m.life(), try)]
		off := int64(m.w.key.Below(uint64(m.disk.Size(name)), "blind at", uint64(fault), m.life(), try))
		image := m.disk.Crash(memfs.KeepAll, 0)
		if image.Damage(name, memfs.RotBit, off) == nil && m.lacksCatalog(image) {
			return blinded{machine: m, name: name, off: off}, true
		}
	}
	return blinded{}, false
}

// lacksCatalog says whether a server that starts on a copy of the disk finds its catalog damaged, and everything else whole.
func (m *machine) lacksCatalog(disk *memfs.FS) bool {
	options := m.config().Storage
	options.Patient = false
	s, groups, err := storage.Open(disk.Crash(memfs.KeepAll, 0), Dir, options)
	if err != nil {
		return false
	}
	lacks := false
	for i := range groups {
		if groups[i].Damage != nil {
			if groups[i].ID != catalogGroup {
				return false
			}
			lacks = true
		}
	}
	return lacks && s.Hidden() == nil
}

// founder checks that a cluster has one catalog, founded once.
func (w *World) founder(m *machine, hello *peerwire.Hello) {
	switch {
	case hello.Catalog == 0 || hello.Catalog == w.catalogOf:
	case w.catalogOf == 0:
		w.catalogOf = hello.Catalog
	default:
		w.violate("second-catalog", "node %d has the catalog founded by %s, that of the cluster was founded by %s",
			m.index, hello.Catalog.Short(), w.catalogOf.Short())
	}
}
