package meta

import (
	"cmp"
	"reflect"
	"slices"

	"weir/model/effect"
	"weir/model/jsapi"
	"weir/spec/assert"
)

// aloneReplica is the id of every replica of a server that began without a catalog of servers; firstReplica is the first
// that the catalog gives out.
const (
	aloneReplica uint64 = 1
	firstReplica uint64 = 2
)

// begin gives a new stream its replicas. A catalog without servers gives none.
func (m *Machine) begin(s *Stream, p *proposal) *jsapi.Error {
	if len(m.roster) == 0 {
		return nil
	}
	servers, refused := m.newSearch(p, nil, nil).choose(s.Config.Replicas)
	if refused != nil {
		return refused
	}
	m.preferLeastPreferred(servers)
	for _, server := range servers {
		s.Replicas = append(s.Replicas, m.newReplica(server))
	}
	s.Birth = s.Replicas
	s.Placement, s.Settled = 1, 1
	return nil
}

// preferLeastPreferred puts the server first that is the preferred leader of the fewest streams.
func (m *Machine) preferLeastPreferred(servers []uint64) {
	best := 0
	for i, server := range servers {
		if m.Load(server).Preferred < m.Load(servers[best]).Preferred {
			best = i
		}
	}
	servers[0], servers[best] = servers[best], servers[0]
}

func (m *Machine) newReplica(server uint64) Replica {
	r := Replica{ID: m.nextReplica, Server: server}
	m.nextReplica++
	return r
}

// replan gives the next version of an updated stream the replicas that the new configuration asks for.
func (m *Machine) replan(next, old *Stream, p *proposal) *jsapi.Error {
	if len(m.roster) == 0 {
		return nil
	}
	placement := p.Config.Placement
	moved := p.Limits.Clustered && placement != nil && !reflect.DeepEqual(old.Config.Placement, placement)
	scaled := p.Config.Replicas != old.Config.Replicas
	switch {
	case p.Limits.Clustered && !m.anyOnline(old, p):
		return jsapi.CodeStreamOffline.Err()
	case moved && scaled:
		return jsapi.CodeStreamMoveAndScale.Err()
	case (moved || scaled) && old.Moving:
		return jsapi.CodeStreamMoveInProgress.Err()
	case moved && !old.IsSettled():
		return jsapi.CodeStreamReconfigureInProgress.Err()
	case moved:
		return m.move(next, p)
	case scaled && p.Config.Replicas > len(old.Replicas):
		return m.grow(next, p)
	case scaled:
		m.shrink(next, p)
	}
	return nil
}

// anyOnline reports whether the proposer reaches a server that has the stream.
func (m *Machine) anyOnline(s *Stream, p *proposal) bool {
	search := m.newSearch(p, nil, nil)
	for _, r := range slices.Concat(s.Replicas, s.Former) {
		if search.isOnline(r.Server) {
			return true
		}
	}
	return false
}

// move puts the stream where its new placement wants it. Replicas that are there already stay.
func (m *Machine) move(s *Stream, p *proposal) *jsapi.Error {
	search := m.newSearch(p, nil, s.Former)
	for _, r := range s.Replicas {
		server := m.servers[r.Server]
		if !server.Removed && search.suits(server) {
			search.keep = append(search.keep, r)
		}
	}
	search.skip = append(slices.Clone(s.Former), s.Replicas...)
	servers, refused := search.choose(max(s.Config.Replicas, len(search.keep)))
	if refused != nil {
		return refused
	}
	s.Moving = m.setServers(s, servers)
	return nil
}

// grow adds replicas. Servers that still have a former replica can not take another one yet; when they are needed, their
// former ones stay instead: what a group is to be may change while it is on its way to that.
func (m *Machine) grow(s *Stream, p *proposal) *jsapi.Error {
	servers, refused := m.newSearch(p, s.Replicas, s.Former).choose(s.Config.Replicas)
	if refused != nil && len(s.Former) > 0 {
		servers, refused = m.newSearch(p, s.Replicas, nil).choose(s.Config.Replicas)
	}
	if refused != nil {
		return refused
	}
	m.setServers(s, servers)
	return nil
}

