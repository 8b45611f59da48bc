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
// one part in caughtUpShare does.
const (
	behindShare   = 4
	caughtUpShare = 8
)

// fallBehind lets the other servers of the cluster know that the client does not keep up with a message of theirs, so that
// streams there hold back what they have for it.
func (s *Session) fallBehind(sub *route.Sub) {
	if s.PendingBytes() > s.config.PendingBytesMax/behindShare && sub.Active() && !sub.Behind() {
		s.table.SetBehind(sub, true)
		s.behind = append(s.behind, sub)
	}
}

// catchUp takes that back.
func (s *Session) catchUp() {
	if len(s.behind) == 0 || s.PendingBytes() >= s.config.PendingBytesMax/caughtUpShare {
		return
	}
	for _, sub := range s.behind {
		s.table.SetBehind(sub, false)
	}
	clear(s.behind)
	s.behind = s.behind[:0]
}
