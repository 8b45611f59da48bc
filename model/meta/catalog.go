package meta

import (
	"cmp"
	"slices"

	"weir/spec/assert"
)

// Stream returns the stream of the account, nil when there is none.
func (m *Machine) Stream(account, name string) *Stream { return m.byName[key{account, name}] }

// ByGroup returns the stream of the group, nil when it has none (any more).
func (m *Machine) ByGroup(group uint64) *Stream { return m.byGroup[group] }

// Streams returns the streams of the account, ascending by name. The slice is the machine's: it is valid until the next
// Apply and must not be changed.
func (m *Machine) Streams(account string) []*Stream {
	lo, _ := slices.BinarySearchFunc(m.order, account, func(s *Stream, account string) int {
		return cmp.Compare(s.Account, account)
	})
	hi := lo + len(m.order[lo:])
	end, _ := slices.BinarySearchFunc(m.order[lo:], account+"\x00", func(s *Stream, account string) int {
		return cmp.Compare(s.Account, account)
	})
	return m.order[lo:min(hi, lo+end):min(hi, lo+end)]
}

// All returns every stream, ascending by account and name. The slice is the machine's: it is valid until the next Apply
// and must not be changed.
func (m *Machine) All() []*Stream { return m.order }

// Reserved returns the bytes that the streams of the account reserve in memory and on disk, counted once for a stream
// whatever its number of replicas, as clients are told.
func (m *Machine) Reserved(account string) (memory, store uint64) {
	u := m.usages[account]
	if u == nil {
		return 0, 0
	}
	return uint64(u.memory.value()), uint64(u.store.value())
}

func compareStreams(a, b *Stream) int {
	return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Name, b.Name))
}

func (m *Machine) insert(s *Stream) {
	at, found := slices.BinarySearchFunc(m.order, s, compareStreams)
	assert.True(!found && m.byGroup[s.Group] == nil, "stream is new in the catalog", s.Group)
	m.order = slices.Insert(m.order, at, s)
	m.enter(s)
}

func (m *Machine) remove(s *Stream) {
	at, found := slices.BinarySearchFunc(m.order, s, compareStreams)
	assert.True(found && m.order[at] == s, "stream is in the catalog", s.Group)
	m.order = slices.Delete(m.order, at, at+1)
	delete(m.byName, key{s.Account, s.Name})
	delete(m.byGroup, s.Group)
	m.leave(s)
	m.takeBack(s)
}

// replace puts the next version of an entry in its place.
func (m *Machine) replace(old, next *Stream) {
	at, found := slices.BinarySearchFunc(m.order, old, compareStreams)
	assert.True(found && m.order[at] == old && old.Group == next.Group, "stream is in the catalog", old.Group)
	m.leave(old)
	m.order[at] = next
	m.enter(next)
}

func (m *Machine) enter(s *Stream) {
	assert.True(distinct(s), "the replicas of a stream are on distinct servers", s.Group)
	m.byName[key{s.Account, s.Name}] = s
	m.byGroup[s.Group] = s
	m.sum += hashStream(s)
	m.count(s)
	for _, pattern := range s.Config.Subjects {
		m.claimsOf(s.Account).add(pattern, s.Group)
	}
	m.enterMirror(s)
	m.markDirty(s.Group)
}

func (m *Machine) leave(s *Stream) {
	m.sum -= hashStream(s)
	m.uncount(s)
	for _, pattern := range s.Config.Subjects {
		m.claimsOf(s.Account).drop(pattern, s.Group)
	}
	m.leaveMirror(s)
	m.markDirty(s.Group)
}

// distinct reports whether no server has two replicas of the stream, and no two replicas have one id.
func distinct(s *Stream) bool {
	all := slices.Concat(s.Replicas, s.Former)
	for i, r := range all {
		for _, o := range all[:i] {
			if o.Server == r.Server || o.ID == r.ID {
				return false
			}
		}
	}
	return true
}