// shrink takes replicas away: never the leader's, first those on servers that are not there, then those that may not
// have caught up yet, then those on the servers with the most replicas.
func (m *Machine) shrink(s *Stream, p *proposal) {
	search := m.newSearch(p, nil, nil)
	order := slices.Clone(s.Replicas)
	slices.SortStableFunc(order, func(a, b Replica) int {
		newest := 0
		if !s.IsSettled() {
			newest = cmp.Compare(a.ID, b.ID)
		}
		la, lb := m.Load(a.Server), m.Load(b.Server)
		return cmp.Or(rank(a.Server != p.View.Leader, b.Server != p.View.Leader),
			rank(!search.isOnline(a.Server), !search.isOnline(b.Server)), newest,
			cmp.Compare(la.Replicas, lb.Replicas), cmp.Compare(la.Store, lb.Store), cmp.Compare(la.Memory, lb.Memory))
	})
	stay := order[:min(len(order), s.Config.Replicas)]
	var servers []uint64
	for _, r := range s.Replicas {
		if slices.Contains(stay, r) {
			servers = append(servers, r.Server)
		}
	}
	m.setServers(s, servers)
}

// setServers gives the stream replicas on the servers, in their order, and reports whether that is a change. Those that
// it has already stay the same, former ones that are wanted again too, the others become former ones. A former replica has
// its log and its votes, whether or not the group has removed it already: it comes back as the one that it was.
func (m *Machine) setServers(s *Stream, servers []uint64) bool {
	assert.True(len(servers) > 0 && len(servers) <= jsapi.ReplicasMax, "a stream keeps a replica", s.Group, uint64(len(servers)))
	replicas := make([]Replica, 0, len(servers))
	for _, server := range servers {
		r, ok := s.On(server)
		if !ok {
			r = m.newReplica(server)
		}
		replicas = append(replicas, r)
	}
	if slices.Equal(replicas, s.Replicas) {
		return false
	}
	former := slices.DeleteFunc(slices.Clone(s.Former), func(r Replica) bool { return slices.Contains(servers, r.Server) })
	for _, r := range s.Replicas {
		if !slices.Contains(servers, r.Server) {
			former = append(former, r)
		}
	}
	s.Replicas, s.Former = replicas, former
	s.Placement++
	return true
}

// repair takes the stream off servers that were removed, and gives it the replicas that it lacks, as far as there are
// servers for them. Its last replica stays where it is until there is another place.
func (m *Machine) repair(s *Stream, view *View, out *effect.List) {
	var keep, gone []Replica
	for _, r := range s.Replicas {
		if m.servers[r.Server].Removed {
			gone = append(gone, r)
		} else {
			keep = append(keep, r)
		}
	}
	if len(keep) >= s.Config.Replicas {
		return
	}
	p := &proposal{Config: s.Config, Limits: jsapi.Limits{Clustered: true}, View: *view}
	servers := make([]uint64, 0, s.Config.Replicas)
	for _, r := range keep {
		servers = append(servers, r.Server)
	}
	for _, c := range m.newSearch(p, keep, slices.Concat(gone, s.Former)).candidates() {
		if len(servers) < s.Config.Replicas && !c.offline {
			servers = append(servers, c.server.ID)
		}
	}
	if len(servers) > 0 {
		m.relocate(s, servers, out)
	}
}

// relocate makes the servers those of the stream, outside of an update of it.
func (m *Machine) relocate(s *Stream, servers []uint64, out *effect.List) {
	next := *s
	if !m.setServers(&next, servers) {
		return
	}
	m.replace(s, &next)
	out.Add(effect.GroupPlaced).Group = s.Group
}
