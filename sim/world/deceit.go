package world

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"weir/disk/memfs"
	"weir/disk/vfs"
	"weir/disk/wal"
	"weir/node/replica"
	"weir/node/storage"
)

// A disk may say of an append that it is durable, and lose it without a trace: it lies about syncs, loses a write or puts it
// elsewhere, or the newest append decays before anything behind it speaks for it. Then nothing on the server can tell that it
// has forgotten what it promised, and no protocol that goes on with a majority bears that at any moment: an entry that one
// other server has committed together with this one is on one disk only. So a disk may forget here what the others can make
// good for, and turns out to have told the truth otherwise:
//
//   - every entry that it had acknowledged is on the disks of a majority without it;
//   - a majority without it has voted as it had, or is in a later term: nobody else can win the term of a forgotten vote.

// crashImage is the disk that a crash leaves.
func (m *machine) crashImage(strategy memfs.Strategy) *memfs.FS {
	key := m.w.key.Draw("crash", m.life())
	image := m.disk.Crash(strategy, key)
	if !m.disk.Deceived(Dir + "/wal") {
		return image
	}
	if m.mayLose && m.forgettable(image) {
		m.forgot, m.rotten = true, true
		m.w.trace.Note("what the disk said is not so")
		return image
	}
	m.disk.Undeceive()
	return m.disk.Crash(strategy, key)
}

// forgettable says whether the others can make good for what a server that starts on the image has forgotten without knowing.
// Without its identity a server does not start until an operator has restored it, and there is none here.
func (m *machine) forgettable(image *memfs.FS) bool {
	if !bytes.Equal(identityOn(image), identityOn(m.disk.Crash(memfs.KeepAll, 0))) {
		return false
	}
	found, err := wal.Scan(image, Dir+"/wal", nil)
	if err != nil {
		return false
	}
	for _, key := range slices.SortedFunc(maps.Keys(m.w.ledgers.logs), compareKeys) {
		if key.machine != m.index || key.wipes != m.wipes || known(image, &found, key.group) {
			continue
		}
		var now wal.Group
		if i := slices.IndexFunc(found.Groups, func(g wal.Group) bool { return g.ID == key.group }); i >= 0 {
			now = found.Groups[i]
		}
		for _, seen := range m.w.inspector.seen {
			if s := seen[key.group]; s != nil && !m.w.madeGood(m, s.members, forgotten{key.group, m.w.ledgers.logs[key], &now}) {
				return false
			}
		}
	}
	return true
}

// identityOn is what a disk holds as the identity of the server; nil when there is none.
func identityOn(disk *memfs.FS) []byte {
	data, err := vfs.ReadFile(disk, Dir+"/"+storage.IdentityFile)
	if err != nil {
		return nil
	}
	return data
}

func compareKeys(a, b ledgerKey) int {
	return cmp.Or(a.machine-b.machine, cmp.Compare(a.wipes, b.wipes), cmp.Compare(a.group, b.group))
}

// known says whether a server that starts on the image learns that it has forgotten something of a group.
func known(image *memfs.FS, found *wal.Recovered, group wal.GroupID) bool {
	if slices.ContainsFunc(found.Damaged, func(d wal.Damage) bool { return d.Group == group }) {
		return true
	}
	if slices.ContainsFunc(found.Groups, func(g wal.Group) bool { return g.ID == group }) {
		return false
	}
	return found.Incomplete || len(image.Files(Dir+"/"+storage.GroupDir(group))) > 0
}

// forgotten is what a disk had of a group's log, and what it has.
type forgotten struct {
	group wal.GroupID
	had   *ledger
	has   *wal.Group
}

// madeGood says whether the others make good for what the machine has forgotten of a group with the given members.
func (w *World) madeGood(m *machine, members []replica.Member, f forgotten) bool {
	index, term := f.had.lastSynced()
	entry := index > 0 && !holdsEntry(f.has, index, term)
	hard, now := f.had.hard, f.has.HardState
	vote := hard.Term > now.Term || hard.Term == now.Term && hard.Vote != now.Vote
	if !entry && !vote {
		return true
	}
	voters, entries, votes, concerned := 0, 0, 0, false
	for i := range members {
		id := serverID(members[i].Server)
		at, seen := w.servers[id]
		if members[i].Learner {
			continue
		}
		voters++
		if seen && at == m.index && w.disks[id] == m.wipes {
			concerned = true
			continue
		}
		l := w.ledgers.logs[ledgerKey{at, w.disks[id], f.group}]
		if !seen || l == nil || w.machines[at].rotten {
			continue
		}
		if l.holds(index, term) {
			entries++
		}
		if l.hard.Term > hard.Term || l.hard.Term == hard.Term && (hard.Vote == 0 || l.hard.Vote == hard.Vote) {
			votes++
		}
	}
	return !concerned || (!entry || entries > voters/2) && (!vote || votes > voters/2)
}

// lastSynced is the newest entry that is durable.
func (l *ledger) lastSynced() (index, term uint64) {
	for i := len(l.entries) - 1; i >= 0; i-- {
		if l.entries[i].synced {
			return l.base + uint64(i) + 1, l.entries[i].term
		}
	}
	return l.base, 0
}

// holdsEntry says whether a log has an entry, or a checkpoint that covers it.
func holdsEntry(g *wal.Group, index, term uint64) bool {
	if index <= g.Compact {
		return true
	}
	for i := range g.Entries {
		if e := &g.Entries[i]; e.Index == index {
			return e.Term == term
		}
	}
	return false
}

// forget takes out of the account the groups that the disk has forgotten altogether.
func (m *machine) forget(found *wal.Recovered) {
	if !m.forgot {
		return
	}
	for key, l := range m.w.ledgers.logs { // order-free: changes each by itself
		if key.machine == m.index && key.wipes == m.wipes && !known(m.disk, found, key.group) &&
			!slices.ContainsFunc(found.Groups, func(g wal.Group) bool { return g.ID == key.group }) {
			*l = ledger{}
		}
	}
}
