package api

import (
	"fmt"
	"slices"

	"weir/model/effect"
	"weir/model/jsapi"
	"weir/model/meta"
	"weir/transport/peerwire"
)

// purgeAccountResponse answers ACCOUNT.PURGE.
type purgeAccountResponse struct {
	jsapi.Response
	Initiated bool `json:"initiated,omitempty"`
}

func failedPurgeAccount(r jsapi.Response) any { return purgeAccountResponse{Response: r} }

// view is what this node sees of the cluster, for a proposal about the stream of the entry, or about none.
func (c *call) view(entry *meta.Stream) *meta.View {
	if !c.api.clustered() {
		return new(meta.View)
	}
	v := &meta.View{Online: c.backend.Servers(), Cluster: c.api.config.Cluster, UniqueTag: c.api.config.UniqueTag}
	if entry != nil {
		v.Leader = c.backend.Leader(entry.Group)
	}
	return v
}

// server finds the server of that name or short id; "" is neither.
func (c *call) server(name, id string) (uint64, bool) {
	for _, s := range c.backend.Catalog().Servers() {
		if name != "" && s.Name == name || id != "" && peerwire.ServerID(s.ID).Short() == id {
			return s.ID, true
		}
	}
	return 0, false
}

// streamPeerRemove answers STREAM.PEER.REMOVE and STREAM.PEER.EVACUATE. Both put another server in the place of the one
// that is named; that one keeps its replica until the new one has caught up.
func (c *call) streamPeerRemove(body []byte) {
	if !c.api.clustered() {
		c.clusterOnly(body)
		return
	}
	peer, ok := c.peer(body)
	if !ok {
		return
	}
	c.lookup(func(entry *meta.Stream) {
		server, known := c.server(peer, peer)
		if !known {
			c.refuse(jsapi.CodeClusterPeerNotMember.Err())
			return
		}
		take := c.view(entry).TakeOff(entry, server)
		c.backend.Propose(meta.Group, &take, func(r *effect.Effect) {
			if r.Err != nil {
				c.refuse(r.Err)
				return
			}
			c.succeed()
		})
	})
}

// peer reads the body of a request that names a server, by its name or its short id.
func (c *call) peer(body []byte) (string, bool) {
	var request jsapi.PeerRequest
	switch {
	case emptyBody(body):
		c.refuse(jsapi.CodeBadRequest.Err())
		return "", false
	case !c.decode(body, &request):
		return "", false
	case request.Peer == "":
		c.refuse(jsapi.CodeBadRequest.Err())
		return "", false
	}
	return request.Peer, true
}

// consumerPeerRemove answers CONSUMER.PEER.REMOVE and CONSUMER.PEER.EVACUATE. A consumer is where its stream is: there is
// never another server of the stream's that it could go to.
func (c *call) consumerPeerRemove(body []byte) {
	if !c.api.clustered() {
		c.clusterOnly(body)
		return
	}
	peer, ok := c.peer(body)
	if !ok {
		return
	}
	c.withStream(func(entry *meta.Stream, s Stream) {
		server, known := c.server(peer, peer)
		if known {
			_, known = entry.Member(server)
		}
		switch {
		case s.ConsumerByName(c.consumer) == nil:
			c.refuse(jsapi.CodeConsumerNotFound.Err())
		case !known:
			c.refuse(jsapi.CodeClusterPeerNotMember.Err())
		default:
			c.refuse(jsapi.CodePeerRemap.Err())
		}
	})
}

// cancelMove answers STREAM.CANCEL_MOVE. A change of placement that has begun is completed.
func (c *call) cancelMove(body []byte) {
	if !c.api.clustered() {
		c.clusterOnly(body)
		return
	}
	c.lookup(c.keepMoving)
}

func (c *call) keepMoving(entry *meta.Stream) {
	if entry.IsSettled() {
		c.refuse(jsapi.CodeStreamReconfigureNotInProgress.Err())
		return
	}
	c.refuse(jsapi.CodeStreamGeneralError.With("cancelling a move is not supported by this server"))
}

