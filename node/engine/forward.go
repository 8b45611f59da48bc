package engine

import (
	"bytes"
	"encoding/json"

	"weir/disk/wal"
	"weir/model/jsapi"
	"weir/node/api"
	"weir/node/event"
	"weir/node/route"
	"weir/transport/peerwire"
)

// hopsMax bounds how often something is passed on to a leader: once by the server where it arose, and again by servers
// that have just ceased to lead.
const hopsMax = 3

// forwardPublish sends a message for a stream to the server that leads it. It reports false when no leader is known or the
// leading server does not keep up: the publisher is told that nobody listens, and nothing has been stored.
func (e *Engine) forwardPublish(g *group, m *route.Message, hops uint64) bool {
	to := e.nextHop(g, hops)
	if to == 0 {
		return false
	}
	return e.pass(to, &peerwire.Frame{
		Kind: peerwire.Publish, Group: uint64(g.id), Account: []byte(g.entry.Account), Subject: m.Subject, Reply: m.Reply,
		Header: m.Header, Payload: m.Payload, Count: hops + 1,
	}, m.From)
}

// nextHop is where something for the leader of a group goes from here, 0 when it goes nowhere.
func (e *Engine) nextHop(g *group, hops uint64) event.ServerID {
	if hops >= hopsMax {
		return 0
	}
	to := e.leaderOf(g.id)
	if to == 0 {
		to = e.mayKnow(g)
	}
	if to == e.config.Server {
		return 0
	}
	return to
}

// forwardedPublish takes a message for a stream from another server.
func (e *Engine) forwardedPublish(p *peer, f *peerwire.Frame) {
	g := e.groups[wal.GroupID(f.Group)]
	m := route.Message{Subject: f.Subject, Reply: f.Reply, Header: f.Header, Payload: f.Payload}
	if g != nil && g.entry != nil && e.publish(g, &m, f.Count) {
		return
	}
	e.giveBack(p, f)
}

// giveBack tells the server that sent a publish or a request that it was not taken.
func (e *Engine) giveBack(p *peer, f *peerwire.Frame) {
	if len(f.Reply) > 0 {
		e.sendFrame(p.id, &peerwire.Frame{Kind: peerwire.NotLeader, Group: f.Group, Account: f.Account, Subject: f.Subject, Reply: f.Reply})
	}
}

// noResponders is the header of the answer that nobody listens.
const noResponders = "NATS/1.0 503\r\n\r\n"

// givenBack tells a client of this server that what it sent reached nobody.
func (e *Engine) givenBack(f *peerwire.Frame) {
	if a := e.accountNamed[string(f.Account)]; a != nil && len(f.Reply) > 0 {
		a.send(f.Reply, []byte(noResponders), nil)
	}
}

// forwardRequest sends a message on a subject of JetStream itself to the server that leads the group that decides. It
// reports false when no leader is known.
func (e *Engine) forwardRequest(g *group, a *account, m *route.Message, hops uint64) bool {
	to := e.nextHop(g, hops)
	if to == 0 {
		return false
	}
	f := peerwire.Frame{
		Kind: peerwire.Request, Group: uint64(g.id), Account: []byte(a.name), Subject: m.Subject, Reply: m.Reply,
		Header: m.Header, Payload: m.Payload, Count: hops + 1,
	}
	if c := e.sessions[m.From]; c != nil && a.routes.HasInterest([]byte(jsapi.SubjectAPIAudit)) {
		f.Extra = jsapi.AppendJSON(nil, e.clientInfo(c))
	}
	return e.pass(to, &f, m.From)
}

var (
	ackPrefix  = []byte("$JS.ACK.")
	flowPrefix = []byte("$JS.FC.")
)

// forwardedRequest takes a request from another server.
func (e *Engine) forwardedRequest(p *peer, f *peerwire.Frame) {
	a := e.accountNamed[string(f.Account)]
	if a == nil || e.desk == nil {
		e.giveBack(p, f)
		return
	}
	m := route.Message{Subject: f.Subject, Reply: f.Reply, Header: f.Header, Payload: f.Payload}
	var taken bool
	switch {
	case bytes.HasPrefix(f.Subject, ackPrefix):
		taken = e.acknowledge(a, &m, f.Count)
	case bytes.HasPrefix(f.Subject, flowPrefix):
		taken = e.flowControl(a, &m, f.Count)
	default:
		var client func() *jsapi.ClientInfo
		if len(f.Extra) > 0 {
			info := &jsapi.ClientInfo{}
			if json.Unmarshal(f.Extra, info) == nil {
				client = func() *jsapi.ClientInfo { return info }
			}
		}
		e.noteOrigin(p.id, f)
		taken = e.request(a, &m, requestPath{hops: f.Count, client: client})
	}
	if !taken {
		e.giveBack(p, f)
	}
}

