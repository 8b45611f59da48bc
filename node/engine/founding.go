package engine

import (
	"encoding/json"
	"fmt"

	"weir/disk/wal"
	"weir/model/jsapi"
	"weir/model/meta"
	"weir/node/event"
	"weir/node/replica"
	"weir/transport/peerwire"
)

// The catalog of a cluster is founded once, by one server: the one with the first name among all that were configured,
// when every one of them is there and none has a catalog. It begins alone, and the others join as any server does later:
// they are invited by the leader, begin a replica of their own, are registered in the catalog, and become members by
// changes of membership. Nobody else decides who is a member, so that two catalogs can not arise from one configuration.

// metaBirth is what the log keeps about the group of the catalog.
type metaBirth struct {
	// Founder is the server that founded the catalog.
	Founder event.ServerID `json:"founder,string"`
	// Replica is the Raft id of this server's replica.
	Replica uint64 `json:"replica,string"`
	// Members are the members at the founding.
	Members []replica.Member `json:"members"`
	// Servers is how many servers founded the catalog together: those of the configuration that have JetStream. 0 in logs of
	// earlier versions, where the configuration is what is known.
	Servers int `json:"servers,omitempty"`
}

// founders is how many servers found the catalog together, or have.
func (e *Engine) founders() int {
	if e.metaServers > 0 {
		return e.metaServers
	}
	return e.config.Cluster.Expected
}

// foundOrJoin founds the catalog if that is this server's part.
func (e *Engine) foundOrJoin() {
	if e.desk == nil || !e.clustered() || e.meta.replica != nil || len(e.peers)+1 < e.config.Cluster.Expected {
		return
	}
	with, first, lost := 1, true, ""
	if e.lostCatalog() {
		lost = e.config.ServerName
	}
	for _, p := range e.peers {
		if !p.hello.JetStream {
			continue
		}
		with++
		if p.hello.Catalog != 0 || p.hello.Expected > len(e.peers)+1 {
			return // to be invited, or others are still expected
		}
		if p.hello.Lost {
			lost = p.hello.Name
		}
		first = first && p.hello.Name >= e.config.ServerName
	}
	switch {
	case lost != "" && !e.config.Plant.FoundLost:
		e.tellLost(lost)
	case first:
		e.found(min(with, e.config.Cluster.Expected))
	}
}

// lostCatalog reports whether this server had a catalog and can not read it: another one would know nothing of its streams,
// and end them.
func (e *Engine) lostCatalog() bool {
	return e.metaDamaged || e.founder == 0 && len(e.recovered) > 0
}

// tellLost tells the operator once that no catalog is founded.
func (e *Engine) tellLost(server string) {
	if e.toldLost {
		return
	}
	e.toldLost = true
	e.logf(event.Error, fmt.Sprintf("No server has the catalog of streams, and none is founded, as it would end the streams of "+
		"server %q, which can not read the one that it had: restore the data directory of a server from a copy", server))
}

// found founds the catalog with this server as its only member, and so many that are to be.
func (e *Engine) found(servers int) {
	birth := metaBirth{Founder: e.config.Server, Replica: e.metaReplica, Servers: servers}
	birth.Members = []replica.Member{{ID: e.metaReplica, Server: uint64(e.config.Server)}}
	if err := e.startMeta(&birth, nil); err != nil {
		e.logf(event.Error, "The catalog of streams can not be founded: "+err.Error())
		return
	}
	if e.clustered() {
		e.logf(event.Info, fmt.Sprintf("JetStream cluster %q is founded by this server", e.config.Cluster.Name))
		e.introduce()
	}
}

// introduce tells the other servers what has changed about this one.
func (e *Engine) introduce() {
	body := e.helloBody()
	for _, p := range e.peers {
		e.sendFrame(p.id, &peerwire.Frame{Kind: peerwire.Join, Payload: body})
	}
}

// helloBody is the introduction of this server for those that have a session with it.
func (e *Engine) helloBody() []byte {
	hello := e.Hello()
	return helloFor(&hello)
}

// helloFor is an introduction without what only a handshake needs.
func helloFor(hello *peerwire.Hello) []byte {
	hello.User, hello.Password = "", ""
	return jsapi.AppendJSON(nil, hello)
}

// inviteServers invites servers without a catalog, and registers those that have begun a replica, until the catalog is
// formed and after that. Only the leader of the catalog does.
func (e *Engine) inviteServers() {
	if e.desk == nil || e.meta == nil || !e.meta.leads() {
		return
	}
	e.register(e.ownServer())
	for _, p := range e.peers {
		switch {
		case !p.hello.JetStream:
		case p.hello.Catalog == 0 && p.hello.Unclaimed > 0 && e.catalog.Server(uint64(p.id)) == nil:
			e.tellForeign(p) // a server is in the catalog before it gets a stream
		case p.hello.Catalog == 0:
			e.invite(p)
		case p.hello.Catalog != e.founder:
			e.tellForeign(p)
		default:
			if known := e.catalog.Server(uint64(p.id)); known != nil && known.Removed {
				e.tellRemoved(p)
				continue
			}
			e.register(serverOf(p.hello))
		}
	}
	e.form()
}

