package engine

import (
	"fmt"

	"weir/node/event"
	"weir/transport/peerwire"
)

// digestEvery is the distance in log entries between two comparisons of the states of a stream's replicas.
const digestEvery = 1 << 10

// digestAt is the digest of a state.
type digestAt struct{ index, digest uint64 }

// noteDigest takes the digest of the state where it is to be compared, and the leader tells it.
func (e *Engine) noteDigest(g *group) {
	index := g.replica.Machine().Applied()
	switch {
	case !e.clustered():
	case g == e.meta:
		e.noteCatalogDigest(index)
	case index%digestEvery == 0:
		g.lastDigest = digestAt{index, g.replica.Machine().Digest()}
		e.judgeDigest(g)
		if g.leads() {
			e.tellDigest(g, g.lastDigest)
		}
	}
}

// tellDigest tells the other servers of the group what state this one has.
func (e *Engine) tellDigest(g *group, at digestAt) {
	for _, m := range g.replica.Members() {
		if to := event.ServerID(m.Server); to != e.config.Server {
			e.sendFrame(to, &peerwire.Frame{Kind: peerwire.Digest, Group: uint64(g.id), Offset: at.index, Token: at.digest})
		}
	}
}

// compareDigest takes the digest that another server has told: the leader of a stream, or any that has the catalog.
func (e *Engine) compareDigest(p *peer, f *peerwire.Frame) {
	g, at := e.groups[groupID(f.Group)], digestAt{f.Offset, f.Token}
	switch {
	case g == nil || g.replica == nil:
	case g == e.meta:
		e.catalogDigestOf(p, at)
	default:
		g.toldDigest = at
		e.judgeDigest(g)
	}
}

// judgeDigest stops a replica whose state is not that of the leader: one of the two is wrong, and answering from either
// would hide it.
func (e *Engine) judgeDigest(g *group) {
	if g.lastDigest.index == 0 || g.lastDigest.index != g.toldDigest.index || g.lastDigest.digest == g.toldDigest.digest {
		return
	}
	e.fence(g, fmt.Errorf("its state at entry %d differs from the leader's", g.lastDigest.index))
}

// Every server tells the others its digests of the catalog, which are cheap and seldom. What a majority agrees on is right,
// whoever leads: a leader whose catalog has gone wrong must not have the others take it over, and end streams by it. The log
// of the one that differs, and with it what it has promised, is not in doubt: it stays the member that it is, does not lead,
// and takes the state of the leader.

const (
	// catalogDigestEvery is digestEvery for the catalog.
	catalogDigestEvery = 8
	// digestsKept is how many digests of a server are kept, as others come to the same entry sooner or later.
	digestsKept = 16
)

// digestRing holds the newest digests of the catalog on one server.
type digestRing [digestsKept]digestAt

// of is the place of the digest at an index.
func (r *digestRing) of(index uint64) *digestAt { return &r[index/catalogDigestEvery%digestsKept] }

// dispute is what is known about a catalog that is not the leader's.
type dispute uint8

const (
	noDispute dispute = iota
	// disputed says that nobody has said yet which of the two is right: this server's is kept, and no checkpoint is made of it.
	disputed
	// outvoted says that a majority of the servers has another one: the leader's may take its place.
	outvoted
)

// noteCatalogDigest takes and tells the digest of the catalog where it is to be compared.
func (e *Engine) noteCatalogDigest(index uint64) {
	if index%catalogDigestEvery == 0 {
		e.takeCatalogDigest()
		e.judgeCatalog(index)
	}
}

// compareCatalog compares the catalogs as they are.
func (e *Engine) compareCatalog() {
	if e.clustered() {
		e.takeCatalogDigest()
		e.judgeCatalog(e.meta.replica.Machine().Applied())
	}
}