// requestPath is how a request came here.
type requestPath struct {
	hops   uint64
	client func() *jsapi.ClientInfo
}

// request answers an API request, here or at the leader of the group that decides. It reports false when the requester is
// to learn that nobody listens.
func (e *Engine) request(a *account, m *route.Message, path requestPath) bool {
	request := api.Request{
		Account: a.name, Subject: string(m.Subject), Reply: string(m.Reply), Header: m.Header, Body: m.Payload, Client: path.client,
	}
	g := e.decides(&request)
	switch {
	case g == nil:
	case !g.leads():
		// A server with a replica learns of the next leader as soon as any other.
		unknown := g.replica != nil && e.leaderOf(g.id) == 0
		if !unknown && e.forwardRequest(g, a, m, path.hops) {
			return true
		}
		return e.await(g, &request, path.hops)
	case g == e.meta && !e.formed():
		return e.await(g, &request, path.hops)
	}
	return e.api.Handle(&request) != api.NoResponders
}

// decides is the group whose leader answers a request; nil when any server may.
func (e *Engine) decides(r *api.Request) *group {
	if !e.clustered() {
		return nil
	}
	id, ok := e.api.Target(r.Account, r.Subject)
	if !ok {
		return nil
	}
	return e.groups[wal.GroupID(id)]
}

// streamOfFlow is the stream in a subject of flow control: $JS.FC.<stream>.<consumer>.<token>.
func streamOfFlow(subject []byte) string {
	name, _, _ := bytes.Cut(subject[len(flowPrefix):], []byte("."))
	return string(name)
}

// flowControl takes the answer of a client to a request of flow control.
func (e *Engine) flowControl(a *account, m *route.Message, hops uint64) bool {
	if g := e.byName[streamKey{a.name, streamOfFlow(m.Subject)}]; g != nil && !g.leads() && e.clustered() {
		return e.forwardRequest(g, a, m, hops)
	}
	return e.desk.FlowControl(e.now.Mono, m.Subject)
}

// origin names a request that another server passed on, by where its answer goes.
type origin struct{ account, reply string }

// originsMax bounds the requests passed on whose answer has not been given; beyond it answers take the way of any message.
const originsMax = 10_000

// noteOrigin remembers which server a request for the catalog came from.
func (e *Engine) noteOrigin(from event.ServerID, f *peerwire.Frame) {
	if f.Group == uint64(metaGroup) && len(f.Reply) > 0 {
		if len(e.origins) >= originsMax {
			clear(e.origins)
		}
		e.origins[origin{string(f.Account), string(f.Reply)}] = from
	}
}

// replyTo publishes an answer of the API. One to a request for the catalog that another server passed on goes back there,
// with the index that the catalog has here: whoever gets the answer finds what it says at that server too.
func (e *Engine) replyTo(a *account, subject string, hdr, body []byte) {
	key := origin{a.name, subject}
	from, ok := e.origins[key]
	if !ok || e.peerOf[from] == nil {
		a.send([]byte(subject), hdr, body)
		return
	}
	delete(e.origins, key)
	e.sendFrame(from, &peerwire.Frame{
		Kind: peerwire.Reply, Account: []byte(a.name), Subject: []byte(subject), Header: hdr, Payload: body, Offset: e.catalog.Applied(),
	})
}

// heldReply is an answer that waits until the catalog of this server is as new as the one it speaks of.
type heldReply struct {
	account      *account
	subject      []byte
	header, body []byte
	index        uint64
	until        int64
}

// heldRepliesMax bounds the answers that wait, heldNanos how long one does: then it is given anyway, as it is true.
const (
	heldRepliesMax = 10_000
	heldNanos      = int64(2e9)
)

// replied takes the answer to a request that this server passed on.
func (e *Engine) replied(f *peerwire.Frame) {
	a := e.accountNamed[string(f.Account)]
	if a == nil {
		return
	}
	if e.catalog == nil || e.catalog.Applied() >= f.Offset || len(e.held) >= heldRepliesMax {
		a.send(f.Subject, f.Header, f.Payload)
		return
	}
	e.held = append(e.held, heldReply{
		a, bytes.Clone(f.Subject), bytes.Clone(f.Header), bytes.Clone(f.Payload), f.Offset, e.now.Mono + heldNanos,
	})
}

// releaseReplies gives the answers whose time has come.
func (e *Engine) releaseReplies() {
	if len(e.held) == 0 {
		return
	}
	n := 0
	for _, h := range e.held {
		if e.catalog.Applied() >= h.index || h.until <= e.now.Mono {
			h.account.send(h.subject, h.header, h.body)
			continue
		}
		e.held[n] = h
		n++
	}
	clear(e.held[n:])
	e.held = e.held[:n]
}
