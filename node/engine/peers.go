package engine

import (
	"fmt"
	"slices"

	"weir/disk/wal"
	"weir/node/event"
	"weir/node/replica"
	"weir/transport/peerwire"
)

// peer is another server while there is a session with it.
type peer struct {
	id    event.ServerID
	hello *peerwire.Hello
	// frames are what the step has for it; beats are heartbeats that leave together (node/replica encodes them).
	frames []byte
	ready  bool
	beats  []byte
	// heard is the monotone time at which something came from it last.
	heard int64
	// silent says that nothing has come for so long that groups which it leads no longer rest.
	silent bool
	// untrusted says that a frame was not what it should be: the session is to end, and nothing more of it counts.
	untrusted bool
	// foreign says that the operator was told that the server has another catalog.
	foreign bool
	// inviting says that it is to be invited once a majority of the catalog has answered.
	inviting bool
	// toldRemoved says that the server was told that the catalog has removed it.
	toldRemoved bool
	// digests are those of the catalog there.
	digests digestRing
}

// peering is what the engine knows about the other servers.
type peering struct {
	peers    []*peer // those with a session, in the order of their ids
	peerOf   map[event.ServerID]*peer
	peersOut []*peer // those with output of this step, each once
	lost     []byte  // where frames for servers without a session go
	frame    peerwire.Frame
	body     []byte // for contents that are copied at once
	// early is who leads groups that the catalog has not brought here yet; registering is until when the registration of a
	// server is not proposed again.
	early       map[wal.GroupID]lead
	registering map[uint64]int64
	wantedSpare []replica.Member
	// origins is which server passed on the request that a reply subject belongs to; held are replies that wait for the
	// catalog here.
	origins map[origin]event.ServerID
	held    []heldReply
	// leaderFound, when it is not nil, is told of a group whose leader is known now.
	leaderFound func(wal.GroupID)
	ailing      []*group   // replicas with damaged data, to be mended
	fenced      []*group   // replicas that are stopped and wait for another in their place
	digests     digestRing // of the catalog here
	undecided   error      // how the catalogs of the servers differ, when no majority says which is right
	// heardOf is when something came last from servers without a session; removed says that the catalog has this one no more.
	heardOf map[event.ServerID]int64
	removed bool
}

// Hello is how the server introduces itself to others now.
func (e *Engine) Hello() peerwire.Hello {
	c := &e.config.Cluster
	h := peerwire.Hello{
		Version: peerwire.Version, ID: e.config.Server, Name: e.config.ServerName, Cluster: c.Name, Address: c.Address,
		ClientURLs: c.ClientURLs, WebURLs: c.WebURLs, Tags: c.Tags, JetStream: e.config.JetStream.Enabled, Domain: e.config.JetStream.Domain,
		ReadLease: e.config.JetStream.ReadLease,
		Catalog:   e.founder, Lost: e.lostCatalog(), Replica: e.metaReplica, Expected: c.Expected, User: c.User, Password: c.Password,
		StoreMax: e.config.JetStream.Limits.ServerMaxStore, MemoryMax: e.config.JetStream.Limits.ServerMaxMemory,
	}
	if e.founder == 0 {
		h.Unclaimed = len(e.recovered)
	}
	for _, p := range e.peers {
		if p.hello.Address != "" {
			h.Addresses = append(h.Addresses, p.hello.Address)
		}
	}
	return h
}

// clustered reports whether the server is, or may become, a part of a cluster.
func (e *Engine) clustered() bool { return e.config.Cluster.Name != "" }

// peerUp begins a session.
func (e *Engine) peerUp(in *event.Input) {
	if old := e.peerOf[in.Peer]; old != nil {
		e.peerDown(in.Peer)
	}
	p := &peer{id: in.Peer, hello: in.Hello, heard: e.now.Mono}
	e.peerOf[p.id] = p
	at, _ := slices.BinarySearchFunc(e.peers, p.id, func(q *peer, id event.ServerID) int {
		if q.id < id {
			return -1
		}
		return 1
	})
	e.peers = slices.Insert(e.peers, at, p)
	e.interestPeerUp(p.id, p.hello)
	e.welcome(p)
	e.announceLed(p.id)
	e.foundOrJoin()
}

