package world

import (
	"weir/disk/wal"
	"weir/model/stream"
	"weir/node/replica"
)

// twinEvery is how many applied entries pass between two looks at the state behind a digest, which cost in proportion to
// the state.
const twinEvery = 16

// lookBehind checks what a digest may hide: the consumers of a stream are the same on all replicas, and a machine that is
// restored from the state, without any planted fault, finds it to be what the digest says.
func (w *World) lookBehind(m *machine, at applied) {
	if at.index%twinEvery != 0 || m.node == nil || at.group == catalogGroup {
		return
	}
	m.node.Engine().EachReplica(func(group wal.GroupID, r *replica.Replica) {
		s, ok := r.Machine().(*stream.Machine)
		if group != at.group || !ok || s.Applied() != at.index {
			return
		}
		sum := consumersOf(s)
		if known, seen := w.digests.consumers[at]; seen && known != sum {
			w.violate("consumers-differ", "group %d at index %d: the consumers on node %d are not what they were elsewhere", at.group, at.index, m.index)
		}
		w.digests.consumers[at] = sum
		if err := restored(s); err != nil {
			w.violate("digest-of-twin", "group %d at index %d: a copy of the state on node %d is not what its digest says: %v",
				at.group, at.index, m.index, err)
		}
	})
}

// consumersOf is a sum over the complete states of the consumers.
func consumersOf(s *stream.Machine) uint64 {
	var state []byte
	for _, c := range s.Consumers() {
		state = c.AppendState(state)
	}
	return sumOfBytes(state)
}

func sumOfBytes(data []byte) uint64 {
	sum := fnvBasis
	for _, b := range data {
		sum = (sum ^ uint64(b)) * fnvPrime
	}
	return sum
}

// The constants of FNV-1a.
const (
	fnvBasis uint64 = 14695981039346656037
	fnvPrime uint64 = 1099511628211
)

// restored restores a copy of a machine from its sections.
func restored(s *stream.Machine) error {
	twin := stream.New(stream.Options{
		Account: s.Account(), Name: s.Name(), Config: s.Config(), ConfigVersion: s.ConfigVersion(), Created: s.Created(),
		Incarnation: s.Incarnation(),
	})
	var section []byte
	for _, id := range s.Sections(nil) {
		section, _ = s.AppendSection(section[:0], id)
		if err := twin.RestoreSection(id, section); err != nil {
			return err
		}
	}
	return twin.Restored()
}
