package session

import (
	"weir/node/event"
	"weir/node/route"
)

// A client that publishes to one that falls behind is slowed down, for each message by stallNanos, or by stallHardNanos
// when the other is about to be closed, and by stallMaxNanos at most per step. The numbers are the reference server's.
const (
	stallNanos     = 2e6
	stallHardNanos = 5e6
	stallMaxNanos  = 10e6
)

// Congested reports that the client is close to being closed as too slow: three quarters of the pending bytes it may have
// wait to be sent.
func (s *Session) Congested() bool { return s.PendingBytes() > s.config.PendingBytesMax/4*3 }

// slowDown makes the client that published to this one wait when this one is congested. The server itself, which paces
// deliveries by other means, is not slowed down.
func (s *Session) slowDown(publisher event.ConnID) {
	if publisher == 0 || publisher == s.params.ID || !s.Congested() {
		return
	}
	from := s.host.Session(publisher)
	if from == nil {
		return
	}
	nanos := int64(stallNanos)
	if s.PendingBytes() > s.config.PendingBytesMax/8*7 {
		nanos = stallHardNanos
	}
	from.wait(nanos)
}

// Stall makes the client, which publishes faster than another server takes, wait.
func (s *Session) Stall() { s.wait(stallNanos) }

func (s *Session) wait(nanos int64) {
	if s.reason == 0 {
		s.begin()
		s.orders.StallNanos = min(s.orders.StallNanos+nanos, stallMaxNanos)
	}
}

// A client for which more than one part in behindShare of the pending bytes it may have waits is behind, until less than
// one part in caughtUpShare does. It is slow when Congested, until less than one part in steadyShare waits.
const (
	behindShare   = 4
	caughtUpShare = 8
	steadyShare   = 2
)

// fallBehind lets the other servers of the cluster know that the client does not keep up with a message of theirs, so that
// streams there hold back what they have for it, and clients there that publish to a slow one are slowed down.
func (s *Session) fallBehind(sub *route.Sub) {
	lag := route.KeepsUp
	switch {
	case s.Congested():
		lag = route.Slow
	case s.PendingBytes() > s.config.PendingBytesMax/behindShare:
		lag = route.Behind
	}
	if lag <= sub.Lag() || !sub.Active() {
		return
	}
	if sub.Lag() == route.KeepsUp {
		s.behind = append(s.behind, sub)
	}
	s.table.SetLag(sub, lag)
}

// catchUp takes that back.
func (s *Session) catchUp() {
	if len(s.behind) == 0 || s.PendingBytes() >= s.config.PendingBytesMax/steadyShare {
		return
	}
	if s.PendingBytes() < s.config.PendingBytesMax/caughtUpShare {
		for _, sub := range s.behind {
			s.table.SetLag(sub, route.KeepsUp)
		}
		clear(s.behind)
		s.behind = s.behind[:0]
		return
	}
	for _, sub := range s.behind {
		if sub.Lag() == route.Slow {
			s.table.SetLag(sub, route.Behind)
		}
	}
}
