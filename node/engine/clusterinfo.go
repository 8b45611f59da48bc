package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"weir/disk/wal"
	"weir/model/jsapi"
	"weir/model/meta"
	"weir/node/event"
	"weir/node/monitor"
	"weir/node/replica"
)

// lagMax is how many entries a replica may be behind and still count as current: what is under way at any moment.
const lagMax = 1024

// Members implements api.Cluster.
func (b *backend) Members(id uint64) *jsapi.ClusterInfo {
	return (*Engine)(b).members(wal.GroupID(id))
}

// members describes the members of a group, on a server without cluster too.
func (e *Engine) members(id wal.GroupID) *jsapi.ClusterInfo {
	if !e.clustered() {
		return &jsapi.ClusterInfo{Leader: e.config.ServerName}
	}
	return e.showMembers(id)
}

// Leads implements api.Cluster.
func (b *backend) Leads(id uint64) bool {
	g := b.groups[wal.GroupID(id)]
	return g != nil && g.damaged == nil && g.leads()
}

// Leader implements api.Cluster.
func (b *backend) Leader(id uint64) uint64 { return uint64((*Engine)(b).leaderOf(wal.GroupID(id))) }

// Servers implements api.Cluster.
func (b *backend) Servers() []uint64 {
	ids := []uint64{uint64(b.config.Server)}
	for _, p := range b.peers {
		if !p.silent && p.hello.JetStream {
			ids = append(ids, uint64(p.id))
		}
	}
	slices.Sort(ids)
	return ids
}

// membersOf are the members of a group: those that its log says when there is a replica here, otherwise those that the
// catalog asks for.
func (e *Engine) membersOf(id wal.GroupID) []replica.Member {
	if g := e.groups[id]; g != nil && g.replica != nil {
		return g.replica.Members()
	}
	var members []replica.Member
	if entry := e.catalog.ByGroup(uint64(id)); entry != nil {
		for _, r := range entry.Replicas {
			members = append(members, replica.Member{ID: r.ID, Server: r.Server})
		}
	}
	return members
}

// showMembers describes the members of a group to clients: who leads it, and the others.
func (e *Engine) showMembers(id wal.GroupID) *jsapi.ClusterInfo {
	leader := e.leaderOf(id)
	info := &jsapi.ClusterInfo{Name: e.config.Cluster.Name, Leader: e.serverName(leader)}
	entry := e.catalog.ByGroup(uint64(id))
	members := e.membersOf(id)
	if entry != nil && len(members) == 1 && entry.IsSettled() && leader != 0 {
		return info // as the reference server shows a stream with one replica
	}
	if leader != 0 {
		if known := e.leaders[id]; known.server == leader && known.since != 0 {
			since := jsapi.Time(known.since)
			info.LeaderSince = &since
		}
	}
	info.RaftGroup, info.SystemAcc, info.TrafficAcc = groupName(id, entry), true, e.config.SystemAccount
	for i := range members {
		if event.ServerID(members[i].Server) != leader {
			info.Replicas = append(info.Replicas, e.showMember(id, entry, &members[i], leader))
		}
	}
	if entry != nil {
		for _, r := range entry.Replicas {
			if !hasMember(members, r.ID) {
				info.Replicas = append(info.Replicas, e.showComing(event.ServerID(r.Server)))
			}
		}
	}
	slices.SortFunc(info.Replicas, func(a, b *jsapi.PeerInfo) int { return cmp.Compare(a.Name, b.Name) })
	return info
}

// showMember describes a member that does not lead. What it has of the log is known to the leader, and of itself.
func (e *Engine) showMember(id wal.GroupID, entry *meta.Stream, m *replica.Member, leader event.ServerID) *jsapi.PeerInfo {
	server := event.ServerID(m.Server)
	info := &jsapi.PeerInfo{Name: e.serverName(server), Peer: server.Short(), Pending: m.Learner}
	if entry != nil {
		if _, stays := entry.Member(m.Server); !stays {
			info.Pending = true
		}
	}
	g := e.groups[id]
	switch {
	case server == e.config.Server:
		if g != nil && g.replica != nil && leader != 0 {
			info.Lag = g.lag()
			info.Current = info.Lag <= lagMax
		}
		return info
	default:
		info.Offline = !e.online(server)
		if heard, ever := e.heardFrom(server); ever {
			info.Active = time.Duration(max(e.now.Mono-heard, 1)) // 0 would mean never
		}
	}
	if g == nil || g.replica == nil {
		return info
	}
	if p, ok := g.replica.Progress(m.ID); ok {
		commit := g.replica.Commit()
		info.Lag = commit - min(p.Match, commit)
		info.Current = !info.Offline && p.State == replica.Replicating && info.Lag <= lagMax
	}
	return info
}

