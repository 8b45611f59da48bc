package engine

import (
	"fmt"

	"weir/model/meta"
	"weir/node/event"
	"weir/transport/peerwire"
)

// A server that was removed from the cluster, or whose place another one has taken, hears nothing of the catalog any more:
// it would go on with what it knew last, and neither its operator nor its clients would notice. The leader of the catalog
// tells it, in every session.

// tellRemoved tells another server that it was removed.
func (e *Engine) tellRemoved(p *peer) {
	if p.toldRemoved {
		return
	}
	p.toldRemoved = true
	hello := e.Hello()
	hello.Removed = p.id
	e.sendFrame(p.id, &peerwire.Frame{Kind: peerwire.Join, Payload: helloFor(&hello)})
	if e.unreconciled(e.meta) {
		e.awaken(e.meta) // it has streams that nobody else has, and has to hear where they are to go
	}
}

// noteRemoved notes that this server was removed from the cluster.
func (e *Engine) noteRemoved() {
	if e.removed || e.desk == nil {
		return
	}
	e.removed = true
	e.logf(event.Error, fmt.Sprintf("This server was removed from JetStream cluster %q, and what it knows of streams grows old; "+
		"to have it join again wait until no stream is on it, stop it and remove its data directory", e.config.Cluster.Name))
}

// remember keeps when something came from a server last, after its session has ended.
func (e *Engine) remember(p *peer) {
	if len(e.heardOf) >= meta.ServersMax {
		clear(e.heardOf)
	}
	e.heardOf[p.id] = p.heard
}

// heardFrom is when something came from a server last, on the monotone clock; false when nothing ever did.
func (e *Engine) heardFrom(server event.ServerID) (nanos int64, ever bool) {
	if p := e.peerOf[server]; p != nil {
		return p.heard, true
	}
	nanos, ever = e.heardOf[server]
	return nanos, ever
}
