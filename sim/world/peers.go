package world

import (
	"weir/node/event"
	"weir/sim/mesh"
	"weir/sim/sched"
	"weir/sim/trace"
	"weir/transport/peerwire"
)

// SendPeers implements node.Network.
func (n *network) SendPeers(out []event.PeerOut) {
	m := (*machine)(n)
	for i := range out {
		o := &out[i]
		if to, known := m.w.servers[o.To]; known && m.w.mesh != nil {
			m.w.trace.Add(trace.ToPeer, m.life(), uint64(to), o.Frames)
			m.promises(o.Frames)
			m.w.mesh.Send(m.index, to, o.To, o.Frames)
			if o.Close {
				m.w.mesh.End(m.index, to)
			}
		}
		m.recycle(o.Frames)
	}
}

// joined has a machine whose process has begun seek sessions with the others.
func (w *World) joined(m *machine) {
	if w.mesh == nil {
		return
	}
	id := m.hello().ID
	if node, known := w.servers[id]; known && (node != m.index || w.disks[id] != m.wipes) {
		w.violate("identity-reused", "server %s on disk %d of node %d was disk %d of node %d before: what that one promised is forgotten",
			id.Short(), m.wipes, m.index, w.disks[id], node)
	}
	w.servers[id], w.disks[id] = m.index, m.wipes
	w.mesh.Boot(m.index)
}

// left lets the others learn that the process of a machine has ended.
func (w *World) left(m *machine) {
	if w.mesh != nil && m.node != nil {
		w.mesh.Ended(m.index)
	}
}

// serverID is an identity in the form of package peerwire.
func serverID(id uint64) peerwire.ServerID { return peerwire.ServerID(id) }

// hello is how the server introduces itself.
func (m *machine) hello() *peerwire.Hello {
	h := m.node.Engine().Hello()
	return &h
}

// peers is the world as a mesh.Host.
type peers World

// Now implements mesh.Host.
func (p *peers) Now() int64 { return p.now }

// Push implements mesh.Host.
func (p *peers) Push(e sched.Event) { p.queue.Push(e) }

// Running implements mesh.Host.
func (p *peers) Running(node int) uint32 {
	if m := p.machines[node]; m.node != nil {
		return m.gen
	}
	return 0
}

// Hello implements mesh.Host.
func (p *peers) Hello(node int) *peerwire.Hello {
	hello := p.machines[node].hello()
	(*World)(p).founder(p.machines[node], hello)
	return hello
}

// Up implements mesh.Host.
func (p *peers) Up(node int, peer *peerwire.Hello) {
	m := p.machines[node]
	p.trace.Add(trace.PeerUp, m.life(), uint64(p.servers[peer.ID]), nil)
	m.step(event.Input{Kind: event.PeerUp, Peer: peer.ID, Hello: peer})
}

// Down implements mesh.Host.
func (p *peers) Down(node int, peer peerwire.ServerID) {
	m := p.machines[node]
	p.trace.Add(trace.PeerDown, m.life(), uint64(p.servers[peer]), nil)
	m.step(event.Input{Kind: event.PeerDown, Peer: peer})
}

// Frames implements mesh.Host.
func (p *peers) Frames(node int, peer peerwire.ServerID, frames []byte) {
	m := p.machines[node]
	p.trace.Add(trace.FromPeer, m.life(), uint64(p.servers[peer]), nil)
	if p.plan.Plant == reusedNumbers {
		m.messages(frames, m.mistaken)
	}
	m.step(event.Input{Kind: event.FromPeer, Peer: peer, Frames: frames})
}

// meshConfig is what the plan says of the network between servers.
func (w *World) meshConfig() mesh.Config {
	p := &w.plan.Cluster
	return mesh.Config{
		Nodes:           len(w.machines),
		LatencyMinNanos: p.LatencyMinMicros * 1000, LatencyMeanNanos: p.LatencyMeanMicros * 1000,
		LossPerMille: p.LossPerMille, DupPerMille: p.DupPerMille, ResetPerMille: p.ResetPerMille,
		LatePerMille: p.LatePerMille, LateMeanNanos: p.LateMeanMillis * 1_000_000, Ordered: p.Ordered,
	}
}
