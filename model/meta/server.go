package meta

import (
	"cmp"
	"slices"

	"weir/model/jsapi"
)

// ServersMax bounds the servers that a catalog has ever known. Those that were removed stay known, so that none of them
// comes back with a disk that others have stopped to count on.
const ServersMax = 4096

// Server is a server that the catalog knows. It is not changed after it was handed out; a change makes a new one.
type Server struct {
	// ID identifies the server and its disk: a wiped disk is another server.
	ID uint64 `json:"id"`
	// Replica is the Raft id of its replica of the catalog. A server whose replica was damaged has another one.
	Replica uint64 `json:"replica,omitempty"`
	// Name is unique among the servers that are not removed.
	Name string `json:"name"`
	// Cluster is the name of its cluster.
	Cluster string `json:"cluster,omitempty"`
	// Tags are its tags, by which streams are placed.
	Tags []string `json:"tags,omitempty"`
	// StoreMax and MemoryMax are the bytes that streams may reserve on it; not positive: no limit.
	StoreMax  int64 `json:"store_max,omitempty"`
	MemoryMax int64 `json:"memory_max,omitempty"`
	// Registered is its place in the order of registrations, from 1. Whoever registers leaves it 0.
	Registered uint64 `json:"registered,omitempty"`
	// Removed says that it belongs to the cluster no longer, for ever.
	Removed bool `json:"removed,omitempty"`
}

// Same reports whether o says the same of the server, apart from what the catalog adds.
func (s *Server) Same(o *Server) bool {
	return s.ID == o.ID && s.Replica == o.Replica && s.Name == o.Name && s.Cluster == o.Cluster && slices.Equal(s.Tags, o.Tags) &&
		s.StoreMax == o.StoreMax && s.MemoryMax == o.MemoryMax
}

// room is the bytes of the storage that streams may reserve on the server; not positive: no limit.
func (s *Server) room(storage jsapi.StorageType) int64 {
	if storage == jsapi.MemoryStorage {
		return s.MemoryMax
	}
	return s.StoreMax
}

// Server returns the server of the id, also a removed one; nil when it was never registered.
func (m *Machine) Server(id uint64) *Server { return m.servers[id] }

// ServerNamed returns the server of the name that is not removed, nil when there is none.
func (m *Machine) ServerNamed(name string) *Server {
	for _, s := range m.roster {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Holds reports whether a stream has a replica on the server, or has not settled without it. It looks at every stream.
func (m *Machine) Holds(server uint64) bool {
	return slices.ContainsFunc(m.order, func(s *Stream) bool {
		_, former := s.FormerOn(server)
		_, member := s.Member(server)
		return member || former
	})
}

// Servers returns the servers that are not removed, in the order in which they were registered. The slice is the
// machine's: it is valid until the next Apply and must not be changed.
func (m *Machine) Servers() []*Server { return m.roster }

// Registrations is how many servers have ever been registered.
func (m *Machine) Registrations() uint64 { return m.registrations }

// Formed reports whether the catalog has once been held by all servers that were to found it. That is remembered, and not
// read off its members: later some of them may be away or learn anew, and what the catalog then decides, the removal of a
// server above all, is what mends that.
func (m *Machine) Formed() bool { return m.formed }

// form notes that the catalog is formed.
func (m *Machine) form() (changed bool) {
	changed, m.formed = !m.formed, true
	return changed
}

// Removed returns the ids of the servers that were removed, ascending.
func (m *Machine) Removed() []uint64 {
	var ids []uint64
	for id, s := range m.servers { // order-free: sorted below
		if s.Removed {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// putServer adds a server or replaces what is known of it.
func (m *Machine) putServer(s *Server) {
	m.servers[s.ID] = s
	m.roster = slices.DeleteFunc(slices.Clone(m.roster), func(o *Server) bool { return o.ID == s.ID })
	if !s.Removed {
		at, _ := slices.BinarySearchFunc(m.roster, s, func(a, b *Server) int { return cmp.Compare(a.Registered, b.Registered) })
		m.roster = slices.Insert(m.roster, at, s)
	}
	m.markDirty(serversSection)
}