// catalogDigestOf takes what another server has told about its catalog. Who is at the same entry answers when that is news:
// the other may be in doubt about its own.
func (e *Engine) catalogDigestOf(p *peer, at digestAt) {
	slot, own := p.digests.of(at.index), *e.digests.of(at.index)
	news := *slot != at
	*slot = at
	if at.index == e.meta.replica.Machine().Applied() && (own.index != at.index || news && own.digest != at.digest) {
		e.takeCatalogDigest()
	}
	e.judgeCatalog(at.index)
}

// takeCatalogDigest takes and tells the digest of the catalog as it is.
func (e *Engine) takeCatalogDigest() {
	machine := e.meta.replica.Machine()
	at := digestAt{machine.Applied(), machine.Digest()}
	*e.digests.of(at.index) = at
	e.tellDigest(e.meta, at)
}

// judgeCatalog has the catalog fetched from the leader if this server's differs from that of a majority, the leader's among
// them.
func (e *Engine) judgeCatalog(index uint64) {
	g, own := e.meta, *e.digests.of(index)
	agreed, right := e.agreedDigest(index)
	switch {
	case own.index != index || g.ailing != nil && g.dispute != disputed:
		return
	case !agreed:
		e.tellUndecided(index)
		return
	case right == own.digest:
		g.dispute = noDispute // it is the leader's that is wrong, if that was the question
		e.undecided = nil
		return
	}
	if !g.replica.IsLeader() {
		leader, known := g.replica.Member(g.replica.Leader())
		if told, has := e.digestOf(leader.Server, index); !known || !has || told != right {
			return
		}
	}
	err := fmt.Errorf("its state at entry %d differs from that of the other servers", index)
	e.logf(event.Error, "The catalog of streams on this server is wrong, the leader's takes its place: "+err.Error())
	g.dispute = outvoted
	e.digests = digestRing{} // of the state that is wrong
	e.ail(g, err)
}

// tellUndecided tells the operator when all servers have told their digests and no majority agrees: nobody knows which is
// right, and nothing is done by either.
func (e *Engine) tellUndecided(index uint64) {
	for _, m := range e.meta.replica.Members() {
		if _, told := e.digestOf(m.Server, index); !told && !m.Learner {
			return
		}
	}
	if e.undecided == nil {
		e.undecided = fmt.Errorf("the servers have different states of the catalog at entry %d, and no majority agrees", index)
		e.logf(event.Error, "The catalog of streams may be wrong: "+e.undecided.Error())
	}
}

// disputes notes that the catalog here is not the leader's, and asks the others for theirs.
func (e *Engine) disputes() {
	g := e.meta
	err := fmt.Errorf("its state at entry %d differs from the leader's", g.replica.Machine().Applied())
	if g.dispute == noDispute {
		e.logf(event.Error, "The catalog of streams on this server is kept as it is until others say which is right: "+err.Error())
	}
	g.dispute, g.readFailed = disputed, err
	e.spared[g.id] = e.now.Mono + retryNanos
	e.compareCatalog()
}

// agreedDigest is the digest at an index that a majority of the voters of the catalog has.
func (e *Engine) agreedDigest(index uint64) (agreed bool, digest uint64) {
	members, voters := e.meta.replica.Members(), 0
	for _, m := range members {
		if !m.Learner {
			voters++
		}
	}
	for _, m := range members {
		candidate, known := e.digestOf(m.Server, index)
		count := 0
		for _, other := range members {
			if d, told := e.digestOf(other.Server, index); !other.Learner && told && d == candidate {
				count++
			}
		}
		if known && count > voters/2 {
			return true, candidate
		}
	}
	return false, 0
}

// digestOf is the digest of the catalog at an index on a server, if that is known.
func (e *Engine) digestOf(server, index uint64) (uint64, bool) {
	at := digestAt{}
	if event.ServerID(server) == e.config.Server {
		at = *e.digests.of(index)
	} else if p := e.peerOf[event.ServerID(server)]; p != nil {
		at = *p.digests.of(index)
	}
	return at.digest, at.index == index && index != 0
}