// showComing describes a server that is to have a replica of the group and is no member yet.
func (e *Engine) showComing(server event.ServerID) *jsapi.PeerInfo {
	return &jsapi.PeerInfo{Name: e.serverName(server), Peer: server.Short(), Pending: true, Offline: !e.online(server)}
}

// lag is how many committed entries the replica here has not applied.
func (g *group) lag() uint64 {
	commit, applied := g.replica.Commit(), g.replica.Machine().Applied()
	return commit - min(applied, commit)
}

// behind is why the replica here is not what the leader's is, "" when it is.
func (e *Engine) behind(g *group) string {
	switch {
	case g.replica == nil:
		return "no replica is running"
	case g.replica.Broken() != nil:
		return g.replica.Broken().Error()
	case g.replica.IsLeader() && g.replica.Serving():
		return ""
	case e.leaderOf(g.id) == 0:
		return e.leaderless(g)
	}
	if lag := g.lag(); lag > lagMax {
		return fmt.Sprintf("%d entries behind the leader", lag)
	}
	for _, m := range g.replica.Members() {
		if event.ServerID(m.Server) == e.config.Server && m.Learner {
			return "catching up with the leader"
		}
	}
	return ""
}

// serverName is the name of a server by the catalog; its short id when the catalog does not know it, "" for none.
func (e *Engine) serverName(server event.ServerID) string {
	if server == 0 {
		return ""
	}
	if s := e.catalog.Server(uint64(server)); s != nil {
		return s.Name
	}
	if server == e.config.Server {
		return e.config.ServerName
	}
	return server.Short()
}

// groupNameMix spreads the numbers of groups over the letters of their names.
const groupNameMix = 0x9e3779b97f4a7c15

// groupName is the name of a group as clients see it: with the number of replicas that it began with, so that it stays.
func groupName(id wal.GroupID, entry *meta.Stream) string {
	if entry == nil {
		return "_meta_"
	}
	storage := "F"
	if entry.Config.Storage == jsapi.MemoryStorage {
		storage = "M"
	}
	return fmt.Sprintf("S-R%d%s-%s", max(len(entry.Birth), 1), storage, event.ServerID(uint64(id)*groupNameMix).Short())
}

// showCluster describes the cluster to monitoring.
func (e *Engine) showCluster() *monitor.Cluster {
	shown := &monitor.Cluster{
		Name: e.config.Cluster.Name, ActiveServers: 1 + len(e.peers),
		ClientURLs: e.clientConfig.Info.ConnectURLs, WebURLs: e.clientConfig.WebURLs,
	}
	if !e.config.JetStream.Enabled {
		return shown
	}
	shown.Meta = &monitor.MetaGroup{}
	m, leader := shown.Meta, e.leaderOf(metaGroup)
	if leader != 0 {
		m.Leader, m.Peer = e.serverName(leader), leader.Short()
	}
	m.Leading, m.Removed = leader == e.config.Server, e.removed
	if e.meta.replica == nil {
		m.Behind = "no replica is running"
		return shown
	}
	m.Replicas = e.showMembers(metaGroup).Replicas
	for _, member := range e.meta.replica.Members() {
		if !member.Learner {
			m.Size++
		}
	}
	m.Quorum = m.Size/2 + 1
	m.Pending, m.Behind, m.Unsaved = e.meta.lag(), e.behind(e.meta), unsaved(e.meta)
	if m.Behind == "" && e.meta.readFailed != nil {
		m.Behind = e.meta.readFailed.Error()
	} else if m.Behind == "" && e.undecided != nil {
		m.Behind = e.undecided.Error()
	}
	m.UnsavedBytes = uint64(e.meta.replica.UnsavedBytes())
	return shown
}

// hasQuorum reports whether a majority of the voters of the group can be reached.
func (e *Engine) hasQuorum(g *group) bool {
	voters, there := 0, 0
	for _, m := range g.replica.Members() {
		if m.Learner {
			continue
		}
		voters++
		p := e.peerOf[event.ServerID(m.Server)]
		if event.ServerID(m.Server) == e.config.Server || p != nil && !p.silent {
			there++
		}
	}
	return there > voters/2
}
