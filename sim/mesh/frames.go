package mesh

import (
	"encoding/binary"

	"weir/sim/sched"
	"weir/spec/assert"
	"weir/transport/peerwire"
)

// latency draws a delay that does not depend on what is sent.
func (m *Mesh) latency(from, to int) int64 {
	return m.delay(from, to, 0)
}

// delay draws the delay of a frame. It is keyed by the frame's own checksum, so that leaving out others changes nothing.
func (m *Mesh) delay(from, to int, sum uint64) int64 {
	c := &m.config
	exp := m.key.Exp(c.LatencyMeanNanos, "mesh", uint64(from), uint64(to), sum, uint64(m.host.Now())>>20)
	return (c.LatencyMinNanos + exp) * m.link(from, to).factor()
}

// sum is the checksum of a frame.
func sum(frame []byte) uint64 { return uint64(binary.LittleEndian.Uint32(frame[4:])) }

// Send puts whole frames on the way from a server to the peer with the id. Without a session with it they are lost. The
// bytes are copied.
func (m *Mesh) Send(from, to int, peer peerwire.ServerID, frames []byte) {
	s := m.sessions[m.current[m.at(from, to)]]
	if s == nil || s.other(from).hello.ID != peer {
		return
	}
	ordered := 0 // bytes of ordered frames that go together
	rest := frames
	for len(rest) > 0 {
		frame, after, err := peerwire.Split(rest)
		if err != nil {
			assert.Unreachable("a server sends whole frames: " + err.Error())
		}
		if peerwire.KindOf(frame).Datagram() && !m.config.Ordered {
			m.ordered(s, from, to, frames[:ordered])
			m.datagram(s, from, to, frame)
			frames, ordered = after, 0
		} else {
			ordered += len(frame)
		}
		rest = after
	}
	m.ordered(s, from, to, frames[:ordered])
}

// ordered sends frames that arrive in order or end the session.
func (m *Mesh) ordered(s *session, from, to int, frames []byte) {
	switch {
	case len(frames) == 0 || s.dead:
	case !m.calm && m.key.Chance(m.config.ResetPerMille, "reset", uint64(from), uint64(to), sum(frames), uint64(m.host.Now())>>20):
		m.kill(s, "lost")
	case m.link(from, to).cuts > 0:
		m.hold(from, to, heldFrames{parcel: parcel{s.id, s.side(from).hello.ID, frames}})
	default:
		m.pushOrdered(s, from, to, append([]byte(nil), frames...))
	}
}

// HeldMax bounds the pieces that wait at a direction that is cut; the session ends at one more, as a full queue does.
const HeldMax = 4096

func (m *Mesh) hold(from, to int, h heldFrames) {
	l := m.link(from, to)
	if len(l.held) >= HeldMax {
		if s := m.sessions[h.session]; s != nil && !h.datagram {
			m.kill(s, "full")
		}
		return
	}
	h.frames = append([]byte(nil), h.frames...)
	l.held = append(l.held, h)
}

func (m *Mesh) pushOrdered(s *session, from, to int, frames []byte) {
	e := s.side(to)
	e.last = max(e.last+1, e.up+1, m.host.Now()+m.delay(from, to, sum(frames)))
	m.push(from, to, e.last, parcel{s.id, s.side(from).hello.ID, frames})
}

// datagram sends a frame that may be lost, repeated, overtaken or late.
func (m *Mesh) datagram(s *session, from, to int, frame []byte) {
	c, l, sender := &m.config, m.link(from, to), s.side(from).hello.ID
	id := [4]uint64{uint64(from), uint64(to), sum(frame), uint64(m.host.Now()) >> 20}
	if l.cuts > 0 {
		// Of what waits at a cut, some passes when it is mended, however late that is.
		if m.key.Chance(200, "held", id[:]...) {
			m.hold(from, to, heldFrames{parcel{s.id, sender, frame}, true})
		}
		return
	}
	loss := l.lossPerMille()
	if !m.calm {
		loss = max(loss, c.LossPerMille)
	}
	if m.key.Chance(loss, "loss", id[:]...) {
		return
	}
	at := max(m.host.Now()+m.delay(from, to, id[2]), s.side(to).up+1)
	if !m.calm && m.key.Chance(c.LatePerMille, "late", id[:]...) {
		at += m.key.Exp(c.LateMeanNanos, "late by", id[:]...)
	}
	m.push(from, to, at, parcel{s.id, sender, append([]byte(nil), frame...)})
	if !m.calm && m.key.Chance(c.DupPerMille, "dup", id[:]...) {
		again := at + m.key.Exp(c.LatencyMeanNanos*4, "dup by", id[:]...)
		m.push(from, to, again, parcel{s.id, sender, append([]byte(nil), frame...)})
	}
}

// parcel is frames on their way.
type parcel struct {
	session uint64
	sender  peerwire.ServerID
	frames  []byte
}

// push schedules a delivery. Conn is the session, N the id of the sender, Gen its number.
func (m *Mesh) push(from, to int, at int64, p parcel) {
	m.host.Push(sched.Event{
		At: at, Kind: Deliver, Node: uint32(to), Conn: p.session, N: uint64(p.sender), Gen: uint32(from), Bytes: p.frames,
	})
}

// deliver brings frames to a server, if they may still reach it. Ordered frames need their own session. A datagram needs
// any session with the server that sent it.
func (m *Mesh) deliver(e *sched.Event) {
	node, from := int(e.Node), int(e.Gen)
	now := m.sessions[m.current[m.at(node, from)]]
	if now == nil || !m.same(now.side(node)) || now.other(node).hello.ID != peerwire.ServerID(e.N) {
		return
	}
	if now.id != e.Conn || now.dead {
		if !peerwire.KindOf(e.Bytes).Datagram() || m.config.Ordered {
			return
		}
	}
	m.host.Frames(node, now.other(node).hello.ID, e.Bytes)
	for i := range e.Bytes {
		e.Bytes[i] = 0xa5 // Whoever kept them is found out.
	}
}
