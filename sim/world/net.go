package world

import (
	"weir/node/event"
	"weir/sim/sched"
	"weir/sim/trace"
	"weir/transport/wire"
)

// Link is one connection: two byte streams, each delivered in order.
type Link struct {
	// ID is the connection as the node sees it.
	ID event.ConnID
	// Client is the client at the other end.
	Client int

	machine    *machine // at the other end
	gen        uint32
	nodeOpen   bool // the node may still hear of it
	clientOpen bool // the client may still hear of it
	toNode     int64
	toClient   int64
	parser     *wire.Parser
	refused    bool
	sends      uint64
}

// Open says whether the client may use the link.
func (l *Link) Open() bool { return l.clientOpen }

// Alive says whether the node is still at the other end. A client cannot know; a judge can.
func (l *Link) Alive() bool { return l.clientOpen && l.nodeOpen }

// poison overwrites bytes whose time is over, so that whoever kept them is found out.
func poison(b []byte) {
	for i := range b {
		b[i] = 0xa5
	}
}

// latency draws the delay of bytes between a client and the node.
func (w *World) latency(l *Link, direction uint64) int64 {
	l.sends++
	n := w.plan.Net
	return n.LatencyMinMicros*1000 +
		w.key.Exp(n.LatencyMeanMicros*1000, "net", uint64(l.Client), direction, l.sends, uint64(w.now)>>22)
}

// Dial opens a link to a node for a client. Whether it works shows later, by bytes or by Clients.Lost.
func (w *World) Dial(client, node int) *Link {
	w.nextID++
	m := w.machines[node]
	l := &Link{ID: w.nextID, Client: client, machine: m, gen: m.gen, clientOpen: true}
	w.links[l.ID] = l
	at := w.now + w.latency(l, 0)
	l.toNode = at
	if m.node == nil {
		l.toClient = at
		w.queue.Push(sched.Event{At: at, Kind: evLost, Conn: uint64(l.ID)})
		return l
	}
	l.nodeOpen = true
	m.push(sched.Event{At: at, Kind: evOpened, Gen: l.gen, Conn: uint64(l.ID)})
	return l
}

// Send puts bytes on the way to the node, in pieces or whole. The bytes are copied.
func (w *World) Send(l *Link, data []byte) {
	if !l.clientOpen || !l.nodeOpen {
		return // Nobody is there; the client learns of it by Lost.
	}
	for len(data) > 0 {
		piece := len(data)
		if w.key.Chance(w.plan.Net.CutPerMille, "cut", uint64(l.Client), l.sends, uint64(len(data))) {
			piece = 1 + int(w.key.Below(uint64(len(data)), "piece", uint64(l.Client), l.sends, uint64(len(data))))
		}
		l.toNode = max(l.toNode+1, w.now+w.latency(l, 0))
		l.machine.push(sched.Event{
			At: l.toNode, Kind: evToNode, Gen: l.gen, Conn: uint64(l.ID), Bytes: append([]byte(nil), data[:piece]...),
		})
		data = data[piece:]
	}
}

// Hangup closes the client's end; the node learns of it when everything sent has arrived.
func (w *World) Hangup(l *Link) {
	if !l.clientOpen {
		return
	}
	l.clientOpen = false
	if l.nodeOpen {
		l.toNode = max(l.toNode+1, w.now+w.latency(l, 0))
		l.machine.push(sched.Event{At: l.toNode, Kind: evHangup, Gen: l.gen, Conn: uint64(l.ID), N: uint64(wire.ClientClosed)})
	}
}

// Cut ends a link at once, with the loss of everything under way.
func (w *World) Cut(l *Link) {
	if l.nodeOpen {
		l.machine.push(sched.Event{At: w.now, Kind: evClosed, Gen: l.gen, Conn: uint64(l.ID), N: uint64(wire.ReadError)})
	}
	l.refused = true // What is still on its way to the node is lost.
	w.lose(l)
}

// lose tells the client that the link is gone.
func (w *World) lose(l *Link) {
	if !l.clientOpen {
		return
	}
	l.clientOpen = false
	delete(w.links, l.ID)
	w.clients.Lost(l)
}

// loseLinks ends all links of a machine after its process has ended: some clients learn of it, the others wait for an
// answer in vain. What had left the node before still arrives.
func (w *World) loseLinks(m *machine) {
	for id := event.ConnID(1); id <= w.nextID; id++ {
		l := w.links[id]
		if l == nil || l.machine != m || !l.nodeOpen {
			continue
		}
		l.nodeOpen = false
		if w.key.Chance(700, "reset seen", uint64(l.Client), m.life()) {
			l.toClient = max(l.toClient+1, w.now+w.latency(l, 1))
			w.queue.Push(sched.Event{At: l.toClient, Kind: evLost, Conn: uint64(l.ID)})
		}
	}
}

