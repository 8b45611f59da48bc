package meta

import (
	"slices"

	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/spec/assert"
)

// create adds a stream. Creating one that exists with the same configuration succeeds and changes nothing.
func (m *Machine) create(c *command.Command, out *effect.List) (group uint64, created bool, refused *jsapi.Error) {
	p := parseProposal(c.Config)
	id := key{string(c.Account), string(c.Name)}
	if refused := m.CheckOrigin(id.account, p.Config, false); refused != nil {
		return 0, false, refused
	}
	if existing := m.byName[id]; existing != nil {
		if existing.Config.Equal(p.Config) {
			return existing.Group, false, nil
		}
		return 0, false, jsapi.CodeStreamNameExist.Err()
	}
	if refused := m.checkCreate(id, p); refused != nil {
		return 0, false, refused
	}
	if refused := p.Config.CheckFilter(); refused != nil {
		return 0, false, refused
	}
	stream := &Stream{
		Account: id.account, Name: id.name, Group: m.nextGroup, Created: m.lastTime, Version: 1,
		Config: p.Config, JSON: p.Config.AppendJSON(nil),
	}
	stream.BirthJSON = stream.JSON
	if refused := m.begin(stream, p); refused != nil {
		return 0, false, refused
	}
	m.nextGroup++
	m.insert(stream)
	out.Add(effect.GroupCreated).Group = stream.Group
	return stream.Group, true, nil
}

func (m *Machine) update(c *command.Command, out *effect.List) (group uint64, refused *jsapi.Error) {
	p := parseProposal(c.Config)
	old := m.byName[key{string(c.Account), string(c.Name)}]
	if old == nil {
		return 0, jsapi.CodeStreamNotFound.Err()
	}
	if refused := m.CheckOrigin(old.Account, p.Config, false); refused != nil {
		return 0, refused
	}
	if refused := p.Config.CheckUpdate(old.Config); refused != nil {
		return 0, refused
	}
	if refused := m.checkUpdate(old, p); refused != nil {
		return 0, refused
	}
	stream := *old
	stream.Config, stream.JSON = p.Config, p.Config.AppendJSON(nil)
	stream.Version++
	if refused := m.replan(&stream, old, p); refused != nil {
		return 0, refused
	}
	m.replace(old, &stream)
	out.Add(effect.GroupUpdated).Group = stream.Group
	if stream.Placement != old.Placement {
		out.Add(effect.GroupPlaced).Group = stream.Group
	}
	return stream.Group, nil
}

func (m *Machine) delete(c *command.Command, out *effect.List) (group uint64, refused *jsapi.Error) {
	stream := m.byName[key{string(c.Account), string(c.Name)}]
	if stream == nil || c.Version != 0 && c.Version != stream.Group {
		return 0, jsapi.CodeStreamNotFound.Err()
	}
	m.remove(stream)
	out.Add(effect.GroupDeleted).Group = stream.Group
	return stream.Group, nil
}

// settle notes that a group has the replicas that it shall have, so that the servers of its former ones may drop them. A
// report about an older placement, or about a group that is gone, changes nothing.
func (m *Machine) settle(c *command.Command, out *effect.List) (changed bool) {
	old := m.byGroup[c.Version]
	if old == nil || old.IsSettled() || c.Keep != old.Placement {
		return false
	}
	stream := *old
	stream.Former, stream.Settled, stream.Moving = nil, old.Placement, false
	m.replace(old, &stream)
	out.Add(effect.GroupSettled).Group = stream.Group
	m.repair(&stream, new(View), out)
	return true
}

// takeOff puts another server in the place of one that has a replica of the stream.
func (m *Machine) takeOff(c *command.Command, out *effect.List) (group uint64, refused *jsapi.Error) {
	p := parseProposal(c.Config)
	old := m.byName[key{string(c.Account), string(c.Name)}]
	if old == nil {
		return 0, jsapi.CodeStreamNotFound.Err()
	}
	if p.Replica != 0 {
		return old.Group, m.replaceReplica(old, p.Replica, out)
	}
	leaving, ok := old.Member(p.Server)
	if !ok {
		if _, left := old.FormerOn(p.Server); left {
			return 0, jsapi.CodePeerRemap.Err()
		}
		return 0, jsapi.CodeClusterPeerNotMember.Err()
	}
	p.Config, p.Limits.Clustered = old.Config, true
	keep := without(old.Replicas, p.Server)
	servers, failed := m.newSearch(p, keep, append(slices.Clone(old.Former), leaving)).choose(max(old.Config.Replicas, len(keep)))
	if failed != nil {
		return 0, jsapi.CodePeerRemap.Err()
	}
	m.relocate(old, servers, out)
	return old.Group, nil
}

