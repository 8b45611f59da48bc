package mesh

import (
	"slices"

	"weir/sim/sched"
	"weir/spec/assert"
)

// Cut blocks one direction. What is sent meanwhile waits, or is lost if it may be. Unless hold is set, the ends give up
// the session after a while if the direction stays blocked.
func (m *Mesh) Cut(from, to int, hold bool) {
	l := m.link(from, to)
	l.cuts++
	if hold {
		l.holds++
		return
	}
	if id := m.current[m.at(from, to)]; id != 0 {
		m.doubt(m.sessions[id])
	}
	if id := m.current[m.at(to, from)]; id != 0 && id != m.current[m.at(from, to)] {
		m.doubt(m.sessions[id])
	}
}

// doubt lets both ends of a session give it up later.
func (m *Mesh) doubt(s *session) {
	for i := range s.ends {
		e := &s.ends[i]
		if e.state == broken {
			continue
		}
		wait := suspectMin + m.key.Exp(suspectMean, "suspect", s.id, uint64(e.node), uint64(m.host.Now())>>20)
		m.host.Push(sched.Event{
			At: m.host.Now() + wait, Kind: Suspect, Node: uint32(e.node), Conn: s.id, N: uint64(m.host.Now()),
		})
	}
}

// suspect breaks a session for one end if one of its directions has been blocked since the given time.
func (m *Mesh) suspect(s *session, side *end, since int64) {
	other := s.other(side.node)
	if side.state != open || !m.blockedSince(side.node, other.node, since) && !m.blockedSince(other.node, side.node, since) {
		return
	}
	s.dead = true
	m.broken(s, side)
	if other.state == open {
		// What this end sent to end the session cannot pass; the other end has doubts of its own, or learns of it when
		// the links are whole again.
		m.host.Push(sched.Event{
			At: m.host.Now() + suspectMin + m.key.Exp(2*suspectMean, "other end", s.id), Kind: Broken, Node: uint32(other.node), Conn: s.id,
		})
	}
}

func (m *Mesh) blockedSince(from, to int, since int64) bool {
	l := m.link(from, to)
	return l.cuts > l.holds && l.whole <= since
}

// Mend takes back one Cut of the same kind. What waited passes.
func (m *Mesh) Mend(from, to int, hold bool) {
	l := m.link(from, to)
	assert.True(l.cuts > 0, "a direction that is mended was cut", uint64(from), uint64(to))
	l.cuts--
	if hold {
		l.holds--
	}
	if l.cuts > 0 {
		return
	}
	l.whole = m.host.Now()
	held := l.held
	l.held = nil
	for i := range held {
		h := &held[i]
		s := m.sessions[h.session]
		switch {
		case h.datagram:
			m.push(from, to, m.host.Now()+m.latency(from, to), h.parcel)
		case s != nil && !s.dead:
			m.pushOrdered(s, from, to, h.frames)
		}
	}
}

// Slow multiplies the latency of a direction; Unslow takes it back.
func (m *Mesh) Slow(from, to int, factor int64) {
	l := m.link(from, to)
	l.factors = append(l.factors, max(factor, 1))
}

// Unslow takes back one Slow with the same factor.
func (m *Mesh) Unslow(from, to int, factor int64) {
	l := m.link(from, to)
	i := slices.Index(l.factors, max(factor, 1))
	assert.True(i >= 0, "a direction that is unslowed was slowed", uint64(from), uint64(to))
	l.factors = slices.Delete(l.factors, i, i+1)
}

// Lossy adds to how often a datagram of a direction is lost; Unlossy takes it back.
func (m *Mesh) Lossy(from, to int, perMille uint64) {
	l := m.link(from, to)
	l.loss = append(l.loss, perMille)
}

// Unlossy takes back one Lossy with the same number.
func (m *Mesh) Unlossy(from, to int, perMille uint64) {
	l := m.link(from, to)
	i := slices.Index(l.loss, perMille)
	assert.True(i >= 0, "a direction that loses less lost more", uint64(from), uint64(to))
	l.loss = slices.Delete(l.loss, i, i+1)
}

// factor is how much slower than usual a direction is.
func (l *link) factor() int64 {
	f := int64(1)
	for _, n := range l.factors {
		f = max(f, n)
	}
	return f
}

func (l *link) lossPerMille() uint64 {
	n := uint64(0)
	for _, loss := range l.loss {
		n = max(n, loss)
	}
	return n
}