// open brings a new connection to the node.
func (m *machine) open(e *sched.Event) {
	w := m.w
	l := w.links[event.ConnID(e.Conn)]
	if l == nil || !l.nodeOpen || l.refused {
		return
	}
	l.parser = wire.NewParser(wire.Limits{
		ControlLineBytes: wire.DefaultControlLineBytes, PayloadBytes: wire.DefaultPayloadBytes,
	})
	w.trace.Add(trace.Opened, e.Conn, uint64(l.Client), nil)
	m.step(event.Input{Kind: event.Opened, Conn: l.ID, Text: "127.0.0.1:50000"})
}

// feed brings bytes to the node, through the parser that production uses.
func (m *machine) feed(e *sched.Event) {
	w := m.w
	l := w.links[event.ConnID(e.Conn)]
	if l == nil || !l.nodeOpen || l.refused || l.parser == nil {
		return
	}
	w.trace.Add(trace.ToNode, e.Conn, uint64(len(e.Bytes)), e.Bytes)
	data := e.Bytes
	for len(data) > 0 && !l.refused {
		ops, used, err := l.parser.Feed(data, nil)
		data = data[used:]
		if len(ops) > 0 {
			m.step(event.Input{Kind: event.Ops, Conn: l.ID, Ops: ops})
		}
		if err != nil {
			failure, ok := err.(wire.Failure)
			if !ok {
				failure = wire.FailureVerb
			}
			l.refused = true
			m.step(event.Input{Kind: event.Refused, Conn: l.ID, Failure: failure})
		}
	}
	poison(e.Bytes)
}

// close tells the node that a connection is gone.
func (m *machine) close(e *sched.Event) {
	w := m.w
	l := w.links[event.ConnID(e.Conn)]
	if l == nil {
		l = &Link{ID: event.ConnID(e.Conn)} // The client has forgotten it already.
	} else if !l.nodeOpen {
		return
	}
	l.nodeOpen = false
	if !l.clientOpen {
		delete(w.links, l.ID)
	}
	w.trace.Add(trace.Closed, e.Conn, e.N, nil)
	m.step(event.Input{Kind: event.Closed, Conn: l.ID, Reason: wire.Reason(e.N)})
}

// toClient brings bytes, or the end of a link, to the client.
func (w *World) toClient(e *sched.Event) {
	l := w.links[event.ConnID(e.Conn)]
	if l == nil || !l.clientOpen {
		return
	}
	if e.Kind == evLost {
		w.lose(l)
		return
	}
	w.clients.Receive(l, e.Bytes)
	poison(e.Bytes)
}

// network is a machine as a node.Network.
type network machine

// Send implements node.Network.
func (n *network) Send(out []event.ConnOut) {
	m := (*machine)(n)
	w := m.w
	for i := range out {
		o := &out[i]
		l := w.links[o.Conn]
		if l == nil || !l.nodeOpen {
			m.recycle(o.Bytes)
			continue
		}
		l.control(o)
		if len(o.Bytes) > 0 {
			w.trace.Add(trace.ToClient, uint64(o.Conn), uint64(len(o.Bytes)), o.Bytes)
			l.toClient = max(l.toClient+1, w.now+w.latency(l, 1))
			w.queue.Push(sched.Event{
				At: l.toClient, Kind: evToClient, Conn: uint64(o.Conn), Bytes: append([]byte(nil), o.Bytes...),
			})
			m.written = append(m.written, written{o.Conn, len(o.Bytes)})
			m.recycle(o.Bytes)
		}
		if o.Close {
			l.refused = true
			l.toClient = max(l.toClient+1, w.now+w.latency(l, 1))
			w.queue.Push(sched.Event{At: l.toClient, Kind: evLost, Conn: uint64(o.Conn)})
			l.machine.push(sched.Event{At: w.now + 1, Kind: evClosed, Gen: l.gen, Conn: uint64(o.Conn), N: uint64(o.Reason)})
		}
	}
}

func (l *Link) control(o *event.ConnOut) {
	if l.parser == nil {
		return
	}
	if o.Gate {
		l.parser.Gate()
	}
	if o.Admit {
		l.parser.Admit()
	}
	if o.Limits != (wire.Limits{}) {
		l.parser.SetLimits(o.Limits)
	}
}

// spareMax bounds the buffers that wait to be used again.
const spareMax = 64

func (m *machine) recycle(b []byte) {
	if cap(b) > 0 && len(m.spare) < spareMax {
		poison(b)
		m.spare = append(m.spare, b[:0])
	}
}

// Spare implements node.Network.
func (n *network) Spare(dst [][]byte) [][]byte {
	m := (*machine)(n)
	dst = append(dst, m.spare...)
	clear(m.spare)
	m.spare = m.spare[:0]
	return dst
}