// replaceReplica puts a new replica in the place of one that is damaged, on the same server: what the old one promised to
// the group it may have forgotten, so it never comes back. A stream that has no other replica keeps it, with its data.
func (m *Machine) replaceReplica(old *Stream, replica uint64, out *effect.List) *jsapi.Error {
	at := slices.IndexFunc(old.Replicas, func(r Replica) bool { return r.ID == replica })
	if at < 0 || len(old.Replicas) < 2 {
		return jsapi.CodeClusterPeerNotMember.Err()
	}
	next := *old
	next.Replicas = slices.Clone(old.Replicas)
	next.Replicas[at] = m.newReplica(old.Replicas[at].Server)
	next.Placement++
	m.replace(old, &next)
	out.Add(effect.GroupPlaced).Group = next.Group
	return nil
}

// register makes a server known. A known server of the same name that the proposer does not reach is replaced by it, and
// so are its replicas.
func (m *Machine) register(c *command.Command, out *effect.List) (changed bool, refused *jsapi.Error) {
	r := parseRegistration(c.Config)
	server, known, named := r.Server, m.servers[r.Server.ID], m.ServerNamed(r.Server.Name)
	server.Removed = false
	if len(r.View.Online) > 0 && !slices.Contains(r.View.Online, server.ID) {
		r.View.Online = append(r.View.Online, server.ID) // it asks, so it is there
	}
	switch {
	case known != nil && known.Removed:
		return false, jsapi.CodeClusterServerNotMember.Err()
	case named != nil && named.ID != server.ID && (known != nil || slices.Contains(r.View.Online, named.ID)):
		return false, jsapi.CodeRaftGeneral.With("another server has the name")
	case known == nil && len(m.servers) >= ServersMax:
		return false, jsapi.CodeRaftGeneral.With("the cluster has had too many servers")
	case known != nil && known.Same(&server):
	default:
		m.enroll(&server, known, named, out)
		changed = true
	}
	for _, s := range slices.Clone(m.order) {
		m.repair(s, &r.View, out)
	}
	return changed, nil
}

// enroll enters what is new about a server. named is the server that has its name so far.
func (m *Machine) enroll(server, known, named *Server, out *effect.List) {
	first := len(m.servers) == 0
	if known != nil {
		server.Registered = known.Registered
	} else {
		m.registrations++
		server.Registered = m.registrations
	}
	if named != nil && named.ID != server.ID {
		gone := *named
		gone.Removed = true
		m.putServer(&gone)
		out.Add(effect.ServerRemoved).N = gone.ID
	}
	m.putServer(server)
	out.Add(effect.ServerRegistered).N = server.ID
	for _, s := range slices.Clone(m.order) {
		switch {
		case first:
			m.adopt(s, server.ID, out)
		case named != nil && named.ID != server.ID:
			m.hand(s, named.ID, server.ID, out)
		}
	}
}

// adopt gives a stream from before the first registration to the server that had it alone.
func (m *Machine) adopt(s *Stream, server uint64, out *effect.List) {
	assert.True(len(s.Replicas) == 0, "a stream of a catalog without servers has no replicas", s.Group)
	next := *s
	next.Replicas = []Replica{{ID: aloneReplica, Server: server}}
	next.Birth, next.Placement, next.Settled = next.Replicas, 1, 1
	m.replace(s, &next)
	out.Add(effect.GroupPlaced).Group = s.Group
}

// hand puts one server in the place of another.
func (m *Machine) hand(s *Stream, from, to uint64, out *effect.List) {
	servers := make([]uint64, 0, len(s.Replicas))
	for _, r := range s.Replicas {
		if r.Server == from {
			r.Server = to
		}
		servers = append(servers, r.Server)
	}
	if len(servers) > 0 {
		m.relocate(s, servers, out)
	}
}

// unregister takes a server out of the cluster; its replicas go to others as far as there are any.
func (m *Machine) unregister(c *command.Command, out *effect.List) *jsapi.Error {
	p := parseProposal(c.Config)
	server := m.servers[c.Version]
	if server == nil || server.Removed {
		return jsapi.CodeClusterServerNotMember.Err()
	}
	if len(m.roster) == 1 {
		return jsapi.CodeRaftGeneral.With("the last server of a cluster can not be removed")
	}
	gone := *server
	gone.Removed = true
	m.putServer(&gone)
	out.Add(effect.ServerRemoved).N = gone.ID
	for _, s := range slices.Clone(m.order) {
		m.repair(s, &p.View, out)
	}
	return nil
}