// tellForeign tells the operator once that a server has what another catalog has put there.
func (e *Engine) tellForeign(p *peer) {
	if !p.foreign {
		p.foreign = true
		e.logf(event.Error, fmt.Sprintf("Server %q belongs to another JetStream cluster; remove its data directory to have it join this one",
			p.hello.Name))
	}
}

func serverOf(h *peerwire.Hello) meta.Server {
	return meta.Server{
		ID: uint64(h.ID), Replica: h.Replica, Name: h.Name, Cluster: h.Cluster, Tags: h.Tags, StoreMax: h.StoreMax, MemoryMax: h.MemoryMax,
	}
}

func (e *Engine) ownServer() meta.Server {
	h := e.Hello()
	return serverOf(&h)
}

// register has a server entered in the catalog unless it is, as it is.
func (e *Engine) register(s meta.Server) {
	if known := e.catalog.Server(s.ID); known != nil && (known.Removed || known.Same(&s)) {
		return
	}
	if e.refusesProposals(e.meta) != nil || e.registering[s.ID] > e.now.Mono {
		return
	}
	e.registering[s.ID] = e.now.Mono + retryNanos
	view := e.clusterView(0)
	c := view.Register(&s)
	e.meta.replica.Propose(&c, nil)
	e.markDirty(e.meta)
}

// invite asks a server to begin a replica of the catalog. What it has of a damaged one goes then, so that the others have to
// have the catalog without it: a majority of them answers first. One that leads without knowing better that too many are
// damaged would have those removed which somebody might still mend.
func (e *Engine) invite(p *peer) {
	if p.inviting {
		return
	}
	p.inviting = true
	own := e.meta.replica
	consult := own.Consult
	if e.config.Plant.InviteUnasked {
		consult = func(done func(bool)) { done(true) }
	}
	consult(func(ok bool) {
		p.inviting = false
		if !ok || e.peerOf[p.id] != p || p.hello.Catalog != 0 || e.meta.replica != own || !e.meta.leads() {
			return
		}
		e.sendFrame(p.id, &peerwire.Frame{
			Kind: peerwire.Join, Flag: true, Payload: e.helloBody(), Extra: e.metaMembers, Count: uint64(e.founders()),
		})
	})
	if own.Dirty() {
		e.markDirty(e.meta)
	}
}

// introduced takes what another server says about itself, and its invitation.
func (e *Engine) introduced(p *peer, f *peerwire.Frame) error {
	hello := &peerwire.Hello{}
	if err := json.Unmarshal(f.Payload, hello); err != nil {
		return fmt.Errorf("%w: introduction: %w", peerwire.ErrMalformed, err)
	}
	if err := hello.Check(); err != nil {
		return err
	}
	if hello.ID != p.id {
		return fmt.Errorf("%w: introduction of another server", peerwire.ErrMalformed)
	}
	p.hello = hello
	if hello.Removed == e.config.Server && hello.Catalog == e.founder {
		e.noteRemoved()
	}
	if !f.Flag || e.desk == nil || e.meta.replica != nil || hello.Catalog == 0 {
		return nil
	}
	if f.Count > meta.ServersMax {
		return fmt.Errorf("%w: %d servers of the catalog", peerwire.ErrMalformed, f.Count)
	}
	birth := metaBirth{Founder: hello.Catalog, Replica: e.metaReplica, Servers: int(f.Count)}
	if err := json.Unmarshal(f.Extra, &birth.Members); err != nil {
		return fmt.Errorf("%w: members of the catalog: %w", peerwire.ErrMalformed, err)
	}
	if err := e.startMeta(&birth, nil); err != nil {
		e.logf(event.Error, "The catalog of streams can not be joined: "+err.Error())
		return nil
	}
	e.introduce()
	return nil
}

// clusterView is what this server sees of the cluster, for commands of the catalog. leader is the group whose leader they
// should know; 0: none.
func (e *Engine) clusterView(leader uint64) meta.View {
	v := meta.View{
		Cluster: e.config.Cluster.Name, UniqueTag: e.config.JetStream.UniqueTag, Online: []uint64{uint64(e.config.Server)},
	}
	for _, p := range e.peers {
		if !p.silent && p.hello.JetStream {
			v.Online = append(v.Online, uint64(p.id))
		}
	}
	if g := e.groups[wal.GroupID(leader)]; g != nil && leader != 0 {
		v.Leader = uint64(e.leaderOf(g.id))
	}
	return v
}