// peerDown ends a session. What was asked of the peer is not answered any more, and groups that it leads look out for
// another leader.
func (e *Engine) peerDown(id event.ServerID) {
	p := e.peerOf[id]
	if p == nil {
		return
	}
	delete(e.peerOf, id)
	e.peers = slices.DeleteFunc(e.peers, func(q *peer) bool { return q == p })
	p.frames = nil
	e.remember(p)
	e.takeLeave(id)
	e.interestPeerDown(id)
	e.asksLost(id)
	e.copiesLost(id)
	e.forgetLeader(id)
	if e.meta != nil && e.meta.leads() && e.unreconciled(e.meta) {
		e.awaken(e.meta) // a server that was removed is not waited for any longer
	}
}

// toPeer returns where frames for a server are appended in this step. Without a session with it they are lost.
func (e *Engine) toPeer(to event.ServerID) *[]byte {
	p := e.peerOf[to]
	if p == nil {
		e.lost = e.lost[:0]
		return &e.lost
	}
	if !p.ready {
		p.ready, p.frames = true, e.spareBuffer()
		e.peersOut = append(e.peersOut, p)
	}
	return &p.frames
}

// sendFrame appends one frame for a server.
func (e *Engine) sendFrame(to event.ServerID, f *peerwire.Frame) {
	out := e.toPeer(to)
	*out = peerwire.Append(*out, f)
}

// flushPeers hands out what the step has for other servers.
func (e *Engine) flushPeers(out *event.Outputs) {
	e.flushBeats()
	for i, p := range e.peersOut {
		e.peersOut[i] = nil
		p.ready = false
		if (len(p.frames) > 0 || p.untrusted) && e.peerOf[p.id] == p {
			out.Peers = append(out.Peers, event.PeerOut{To: p.id, Frames: p.frames, Close: p.untrusted})
		}
		p.frames = nil
	}
	e.peersOut = e.peersOut[:0]
}

// fromPeer takes frames of a session. One that is not what it should be ends the session: what came behind it in order
// would build on a gap. The next session begins anew.
func (e *Engine) fromPeer(in *event.Input) {
	p := e.peerOf[in.Peer]
	if p == nil || p.untrusted {
		return
	}
	e.hear(p)
	rest := in.Frames
	for len(rest) > 0 {
		var frame []byte
		var err error
		if frame, rest, err = peerwire.Split(rest); err == nil {
			err = peerwire.Parse(frame, &e.frame)
		}
		if err == nil {
			err = e.take(p, &e.frame)
		}
		if err != nil {
			e.logf(event.Error, fmt.Sprintf("The session with server %q ends: %v", p.hello.Name, err))
			p.untrusted = true
			e.toPeer(p.id)
			return
		}
		if e.peerOf[p.id] != p {
			return
		}
	}
}

// take carries out one frame.
func (e *Engine) take(p *peer, f *peerwire.Frame) error {
	switch f.Kind {
	case peerwire.Raft:
		return e.raftMessage(p, f)
	case peerwire.Beat:
		return e.beatsFrom(p, f.Payload)
	case peerwire.Ping:
		e.sendFrame(p.id, &peerwire.Frame{Kind: peerwire.Pong, Token: f.Token})
	case peerwire.Pong:
		// That it came is all that it says.
	case peerwire.Interest:
		return e.interestFrame(p.id, f)
	case peerwire.Msg:
		e.passed(p.id, f)
		e.routedMsg(f)
	case peerwire.Follow:
		return e.questioned(p.id, f)
	case peerwire.Copies:
		e.passed(p.id, f)
		e.answeredCopies(p.id, f)
	case peerwire.Taken:
		return e.takenFrame(p.id, f)
	case peerwire.Publish:
		e.passed(p.id, f)
		e.forwardedPublish(p, f)
	case peerwire.Request:
		e.passed(p.id, f)
		e.forwardedRequest(p, f)
	case peerwire.NotLeader:
		e.givenBack(f)
	case peerwire.Lead:
		return e.peerLeads(p, f.Payload)
	case peerwire.Ask:
		e.asked(p.id, f)
	case peerwire.Answer:
		e.answered(p.id, f)
	case peerwire.Propose:
		return e.proposeFor(f)
	case peerwire.Reply:
		e.replied(f)
	case peerwire.Join:
		return e.introduced(p, f)
	case peerwire.SnapGet, peerwire.SnapPart, peerwire.SnapEnd:
		return e.transferFrame(p, f)
	case peerwire.Digest:
		e.compareDigest(p, f)
	default:
		return fmt.Errorf("%w: kind %d does not belong here", peerwire.ErrMalformed, f.Kind)
	}
	return nil
}