// member reads the body of a request about a server of the cluster: by its short id or, without one, its name.
func (c *call) member(body []byte) (uint64, bool) {
	var request jsapi.ServerRequest
	switch {
	case emptyBody(body):
		c.refuse(jsapi.CodeBadRequest.Err())
		return 0, false
	case !c.decode(body, &request):
		return 0, false
	case request.Peer != "":
		request.Server = ""
	case request.Server == "":
		c.refuse(jsapi.CodeBadRequest.Err())
		return 0, false
	}
	server, known := c.server(request.Server, request.Peer)
	if !known {
		c.refuse(jsapi.CodeClusterServerNotMember.Err())
	}
	return server, known
}

// serverRemove answers SERVER.REMOVE: the server belongs to the cluster no longer.
func (c *call) serverRemove(body []byte) {
	server, ok := c.member(body)
	if !ok {
		return
	}
	remove := c.view(nil).Remove(server)
	c.backend.Propose(meta.Group, &remove, func(r *effect.Effect) {
		if r.Err != nil {
			c.refuse(r.Err)
			return
		}
		c.succeed()
	})
}

// serverEvacuate answers SERVER.EVACUATE: another server takes the place of the one that is named in every stream that has one to
// spare. Like the reference server it does not wait until they have moved; unlike that it says so when some have nowhere to go.
func (c *call) serverEvacuate(body []byte) {
	server, ok := c.member(body)
	if !ok {
		return
	}
	open, kept := 1, 0
	done := func() {
		if open--; open > 0 {
			return
		}
		if kept > 0 {
			refused := *jsapi.CodePeerRemap.Err()
			refused.Description += fmt.Sprintf(": no other server can take %d of its streams", kept)
			c.refuse(&refused)
			return
		}
		c.succeed()
	}
	for _, entry := range slices.Clone(c.backend.Catalog().All()) {
		if _, member := entry.Member(server); !member {
			continue
		}
		open++
		take := c.view(entry).TakeOff(entry, server)
		c.backend.Propose(meta.Group, &take, func(r *effect.Effect) {
			if jsapi.CodePeerRemap.Is(r.Err) {
				kept++
			}
			done()
		})
	}
	done()
}

// accountPurge answers ACCOUNT.PURGE: the streams of the account are deleted.
func (c *call) accountPurge([]byte) {
	account := c.stream // the argument of the request
	for _, entry := range c.backend.Catalog().Streams(account) {
		del := meta.Delete(entry)
		c.backend.Propose(meta.Group, &del, func(*effect.Effect) {})
	}
	c.respond(purgeAccountResponse{Response: c.response(), Initiated: true})
}

// accountStreamMove answers ACCOUNT.STREAM.MOVE: the stream leaves the server that is named.
func (c *call) accountStreamMove(body []byte) {
	var request jsapi.MoveRequest
	if !c.decode(body, &request) {
		return
	}
	entry := c.accountStream()
	if entry == nil {
		return
	}
	server, known := c.server(request.Server, "")
	switch {
	case request.Server == "":
		c.refuse(jsapi.CodeStreamGeneralError.With("a move has to name a server, or to be an update of the stream's placement"))
		return
	case !known:
		c.refuse(jsapi.CodeClusterServerNotMember.Err())
		return
	}
	take := c.view(entry).TakeOff(entry, server)
	c.backend.Propose(meta.Group, &take, func(r *effect.Effect) {
		if r.Err != nil {
			c.refuse(r.Err)
			return
		}
		c.updated(r.Group)
	})
}

// accountStreamCancelMove answers ACCOUNT.STREAM.CANCEL_MOVE.
func (c *call) accountStreamCancelMove([]byte) {
	if entry := c.accountStream(); entry != nil {
		c.keepMoving(entry)
	}
}

// accountStream finds the stream of a request that names an account and a stream of it, or refuses.
func (c *call) accountStream() *meta.Stream {
	entry := c.backend.Catalog().Stream(c.stream, c.consumer)
	if entry == nil {
		c.refuse(jsapi.CodeStreamNotFound.Err())
	}
	return entry
}
