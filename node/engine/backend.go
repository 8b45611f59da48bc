package engine

import (
	"weir/disk/wal"
	"weir/model/command"
	"weir/model/effect"
	"weir/model/jsapi"
	"weir/model/meta"
	"weir/node/api"
	"weir/node/delivery"
	"weir/node/route"
)

// backend is the engine as what the API needs of its node.
type backend Engine

// Now implements api.State.
func (b *backend) Now() int64 { return b.wall }

// Random implements api.State.
func (b *backend) Random() uint64 { return b.random.Uint64() }

// Catalog implements api.State.
func (b *backend) Catalog() *meta.Machine { return b.catalog }

// Stream implements api.State.
func (b *backend) Stream(id uint64) (api.Stream, bool) {
	g := b.groups[wal.GroupID(id)]
	if g == nil || g.damaged != nil || g.stream == nil {
		return nil, false
	}
	return g.stream, true
}

// Activity implements api.State.
func (b *backend) Activity(id, consumer uint64) (waiting int, bound bool) {
	return b.desk.Activity(id, consumer)
}

// Limits implements api.State.
func (b *backend) Limits(account string) (*jsapi.Limits, bool) {
	limits := b.accountNamed[account].limits
	return limits, limits != nil
}

// Barrier implements api.Groups.
func (b *backend) Barrier(id uint64, then func(*jsapi.Error)) {
	g := b.groups[wal.GroupID(id)]
	switch {
	case g == nil:
		then(jsapi.CodeClusterNotAvail.Err())
	case g.damaged != nil:
		then(jsapi.CodeStreamOffline.Err())
	case g.replica == nil:
		then(jsapi.CodeClusterNotAvail.Err())
	case b.full != nil && g.replica.Serving() && len(g.replica.Members()) == 1:
		then(nil) // what waits for the disk is not acknowledged, and may be so for long
	default:
		g.replica.Read(func(ok bool) {
			if !ok {
				then(jsapi.CodeClusterNotAvail.Err())
				return
			}
			then(nil)
		})
		if g.replica.Dirty() {
			(*Engine)(b).markDirty(g) // the read waits for what the open batch holds
		}
	}
}

// Consult implements api.Groups.
func (b *backend) Consult(id uint64, done func(bool)) {
	g := b.groups[wal.GroupID(id)]
	if g == nil || !g.leads() || g.damaged != nil {
		done(false)
		return
	}
	g.replica.Consult(done)
	if g.replica.Dirty() {
		(*Engine)(b).markDirty(g)
	}
}

// Propose implements api.Groups.
func (b *backend) Propose(id uint64, c *command.Command, done func(*effect.Effect)) {
	e := (*Engine)(b)
	g := b.groups[wal.GroupID(id)]
	if g == nil || g.damaged == nil && g.replica == nil || g == e.meta && !e.formed() {
		done(&effect.Effect{Kind: effect.Result, Err: jsapi.CodeClusterNotAvail.Err()})
		return
	}
	if refused := e.refusesProposals(g); refused != nil {
		done(&effect.Effect{Kind: effect.Result, Err: refused})
		return
	}
	g.replica.Propose(c, func(result *effect.Effect) {
		if result == nil {
			result = &effect.Effect{Kind: effect.Result, Err: jsapi.CodeClusterNotAvail.Err()}
		}
		done(result)
	})
	e.markDirty(g)
}

// Fetch implements api.Groups.
func (b *backend) Fetch(id, seq uint64, done func(api.Message, api.Reading)) {
	g := b.groups[wal.GroupID(id)]
	if g == nil || g.damaged != nil || len(b.wanted) >= FetchesWaitingMax {
		done(api.Message{}, api.ReadFailed)
		return
	}
	(*Engine)(b).fetch(g, seq, func(m *stored, err error) {
		switch {
		case err != nil:
			done(api.Message{}, api.ReadFailed)
		case m == nil:
			done(api.Message{}, api.ReadGone)
		default:
			done(api.Message{Header: m.Header, Payload: m.Payload}, api.ReadOK)
		}
	})
}

// Reply implements api.Broker.
func (b *backend) Reply(account, subject string, header, body []byte) {
	(*Engine)(b).replyTo(b.accountNamed[account], subject, header, body)
}

// HasInterest implements api.Broker.
func (b *backend) HasInterest(account, subject string) bool {
	return b.accountNamed[account].routes.HasInterest([]byte(subject))
}

// Pull implements api.Broker.
func (b *backend) Pull(id, consumer uint64, r *api.Request) {
	g := b.groups[wal.GroupID(id)]
	if g == nil || g.damaged != nil {
		return
	}
	b.desk.Pull(b.now.Mono, delivery.PullRequest{Group: id, Consumer: consumer, Reply: r.Reply, Body: r.Body})
}

// requests is the engine as the receiver of API requests, on $JS.API.>.
type requests Engine

// Deliver answers the request. It reports false when the requester is to learn that nobody listens.
func (r *requests) Deliver(sub *route.Sub, m *route.Message) bool {
	e := (*Engine)(r)
	var path requestPath
	if s := e.sessions[m.From]; s != nil {
		path.client = func() *jsapi.ClientInfo { return e.clientInfo(s) }
	}
	return e.request(e.servedBy(sub), m, path)
}
